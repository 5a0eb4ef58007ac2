package parquet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sink"
)

// One part of 100 windows of 1000 hops: taken over, encoded, compressed, forced to the disk and renamed.
func BenchmarkPart(b *testing.B) {
	c := testConfig(b.TempDir())
	c.MemoryBytes = 1 << 30
	w := mustNew(b, c)
	r := rand.New(rand.NewPCG(1, 2))
	batches := make([]sink.Batch, 100)
	for i := range batches {
		for node := range 1000 {
			at := base + int64(i)*10e9
			p := hopPoint(node, at)
			p.Fields = nil
			for _, key := range []string{"count", "latency_p50", "latency_p90", "latency_p99", "latency_max", "queue_p50", "queue_p99", "queue_max"} {
				p.Fields = append(p.Fields, sink.IntField(key, int64(r.ExpFloat64()*5000)))
			}
			batches[i].Points = append(batches[i].Points, p)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range batches {
			if err := w.Write(b.Context(), &batches[i]); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	st := w.Stats()
	b.ReportMetric(float64(st.Bytes)/float64(st.Rows), "bytes/row")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(st.Rows), "ns/row")
}

// Appending one report of five hops to the raw stream, without the writing.
func BenchmarkAppendReport(b *testing.B) {
	for _, size := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			c := testConfig(b.TempDir())
			r, err := newRaw(c, sink.Drop)
			if err != nil {
				b.Fatal(err)
			}
			reports := make([]*decode.Report, size)
			for i := range reports {
				reports[i] = rawReport(i, 5)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.AppendReports(reports)
				if r.active.bytes > c.RawMemoryBytes/2 {
					r.active.clear()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/report")
			r.Close(b.Context())
		})
	}
}
