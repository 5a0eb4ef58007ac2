package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/collector/windows"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
	"github.com/hopscope/hopscope/sink/parquet"
	"github.com/hopscope/hopscope/sink/spool"
)

// publisher is a store of a fleet. It takes some reports out, and keeps what it was given and in which order.
type publisher struct {
	takes func(r *decode.Report) bool
	slow  func()
	exact bool // windows are cut by the time of receipt

	mu       sync.Mutex
	put      func(sink.Encoded)
	waiting  [][]int64 // times of diverted reports by worker
	open     uint64    // diverted in the open window, by what Divert was given
	diverted map[int64]uint64
	opened   int64            // by OpenWindow
	under    map[int64]uint64 // diverted, by what was opened
	ended    []int64
	windows  []label
	wrong    []string
	stored   uint64 // records
	ticks    int
}

// label is the content of one window.
type label struct {
	label, end int64
	reports    uint64
	seen       uint64 // by the partial
	run        *sink.Run
}

var errAlways = errors.New("not now")

func (p *publisher) Name() string { return "publisher" }
func (p *publisher) Close() error { return nil }
func (p *publisher) Write(context.Context, *sink.Batch) error {
	return errors.New("a batch of points came to a store of windows")
}

func (p *publisher) Encode(dst []byte, b *sink.Batch) ([]byte, uint64) {
	p.fail("points were encoded")
	return dst, 0
}

func (p *publisher) fail(format string, args ...any) {
	p.mu.Lock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
	p.mu.Unlock()
}

func (p *publisher) WriteEncoded(context.Context, []byte) error {
	if p.slow != nil {
		p.slow()
	}
	p.mu.Lock()
	p.stored++
	p.mu.Unlock()
	return nil
}

func (p *publisher) EncodeWindow(w *sink.Window) []sink.Encoded {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.ended); p.put != nil && (n == 0 || p.ended[n-1] != w.Label) {
		p.wrong = append(p.wrong, fmt.Sprintf("window %d was encoded after the ends %v", w.Label, p.ended))
	}
	p.windows = append(p.windows, label{w.Label, w.End, w.Reports, w.Partial.Reports, w.Run})
	var out []sink.Encoded
	for i := range 3 { // the reports are with the second
		e := sink.Encoded{Payload: fmt.Append(nil, w.Label, i), Series: []sink.SeriesCount{{Series: "windows", Points: 1}}}
		if i == 1 {
			e.Reports = w.Reports
		}
		out = append(out, e)
	}
	return out
}

// diverting is a publisher that takes reports out.
type diverting struct{ *publisher }

func (p diverting) Open(workers int, put func(sink.Encoded)) {
	p.put, p.waiting, p.diverted, p.under = put, make([][]int64, workers), map[int64]uint64{}, map[int64]uint64{}
}

func (p diverting) Takes(r *decode.Report) bool { return p.takes(r) }

func (p diverting) Divert(worker int, reports []*decode.Report) {
	p.mu.Lock()
	for _, r := range reports {
		if r.Err.Reason != 0 || !p.takes(r) || r.Has&decode.HasFlow != 0 && r.FlowHash == 0 {
			p.wrong = append(p.wrong, fmt.Sprintf("diverted %+v", r))
		}
		p.waiting[worker] = append(p.waiting[worker], r.Time)
	}
	p.open += uint64(len(reports))
	p.under[p.opened] += uint64(len(reports))
	n := uint64(len(p.waiting[worker]))
	if n < 30 {
		n = 0
	} else {
		p.waiting[worker] = nil
	}
	p.mu.Unlock()
	if n > 0 {
		p.send(n)
	}
}

func (p diverting) send(n uint64) {
	p.put(sink.Encoded{Payload: []byte("reports"), Series: []sink.SeriesCount{{Series: "reports", Points: n}}, Reports: n})
}

func (p diverting) sendAll() {
	p.mu.Lock()
	n := uint64(0)
	for i, w := range p.waiting {
		n += uint64(len(w))
		p.waiting[i] = nil
	}
	p.mu.Unlock()
	if n > 0 {
		p.send(n)
	}
}

