package pathtrace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// Known paths are wrong as often as their confidence states, or less. Flows take paths with the probabilities of the
// model. Some take paths that it does not have, so that their digests are as good as random. Digests are of one bit,
// and the thresholds low, so that there are wrong paths to count.
//
// Given the digests, flows are wrong independently of each other, each with at most the probability w that its
// confidence leaves. Let e be the sum of the w, and v the sum of w(1-w). The number of wrong ones exceeds e by x with a
// probability of at most exp(-x²/2(v + x/3)) (Bernstein). The limit is the x for which that is one in ten million, for
// each of the three cases.
func TestWrong(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 5))
	for _, routing := range []prior.Routing{prior.None, prior.Distance, prior.ECMP} {
		wrong, expected, variance, known, unmodelled := 0, 0.0, 0.0, 0, 0
		const flows, share = 6000, .2
		var m *prior.Model
		var tr *Tracer
		for n := range flows {
			if n%1000 == 0 {
				c := sparse(r, 40)
				for range 40 {
					c.Links = append(c.Links, [2]int32{r.Int32N(40), r.Int32N(40)})
				}
				p := pint.Published(1)
				p.Seed = r.Uint32()
				scheme, err := pint.New(p)
				if err != nil {
					t.Fatal(err)
				}
				c.Scheme, c.Routing, c.Confidence, c.Unmodelled = scheme, routing, .9, share
				if m, err = prior.NewModel(c); err != nil {
					t.Fatal(err)
				}
				tr = New(m)
			}
			path := shortestPath(r, m, -1, 0, 4)
			modelled := r.Float64() >= share
			var f Flow
			for range 80 {
				id := r.Uint32()
				digest := m.Config.Scheme.Digest(id, path)
				if !modelled { // four nodes of another network for each packet
					digest = m.Config.Scheme.Digest(id, []uint32{r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32()})
				}
				if tr.Add(&f, id, 4, digest) == Contradiction || f.Known() {
					break
				}
			}
			if s, _ := tr.Path(&f, 0, nil); s.Complete {
				known++
				w := 1 - s.Confidence
				expected += w
				variance += w * (1 - w)
				if !modelled {
					unmodelled++
				}
				if !modelled || !slices.Equal(s.Nodes, path) {
					wrong++
				}
			}
			tr.Release(&f)
		}
		t.Logf("%v: %d of %d known paths wrong, %d of them unmodelled; expected at most %.0f", routing, wrong, known, unmodelled, expected)
		// x of L = x²/2(v + x/3), where L is the logarithm of the odds.
		l := math.Log(1e7)
		limit := expected + l/3 + math.Sqrt(l*l/9+2*l*variance)
		if float64(wrong) > limit || known < flows/2 {
			t.Errorf("seed %d: %v: %d of %d known paths wrong, want at most %.0f", seed, routing, wrong, known, limit)
		}
	}
}
