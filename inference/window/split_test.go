package window

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestSplit: the slices of a partial, merged in any order and sent or not, are the partial again. Every entity is in
// its slice alone.
func TestSplit(t *testing.T) {
	var used [16]Partial // by all splits, so that what one leaves is not in the next
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var p Partial
		fill(&p, rng)
		if rng.IntN(4) == 0 {
			p.AddExporters([]inference.ExporterStats{{Reports: 3}})
		}
		want := encode(t, &p)
		s := NewSlicer(rng.Uint64(), 1+rng.IntN(16))
		into := make([]*Partial, s.Slices())
		for i := range into {
			into[i] = &used[i]
		}
		p.Split(&s, into)
		if got := encode(t, &p); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: the partial is another one after it was split", seed)
		}
		var second Partial
		for _, i := range rng.Perm(len(into)) {
			q := into[i]
			if q.Start != p.Start || q.End != p.End || q.FlowBound != p.FlowBound {
				t.Fatalf("seed %d: slice %d is from %d to %d, bound %d", seed, i, q.Start, q.End, q.FlowBound)
			}
			for j := range q.hops.items {
				if k := q.hops.items[j].HopKey; s.Hop(k) != i {
					t.Fatalf("seed %d: hop %v of slice %d is in slice %d", seed, k, s.Hop(k), i)
				}
			}
			for _, e := range q.Exporters() {
				if s.Exporter(e.ExporterKey) != i {
					t.Fatalf("seed %d: %v of slice %d is in slice %d", seed, e.ExporterKey, s.Exporter(e.ExporterKey), i)
				}
			}
			if rng.IntN(2) == 0 {
				q = read(t, encode(t, q))
			}
			second.Merge(q)
		}
		if got := encode(t, &second); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %d slices merge to other bytes", seed, s.Slices())
		}
	}
}

// TestSlicer: entities are shared out evenly, by another seed in another way, and what stands for the rest is in slice 0.
func TestSlicer(t *testing.T) {
	s, other := NewSlicer(1, 16), NewSlicer(2, 16)
	if s.Hop(inference.HopKey{Other: true}) != 0 || s.Exporter(inference.ExporterKey{}) != 0 {
		t.Error("what stands for the rest is not in slice 0")
	}
	var hops, flows [16]int
	same := 0
	for n := range uint32(4096) {
		k, f := inference.HopKey{Node: n / 8, EgressIf: n % 8}, flowKey(n)
		hops[s.Hop(k)]++
		flows[s.Flow(&f)]++
		if s.Hop(k) == other.Hop(k) {
			same++
		}
	}
	for i := range hops {
		if hops[i] < 128 || hops[i] > 512 || flows[i] < 128 || flows[i] > 512 {
			t.Errorf("slice %d has %d hops and %d flows of 4096", i, hops[i], flows[i])
		}
	}
	if same > 512 {
		t.Errorf("%d of 4096 hops are in the same slice under another seed", same)
	}
}