func (p diverting) Tick(int64) {
	p.mu.Lock()
	p.ticks++
	p.mu.Unlock()
	p.sendAll()
}

func (p diverting) OpenWindow(end int64) {
	p.mu.Lock()
	p.opened = end
	p.mu.Unlock()
}

func (p diverting) EndWindow(end int64) {
	p.mu.Lock()
	for _, w := range p.waiting {
		for _, at := range w {
			if p.exact && at >= end {
				p.wrong = append(p.wrong, fmt.Sprintf("a report of %d was diverted before window %d ended", at, end))
			}
		}
	}
	p.diverted[end] += p.open
	p.open = 0
	p.ended = append(p.ended, end)
	p.mu.Unlock()
	p.sendAll()
}

func (p diverting) MarkWindow(end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.ended); n == 0 || p.ended[n-1] != end {
		p.wrong = append(p.wrong, fmt.Sprintf("window %d is marked, and %d ended", end, p.ended))
	}
}

// check compares the received records with the sent reports. wrong is then empty.
func (p *publisher) check(t *testing.T, b *sink.Balance, sent uint64) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wrong {
		t.Error(w)
	}
	windows, diverted := uint64(0), uint64(0)
	for _, w := range p.windows {
		windows += w.reports
		if w.reports != w.seen {
			t.Errorf("window %+v", w)
		}
	}
	for _, n := range p.diverted {
		diverted += n
	}
	if windows+diverted != sent || b.Received != sent || b.Stored != sent || b.Unsettled != 0 || b.Points.Unsettled != 0 {
		t.Errorf("%d in windows and %d diverted of %d sent; %s", windows, diverted, sent, LedgerLine(b))
	}
	if p.put != nil && (diverted == 0 || windows == 0 || b.Points.Series["reports"].Stored != diverted) {
		t.Errorf("%d in windows, %d diverted, points %+v", windows, diverted, b.Points.Series)
	}
	if n := uint64(3 * len(p.windows)); b.Points.Series["windows"].Stored != n {
		t.Errorf("%d windows, points %+v", len(p.windows), b.Points.Series)
	}
}

// half takes the reports of about half of all flows.
func half(r *decode.Report) bool { return r.FlowHash>>40&1 == 0 }

func publish(p sink.Writer, spoolDir string) []Store {
	s := Store{Name: "publisher", Writer: p, Queue: sink.DefaultQueueConfig()}
	s.Queue.RetryMin, s.Queue.RetryMax = time.Millisecond, time.Millisecond
	if spoolDir != "" {
		c := spool.DefaultConfig()
		c.Dir = spoolDir
		s.Spool = &c
	}
	return []Store{s}
}

// A replay publishes all windows and all diverted reports, however slow the store is. Their labels are those of a live
// collector: multiples of the length of windows.
func TestReplayPublishes(t *testing.T) {
	frames := datagrams(t, 50)
	const second = int64(time.Second)
	times := func(_, batch int) int64 { return 1e18 + second/3 + int64(batch)*70*second/1000 }
	var each []map[int64]uint64
	for _, workers := range []int{1, 3} {
		p := &publisher{takes: half, exact: true, slow: func() { time.Sleep(100 * time.Microsecond) }}
		m := &canned{workers: workers, batches: 100, frames: frames, times: times}
		stores := publish(diverting{p}, "")
		stores[0].Queue.MaxBatches = 2
		c := newEngine(t, func(p *program) { p.Window = time.Second },
			Options{Policy: Replay, Seed: 5, Sources: []Source{{Name: "memory", Source: m}}, Stores: stores})
		if err := run(t, c); err != nil {
			t.Fatal(err)
		}
		p.check(t, &c.Balances()[0], uint64(workers*100*len(frames)))
		labels := map[int64]uint64{}
		for i, w := range p.windows {
			if labels[w.label] += (w.reports + p.diverted[w.label]) / uint64(workers); w.label != 1e18+int64(i+1)*second {
				t.Errorf("window %d has the label %d", i, w.label)
			}
		}
		if n := c.Status().Diverted; n == 0 {
			t.Error("the status reports no diverted report")
		}
		each = append(each, labels)
	}
	// Workers of a capture take turns, and are not in step: with one the labels are exact.
	want := map[int64]uint64{}
	for b := range 100 {
		want[times(0, b)/second*second+second] += uint64(len(frames))
	}
	if !maps.Equal(each[0], want) {
		t.Errorf("reports by label %v, want %v", each[0], want)
	}
}

