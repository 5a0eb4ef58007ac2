package rate

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/ingest"
)

// BenchmarkHandle measures the work of receivers for a received datagram.
func BenchmarkHandle(b *testing.B) {
	for _, flows := range []int{10_000, 1_000_000} {
		cfg := traffic.DefaultConfig()
		cfg.Flows = flows
		g, err := traffic.New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		// Each datagram is handled once a lap: the flows of a lap are as many as in a network, or all.
		const size = 64
		batches := make([]ingest.Batch, 1<<17/size)
		src := netip.MustParseAddrPort("127.0.0.1:4000")
		for i := range batches {
			for range size {
				batches[i].Frames = append(batches[i].Frames, ingest.Frame{
					Data: g.Next(nil), Time: 1_700_000_000_000_000_000, Link: ingest.LinkUDP, Src: src,
				})
			}
		}
		for _, h := range []struct {
			name  string
			build func(receiverOptions) (func(*ingest.Batch), error)
		}{{"decode", newDecoder}, {"pipeline", newPipeline}} {
			b.Run(fmt.Sprintf("%s/flows=%d", h.name, flows), func(b *testing.B) {
				handle, err := h.build(receiverOptions{FlowBytes: 2 << 30})
				if err != nil {
					b.Fatal(err)
				}
				for i := range batches { // fills the table
					handle(&batches[i])
				}
				b.ReportAllocs()
				b.ResetTimer()
				i := 0
				for n := 0; n < b.N; n += size {
					handle(&batches[i])
					if i++; i == len(batches) {
						i = 0
					}
				}
			})
		}
	}
}
