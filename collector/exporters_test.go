package collector

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/sequence"
)

// fromExporters gives reports of n nodes behind a few addresses, each with a sequence number space of its own in which
// numbers are lost, doubled and late.
func fromExporters(rng *rand.Rand, nodes, addresses, reports int) (out []*decode.Report) {
	next := make([]uint32, nodes)
	for i := range reports {
		k := rng.IntN(nodes)
		next[k] += uint32(rng.IntN(3))
		r := &decode.Report{Time: int64(i), NodeID: uint32(k), Seq: next[k] - uint32(rng.IntN(2)), SeqBits: 22, FirstOfGroup: true, Version: decode.V20}
		r.Exporter = decode.AddrFrom4([]byte{10, 0, 0, byte(k % addresses)})
		r.Has = decode.HasExporter | decode.HasNodeID | decode.HasSeq
		out = append(out, r)
	}
	return out
}

// However many groups there are, exporters are followed as by one tracker, and one address can take all places.
func TestExporterGroups(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 30 {
		addresses := 1 + rng.IntN(40)
		reports := fromExporters(rng, 1+rng.IntN(300), addresses, 5000)
		cfg := sequence.DefaultConfig()
		cfg.MaxExporters = 400 // a group keeps a few for newcomers of its own
		one := sequence.New(cfg, seed)
		for _, r := range reports {
			one.Observe(r)
		}
		want := one.Cut(nil, int64(len(reports)))
		for _, workers := range []int{1, 2, 3, 8, 100} {
			e := newExporters(cfg, seed, workers)
			var groups []uint8
			for batch := range slices.Chunk(reports, 1+rng.IntN(100)) {
				groups = e.observe(batch, groups)
			}
			if got := e.cut(int64(len(reports))); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, round %d: %d workers give\n%v\none tracker gives\n%v", seed, round, workers, got, want)
			}
		}
	}
}

// The groups share their places to the last one, and give back those of exporters that are forgotten.
func TestExporterPlaces(t *testing.T) {
	cfg := sequence.DefaultConfig()
	cfg.MaxExporters = 50
	e := newExporters(cfg, 1, 8)
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range int64(3) {
		at := round * 2 * int64(cfg.ForgetAfter)
		reports := fromExporters(rng, 200, 20, 5000)
		for _, r := range reports {
			r.Time += at
			r.NodeID += uint32(1000 * round)
		}
		e.observe(reports, nil)
		all := e.cut(at + int64(len(reports)))
		present := slices.DeleteFunc(all, func(s inference.ExporterStats) bool { return s.Reports == 0 })
		if len(present) != cfg.MaxExporters {
			t.Errorf("round %d: %d exporters are followed, want %d", round, len(present), cfg.MaxExporters)
		}
		e.cut(at + int64(len(reports)) + int64(cfg.ForgetAfter) + 1) // forgets them
	}
}
