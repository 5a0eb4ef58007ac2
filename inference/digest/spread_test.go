package digest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// A window has the path that most packets of a sprayed flow take, not the one that it had before. It has all others
// with their shares. When the flow is back on one path the window has that alone.
func TestSprayedWindow(t *testing.T) {
	x := newSpraying(t, 5, 1<<20)
	former := func() []uint32 { return []uint32{0, 115, 1} }
	x.send(1, 400, former)
	w := x.window()
	one := w.Flows[0]
	if len(one.Hops) != 3 || one.Hops[1].Node != 115 || one.Share != 0 || one.Sprayed() || one.Others != nil || one.Unsettled {
		t.Fatalf("one path: %+v", one)
	}
	weights := []float64{.1, .4, .2, .3}
	uneven := func() []uint32 {
		u := x.r.Float64()
		for i, p := range weights {
			if u -= p; u < 0 {
				return []uint32{0, 100 + uint32(i), 1}
			}
		}
		return []uint32{0, 103, 1}
	}
	for range 6 {
		x.send(1, 600, uneven)
		w = x.window()
	}
	f := w.Flows[0]
	if len(f.Hops) != 3 || f.Hops[1].Node != 101 || f.Partial || math.Abs(f.Share-.4) > .06 || len(f.Others) != 3 || f.PathID == one.PathID || f.PathID == 0 ||
		f.Confidence < .99 || f.Unexplained > .02 || len(f.Inseparable) > 0 {
		t.Fatalf("four paths: %+v", f)
	}
	for _, o := range f.Others {
		if i := o.Nodes[1] - 100; i > 3 || math.Abs(o.Share-weights[i]) > .06 {
			t.Errorf("%+v", o)
		}
	}
	// The same path has the same identifier as where it is the only one.
	y := newSpraying(t, 6, 1<<20)
	y.send(1, 400, func() []uint32 { return []uint32{0, 101, 1} })
	if only := y.window().Flows[0]; only.PathID != f.PathID {
		t.Errorf("path %x, alone %x", f.PathID, only.PathID)
	}
	for range 40 {
		x.send(1, 1500, former)
		w = x.window()
	}
	if f = w.Flows[0]; len(f.Hops) != 3 || f.Hops[1].Node != 115 || f.Sprayed() || len(f.Others) > 0 && f.Share > 0 || f.PathID != one.PathID {
		t.Errorf("one path again: %+v", f)
	}
}

// The last window of a flow and the answer to a query for the flow are the same.
func TestSprayedWindowAgrees(t *testing.T) {
	for seed := range uint64(6) {
		x := newSpraying(t, seed, 1<<20)
		r := rand.New(rand.NewPCG(seed, 21))
		spines := 1 + r.IntN(8)
		for range 8 {
			if r.IntN(4) == 0 {
				spines = 1 + r.IntN(8)
			}
			x.send(1, 50+r.IntN(600), x.over(spines))
			w := x.window()
			f, asked := w.Flows[0], x.flow()
			if f.Share != asked.Share || len(f.Others) != len(asked.Others) || len(f.Inseparable) != len(asked.Inseparable) || f.Unsettled != asked.Unsettled ||
				f.Unexplained != asked.Unexplained || f.Sprayed() && f.Confidence != asked.Confidence {
				t.Fatalf("seed %d: the window has %+v, asked for it is %+v", seed, f, asked)
			}
			for i := range min(len(f.Hops), len(asked.Hops)) {
				if f.Hops[i].Node != asked.Hops[i].Node {
					t.Fatalf("seed %d: the window has %+v, asked for it is %+v", seed, f, asked)
				}
			}
		}
	}
}

func TestInCommon(t *testing.T) {
	for want, sets := range map[int][]inference.FlowPaths{
		0: {{Paths: [][]uint32{{1, 2}, {2, 2}}}},
		2: {{Paths: [][]uint32{{1, 2, 3}, {1, 2, 4}}}, {Paths: [][]uint32{{1, 2}}}},
		3: {{Paths: [][]uint32{{1, 2, 3}}}},
		1: {{Paths: [][]uint32{{1, 2, 3}}}, {Paths: [][]uint32{{1, 4, 3}}}, {Paths: [][]uint32{{1, 2, 3}}}},
	} {
		if got := inCommon(sets); len(got) != want {
			t.Errorf("%+v: %v, want %d hops", sets, got, want)
		}
	}
}
