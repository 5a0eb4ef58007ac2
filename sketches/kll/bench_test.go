package kll

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

func codes() (v [8192]uint16) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = uint16(10000 + r.NormFloat64()*800)
	}
	return v
}

func BenchmarkUpdate(b *testing.B) {
	v := codes()
	b.Run("hot", func(b *testing.B) { // one sketch for ever: most values are sampled away
		s, i := New[uint16](200, 1), 0
		for b.Loop() {
			s.Update(v[i&8191])
			i++
		}
	})
	for _, n := range []int{10_000, 100_000} { // the first n values, again and again
		b.Run(fmt.Sprintf("hot/first=%d", n), func(b *testing.B) {
			s, i := New[uint16](200, 1), 0
			for b.Loop() {
				if s.count == uint64(n) {
					s.Reset()
				}
				s.Update(v[i&8191])
				i++
			}
		})
	}
	b.Run("many=100000", func(b *testing.B) {
		order := many()
		ss := make([]Sketch[uint16], len(order))
		for i := range ss { // 2 000 to 2 100 values each
			if i < 100 {
				ss[i].Init(200, uint64(i))
				for j := range 2000 + i {
					ss[i].Update(v[(j*7+i)&8191])
				}
			} else {
				ss[i].CopyFrom(&ss[i%100])
			}
		}
		runtime.GC()
		i := 0
		for b.Loop() {
			ss[order[i]].Update(v[i&8191])
			if i++; i == len(order) {
				i = 0
			}
		}
		b.ReportMetric(float64(ss[0].SizeBytes()), "B/sketch")
	})
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

// Two full sketches of 100 000 values each; the copy that is merged into is part of it.
func BenchmarkMerge(b *testing.B) {
	v := codes()
	x, y := New[uint16](200, 1), New[uint16](200, 2)
	for i := range 100_000 {
		x.Update(v[i&8191])
		y.Update(v[i*7&8191])
	}
	var s Sketch[uint16]
	s.CopyFrom(x)
	b.ReportAllocs()
	for b.Loop() {
		s.CopyFrom(x)
		s.Merge(y)
	}
}

func BenchmarkQuantiles(b *testing.B) {
	v := codes()
	s := New[uint16](200, 1)
	for i := range 100_000 {
		s.Update(v[i&8191])
	}
	b.ReportAllocs()
	var dst [3]uint16
	for b.Loop() {
		s.Quantiles(dst[:0], 0.5, 0.9, 0.99)
	}
}
