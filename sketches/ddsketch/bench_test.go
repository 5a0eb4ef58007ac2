package ddsketch

import (
	"math/rand/v2"
	"testing"
)

func values() (v [8192]float64) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = 1000 * (1 + r.ExpFloat64())
	}
	return v
}

func BenchmarkUpdate(b *testing.B) {
	v := values()
	b.Run("hot", func(b *testing.B) {
		b.ReportAllocs()
		s, i := mustNew(b, DefaultConfig()), 0
		for b.Loop() {
			_ = s.Add(v[i&8191])
			i++
		}
	})
	b.Run("many=100000", func(b *testing.B) {
		ss := make([]*Sketch, 100_000)
		for i := range ss {
			ss[i] = mustNew(b, DefaultConfig())
			for j := range 20 {
				_ = ss[i].Add(v[(i+j)&8191])
			}
		}
		order := rand.New(rand.NewPCG(2, 2)).Perm(len(ss))
		i := 0
		for b.Loop() {
			_ = ss[order[i]].Add(v[i&8191])
			if i++; i == len(order) {
				i = 0
			}
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	b.ReportAllocs()
	v := values()
	s, o := mustNew(b, DefaultConfig()), mustNew(b, DefaultConfig())
	for _, x := range v {
		_ = o.Add(x)
	}
	for b.Loop() {
		s.Reset()
		_ = s.Merge(o)
	}
}