// The reports of a live collector add up in this run and over all runs, with and without a spool. They are in windows,
// diverted, or counted by the exporters' numbers.
func TestLivePublishes(t *testing.T) {
	t.Parallel()
	for _, withSpool := range []bool{false, true} {
		t.Run(fmt.Sprint("spool=", withSpool), func(t *testing.T) {
			dir := ""
			if withSpool {
				dir = t.TempDir()
			}
			frames, total := datagrams(t, 50), uint64(0)
			for range 2 { // runs
				p := &publisher{takes: half}
				m := &canned{workers: 2, batches: 120, frames: frames, waits: true, times: func(int, int) int64 { return time.Now().UnixNano() }}
				m.before = func(int) { time.Sleep(5 * time.Millisecond) }
				c := newEngine(t, func(p *program) { p.Window = 100 * time.Millisecond },
					Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Sources: []Source{{Name: "memory", Source: m}}, Stores: publish(diverting{p}, dir)})
				if err := run(t, c); err != nil {
					t.Fatal(err)
				}
				sent := uint64(2 * 120 * len(frames))
				total += sent
				p.check(t, &c.Balances()[0], sent)
				for _, w := range p.windows {
					if w.label%int64(100*time.Millisecond) != 0 || w.end > w.label || w.run == nil || w.run.Boot == "" {
						t.Errorf("window %+v", w)
					}
				}
				if p.ticks == 0 {
					t.Error("nobody ticked")
				}
				if withSpool {
					all := c.state.AllRuns()
					if b := all.Sinks[0]; b.Received != total || b.Stored != total || b.Dropped["down"] != 0 {
						t.Errorf("over all runs %+v, want %d", b, total)
					}
				}
			}
		})
	}
}

// The last window of a run is published under the label that it would have had, and the next run adds to it.
func TestRunsShareALabel(t *testing.T) {
	const length = 10 * time.Minute // a run does not last until its end, however busy the machine is
	clock := newSetClock()
	base := clock.base
	at := func(into time.Duration) { // of a window
		clock.set(-time.Duration(clock.by.Load()))
		clock.set(time.Unix(1_800_000_000, 0).Add(into).Sub(base))
	}
	var labels []int64
	for i, into := range []time.Duration{2 * time.Minute, 4 * time.Minute, 5 * time.Minute} {
		at(into)
		p := &publisher{}
		m := &canned{workers: 1, batches: 1, frames: datagrams(t, 5), times: func(int, int) int64 { return 1 }}
		c := newEngine(t, func(p *program) { p.Window = length }, Options{Now: clock.now, Sources: []Source{{Name: "memory", Source: m}}, Stores: publish(p, "")})
		if err := run(t, c); err != nil {
			t.Fatal(err)
		}
		p.check(t, &c.Balances()[0], 5)
		for _, w := range p.windows {
			if labels = append(labels, w.label); w.end >= w.label {
				t.Errorf("run %d: %+v", i, w)
			}
		}
	}
	want := time.Unix(1_800_000_000, 0).Add(length).UnixNano()
	if !slices.Equal(labels, []int64{want, want, want}) {
		t.Errorf("labels %v, want %d three times", labels, want)
	}
}

// Nothing is lost for the account when the store loses it.
func TestPublishingFails(t *testing.T) {
	p := &publisher{takes: half}
	stores := publish(failing{diverting{p}}, "")
	stores[0].Queue.MaxBatches = 3
	m := &canned{workers: 2, batches: 50, frames: datagrams(t, 50), times: func(int, int) int64 { return time.Now().UnixNano() }, waits: true}
	c := newEngine(t, func(p *program) { p.DrainTimeout = 50 * time.Millisecond }, Options{Sources: []Source{{Name: "memory", Source: m}}, Stores: stores})
	if err := run(t, c); err == nil || !strings.Contains(err.Error(), "points were lost") {
		t.Errorf("Run = %v", err)
	}
	b := c.Balances()[0]
	if b.Received != 5000 || b.Dropped["sink-queue"] != 5000 || b.Unsettled != 0 || b.Points.Unsettled != 0 {
		t.Errorf("%s, %+v", LedgerLine(&b), b.Points)
	}
}

