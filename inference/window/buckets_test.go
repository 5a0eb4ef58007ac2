package window

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/quantile"
)

func fillBuckets(p *Partial, rng *rand.Rand) {
	for range rng.IntN(12) {
		b := p.Buckets(inference.HopKey{Node: rng.Uint32N(6), EgressIf: rng.Uint32N(3)})
		for _, x := range []*BucketCounts{&b.Latency, &b.Queue} {
			if n := rng.Uint64N(9); n > 0 {
				x.Low.AddN(quantile.EncodeDense(rng.Uint64N(1<<20)), n)
				x.Open += rng.Uint64N(n)
			}
		}
	}
}

// Values that came in buckets are between the bounds that a window states of their quantiles, whatever the values and
// the buckets. The exception are values that the window counts beyond the last bound.
func TestBucketBounds(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 14))
		var bounds []uint64
		for at := uint64(rng.IntN(1000)); len(bounds) < 1+rng.IntN(20); at += 1 + rng.Uint64N(at+500) {
			bounds = append(bounds, at)
		}
		var values []uint64
		k, p := inference.HopKey{Node: 1, EgressIf: 2}, Partial{}
		h, b := p.Hop(k), p.Buckets(k)
		open := 0
		for range 1 + rng.IntN(2000) {
			v := uint64(float64(bounds[len(bounds)-1]) * rng.ExpFloat64() / 2)
			values = append(values, v)
			i, _ := slices.BinarySearch(bounds, v)
			low, high := uint64(0), bounds[min(i, len(bounds)-1)]
			if i > 0 {
				low = bounds[i-1]
			}
			if i == len(bounds) {
				open++
				b.Latency.Open++
			}
			h.Latency.AddValue(high)
			b.Latency.Low.AddValue(low)
		}
		slices.Sort(values)
		s := p.Window(NoLimits()).Hops[0].Latency
		if s.Bounds == nil || s.Bounds.Open != uint64(open) {
			t.Fatalf("seed %d: bounds %+v, want %d beyond the last", seed, s.Bounds, open)
		}
		const within = 1 + 1./32
		for _, x := range []struct {
			q         float64
			low, high uint64
		}{{.5, s.Bounds.P50, s.P50}, {.9, s.Bounds.P90, s.P90}, {.99, s.Bounds.P99, s.P99}} {
			v := values[max(int(x.q*float64(len(values))+.999999)-1, 0)]
			if float64(v) < float64(x.low)/within {
				t.Fatalf("seed %d: quantile %v is %d, and said to be no less than %d", seed, x.q, v, x.low)
			}
			if !s.Beyond(x.q) && float64(v) > float64(x.high)*within+1 {
				t.Fatalf("seed %d: quantile %v is %d, and said to be no more than %d", seed, x.q, v, x.high)
			}
			if beyond := v > bounds[len(bounds)-1]; s.Beyond(x.q) && !beyond {
				t.Fatalf("seed %d: quantile %v is %d, which is not beyond the last bound %d", seed, x.q, v, bounds[len(bounds)-1])
			}
		}
	}
}

// Values without buckets have no bounds.
func TestNoBuckets(t *testing.T) {
	p := Partial{}
	p.Hop(inference.HopKey{Node: 1}).Latency.AddValue(5)
	if s := p.Window(NoLimits()).Hops[0].Latency; s.Bounds != nil || s.Beyond(.99) {
		t.Errorf("bounds %+v", s.Bounds)
	}
}
