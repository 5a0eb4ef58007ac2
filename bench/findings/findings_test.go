package findings

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrderStatistics compares the quantiles that are drawn at once with those of samples that are drawn one by one.
func TestOrderStatistics(t *testing.T) {
	const rounds = 20_000
	for _, n := range []int{1, 2, 20, 200} {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		var drawn, sorted [len(ranks)]float64
		sample := make([]float64, n)
		for range rounds {
			for i, u := range orderStatistics(r, n) {
				drawn[i] += u / rounds
			}
			for i := range sample {
				sample[i] = r.Float64()
			}
			slices.Sort(sample)
			for i, q := range ranks {
				sorted[i] += sample[max(int(math.Ceil(q*float64(n)-1e-9)), 1)-1] / rounds
			}
		}
		for i := range drawn {
			// Each mean has a standard deviation of at most .29/√rounds; six of them together are one in a billion.
			if d := math.Abs(drawn[i] - sorted[i]); d > 6*math.Sqrt2*.29/math.Sqrt(rounds) {
				t.Errorf("quantile %v of %d values: mean %v, of samples %v", ranks[i], n, drawn[i], sorted[i])
			}
		}
	}
}

// TestSeries holds that the same seed gives the same windows, and that each fault changes them.
func TestSeries(t *testing.T) {
	for k := range Backgrounds {
		b := &Backgrounds[k]
		x, y := newSeries(b, 1, 2), newSeries(b, 1, 2)
		for range 500 {
			if v, w := x.Next(nil), y.Next(nil); v != w || v.P50 > v.P99 {
				t.Fatalf("%s: windows %+v and %+v of the same seed", b.Name, v, w)
			}
		}
		if b.group != groupSampled {
			continue
		}
		for i := range faults {
			faulty, quiet, differ := newSeries(b, 1, 2), newSeries(b, 1, 2), 0
			for range 500 {
				faulty.Next(nil)
				quiet.Next(nil)
			}
			for range 180 {
				if faulty.Next(&faults[i]) != quiet.Next(nil) {
					differ++
				}
			}
			if differ == 0 {
				t.Errorf("%s on %s changes nothing", faults[i].Name, b.Name)
			}
		}
	}
}

// TestFound holds what no detector may miss and what cannot be found by one that compares p99 with its past alone.
func TestFound(t *testing.T) {
	o := options{Seed: 3, Hops: 3}
	scores, err := found(context.Background(), &Backgrounds[1], &faults[2], Detectors, o)
	if err != nil {
		t.Fatal(err)
	}
	for d := range scores {
		if s := &scores[d]; s.hops != 3 || len(s.delays)+s.busy != 3 {
			t.Errorf("%s: × 4 is found on %d of %d hops", Detectors[d].Name, len(s.delays), s.hops)
		}
	}
}

// TestParts runs the parts on next to nothing.
func TestParts(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, p := range Parts {
		if err := p.Run(ctx, io.Discard, options{Seed: 1, Hops: 1, Quiet: 1, Seeds: 1}); err == nil {
			t.Errorf("%s: does not end when it is reported to", p.Name)
		}
	}
}
