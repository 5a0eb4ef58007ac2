package quantile

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func codes() (v [8192]uint16) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = uint16(10000 + r.NormFloat64()*800)
	}
	return v
}

func many() []uint32 {
	order := make([]uint32, 100_000)
	for i, p := range rand.New(rand.NewPCG(2, 2)).Perm(len(order)) {
		order[i] = uint32(p)
	}
	return order
}

func BenchmarkTiny(b *testing.B) {
	v := codes()
	b.Run("update/hot", func(b *testing.B) {
		var s Tiny
		r, i := Rand(1), 0
		for b.Loop() {
			s.Update(v[i&8191], &r)
			i++
		}
	})
	for _, n := range []int{200, 2000, 20_000} {
		b.Run(fmt.Sprintf("add20/hot/first=%d", n), func(b *testing.B) {
			var s Tiny
			r, i := Rand(1), 0
			for b.Loop() {
				if s.count >= uint64(n) {
					s.Reset()
				}
				s.Add(v[i*20&4095:][:20], &r)
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20, "ns/code")
		})
	}
	b.Run("add20/many=100000", func(b *testing.B) {
		order := many()
		ss := make([]Tiny, len(order))
		r, i := Rand(1), 0
		for j := range ss {
			for range 5 + j%20 {
				ss[j].Add(v[j&4095:][:20], &r)
			}
		}
		for b.Loop() {
			ss[order[i]].Add(v[i*20&4095:][:20], &r)
			if i++; i == len(order) {
				i = 0
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20, "ns/code")
	})
	b.Run("quantiles", func(b *testing.B) {
		var s Tiny
		r := Rand(1)
		s.Add(v[:1000], &r)
		var dst [3]uint16
		for b.Loop() {
			s.Quantiles(dst[:0], 0.5, 0.9, 0.99)
		}
	})
}
