package pathmix

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkFit fits 16 paths of a fat-tree to 2000 digests, 4 to 200, and none to as many that no switch wrote.
func BenchmarkFit(b *testing.B) {
	n := fabrics(b)[0]
	for _, c := range []struct {
		name           string
		paths, digests int
		wrong          float64
	}{{"4of200", 4, 200, 0}, {"16of2000", 16, 2000, 0}, {"forged200", 4, 200, 1}, {"forged2000", 16, 2000, 1}} {
		b.Run(c.name, func(b *testing.B) {
			r, s := rand.New(rand.NewPCG(1, 2)), scheme(b, 8, 2, 1)
			m := model(b, s, n)
			used, _ := n.spray(r, c.paths)
			d := flow(r, s, used, shares(c.paths, 0), c.digests, c.wrong)
			b.ReportAllocs()
			for b.Loop() {
				m.Fit(d, 0, 0)
			}
		})
	}
}
