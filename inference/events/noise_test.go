package events

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// noises are the distributions of one packet's value, by their quantile functions: u in [0, 1) to a value, scaled so
// that typical values are around 10 000 (ns).
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

// p99 draws the 99th smallest of 100 values, from the two largest of 100 uniform numbers.
func p99(rng *rand.Rand, quantile func(float64) float64) uint64 {
	largest := math.Pow(1-rng.Float64(), 1.0/100)
	return uint64(quantile(largest * math.Pow(1-rng.Float64(), 1.0/99)))
}

func hopWindow(end int64, latency, queue, count uint64) *inference.Window {
	return &inference.Window{End: end, Hops: []inference.HopStats{{
		HopKey: inference.HopKey{Node: 7, EgressIf: 3}, Count: count,
		Latency: inference.Summary{Count: count, P99: latency}, Queue: inference.Summary{Count: count, P99: queue},
	}}}
}

// TestFalseAlarms holds the rate that the package comment states, for latencies and queues: 200 000 windows of each
// distribution and at most one false finding in 100 000; for queues with a Pareto tail, which no queue with a bound has,
// one in 25 000.
func TestFalseAlarms(t *testing.T) {
	const windows = 200_000
	for i, noise := range noises {
		t.Run(noise.name, func(t *testing.T) {
			seed := uint64(i) + 1
			rng := rand.New(rand.NewPCG(seed, 1))
			d := New(DefaultConfig())
			started := map[inference.Kind]int{}
			for w := range windows {
				for _, f := range d.Step(hopWindow(int64(w), p99(rng, noise.quantile), p99(rng, noise.quantile), 100)) {
					if f.Start == int64(w) {
						started[f.Kind]++
						t.Logf("window %d: %s", w, f.Text)
					}
				}
			}
			for _, kind := range []inference.Kind{inference.HighLatency, inference.HighQueue} {
				limit := windows / 100_000
				if noise.name == "Pareto" && kind == inference.HighQueue {
					limit = windows / 25_000
				}
				if started[kind] > limit {
					t.Errorf("seed %d: %d findings of %s in %d windows of noise", seed, started[kind], kind, windows)
				}
			}
		})
	}
}

// TestStep finds a step to twenty times the scale of the noise, in the windows that the configuration asks for, and its
// end. The widest noises hide it and are left out: log-normal and Pareto, whose p99 over 100 packets alone spans most of
// a decade, and those of queues that are nearly always empty, where twenty times nothing is nothing.
func TestStep(t *testing.T) {
	cfg := DefaultConfig()
	for _, noise := range noises {
		if noise.name == "log-normal" || noise.name == "Pareto" || noise.name == "zero-inflated" || noise.name == "nearly always zero" {
			continue
		}
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, 2))
			d := New(cfg)
			step := func(end int64, scale uint64) []inference.Finding {
				return d.Step(hopWindow(end, scale*p99(rng, noise.quantile), 0, 100))
			}
			for w := range int64(100) {
				if f := step(w, 1); len(f) != 0 {
					t.Fatalf("%s, seed %d: %+v in noise", noise.name, seed, f)
				}
			}
			const lasts = 20
			var start, end int64
			for w := range int64(lasts + 200) {
				scale := uint64(1)
				if w < lasts {
					scale = 20
				}
				for _, f := range step(100+w, scale) {
					if start == 0 {
						start = f.Start - 100
					}
					if f.End != 0 {
						end = f.End - 100
					}
				}
			}
			if start == 0 || start > 10 || end < lasts || len(d.Open()) != 0 {
				t.Errorf("%s, seed %d: step seen in window %d and over in window %d, want soon after 0 and %d", noise.name, seed, start, end, lasts)
			}
		}
	}
}
