package collector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// canned is a source that hands over the same datagrams from several workers, a batch at a time.
type canned struct {
	workers, batches int
	frames           [][]byte
	times            func(worker, batch int) int64
	waits            bool
	fail             error
	before           func(batch int)

	handed atomic.Uint64
}

func (m *canned) Workers() int { return m.workers }
func (m *canned) Waits() bool  { return m.waits }
func (m *canned) Stats() ingest.Stats {
	return ingest.Stats{Frames: m.handed.Load()}
}

func (m *canned) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	var all sync.WaitGroup
	for w := range m.workers {
		all.Go(func() {
			b := ingest.Batch{}
			for n := range m.batches {
				if m.before != nil {
					m.before(n)
				}
				if ctx.Err() != nil {
					return
				}
				b.Frames = b.Frames[:0]
				for _, data := range m.frames {
					b.Frames = append(b.Frames, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: m.times(w, n)})
				}
				handle(w, &b)
				m.handed.Add(uint64(len(b.Frames)))
			}
		})
	}
	all.Wait()
	return m.fail
}

// datagrams returns n reports of different flows.
func datagrams(t testing.TB, n int) (frames [][]byte) {
	t.Helper()
	gen, err := traffic.New(traffic.Config{Seed: 4, Flows: n, Hops: 3, Exporters: 5, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		frames = append(frames, gen.Next(make([]byte, gen.Bytes())))
	}
	return frames
}

// keeper is a writer that keeps what it receives, and a print of it as it was received.
type keeper struct {
	mu      sync.Mutex
	windows []*sink.Window
	prints  []string
}

func (k *keeper) Name() string { return "keeper" }

func (k *keeper) WriteWindow(_ context.Context, w *sink.Window) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.windows = append(k.windows, w)
	k.prints = append(k.prints, printed(w))
	return nil
}

func printed(w *sink.Window) string { return fmt.Sprintf("%+v %+v", *w.Window, w.Findings) }

