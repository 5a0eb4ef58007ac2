package pipeline

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/internal/testkit"
)

// fromExporters returns reports of n nodes behind a few addresses. Each node has its own sequence number space, in
// which numbers are lost, doubled and late.
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

func recordsOf(reports []*decode.Report) *decode.LazyBatch {
	b := new(decode.LazyBatch)
	b.AppendBatch(&decode.Batch{Reports: slices.Clone(reports)})
	return b
}

// However many groups there are, exporters are followed as by one tracker, and one address can take all places.
func TestExporterGroups(t *testing.T) {
	seed := testkit.Seed(t)
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
			e := newSequences(cfg, seed, workers)
			var groups []uint8
			for batch := range slices.Chunk(reports, 1+rng.IntN(100)) {
				groups = e.observe(recordsOf(batch), groups)
			}
			if got := e.cut(int64(len(reports)), nil); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, round %d: %d workers give\n%v\none tracker gives\n%v", seed, round, workers, got, want)
			}
		}
	}
}

// The groups share their places to the last one, and give back those of exporters that are forgotten.
func TestExporterPlaces(t *testing.T) {
	cfg := sequence.DefaultConfig()
	cfg.MaxExporters = 50
	e := newSequences(cfg, 1, 8)
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range int64(3) {
		at := round * 2 * int64(cfg.ForgetAfter)
		reports := fromExporters(rng, 200, 20, 5000)
		for _, r := range reports {
			r.Time += at
			r.NodeID += uint32(1000 * round)
		}
		e.observe(recordsOf(reports), nil)
		all := e.cut(at+int64(len(reports)), nil)
		present := slices.DeleteFunc(all, func(s inference.ExporterStats) bool { return s.Reports == 0 })
		if len(present) != cfg.MaxExporters {
			t.Errorf("round %d: %d exporters are followed, want %d", round, len(present), cfg.MaxExporters)
		}
		e.cut(at+int64(len(reports))+int64(cfg.ForgetAfter)+1, nil) // forgets them
	}
}

// Exporters go on with their numbers in a later run, however many workers it has. Bytes that are not the state of an
// earlier run are refused.
func TestExporterState(t *testing.T) {
	cfg := sequence.DefaultConfig()
	cfg.MaxExporters = 200
	const count = 100
	number := func(e *sequences, seq uint32, at int64) {
		for k := range count {
			r := &decode.Report{Time: at, NodeID: uint32(k), Seq: seq, SeqBits: 22, FirstOfGroup: true, Version: decode.V20}
			r.Exporter = decode.AddrFrom4([]byte{10, 0, byte(k), 1})
			r.Has = decode.HasExporter | decode.HasNodeID | decode.HasSeq
			e.observe(recordsOf([]*decode.Report{r}), nil)
		}
	}
	for _, workers := range [][2]int{{1, 1}, {4, 4}, {1, 8}, {8, 1}} {
		first := newSequences(cfg, 1, workers[0])
		for seq := range uint32(10) {
			number(first, seq, int64(seq))
		}
		first.Saving = true
		first.cut(100, nil)
		state := first.Saved
		second := newSequences(cfg, 2, workers[1])
		if err := second.Restore(state); err != nil {
			t.Fatal(err)
		}
		number(second, 15, 1000)
		second.Settle()
		all := second.cut(2000, nil)
		if len(all) != count {
			t.Fatalf("%v workers: %d exporters", workers, len(all))
		}
		for _, e := range all {
			if e.Down != 5 || e.Lost != 0 {
				t.Fatalf("%v workers: %+v, want 5 missed", workers, e)
			}
		}
		for n := range state[:100] {
			if newSequences(cfg, 2, workers[1]).Restore(state[:n]) == nil {
				t.Fatalf("%v workers: the first %d bytes of the state are taken for all", workers, n)
			}
		}
	}
}
