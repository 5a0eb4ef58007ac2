package events

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestFiguresOfDrift holds that a finding of a shift that no single window shows names its evidence. Values vary by
// more than they shifted, so that many windows of a hop that is too slow are faster than usual.
func TestFiguresOfDrift(t *testing.T) {
	opposite, total := 0, 0
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := New(DefaultConfig())
		for n := range int64(1600) {
			v := 50_000 * math.Exp(.2*rng.NormFloat64())
			if n >= 1200 {
				v *= 1.3
			}
			w := inference.Window{Start: n * 1e10, End: (n + 1) * 1e10}
			w.Hops = []inference.HopStats{{HopKey: inference.HopKey{Node: 7, EgressIf: 3}, Count: 500, Latency: inference.Summary{Count: 500, P50: uint64(v), P90: uint64(1.3 * v), P99: uint64(1.6 * v)}}}
			d.Step(&w)
			for _, f := range d.Open() {
				if f.Kind != inference.HighLatency {
					continue
				}
				total++
				holdsFigures(t, &f)
				if strings.Contains(f.Text, " reached ") {
					opposite++
				}
			}
		}
	}
	if total == 0 || opposite == 0 {
		t.Errorf("%d windows with a finding, in %d of which the value is not what it rests on: the test holds nothing", total, opposite)
	}
}