type failing struct{ diverting }

func (failing) WriteEncoded(context.Context, []byte) error { return errAlways }

// Reports that a store of windows forgot in its records go with the last, and such a store stands alone.
func TestPublisherAlone(t *testing.T) {
	p := &publisher{}
	stores := append(publish(p, ""), Store{Name: "discard", Writer: &publisher{}, Queue: sink.DefaultQueueConfig()})
	cfg := testConfig()
	if _, err := New(cfg.Config, cfg.Analysis, Options{Stores: stores}); err == nil ||
		!strings.Contains(err.Error(), "discard: is enabled beside publisher") {
		t.Errorf("New = %v", err)
	}
	for _, records := range [][]sink.Encoded{nil, {{}, {}}, {{Reports: 3}, {Reports: 1 << 40}}} {
		f := &forgetful{publisher: &publisher{}, records: records}
		m := &canned{workers: 1, batches: 1, frames: datagrams(t, 5), times: func(int, int) int64 { return 1e18 }}
		c := newEngine(t, nil, Options{Policy: Replay, Sources: []Source{{Name: "memory", Source: m}}, Stores: publish(f, "")})
		if err := run(t, c); err != nil {
			t.Fatal(err)
		}
		b := c.Balances()[0]
		if stored := b.Stored == 5; b.Unsettled != 0 || stored != (records != nil) || !stored && b.Dropped["not-encodable"] != 5 {
			t.Errorf("%v: %s", records, LedgerLine(&b))
		}
	}
}

type forgetful struct {
	*publisher
	records []sink.Encoded
}

func (f *forgetful) EncodeWindow(*sink.Window) []sink.Encoded { return slices.Clone(f.records) }

