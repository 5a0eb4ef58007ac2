package events

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestStopped: telemetry of a hop stops in a slow moment and reports the same values from then on. The rises of that
// moment are no findings for long: what stands still is found in their place. A full queue and a full link stand still
// as well, but packets do not take the same time there, and the rises stay.
func TestStopped(t *testing.T) {
	hop := inference.HopKey{Node: 7, EgressIf: 3}
	for _, stopped := range []bool{true, false} {
		d, r := New(DefaultConfig()), rand.New(rand.NewPCG(1, 7))
		now := int64(0)
		for k := range 420 {
			latency := 2000 + r.Uint64N(500)
			h := inference.HopStats{HopKey: hop, Count: 60, HasUtilization: true, Utilization: .3 + .1*r.Float64(),
				Latency: inference.Summary{Count: 60, Min: 1500, P50: latency, P90: 2 * latency, P99: 3 * latency},
				Queue:   inference.Summary{Count: 60, P50: r.Uint64N(300), P90: 1000, P99: 2000 + r.Uint64N(3000)}}
			if k >= 400 {
				h.Queue = inference.Summary{Count: 60, P50: 90_000, P90: 90_000, P99: 90_000}
				h.Utilization = 1
				h.Latency = inference.Summary{Count: 60, Min: 80_000, P50: 80_000, P90: 80_000, P99: 80_000}
				if !stopped {
					h.Latency.P50, h.Latency.P90, h.Latency.P99 = 80_000+r.Uint64N(500), 80_600, 80_700+r.Uint64N(500)
				}
			}
			d.Step(&inference.Window{Start: now, End: now + 10e9, Hops: []inference.HopStats{h}})
			now += 10e9
		}
		open := map[inference.Kind]int{}
		for _, f := range d.Open() {
			if f.Evidence == 0 {
				open[f.Kind]++
			}
		}
		rises := open[inference.HighLatency] + open[inference.HighQueue] + open[inference.HighUtilization]
		if stopped && (rises > 0 || open[inference.StuckValues] != 3) || !stopped && (rises != 3 || open[inference.StuckValues] > 0) {
			t.Errorf("stopped %v: %v", stopped, open)
		}
	}
}
