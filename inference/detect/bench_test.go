package detect

import (
	"testing"
	"time"
)

// BenchmarkAdd is a window of a hop, both statistics.
func BenchmarkAdd(b *testing.B) {
	cfg := Latency(10 * time.Second)
	var hops [64]Hop
	values := [8]Window{{Count: 200, P50: 10300, P90: 15300, P99: 17800}, {Count: 200, P50: 10200, P90: 14700, P99: 18200}, {Count: 190, P50: 10100, P90: 14900, P99: 17300}, {Count: 210, P50: 10350, P90: 15100, P99: 18100},
		{Count: 205, P50: 10250, P90: 15250, P99: 18000}, {Count: 199, P50: 10150, P90: 14800, P99: 17900}, {Count: 180, P50: 10400, P90: 15400, P99: 18300}, {Count: 220, P50: 10280, P90: 15000, P99: 17700}}
	b.ReportAllocs()
	n, at := int64(0), Moment{}
	for b.Loop() {
		if n%64 == 0 {
			at = cfg.At((n/64 + 1) * int64(cfg.Window))
		}
		hops[n%64].Add(&cfg, at, values[(n*7/64+n)%8])
		n++
	}
}
