package collector

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/hopscope/hopscope/ingest"
)

// BenchmarkWorkers hands the same reports of five exporters to the pipeline from several workers at the same time: what
// one report costs until its shard has counted it.
func BenchmarkWorkers(b *testing.B) {
	for _, workers := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			cfg := testConfig()
			cfg.Shards = 2
			opt := Options{Log: slog.New(slog.DiscardHandler), Policy: Replay, Seed: 1}
			router, err := newRouter(&cfg.Exporters)
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
			var frames []ingest.Frame
			for _, data := range datagrams(b, 64) {
				frames = append(frames, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: 1e18})
			}
			p.run()
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range workers {
				all.Go(func() {
					for n := i; n*len(frames) < b.N; n += workers {
						p.handle(p.workers[i], frames)
					}
				})
			}
			all.Wait()
			p.close()
		})
	}
}
