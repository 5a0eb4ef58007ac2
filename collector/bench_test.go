package collector

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"

	"github.com/hopscope/hopscope/ingest"
)

// BenchmarkWorkers hands reports to the pipeline from several workers at the same time, each of which has exporters of its
// own, as when the kernel deals datagrams out by their addresses: what one report costs until its shard has counted it.
func BenchmarkWorkers(b *testing.B) {
	for _, workers := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			cfg := testConfig()
			cfg.Shards = 2
			opt := Options{Log: slog.New(slog.DiscardHandler), Policy: Replay, Seed: 1}
			router, err := cfg.Exporters.Routers()
			if err != nil {
				b.Fatal(err)
			}
			block := make([]bool, workers)
			for i := range block {
				block[i] = true
			}
			p, err := newPipeline(&cfg.Config, &cfg.Analysis, &opt, block, router, NewLedger())
			if err != nil {
				b.Fatal(err)
			}
			frames := make([][]ingest.Frame, workers)
			for i := range frames {
				for k, data := range datagrams(b, 64) {
					src := netip.AddrFrom4([4]byte{10, 0, byte(i), byte(k % 5)})
					frames[i] = append(frames[i], ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: 1e18, Src: netip.AddrPortFrom(src, 5000)})
				}
			}
			p.run()
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range workers {
				all.Go(func() {
					for n := i; n*len(frames[i]) < b.N; n += workers {
						p.handle(p.workers[i], frames[i])
					}
				})
			}
			all.Wait()
			p.close()
		})
	}
}