func newEngine(t *testing.T, change func(*program), opt Options) *Collector {
	t.Helper()
	cfg := testConfig()
	if change != nil {
		change(cfg)
	}
	c, err := New(cfg.Config, cfg.Analysis, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func run(t *testing.T, c *Collector) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	select {
	case err := <-done:
		if ctx.Err() != nil {
			t.Fatal("the run did not end by itself")
		}
		return err
	case <-time.After(testkit.Patience):
		t.Fatal("the run hangs")
	}
	return nil
}

// Several sources with several workers block on queues of a single batch, while windows end by the time stamps of all of
// them. Nothing hangs, nothing is dropped, and every report is counted once.
func TestReplayOfSeveralSources(t *testing.T) {
	frames := datagrams(t, 50)
	times := func(_, batch int) int64 { return 1e18 + int64(batch)*int64(7*time.Millisecond) }
	var sources []Source
	sent := uint64(0)
	for i := range 3 {
		m := &canned{workers: i + 1, batches: 200, frames: frames, times: times}
		sources = append(sources, Source{Name: fmt.Sprint("memory", i), Source: m})
		sent += uint64((i + 1) * 200 * len(frames))
	}
	keep := &keeper{}
	c := newEngine(t, func(p *program) { p.ShardQueueBatches = 1 }, Options{Policy: Replay, Sources: sources, Writers: []sink.WindowWriter{keep}})
	if err := run(t, c); err != nil {
		t.Fatal(err)
	}
	counted := uint64(0)
	for _, w := range keep.windows {
		counted += w.Reports
	}
	b := c.Balances()[0]
	if counted != sent || b.Stored != sent || b.Unsettled != 0 || len(keep.windows) < 10 {
		t.Errorf("%d reports sent, %d in %d windows; %s", sent, counted, len(keep.windows), LedgerLine(&b))
	}
}

// A kept window stays as it was: nothing that comes later shows in it.
func TestWindowsMayBeKept(t *testing.T) {
	times := func(_, batch int) int64 { return 1e18 + int64(batch)*int64(20*time.Millisecond) }
	m := &canned{workers: 1, batches: 300, frames: datagrams(t, 100), times: times}
	keep := &keeper{}
	c := newEngine(t, nil, Options{Policy: Replay, Sources: []Source{{Name: "memory", Source: m}}, Writers: []sink.WindowWriter{keep}})
	if err := run(t, c); err != nil {
		t.Fatal(err)
	}
	for i, w := range keep.windows {
		if got := printed(w); got != keep.prints[i] {
			t.Fatalf("window %d of %d was\n%.300s\nand is\n%.300s", i, len(keep.windows), keep.prints[i], got)
		}
		if i > 0 && (w.Start != keep.windows[i-1].End || len(w.Hops) == 0 || len(w.Flows) == 0 || len(w.Exporters) == 0) {
			t.Errorf("window %d: starts at %d, the one before ended at %d; %d hops, %d flows, %d exporters", i, w.Start,
				keep.windows[i-1].End, len(w.Hops), len(w.Flows), len(w.Exporters))
		}
	}
}

// In one live collector a source that can wait loses nothing, while another one drops what finds no room and counts it.
func TestSourceThatWaits(t *testing.T) {
	frames := datagrams(t, 50)
	now := func(int, int) int64 { return time.Now().UnixNano() }
	batches := testkit.Rounds(2000, 2000)
	file := &canned{workers: 1, batches: batches, frames: frames, times: now, waits: true}
	socket := &canned{workers: 1, batches: batches, frames: frames, times: now}
	c := newEngine(t, func(p *program) { p.ShardQueueBatches, p.Shards = 1, 1 },
		Options{Sources: []Source{{Name: "file", Source: file}, {Name: "socket", Source: socket}}})
	if err := run(t, c); err != nil { // it ends when both sources have
		t.Fatal(err)
	}
	b := c.Balances()[0]
	sent := uint64(2 * batches * len(frames))
	dropped := uint64(b.Dropped["shard-queue"])
	if b.Received != sent || b.Stored+dropped != sent || b.Unsettled != 0 {
		t.Errorf("%d sent; %s", sent, LedgerLine(&b))
	}
	if dropped > sent/2 {
		t.Errorf("%d of %d reports dropped: more than came from the source that cannot wait", dropped, sent/2)
	}
}

// A source that fails ends the run with its error, and what came before is counted and written.
func TestSourceFails(t *testing.T) {
	broken := errors.New("the wire is cut")
	m := &canned{workers: 1, batches: 3, frames: datagrams(t, 10), times: func(int, int) int64 { return 1e18 }, fail: broken}
	for _, policy := range []Policy{Live, Replay} {
		keep := &keeper{}
		c := newEngine(t, nil, Options{Policy: policy, Sources: []Source{{Name: "memory", Source: m}}, Writers: []sink.WindowWriter{keep}})
		if err := run(t, c); !errors.Is(err, broken) {
			t.Errorf("%+v: Run = %v, want %v", policy, err, broken)
		}
		if b := c.Balances()[0]; b.Stored != 30 || len(keep.windows) == 0 {
			t.Errorf("%+v: %s in %d windows", policy, LedgerLine(&b), len(keep.windows))
		}
	}
}

// onePerWindow finds something in every window.
type onePerWindow struct{ id uint64 }

func (d *onePerWindow) Step(w *inference.Window) []inference.Finding {
	d.id++
	return []inference.Finding{{ID: d.id, Kind: inference.PacketDrops, Start: w.End, Updated: w.End, Text: "something"}}
}

// Findings of further detectors reach writers and summary, and no two detectors use the same id.
func TestFurtherDetectors(t *testing.T) {
	times := func(_, batch int) int64 { return 1e18 + int64(batch)*int64(time.Second) }
	m := &canned{workers: 1, batches: 20, frames: datagrams(t, 10), times: times}
	keep := &keeper{}
	c := newEngine(t, nil, Options{Policy: Replay, Sources: []Source{{Name: "memory", Source: m}}, Writers: []sink.WindowWriter{keep},
		Detectors: []Detector{&onePerWindow{}, &onePerWindow{}}})
	if err := run(t, c); err != nil {
		t.Fatal(err)
	}
	ids := map[uint64]bool{}
	for _, w := range keep.windows {
		for _, f := range w.Findings {
			if ids[f.ID] {
				t.Fatalf("finding %s was reported twice", f.IDText())
			}
			ids[f.ID] = true
		}
	}
	if n := len(c.Summary(1, 1).Findings); len(ids) != 2*len(keep.windows) || n != len(ids) {
		t.Errorf("%d findings in %d windows, %d in the summary", len(ids), len(keep.windows), n)
	}
}

// The summary of a running collector can be asked for at any time.
func TestSummaryWhileRunning(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	var c *Collector
	m := &canned{workers: 2, batches: 500, frames: datagrams(t, 50), times: func(int, int) int64 { return time.Now().UnixNano() }, waits: true}
	c = newEngine(t, nil, Options{Sources: []Source{{Name: "memory", Source: m}}})
	go func() {
		defer close(asked)
		for range 50 {
			c.Summary(5, 5)
			c.Status()
			c.NotReady()
		}
	}()
	if err := run(t, c); err != nil {
		t.Fatal(err)
	}
	<-asked
	if s := c.Summary(5, 5); s.Reports != 2*500*50 || len(s.Flows) != 5 {
		t.Errorf("%d reports, %d flows", s.Reports, len(s.Flows))
	}
}

// TestSummaryBeforeRun asks a collector that does not run yet, and one that never will.
func TestSummaryBeforeRun(t *testing.T) {
	c := newEngine(t, nil, Options{})
	if s := c.Summary(1, 1); s.Reports != 0 {
		t.Errorf("%d reports before the run", s.Reports)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if s := c.Summary(1, 1); s.Reports != 0 {
		t.Errorf("%d reports without a run", s.Reports)
	}
}

// The errors of all sources that fail are returned.
func TestAllSourcesFail(t *testing.T) {
	var sources []Source
	var want []error
	for i := range 5 {
		err := fmt.Errorf("wire %d is cut", i)
		want = append(want, err)
		sources = append(sources, Source{Name: fmt.Sprint("canned", i), Source: &canned{workers: 1, batches: 1, frames: datagrams(t, 5),
			times: func(int, int) int64 { return 1e18 }, fail: err}})
	}
	err := run(t, newEngine(t, nil, Options{Policy: Replay, Sources: sources}))
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("Run = %v, which does not report of %v", err, w)
		}
	}
}
