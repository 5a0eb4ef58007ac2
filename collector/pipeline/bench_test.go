package pipeline

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/ingest"
)

// BenchmarkWorkers measures the cost of one report until its shard has counted it. Several workers hand reports to the
// pipeline at the same time. Each has exporters of its own, as when the kernel distributes datagrams by address.
func BenchmarkWorkers(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			p, _ := newTest(b, Config{Block: true, Sources: workers(n)}, exporters.DefaultConfig(), 2)
			frames := make([][]ingest.Frame, n)
			for i := range frames {
				for k, data := range datagrams(b, 64) {
					src := netip.AddrFrom4([4]byte{10, 0, byte(i), byte(k % 5)})
					frames[i] = append(frames[i], ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: 1e18, Src: netip.AddrPortFrom(src, 5000)})
				}
			}
			p.Start()
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					for k := i; k*len(frames[i]) < b.N; k += n {
						p.Handle(p.workers[i], frames[i])
					}
				})
			}
			all.Wait()
			p.Close()
		})
	}
}