// What a collector reports to its fleet adds up while it runs, with a store that is away, and in the run after it.
func TestStanding(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	frames := datagrams(t, 50)
	sent := uint64(0)
	for runNumber := range 2 {
		p := &publisher{takes: half}
		var w sink.Writer = diverting{p}
		if runNumber == 0 {
			w = failing{diverting{p}}
		}
		stores := publish(w, dir)
		m := &canned{workers: 2, batches: 60, frames: frames, waits: true, times: func(int, int) int64 { return time.Now().UnixNano() }}
		m.before = func(int) { time.Sleep(5 * time.Millisecond) }
		c := newEngine(t, func(p *program) {
			p.Instance, p.DrainTimeout = "east", []time.Duration{time.Second, 30 * time.Second}[runNumber]
		},
			Options{Version: "1", Sources: []Source{{Name: "memory", Source: m}}, Stores: stores})
		began := time.Now()
		stop, asked := make(chan struct{}), make(chan struct{})
		adds := func(b *sink.Balance) {
			sum := b.Stored
			for _, part := range []map[string]int64{b.InFlight, b.Dropped} {
				for stage, n := range part {
					if n < 0 {
						t.Errorf("%d in %s", n, stage)
					}
					sum += uint64(n)
				}
			}
			if sum != b.Received {
				t.Errorf("%+v does not add up", b)
			}
		}
		go func() {
			defer close(asked)
			for {
				s := c.Standing()
				adds(&s.Balances[0])
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		if err := run(t, c); err != nil {
			t.Fatal(err)
		}
		close(stop)
		<-asked
		sent += 2 * 60 * uint64(len(frames))
		s := c.Standing()
		const length = int64(100 * time.Millisecond)
		if s.Name != "east" || s.Version != "1" || s.Run == "" || s.Start.Before(began.Add(-time.Second)) || s.First%length != 0 || s.Last%length != 0 ||
			s.First < windows.MultipleBefore(began.UnixNano(), length) || s.Last < s.First+length || s.Diverted == 0 {
			t.Errorf("%+v", s)
		}
		all := s.AllRuns.Sinks[0]
		if adds(&all); all.Received != sent {
			t.Errorf("over all runs %+v, want %d received", all, sent)
		}
		if away := runNumber == 0; away != (s.SpoolBytes > 0) || away && s.SpoolReports != sent || !away && all.Stored != sent {
			t.Errorf("%+v", s)
		}
	}
}

// publisherConfig is the settings of a publisher.
type publisherConfig struct{ Elsewhere bool }

func (c publisherConfig) Publishes() bool          { return !c.Elsewhere }
func (publisherConfig) Open() (sink.Writer, error) { return &publisher{}, nil }
func (publisherConfig) Target() string             { return "the fleet" }

// Settings that name a publisher and another store are refused before anything is opened.
func TestCheckStores(t *testing.T) {
	type both struct {
		Influx  StoreConfig[influx.Config]   `yaml:"influx"`
		Fleet   StoreConfig[publisherConfig] `yaml:"fleet"`
		Parquet StoreConfig[parquet.Config]  `yaml:"parquet"`
	}
	for _, x := range []struct {
		fleet, elsewhere, influx, parquet bool
		want                              string
	}{
		{fleet: true},
		{influx: true, parquet: true},
		{fleet: true, elsewhere: true, influx: true}, // it publishes nothing
		{fleet: true, influx: true, want: "influx: is enabled beside fleet, but the series of a fleet are written by its consumers: enable influx there and disable it here"},
		{fleet: true, influx: true, parquet: true, want: "influx: is enabled beside fleet"},
	} {
		cfg := &both{}
		cfg.Fleet.Enabled, cfg.Fleet.Config.Elsewhere, cfg.Influx.Enabled, cfg.Parquet.Enabled = x.fleet, x.elsewhere, x.influx, x.parquet
		err := CheckStores(cfg)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.HasPrefix(err.Error(), x.want)) {
			t.Errorf("%+v: %v", x, err)
		}
		if x.want == "" {
			continue
		}
		if _, _, err := OpenStores(cfg, Live); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%+v: OpenStores = %v", x, err)
		}
	}
}

// Diverted reports have the label of the window that counts their exporters. This also holds under a clock that was
// set back so far that labels do not come again, and after it has passed them. Reports from before the step, in the
// window of the step, went under the label that this window was to have.
func TestDivertUnderSetClock(t *testing.T) {
	t.Parallel()
	const length = time.Second
	for _, reach := range []time.Duration{0, 5 * time.Second, time.Hour} {
		for _, step := range []time.Duration{-1300 * time.Millisecond, -4 * time.Second, -6300 * time.Millisecond, -20 * time.Minute, 3 * time.Second, 20 * time.Minute} {
			t.Run(fmt.Sprint(reach, " ", step), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var arrive []time.Duration
					for at := time.Duration(0); at < 30*length; at += 7 * time.Millisecond {
						if into := at % (10 * length); into < 7*length { // nothing comes in a window in which the clock is set
							arrive = append(arrive, at)
						}
					}
					clock := newSetClock()
					s := newSockets(t, clock.now, func(int) time.Duration { return time.Millisecond }, arrive)
					p := &publisher{takes: half}
					c := newEngine(t, func(p *program) { p.Window, p.Corrections = length, reach },
						Options{Now: clock.now, Sources: []Source{{Name: "sockets", Source: s}}, Stores: publish(diverting{p}, "")})
					go func() {
						time.Sleep(8*length + 500*time.Millisecond)
						clock.set(step)
						time.Sleep(10 * length)
						clock.set(-step)
					}()
					if err := run(t, c); err != nil {
						t.Fatal(err)
					}
					p.check(t, &c.Balances()[0], uint64(len(arrive)))
					for label, n := range p.diverted {
						if p.under[label] != n {
							t.Errorf("window %v has %d diverted reports, %d were diverted under its label", time.Unix(0, label).UTC(), n, p.under[label])
						}
					}
				})
			})
		}
	}
}
