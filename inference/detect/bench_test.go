package detect

import (
	"testing"
	"time"
)

// BenchmarkAdd is a window of a hop, both statistics.
func BenchmarkAdd(b *testing.B) {
	cfg := Latency(10 * time.Second)
	var hops [64]Hop
	values := [8]Window{{200, 10300, 15300, 17800}, {200, 10200, 14700, 18200}, {190, 10100, 14900, 17300}, {210, 10350, 15100, 18100},
		{205, 10250, 15250, 18000}, {199, 10150, 14800, 17900}, {180, 10400, 15400, 18300}, {220, 10280, 15000, 17700}}
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
