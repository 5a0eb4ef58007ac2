package papers

import (
	"math"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
)

// row gives the row of a table whose first cells are these.
func (f *PINTFigure) row(t *testing.T, table int, first ...string) []any {
	t.Helper()
rows:
	for _, r := range f.Tables[table].Rows {
		for i, s := range first {
			if cell(r[i]) != s {
				continue rows
			}
		}
		return r
	}
	t.Fatalf("table %q has no row %q", f.Tables[table].Title, first)
	return nil
}

// TestCoding compares with section 4.2 and figure 5 of PINT: Baseline is the coupon collector's problem.
func TestCoding(t *testing.T) {
	const runs = 1500
	f, err := PINT(t.Context(), "5", PINTOptions{Seed: 1, Runs: runs})
	if err != nil {
		t.Fatal(err)
	}
	harmonic, variance := 0.0, 0.0
	for i := 1; i <= codingHops; i++ {
		harmonic += 1 / float64(i)
		q := float64(i) / codingHops
		variance += (1 - q) / (q * q)
	}
	mean := f.row(t, 0, "Baseline")[4].(Interval).Value
	if want, slack := codingHops*harmonic, 5*math.Sqrt(variance/runs); math.Abs(mean-want) > slack {
		t.Errorf("Baseline takes %.1f packets, the coupon collector %.1f ± %.1f (seed 1)", mean, want, slack)
	}
	for _, c := range []struct {
		name         string
		median, tail float64 // published
		slack        float64
	}{
		{"Baseline", 89, 189, 0.1},
		{"Hybrid", 41, 68, 0.1},
	} {
		r := f.row(t, 0, c.name)
		median, tail := r[5].(Interval).Value, r[6].(Interval).Value
		if math.Abs(median/c.median-1) > c.slack || math.Abs(tail/c.tail-1) > c.slack {
			t.Errorf("%s takes %v / %v packets (median, p99), published are %v / %v (seed 1)", c.name, median, tail, c.median, c.tail)
		}
	}
	r := f.row(t, 0, "Ours: hybrid τ = 0.1, elimination")
	if median, tail := r[5].(Interval).Value, r[6].(Interval).Value; median > 30 || tail > 36 {
		t.Errorf("elimination takes %v / %v packets, want 30 / 36 at most (seed 1)", median, tail)
	}
	for _, c := range f.Charts {
		var svg strings.Builder
		if err := c.Write(&svg); err != nil || svg.Len() > 100_000 {
			t.Errorf("%s: %d bytes, %v", c.File, svg.Len(), err)
		}
	}
}

// TestEliminator compares with the meaning: a hop is known if and only if the sum of some sets is that hop alone.
func TestEliminator(t *testing.T) {
	sets := []uint64{0b0111, 0b0110, 0b1010, 0b1100, 0, 0b0110, 0b100000, 0b10001, 0b0010}
	var e eliminator
	var p peeler
	sums := map[uint64]bool{0: true}
	for n, w := range sets {
		for s := range sums {
			sums[s^w] = true
		}
		var want uint64
		for i := range 6 {
			if sums[1<<i] {
				want |= 1 << i
			}
		}
		if got := e.add(w); got != want {
			t.Errorf("after %b: known %b, want %b", sets[:n+1], got, want)
		}
		if got := p.add(w); got&^want != 0 {
			t.Errorf("after %b: peeling knows %b, which is not in %b", sets[:n+1], got, want)
		}
	}
}

// TestTraceback compares the schemes that PINT is compared with: PPM is the coupon collector's problem over hops and
// fragments, and the others find the path, in fewer packets the more a packet carries.
func TestTraceback(t *testing.T) {
	n, err := readNetwork("US Carrier", "uscarrier.txt")
	if err != nil {
		t.Fatal(err)
	}
	const runs, hops = 300, 12
	b := &pintBench{ctx: t.Context(), o: PINTOptions{Seed: 1, Runs: runs}}
	measure := func(name string, begin func() tracer) float64 {
		s, wrong, err := b.trace(n, hops, name, func() (tracer, error) { return begin(), nil })
		if err != nil || wrong > 0 {
			t.Errorf("%s: %d of %d paths wrong, %v (seed 1)", name, wrong, runs, err)
		}
		return s.mean.Value
	}
	for _, fragments := range []int{4, 8} {
		coupons := float64(hops * fragments)
		want, variance := 0.0, 0.0
		for i := 1.0; i <= coupons; i++ {
			want += coupons / i
			variance += (1 - i/coupons) * coupons * coupons / i / i
		}
		if got := measure("PPM", func() tracer { return &ppmTracer{fragments: fragments} }); math.Abs(got-want) > 5*math.Sqrt(variance/runs) {
			t.Errorf("PPM with %d fragments takes %.1f packets, the coupon collector %.1f (seed 1)", fragments, got, want)
		}
	}
	five, six := measure("AMS2", func() tracer { return &amsTracer{m: 5, nodes: n.nodes()} }), measure("AMS2", func() tracer { return &amsTracer{m: 6, nodes: n.nodes()} })
	last := math.Inf(1)
	for _, w := range digestWidths {
		config := paperScheme(10)
		config.Bits, config.Instances = w.bits, w.instances
		s, err := pint.New(config)
		if err != nil {
			t.Fatal(err)
		}
		all, own := measure("PINT", func() tracer { return &pintTracer{scheme: s, candidates: n.nodes()} }), measure("PINT", func() tracer { return &pintTracer{scheme: s} })
		if own > all || all > last {
			t.Errorf("%s: %.1f packets with the path's switches as candidates, %.1f with all, %.1f with fewer bits (seed 1)", w.name, own, all, last)
		}
		last = all
	}
	if !(last < five && five < six) {
		t.Errorf("PINT takes %.1f packets, AMS2 with m = 5 and 6 %.1f and %.1f (seed 1)", last, five, six)
	}
}
