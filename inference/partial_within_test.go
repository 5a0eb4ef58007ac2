package inference

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// With room for everything MergeWithin is Merge, to the byte.
func TestMergeWithinIsMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 0))
	var p, q, other Partial
	for range 200 {
		fill(&other, rng)
		fill(&q, rng)
		p.Reset()
		p.Merge(&other)
		p.Merge(&q)
		want := mustEncode(t, &p)
		p.Reset()
		p.MergeWithin(&other, wide)
		p.MergeWithin(&q, wide)
		if got := mustEncode(t, &p); !bytes.Equal(got, want) {
			t.Fatalf("MergeWithin gives %d bytes, Merge %d others", len(got), len(want))
		}
	}
}

// A partial that others are added to without end keeps its limits, what it knew stays, and sums are exact.
func TestMergeWithinLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 0))
	most := Limits{Hops: 5, Flows: 2, Paths: 4, Drops: 2, Faults: 1, Exporters: 3}
	var p, q, whole Partial
	for range 300 {
		fill(&q, rng)
		before := p.Window(wide)
		p.MergeWithin(&q, most)
		whole.Merge(&q)
		if len(p.hops.items) > most.Hops+1 || len(p.flows.items) > most.Flows || len(p.paths) > most.Paths ||
			len(p.drops.items) > most.Drops || len(p.faults.items) > most.Faults || len(p.exporters.items) > most.Exporters+1 {
			t.Fatalf("%d hops, %d flows, %d paths, %d drops, %d faults, %d exporters", len(p.hops.items), len(p.flows.items),
				len(p.paths), len(p.drops.items), len(p.faults.items), len(p.exporters.items))
		}
		for _, h := range before.Hops {
			if i, known := p.hops.index[h.HopKey]; !known || p.hops.items[i].stats().Count < h.Count {
				t.Fatalf("hop %+v lost records", h)
			}
		}
		for _, f := range before.Flows {
			if i, known := p.flows.index[f.Key]; !known || p.flows.items[i].Packets < f.Packets {
				t.Fatalf("flow %v lost reports", f.Key)
			}
		}
	}
	got, want := p.Window(wide), whole.Window(wide)
	if a, b := hopRecords(&got), hopRecords(&want); a != b || got.Reports != want.Reports {
		t.Errorf("%d hop records of %d, %d reports of %d", a, b, got.Reports, want.Reports)
	}
	var a, b ExporterStats
	for i := range got.Exporters {
		a.Add(&got.Exporters[i])
	}
	for i := range want.Exporters {
		b.Add(&want.Exporters[i])
	}
	if a != b {
		t.Errorf("exporters add up to %+v, want %+v", a, b)
	}
	if n, m := uint64(len(got.Paths))+got.OtherPaths, uint64(len(want.Paths))+want.OtherPaths; n != m {
		t.Errorf("%d path changes, want %d", n, m)
	}
}

func hopRecords(w *Window) (n uint64) {
	for i := range w.Hops {
		n += w.Hops[i].Count
	}
	return n
}

func mustEncode(t *testing.T, p *Partial) []byte {
	t.Helper()
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
