package fleet

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
)

// memoryLog is a partition of windows in memory, and the slices that were published of it.
type memoryLog struct {
	ingest.Log
	messages []ingest.Message
	hidden   int // of the last ones, which the broker does not give at present
	read     int
	reports  map[int64]uint64 // of the last revision, by window
	revision map[int64]uint64
}

func (l *memoryLog) Append(_ context.Context, _ string, _ int, messages ...ingest.Message) (int64, error) {
	for i := range messages {
		h, err := fleet.ReadHead(messages[i].Head)
		if err != nil {
			return 0, err
		}
		if h.Revision >= l.revision[h.End] {
			l.reports[h.End], l.revision[h.End] = h.Reports, h.Revision
		}
	}
	return 0, nil
}

func (l *memoryLog) Reader(_ string, _ int, at int64) ingest.LogReader {
	return &memoryReader{log: l, at: at}
}

type memoryReader struct {
	ingest.LogReader
	log *memoryLog
	at  int64
}

func (r *memoryReader) Next(context.Context) (out []ingest.Message, err error) {
	for _, m := range r.log.messages[:len(r.log.messages)-r.log.hidden] {
		if m.Offset >= r.at && len(out) < 10 {
			out = append(out, m)
		}
	}
	if len(out) > 0 {
		r.at = out[len(out)-1].Offset + 1
	}
	r.log.read += len(out)
	return out, nil
}

func (r *memoryReader) Offset() int64 { return r.at }
func (r *memoryReader) Limit(int)     {}
func (r *memoryReader) High() int64 {
	return r.log.messages[len(r.log.messages)-1-r.log.hidden].Offset + 1
}

// lateWorld is a slice, with windows of 10 reports of a that closed, and of others that come late.
type lateWorld struct {
	t    *testing.T
	task *sliceTask
	log  *memoryLog
	pubs map[string]*fleet.Publisher
	now  time.Time
}

const lateWindow = int64(10e9)

func newLateWorld(t *testing.T, change func(*Config)) *lateWorld {
	cfg := defaultConfig()
	if change != nil {
		change(&cfg)
	}
	log := &memoryLog{reports: map[int64]uint64{}, revision: map[int64]uint64{}}
	c := &Consumer{
		cfg: cfg, log: slog.New(slog.DiscardHandler), loggedLeft: map[string]bool{}, series: &stores.Set{}, receivers: &stores.Set{}, ledger: ledger.New(),
		limits: window.Limits{Hops: 9, Flows: 9, Paths: 9, Drops: 9, Faults: 9, Exporters: 9},
		opt:    Options{ID: "me", Now: time.Now, Kafka: log, Params: roster.Params{Slices: 1, Window: time.Duration(lateWindow)}},
	}
	w := &worker{c: c, status: &shared[partitionStatus]{}, tenure: &tenure{Generation: &ingest.Generation{}, ctx: t.Context()}}
	task, err := c.newSlice(w)
	if err != nil {
		t.Fatal(err)
	}
	return &lateWorld{t: t, task: task, log: log, pubs: map[string]*fleet.Publisher{}, now: time.Unix(1e9, 0)}
}

func (w *lateWorld) add(h fleet.Head, value []byte) {
	w.t.Helper()
	at := int64(len(w.log.messages))
	w.log.messages = append(w.log.messages, ingest.Message{Offset: at, Head: h.Append(nil), Value: value})
	if err := w.task.add(w.t.Context(), &fleet.Record{Offset: at, Head: h, Value: value}); err != nil {
		w.t.Fatal(err)
	}
}

