package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// BenchmarkUpdate counts decoded reports of five hops. They are of few flows, whose state is in the cache, or of many.
// bench/rate measures it together with all else.
func BenchmarkUpdate(b *testing.B) {
	for _, bm := range []struct{ flows, top int }{{100, 0}, {100, 100}, {10_000, 100}, {100_000, 100}} {
		b.Run(fmt.Sprintf("flows=%d/top=%d", bm.flows, bm.top), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			cfg := DefaultConfig()
			cfg.TopFlows = bm.top
			s := New(cfg, 1)
			reports := make([]*decode.Report, 64)
			for i := range reports {
				reports[i] = stack(0, 1, make([]decode.Hop, 5)...)
			}
			fill := func() {
				for _, r := range reports {
					n := rng.Uint32N(uint32(bm.flows))
					r.Flow = flowKey(n)
					x := rng.Uint64()
					for i := range r.Hops {
						r.Hops[i] = hop(uint32(i+1)<<8+n*7&15, uint16(n>>4&7)+1, 500+uint32(x&4095))
						x >>= 12
					}
				}
			}
			for range max(200*bm.flows, 100_000) / len(reports) {
				fill()
				s.Update(reports)
			}
			// Filling is not timed, and the benchmark's own clock would stop the world twice a batch.
			var took time.Duration
			n := 0
			for b.Loop() {
				fill()
				t := time.Now()
				s.Update(reports)
				took += time.Since(t)
				n += len(reports)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(n), "ns/report")
			b.ReportMetric(0, "ns/op")
		})
	}
}
