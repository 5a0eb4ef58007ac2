package quantile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// BenchmarkAdd measures the time of a code in batches of 16, while a sketch fills up to n of them. A KLL sketch is
// measured beside.
func BenchmarkAdd(b *testing.B) {
	g := rand.New(rand.NewPCG(1, 1))
	v := make([]uint16, 1<<14)
	for i := range v {
		v[i] = Encode(uint64(20_000 * math.Exp(g.NormFloat64())))
	}
	for _, n := range []uint64{60, 500, 2000, 20_000} {
		b.Run(fmt.Sprintf("tail/n=%d", n), func(b *testing.B) {
			var s Tail
			r, i := Rand(1), 0
			for b.Loop() {
				if s.Count() >= n {
					s.Reset()
				}
				s.Add(v[i&16383:][:16], &r)
				i += 16
			}
		})
		b.Run(fmt.Sprintf("kll/n=%d", n), func(b *testing.B) {
			var s Tiny
			r, i := Rand(1), 0
			for b.Loop() {
				if s.Count() >= n {
					s.Reset()
				}
				s.Add(v[i&16383:][:16], &r)
				i += 16
			}
		})
	}
}
