package suspicion

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPairsOfQuietClocks: if the clocks at both ends have run alike, a direction that takes 30 µs longer is suspected.
// For clocks that nothing disciplines 100 µs are allowed. If they move from cycle to cycle, and the two directions see
// them at different moments, nothing is.
func TestPairsOfQuietClocks(t *testing.T) {
	for _, c := range []struct {
		name  string
		drift float64 // of the clocks in a cycle, ns, at most
		floor float64 // what a packet takes on the line, ns
		found bool
	}{{"quiet clocks", 100, 0, true}, {"clocks that move", 100_000, 0, false}, {"a slow line", 100, 120_000, false}} {
		r := rand.New(rand.NewPCG(4, 3))
		in := crossings(t)
		if err := in.Pair([]int32{1, 0, 3, 2, -1, 6, 5, -1}); err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig()
		cfg.PairFloor, cfg.LineFloor, cfg.Floors = 100_000, 10e6, slices.Repeat([]float64{c.floor}, 8)
		s := New(cfg, in, nil)
		apart := make([]float64, 8) // what a clock adds to a direction, by the lower number of its link
		for k := range 400 {
			var hops []Hop
			for l := range int32(8) {
				h := noise(r, l, 0)
				h.Latency.Count, h.Queue.Count = 0, 0
				h.Line.P50 = 1e6
				switch back := in.reverse[l]; {
				case back > l:
					was := apart[l]
					apart[l] += c.drift * (2*r.Float64() - 1)
					h.Line.P50 += was + (apart[l]-was)*r.Float64()
				case back >= 0:
					h.Line.P50 -= apart[back]
				}
				if l == 5 && k >= 300 {
					h.Line.P50 += 30_000
				}
				hops = append(hops, h)
			}
			got := links(s.Step(&Cycle{Now: int64(k) * 1e9, Hops: hops}))
			if want := c.found && k >= 300; want != slices.Equal(got, []int32{5}) || !want && len(got) > 0 {
				t.Fatalf("%s, cycle %d: %v", c.name, k, got)
			}
		}
	}
}
