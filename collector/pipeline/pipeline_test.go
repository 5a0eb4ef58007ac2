package pipeline

import (
	"log/slog"
	"testing"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/shard"
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
	cfg.Log, cfg.Ledger, cfg.Seed, cfg.QueueBatches, cfg.Tracking = slog.New(slog.DiscardHandler), ledger.New(), 1, 64, e.Tracking
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
