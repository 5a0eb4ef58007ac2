package pint

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

func TestPresets(t *testing.T) {
	for _, c := range []struct {
		name string
		c    Config
		tau  float64
		p    []float64
	}{
		{"baseline", Baseline(8), 1, nil},
		{"xor", XOR(8, 25), 0, []float64{.04}},
		{"hybrid 25", Hybrid(8, 25), .75, []float64{.3632}},
		{"hybrid 16", Hybrid(8, 16), .75, []float64{.3678}},
		{"hybrid 15", Hybrid(8, 15), .75, []float64{.3693}}, // footnote 8
		{"hybrid 4", Hybrid(8, 4), .75, []float64{.7213}},
		{"hybrid 2", Hybrid(8, 2), .75, []float64{1}},
		{"hybrid 1", Hybrid(8, 1), .75, []float64{1}},
		// ln* 25 = 3: 25, 3.22, 1.17, 0.16; so 𝔡 = 25/3, and ln* of it is 2: 8.33, 2.12, 0.75.
		{"multi-layer 25", MultiLayer(8, 25), .4094, []float64{.12, .3262}},
		{"multi-layer 15", MultiLayer(8, 15), .4094, []float64{2. / 15, .3624}},
		{"multi-layer 16", MultiLayer(8, 16), .4094, []float64{3. / 16, .5097}},
		{"multi-layer 5", MultiLayer(8, 5), 0, []float64{.4}},
		{"multi-layer 2", MultiLayer(8, 2), 0, []float64{.5}},
		{"multi-layer 1", MultiLayer(8, 1), 1, nil},
		{"revised 25", MultiLayerRevised(8, 25), .6772, []float64{.12, .3262}},
		{"published", Published(8), .5, []float64{.1}},
		{"linear", Linear(8, 20), 0, []float64{.5}},
	} {
		if math.Abs(c.c.Tau-c.tau) > 1e-4 || !slices.EqualFunc(c.c.P, c.p, func(a, b float64) bool { return math.Abs(a-b) < 1e-4 }) {
			t.Errorf("%s: tau %.4f, p %.4f, want %.4f, %.4f", c.name, c.c.Tau, c.c.P, c.tau, c.p)
		}
	}
	for d := -1; d <= 100; d++ {
		for _, c := range []Config{XOR(8, d), Hybrid(8, d), MultiLayer(8, d), MultiLayerRevised(8, d)} {
			if _, err := New(c); err != nil {
				t.Errorf("d = %d: %v", d, err)
			}
		}
	}
}

// PINT, figure 5: the packets until a decoder knows a path of k = d = 25. It learns a value from a digest with one
// unknown writer. The limits are some standard deviations of the runs wide. The paper has 89 and 189 for Baseline, 41
// and 68 for Hybrid. Algorithm 1 takes 37 and 57 as it is printed, by an independent simulation.
func TestPacketsOfFigure5(t *testing.T) {
	const k, runs = 25, 2000
	seed := uint32(testkit.Seed(t))
	for _, c := range []struct {
		name         string
		c            Config
		eliminate    bool
		median, tail float64
		slack        float64
	}{
		{"baseline", Baseline(8), false, 90, 194, .15},
		{"xor", XOR(8, k), false, 90, 192, .15},
		{"hybrid", Hybrid(8, k), false, 43, 67, .15},
		{"multi-layer", MultiLayer(8, k), false, 37, 57, .06},
		{"linear", Linear(8, 8), true, 26.5, 32, .1},
	} {
		packets := make([]int, runs)
		for run := range packets {
			c.c.Seed = seed + uint32(run)
			s := scheme(t, c.c)
			known := uint64(0)
			var waiting []uint64
			var e Eliminator
			for known != mask64(k) {
				p := s.Packet(uint32(packets[run]), 0)
				packets[run]++
				w := s.Writers(&p, k)
				if c.eliminate {
					e.Add(w, 0)
					known = e.Known()
					continue
				}
				waiting = append(waiting, w)
				for second := true; second; {
					second = false
					for i := range waiting {
						if waiting[i] &^= known; bits.OnesCount64(waiting[i]) == 1 {
							known |= waiting[i]
							second = true
						}
					}
				}
			}
		}
		slices.Sort(packets)
		median, tail := float64(packets[runs/2]), float64(packets[runs*99/100])
		if math.Abs(median/c.median-1) > c.slack || math.Abs(tail/c.tail-1) > 2*c.slack {
			t.Errorf("seed %d: %s: median %v, 99th percentile %v, want %v, %v", seed, c.name, median, tail, c.median, c.tail)
		}
	}
}
