package quantile

import (
	"math/rand/v2"
	"testing"
)

func values() (v [4096]uint64) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = uint64(1000 * (1 + r.ExpFloat64()*10))
	}
	return v
}

func BenchmarkEncode(b *testing.B) {
	v, sum, i := values(), uint16(0), 0
	for b.Loop() {
		sum += Encode(v[i&4095])
		i++
	}
	_ = sum
}

func BenchmarkHistogramAdd(b *testing.B) {
	b.Run("hot", func(b *testing.B) {
		b.ReportAllocs()
		v, i := values(), 0
		var h Histogram
		for b.Loop() {
			h.Add(EncodeDense(v[i&4095]))
			i++
		}
	})
	b.Run("many=1000", func(b *testing.B) {
		b.ReportAllocs()
		v, i := values(), 0
		hs := make([]Histogram, 1000)
		for b.Loop() {
			hs[i*7919%1000].Add(EncodeDense(v[i&4095]))
			i++
		}
	})
}

func BenchmarkHistogramMergeReset(b *testing.B) {
	b.ReportAllocs()
	var h, o Histogram
	for _, v := range values() {
		o.AddValue(v)
	}
	for b.Loop() {
		h.Merge(&o)
		h.Reset()
	}
}

func BenchmarkHistogramQuantiles(b *testing.B) {
	b.ReportAllocs()
	var h Histogram
	for _, v := range values() {
		h.AddValue(v)
	}
	var dst [3]uint64
	for b.Loop() {
		h.Quantiles(dst[:0], 0.5, 0.9, 0.99)
	}
}
