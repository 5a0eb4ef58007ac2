package quantile

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkHistogramMergeBytes adds up the bytes of histograms, of some 120 counters each.
func BenchmarkHistogramMergeBytes(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var encoded [][]byte
	for i := range 200 {
		var h Histogram
		for range 500 << (i % 6) {
			h.AddValue(500 + uint64(1000*r.ExpFloat64()))
		}
		encoded = append(encoded, h.Append(nil))
	}
	b.ReportAllocs()
	var sums [20]Histogram
	n := 0
	for b.Loop() {
		if n%(len(encoded)) == 0 {
			for i := range sums {
				sums[i].Reset()
			}
		}
		if _, err := sums[n%len(sums)].MergeBytes(encoded[n%len(encoded)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
}