// sends adds a record of 10 reports of a window, whose value is broken if spoil is set.
func (w *lateWorld) sends(from string, n int64, spoil bool) {
	w.t.Helper()
	if w.pubs[from] == nil {
		w.pubs[from] = fleet.NewPublisher(fleet.PublisherConfig{From: from, Boot: 1, Slicer: window.NewSlicer(1, 1), Window: lateWindow})
	}
	p := &window.Partial{Reports: 10}
	out, err := w.pubs[from].Window(nil, p, n*lateWindow, nil, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	if spoil {
		out[0].Value = []byte("of a version that is not known")
		out[0].Head.Sum = fleet.Sum(out[0].Value)
	}
	w.add(out[0].Head, out[0].Value)
}

func (w *lateWorld) closes(n int64) {
	w.t.Helper()
	w.add(fleet.Head{Kind: fleet.Close, From: "me", Start: (n - 1) * lateWindow, End: n * lateWindow}, nil)
}

func (w *lateWorld) republish() error {
	w.now = w.now.Add(time.Duration(lateWindow))
	return w.task.republish(w.t.Context(), w.now)
}

// check holds the books against what the last revisions have.
func (w *lateWorld) check(taken uint64, dropped map[string]uint64) {
	w.t.Helper()
	b, stored, lost := &w.task.books, uint64(0), uint64(0)
	for _, n := range w.log.reports {
		stored += n
	}
	for _, n := range b.Dropped {
		lost += n
	}
	if b.Taken != taken || b.Delivered != stored || b.Delivered+lost != taken || len(b.Waiting) != 0 || !maps.Equal(b.Dropped, dropped) {
		w.t.Errorf("%d taken, %d delivered, waiting %v, dropped %v; %d are stored; want %d, dropped %v", b.Taken, b.Delivered, b.Waiting, b.Dropped, stored, taken, dropped)
	}
}

// TestRepublish: each report that comes late is in the last revision of its window, or is counted as lost.
func TestRepublish(t *testing.T) {
	const windows = 20
	late := func(change func(*Config)) *lateWorld {
		w := newLateWorld(t, change)
		for n := int64(100); n < 100+windows; n++ {
			w.sends("a", n, false)
			w.closes(n)
		}
		for n := int64(100); n < 100+windows; n++ {
			w.sends("b", n, false)
		}
		return w
	}
	t.Run("one rereading for all", func(t *testing.T) {
		w := late(nil)
		if err := w.republish(); err != nil {
			t.Fatal(err)
		}
		if w.log.read != len(w.log.messages) || len(w.task.merger.Pending()) != 0 {
			t.Errorf("%d records of %d were read, pending %v", w.log.read, len(w.log.messages), w.task.merger.Pending())
		}
		w.check(2*10*windows, nil)
	})
	t.Run("as much as fits", func(t *testing.T) {
		w := late(func(c *Config) { c.WindowBytes = 250 })
		rounds := 0
		for ; len(w.task.merger.Pending()) > 0 && rounds < windows; rounds++ {
			if err := w.republish(); err != nil {
				t.Fatal(err)
			}
		}
		if rounds < 3 || rounds >= windows {
			t.Errorf("%d rounds", rounds)
		}
		w.check(2*10*windows, nil)
	})
	t.Run("the log ends early for a while", func(t *testing.T) {
		w := late(nil)
		w.log.hidden = windows / 2
		if err := w.republish(); err == nil || len(w.task.merger.Pending()) != windows {
			t.Errorf("%v, pending %v", err, w.task.merger.Pending())
		}
		w.log.hidden = 0
		if err := w.republish(); err != nil {
			t.Error(err)
		}
		w.check(2*10*windows, nil)
	})
	t.Run("the first records are gone", func(t *testing.T) {
		w := late(nil)
		all := w.log.messages
		w.log.messages = all[7:] // of four windows, 100 to 103
		if err := w.republish(); err != nil {
			t.Fatal(err)
		}
		w.check(2*10*windows, map[string]uint64{roster.DroppedRetention: 4 * 10})
	})
	t.Run("corrected too late", func(t *testing.T) {
		w := late(func(c *Config) { c.Corrections = time.Duration(30 * lateWindow) })
		for n := int64(100 + windows); n < 135; n++ {
			w.sends("a", n, false)
			w.closes(n)
		}
		for range windows {
			if err := w.republish(); err != nil {
				t.Fatal(err)
			}
		}
		w.check(2*10*windows+15*10, map[string]uint64{roster.DroppedLate: 5 * 10})
	})
	t.Run("broken", func(t *testing.T) {
		w := late(nil)
		for range 2 {
			w.sends("c", 100, true)
			if err := w.republish(); err != nil {
				t.Fatal(err)
			}
			w.sends("c", 100, false)
			if err := w.republish(); err != nil {
				t.Fatal(err)
			}
		}
		w.check(2*10*windows+4*10, map[string]uint64{roster.DroppedBroken: 2 * 10})
	})
	t.Run("too many", func(t *testing.T) {
		w := late(func(c *Config) { c.WindowBytes = 250 })
		for range 12 {
			w.sends("c", 100, false)
		}
		for range windows {
			if err := w.republish(); err != nil {
				t.Fatal(err)
			}
		}
		full := w.task.books.Dropped[roster.DroppedFull]
		if full == 0 || w.task.w.c.full != full {
			t.Errorf("%d found no room, %d by the limit", full, w.task.w.c.full)
		}
		w.check(2*10*windows+12*10, map[string]uint64{roster.DroppedFull: full})
		w.sends("c", 100, false)
		if err := w.republish(); err != nil {
			t.Fatal(err)
		}
		w.check(2*10*windows+13*10, map[string]uint64{roster.DroppedFull: full + 10})
	})
}
