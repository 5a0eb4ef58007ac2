package events

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// noises are the distributions of one packet's value, by their quantile functions. These map u in [0, 1) to a value,
// scaled so that typical values are around 10 000 (ns).
var noises = []struct {
	name     string
	quantile func(u float64) float64
}{
	{"constant", func(float64) float64 { return 10000 }},
	{"uniform", func(u float64) float64 { return 20000 * u }},
	{"normal", func(u float64) float64 { return max(0, 10000+2000*math.Sqrt2*math.Erfinv(2*u-1)) }},
	{"exponential", func(u float64) float64 { return -10000 * math.Log(1-u) }},
	{"log-normal", func(u float64) float64 { return 10000 * math.Exp(math.Sqrt2*math.Erfinv(2*u-1)) }},
	{"Pareto", func(u float64) float64 { return 5000 / math.Sqrt(1-u) }},
	{"bimodal", func(u float64) float64 {
		if u < 0.97 {
			return 5000 + 1000*u
		}
		return 50000 + 1000*u
	}},
	{"zero-inflated", zeroBelow(0.97)},
	{"nearly always zero", zeroBelow(0.9999)},
}

// zeroBelow is 0 with probability share, and otherwise packets of 1500 bytes in an exponential queue.
func zeroBelow(share float64) func(float64) float64 {
	return func(u float64) float64 {
		if u < share {
			return 0
		}
		return 1500 * math.Ceil(-2*math.Log((1-u)/(1-share)))
	}
}

// draw returns the quantiles of 100 values. The 99th smallest comes from the two largest of 100 uniform numbers. The
// others lie about as they do in such samples.
func draw(rng *rand.Rand, quantile func(float64) float64) inference.Summary {
	largest := math.Pow(1-rng.Float64(), 1.0/100)
	top := largest * math.Pow(1-rng.Float64(), 1.0/99)
	middle := min(max(.5+.05*rng.NormFloat64(), 0), top)
	upper := min(max(.9+.03*rng.NormFloat64(), middle), top)
	return inference.Summary{Count: 100, P50: uint64(quantile(middle)), P90: uint64(quantile(upper)), P99: uint64(quantile(top))}
}

// hopWindow is a window of one hop in which all values are the same.
func hopWindow(end int64, latency, queue, count uint64) *inference.Window {
	same := func(v uint64) inference.Summary { return inference.Summary{Count: count, P50: v, P90: v, P99: v} }
	return hopShows(end, same(latency), same(queue))
}

func hopShows(end int64, latency, queue inference.Summary) *inference.Window {
	return &inference.Window{End: end, Hops: []inference.HopStats{{
		HopKey: inference.HopKey{Node: 7, EgressIf: 3}, Count: latency.Count, Latency: latency, Queue: queue,
	}}}
}

// TestFalseAlarms holds the rate that the package comment states, for latencies and queues. Each distribution has 50
// 000 windows and at most three false findings. The limits are those of one statistic in a network of 200, whose share
// of the accepted findings is far below one.
func TestFalseAlarms(t *testing.T) {
	testkit.Long(t)
	const windows = 50_000
	for i, noise := range noises {
		t.Run(noise.name, func(t *testing.T) {
			seed := uint64(i) + 1
			rng := rand.New(rand.NewPCG(seed, 1))
			cfg := DefaultConfig()
			cfg.FalseADay /= 100 // of the two statistics here
			d := New(cfg)
			started := map[inference.Kind]int{}
			for w := range windows {
				for _, f := range d.Step(hopShows(int64(w)*1e10, draw(rng, noise.quantile), draw(rng, noise.quantile))) {
					if f.Start == int64(w)*1e10 && !f.Learning {
						started[f.Kind]++
						t.Logf("window %d: %s", w, f.Text)
					}
				}
			}
			for kind, n := range started {
				if n > 3 {
					t.Errorf("seed %d: %d findings of %s in %d windows of noise", seed, n, kind, windows)
				}
			}
		})
	}
}

// TestStep finds a step to twenty times the scale of the noise at once, and its end. Queues that are mostly empty are
// left out: twenty times nothing is nothing.
func TestStep(t *testing.T) {
	cfg := DefaultConfig()
	for _, noise := range noises {
		if noise.name == "nearly always zero" || noise.name == "zero-inflated" {
			continue
		}
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 2))
			d := New(cfg)
			step := func(end int64, scale uint64) []inference.Finding {
				s := draw(rng, noise.quantile)
				s.P50, s.P90, s.P99 = scale*s.P50, scale*s.P90, scale*s.P99
				return d.Step(hopShows(end*1e10, s, inference.Summary{Count: 100}))
			}
			const before = 400
			for w := range int64(before) {
				step(w, 1)
			}
			const lasts = 20
			var start, end int64
			for w := range int64(lasts + 200) {
				scale := uint64(1)
				if w < lasts {
					scale = 20
				}
				for _, f := range step(before+w, scale) {
					if start == 0 && f.Kind == inference.HighLatency {
						start = f.Start/1e10 - before + 1
					}
					if f.End != 0 && f.Kind == inference.HighLatency {
						end = f.End/1e10 - before + 1
					}
				}
			}
			if start == 0 || start > 3 || end <= lasts || len(d.Open()) != 0 {
				t.Errorf("%s, seed %d: step seen in window %d and over in window %d, want soon after 0 and %d", noise.name, seed, start, end, lasts)
			}
		}
	}
}
