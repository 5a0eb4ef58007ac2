package pipeline

import (
	"cmp"
	"log/slog"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
)

// idle is a source with workers that hands over nothing: tests do.
type idle struct{ ingest.Source }

func (idle) Workers() int { return 1 }

// workers is sources with n workers.
func workers(n int) (list []Source) {
	for range n {
		list = append(list, Source{Name: "idle", Source: idle{}})
	}
	return list
}

// newTest makes a pipeline with a shard, or with the given number of shards, that reads by the settings e.
func newTest(t testing.TB, cfg Config, e exporters.Config, shards ...int) (*Pipeline, *ledger.Ledger) {
	t.Helper()
	var err error
	if cfg.Router, err = e.Routers(); err != nil {
		t.Fatal(err)
	}
	cfg.Log, cfg.Ledger, cfg.Seed, cfg.QueueBatches, cfg.Tracking = slog.New(slog.DiscardHandler), ledger.New(), 1, cmp.Or(cfg.QueueBatches, 64), e.Tracking
	if cfg.Dialects, err = NewDialects(&e, true, cfg.Router(), nil, nil, cfg.Log); err != nil {
		t.Fatal(err)
	}
	for range append(shards, 1)[0] {
		cfg.Shards = append(cfg.Shards, shard.New(shard.DefaultConfig(), 1))
	}
	return New(cfg), cfg.Ledger
}

// known is of exporters none of whose reports was read.
func known(decode.Addr) uint64 { return 0 }

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

// TestShardHeldUp: while a shard does not take its batches, those that wait grow to full ones before any report is
// dropped, and the window has all the others.
func TestShardHeldUp(t *testing.T) {
	const batches, each = 4, 10
	p, l := newTest(t, Config{Sources: workers(1), Window: time.Second, QueueBatches: batches}, exporters.DefaultConfig())
	p.Start()
	defer p.Close()
	handle := func(data [][]byte) {
		frames := make([]ingest.Frame, len(data))
		for i := range frames {
			frames[i] = ingest.Frame{Data: data[i], Length: len(data[i]), Link: ingest.LinkUDP, Time: 1e18}
		}
		p.Handle(p.workers[0], frames)
	}
	end := int64(1e18)
	cut := func() *window.Partial {
		end += 1e9
		partial, _ := p.Cut(End{Start: end - 1e9, Label: end, Wall: end, Steady: end, Next: end + 1e9}, end)
		return partial
	}
	all := datagrams(t, 4*BatchReports)
	for _, tt := range []struct{ sent, dropped int }{
		{batches*each + BatchReports - each, 0},
		{2 * BatchReports, BatchReports},
	} {
		held, release := make(chan bool), make(chan bool)
		go p.Visit(func(*shard.State) { close(held); <-release })
		<-held
		before := l.AtBorder()[0].Dropped[ledger.DroppedShardQueue.String()]
		for i := 0; i < tt.sent; i += each {
			handle(all[i:min(i+each, tt.sent)])
		}
		close(release)
		partial := cut()
		dropped := int(l.AtBorder()[0].Dropped[ledger.DroppedShardQueue.String()] - before)
		if got := int(partial.Reports); dropped != tt.dropped || got != tt.sent-dropped {
			t.Errorf("of %d reports the window has %d, and %d were dropped, want %d", tt.sent, got, dropped, tt.dropped)
		}
		all = all[tt.sent:]
	}
}
