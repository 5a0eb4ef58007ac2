package shard

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// Blocks and halves are each owned once, keep their hop, and are all free again in the end.
func TestSlab(t *testing.T) {
	rng := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	const blocks = 50
	s := newSlab(blocks)
	held, wholes, grown, moved, shrunk := map[uint32]uint32{}, 0, 0, 0, 0 // nodes by block
	any := func() uint32 {
		for b := range held {
			return b
		}
		return 0
	}
	for i := range uint32(100_000) {
		b := any()
		switch n := rng.UintN(8); {
		case n < 4 && (i/5000%2 == 0 || n == 0):
			if b = s.allocate(inference.HopKey{Node: i}); b != 0 {
				if _, ok := held[b]; ok || b&whole != 0 {
					t.Fatalf("block %#x is handed out twice, or whole", b)
				}
				held[b] = i
			} else if s.room() != 0 {
				t.Fatalf("no block, of %d free halves", s.room())
			}
		case b == 0:
		case n == 4 && b&whole == 0:
			to := s.grow(b)
			if to == 0 {
				continue
			}
			if grown++; to&^whole/2 != b/2 {
				moved++
			}
			held[to] = held[b]
			delete(held, b)
			s.blocks[to&^whole/2].latency = quantile.Tail{}
			wholes++
		case n == 5 && b&whole != 0:
			var brief quantile.BriefTail
			to := s.shrink(b, &brief)
			held[to] = held[b]
			delete(held, b)
			wholes--
			shrunk++
		case n >= 6:
			s.release(b)
			delete(held, b)
			if b&whole != 0 {
				wholes--
			}
		}
		if i%100 == 0 {
			for b, node := range held {
				if k := s.at(b).key(); k.Node != node {
					t.Fatalf("block %#x has node %d, want %d", b, k.Node, node)
				}
			}
		}
		if s.live != len(held) || s.halves != len(held)+wholes {
			t.Fatalf("%d hops in %d halves, want %d in %d", s.live, s.halves, len(held), len(held)+wholes)
		}
	}
	if grown < 100 || moved < 50 || shrunk < 100 {
		t.Errorf("%d blocks grew, %d of them to another place, %d became halves", grown, moved, shrunk)
	}
	for b := range held {
		s.release(b)
	}
	for i := range blocks { // no half is in use
		if s.freeBlock() == 0 {
			t.Fatalf("%d free blocks in the end, want %d", i, blocks)
		}
	}
}

// Sketches that grow in a table without room take the memory of other flows, and hold every value that came since their
// flow is in the table.
func TestGrowth(t *testing.T) {
	for _, hops := range []int{5, 12, 32} {
		cfg := testConfig()
		cfg.MemoryBytes, cfg.MaxPathLength, cfg.TopFlows = 1<<20, 32, 10
		s := New(cfg, 1)
		rng := rand.New(rand.NewPCG(testkit.Seed(t), uint64(hops)))
		path := make([]decode.Hop, hops)
		const reports = 60_000
		for i := range int64(reports) {
			for k := range path {
				path[k] = hop(uint32(k), uint16(k), 500+uint32(1000*rng.ExpFloat64()))
			}
			flow := rng.Uint32N(2000)
			if rng.UintN(2) == 0 {
				flow %= 100
			}
			s.Update([]*decode.Report{stack(flow, i+1, path...)})
			if i%10_000 == 0 {
				s.Recycle(s.Cut(i + 1))
			}
		}
		halves, wholes := 0, 0
		var space [maxBlocks]uint32
		for _, e := range s.flows.All() {
			for _, b := range s.slab.chain(&space, &e.Value) {
				if b&whole != 0 {
					wholes++
				} else {
					halves++
				}
			}
		}
		st := s.Stats()
		t.Logf("%d hops: %d in halves, %d in whole blocks, %+v, %+v", hops, halves, wholes, st, s.SketchStates())
		if halves+2*wholes != s.slab.halves || halves == 0 || wholes == 0 {
			t.Errorf("%d halves and %d whole blocks, %d halves in use", halves, wholes, s.slab.halves)
		}
		if st.EvictedPressure == 0 || s.stats.Unsketched != 0 || st.UsedBytes > st.MemoryBytes {
			t.Errorf("%+v", st)
		}
		for _, f := range s.Flows(1000) {
			for _, h := range f.Hops {
				if h.Latency.Count != f.Packets {
					t.Fatalf("%d values of %d packets", h.Latency.Count, f.Packets)
				}
			}
		}
	}
}
