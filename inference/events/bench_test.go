package events

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// BenchmarkStep takes windows of 640 hops, of a network in which all is well and of a troubled one. In that, some hops
// come and go, all exporters are listed, packets are dropped everywhere, flows change their paths and digests are
// strange.
func BenchmarkStep(b *testing.B) {
	const hops, rounds = 640, 64
	for _, troubled := range []bool{false, true} {
		name := "well"
		if troubled {
			name = "troubled"
		}
		b.Run(name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			ws := windows(rounds, func(int) *inference.Window {
				w := &inference.Window{}
				for n := range uint32(hops) {
					s := inference.Summary{Count: 1000, P99: 1000 + rng.Uint64N(1000)}
					if !troubled || rng.IntN(20) != 0 {
						w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: n}, Count: 1000, Latency: s, Queue: s})
					}
				}
				for n := range uint32(200) {
					if !troubled {
						break
					}
					w.Exporters = append(w.Exporters, inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: n}, Reports: 100})
					if rng.IntN(2) == 0 {
						w.Drops = append(w.Drops, inference.DropStats{Node: n, Reason: 80, Count: 1 + rng.Uint64N(100)})
					}
					if rng.IntN(2) == 0 {
						w.Paths = append(w.Paths, inference.PathChange{Flow: flow(n)})
					}
					if rng.IntN(2) == 0 {
						w.Digests = append(w.Digests, inference.DigestFault{Flow: flow(n), Count: 20})
					}
				}
				return w
			})
			d := New(DefaultConfig())
			for _, w := range ws {
				d.Step(w)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				d.Step(ws[i%rounds])
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/hops, "ns/hop")
		})
	}
}
