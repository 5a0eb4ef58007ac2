package events

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// A recurring fault is one finding that stays open. It marks each window in which the hop is as usual.
func TestResting(t *testing.T) {
	d := New(DefaultConfig())
	rng := rand.New(rand.NewPCG(7, 2))
	active, resting := 0, 0
	for n := range 1200 {
		slow := n >= 400 && n%40 < 15
		base := 20_000 + 400*rng.NormFloat64()
		if slow {
			base *= 20
		}
		d.Step(&inference.Window{Start: int64(n) * 1e10, End: int64(n+1) * 1e10, Hops: []inference.HopStats{{HopKey: inference.HopKey{Node: 1, EgressIf: 1}, Count: 1000,
			Latency: inference.Summary{Count: 1000, P50: uint64(base), P90: uint64(1.5 * base), P99: uint64(2 * base), Min: uint64(base / 2)}}}})
		if n < 800 { // it has to come back four times before it is expected to
			continue
		}
		for _, f := range d.Open() {
			switch {
			case f.Kind != inference.HighLatency:
				continue
			case f.Resting:
				resting++
			default:
				active++
			}
			if at := n % 40; slow && at > 0 && f.Resting || at > 30 && !f.Resting {
				t.Errorf("window %d, the %dth of 40: resting is %v", n, at, f.Resting)
			}
		}
	}
	if active < 150 || resting < 150 {
		t.Errorf("%d windows active, %d resting", active, resting)
	}
}
