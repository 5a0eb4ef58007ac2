package digests

import (
	"math"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/topo"
)

// row returns the row of a table whose first cells are these.
func (f *Figure) row(t *testing.T, table int, first ...string) []any {
	t.Helper()
rows:
	for _, r := range f.Tables[table].Rows {
		for i, s := range first {
			if harness.Cell(r[i]) != s {
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
	const runs = 6000
	f, err := Make(t.Context(), "5", Options{Seed: 1, Runs: runs})
	if err != nil {
		t.Fatal(err)
	}
	harmonic, variance := 0.0, 0.0
	for i := 1; i <= codingHops; i++ {
		harmonic += 1 / float64(i)
		q := float64(i) / codingHops
		variance += (1 - q) / (q * q)
	}
	mean := f.row(t, 0, "Baseline")[4].(interval).Value
	if want, slack := codingHops*harmonic, 5*math.Sqrt(variance/runs); math.Abs(mean-want) > slack {
		t.Errorf("Baseline takes %.1f packets, the coupon collector %.1f ± %.1f (seed 1)", mean, want, slack)
	}
	for _, c := range []struct {
		name         string
		median, tail float64 // published
		slack        float64
	}{
		{"Baseline", 89, 189, 0.15},
		{"Hybrid", 41, 68, 0.15},
	} {
		r := f.row(t, 0, c.name)
		median, tail := r[5].(interval).Value, r[6].(interval).Value
		if math.Abs(median/c.median-1) > c.slack || math.Abs(tail/c.tail-1) > c.slack {
			t.Errorf("%s takes %v / %v packets (median, p99), published are %v / %v (seed 1)", c.name, median, tail, c.median, c.tail)
		}
	}
	r := f.row(t, 0, "Ours: hybrid τ = 0.1, elimination")
	if median, tail := r[5].(interval).Value, r[6].(interval).Value; median > 30 || tail > 36 {
		t.Errorf("elimination takes %v / %v packets, want 30 / 36 at most (seed 1)", median, tail)
	}
}

// TestSpray finds nearly all paths of sprayed flows, and no ghosts. The seed is fixed, so that the runs are always
// the same.
func TestSpray(t *testing.T) {
	tree, err := topo.FatTree(8)
	if err != nil {
		t.Fatal(err)
	}
	n, b := newNetwork("Fat-tree k = 8", tree), &bench{ctx: t.Context(), o: Options{Seed: 1, Runs: 20}}
	f := &Figure{Tables: make([]table, 1)}
	for _, c := range []sprayCase{{paths: 4, digests: 200, least: .1}, {paths: 4, digests: 200, wrong: .01}} {
		if err := b.sprayRow(&f.Tables[0], n, c, 8, 2); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range f.Tables[0].Rows {
		if exact, ghosts := r[7].(interval).Value, r[9].(float64); exact < 90 || ghosts > 1e-3 {
			t.Errorf("%v", r)
		}
	}
}

// TestPeeler knows a hop only if the sum of some sets is that hop alone.
func TestPeeler(t *testing.T) {
	sets := []uint64{0b0111, 0b0110, 0b1010, 0b1100, 0, 0b0110, 0b100000, 0b10001, 0b0010, 0b110000}
	var e pint.Eliminator
	var p peeler
	for n, w := range sets {
		e.Add(w, 0)
		if got := p.add(w); got&^e.Known() != 0 {
			t.Errorf("after %b: peeling knows %b, which is not in %b", sets[:n+1], got, e.Known())
		}
	}
	if p.known != 0b111111 {
		t.Errorf("after %b: peeling knows %b", sets, p.known)
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
	b := &bench{ctx: t.Context(), o: Options{Seed: 1, Runs: runs}}
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
	for _, w := range digestWidths[:3] {
		config := pint.MultiLayer(w.bits, 10)
		config.Instances = w.instances
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

// TestLoops compares counts of false alarms with the sum that bounds them.
func TestLoops(t *testing.T) {
	f, err := Make(t.Context(), "loops", Options{Seed: 1, Runs: 60})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range f.Tables[0].Rows {
		n, want := float64(r[4].(int)), r[6].(float64)*float64(r[3].(int))
		// It is above what is measured where one packet would raise several alarms, which matters at 8 bits.
		if n < 0.85*want-5*math.Sqrt(want) || n > want+5*math.Sqrt(want)+3 {
			t.Errorf("T = %v, %v bits: %v alarms in %v packets, expected %.1f (seed 1)", r[0], r[1], n, r[3], want)
		}
	}
}

// TestLatencyErrors checks that compression keeps the mean, and that sketches lose little.
func TestLatencyErrors(t *testing.T) {
	b := &bench{ctx: t.Context(), o: Options{Seed: 1, Runs: 60}, out: &Figure{}}
	if err := b.codeErrors(); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.out.Tables[0].Rows {
		if bias := r[3].(interval); math.Abs(bias.Value) > 2.6*(bias.High-bias.Low)/2 { // 5 standard errors
			t.Errorf("%v, %v bits: bias %v (seed 1)", r[0], r[1], bias)
		}
	}
	variants := []latencyVariant{
		{name: "all", bits: 8, lossless: true, begin: pooled(losslessBytes, false)},
		{name: "100 bytes", bits: 8, compared: true, begin: pooled(100, false)},
	}
	table := b.latencyTable("", "packets", variants)
	if err := b.latencyPoint(latencyLoads[0], 500, variants, 500, &table, nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range table.Rows {
		sampling, all, sketch := r[3].(interval).Value, r[4].(interval).Value, r[5].(interval).Value
		if all > 1.2*sampling+1 || sketch > 1.1*all {
			t.Errorf("quantile %v: error %.2f %% of values, %.2f %% of codes, %.2f %% of sketches (seed 1)", r[0], sampling, all, sketch)
		}
	}
}

// TestOurTracer finds the right paths, in fewer packets the more is known.
func TestOurTracer(t *testing.T) {
	n, err := readNetwork("US Carrier", "uscarrier.txt")
	if err != nil {
		t.Fatal(err)
	}
	config := pint.Hybrid(8, 10)
	config.Instances = 2
	scheme, err := pint.New(config)
	if err != nil {
		t.Fatal(err)
	}
	const hops, runs = 20, 200
	b := &bench{ctx: t.Context(), o: Options{Seed: 1, Runs: runs}}
	last := math.Inf(1)
	for _, k := range knowledges[1:] { // all switches, and links, and distances
		s, wrong, err := b.trace(n, hops, k.name, func() (tracer, error) { return newOurTracer(n, scheme, k) })
		if err != nil || wrong > 0 { // 200 runs at 1e-6 each
			t.Errorf("%s: %d of %d paths wrong, %v (seed 1)", k.name, wrong, runs, err)
		}
		if s.mean.Value > last {
			t.Errorf("%s: %.1f packets, more than %.1f with less knowledge (seed 1)", k.name, s.mean.Value, last)
		}
		last = s.mean.Value
	}
}

// TestFigures runs every figure a little: tables have as many cells as columns, and charts are small.
func TestFigures(t *testing.T) {
	testkit.Long(t)
	for _, name := range Figures() {
		f, err := Make(t.Context(), name, Options{Seed: 1, Runs: 4})
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range f.Tables {
			for _, r := range table.Rows {
				if len(r) != len(table.Columns) {
					t.Errorf("figure %s, %s: %d cells for %d columns: %v", name, table.Title, len(r), len(table.Columns), r)
				}
			}
		}
		var out strings.Builder
		if err := f.Print(&out); err != nil {
			t.Error(err)
		}
		for _, c := range f.Charts {
			var svg strings.Builder
			if err := c.Write(&svg); err != nil || svg.Len() > 100_000 || strings.Contains(svg.String(), "NaN") {
				t.Errorf("%s: %d bytes, %v", c.File, svg.Len(), err)
			}
		}
	}
	if _, err := Make(t.Context(), "13", Options{}); err == nil {
		t.Error("there is no figure 13")
	}
}
