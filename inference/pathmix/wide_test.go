package pathmix

import (
	"math/rand/v2"
	"testing"
)

// In a wide area network, paths have tens of hops and share most of them, so that few digests distinguish two of them.
// Paths that are not distinguished then are published as inseparable or unexplained, and make no ghosts.
func TestWide(t *testing.T) {
	for _, name := range []string{"kdl", "uscarrier"} {
		n, r := wide(t, name), rand.New(rand.NewPCG(1, 9))
		for _, c := range []struct{ paths, digests, runs int }{{2, 200, 10}, {4, 200, 20}, {4, 1000, 10}} {
			var s score
			for range c.runs {
				sch := scheme(t, 8, 2, r.Uint32())
				used, _ := n.spray(r, c.paths)
				s.add(used, model(t, sch, n).Fit(flow(r, sch, used, shares(c.paths, 0), c.digests, 0), 0, 0))
			}
			t.Logf("%s, %+v: %v", name, c, &s)
			if s.ghost > 1e-3*float64(s.runs) || s.exact*2 < s.runs {
				t.Errorf("%s, %+v: there are ghosts, or too few exact results", name, c)
			}
		}
	}
}
