package pathtrace

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// The weight of all paths is that of an enumeration, or more where loops are left out.
func TestWeight(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	scheme, err := pint.New(pint.Published(8))
	if err != nil {
		t.Fatal(err)
	}
	for round := range 300 {
		v, k := 2+r.IntN(5), 1+r.IntN(6)
		c := prior.Config{Scheme: scheme, Nodes: make([]uint32, v)}
		for u := range c.Nodes {
			c.Nodes[u] = uint32(u)
		}
		if mode := r.IntN(4); mode > 0 {
			c.Links = [][2]int32{}
			for u := range v {
				for w := range u {
					if r.Float64() < .6 {
						c.Links = append(c.Links, [2]int32{int32(u), int32(w)})
					}
				}
			}
			c.Routing = prior.Routing(mode - 1)
		}
		c.Loops = c.Routing == prior.None && r.IntN(2) == 0
		m, err := prior.NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		o, want := newOracle(c), 0.0
		path := make([]int, k)
		var visit func(h int)
		visit = func(h int) {
			if h == k {
				want += o.weight(path, &Flow{})
				return
			}
			for u := range v {
				path[h] = u
				visit(h + 1)
			}
		}
		visit(0)
		got := math.Exp2(m.Space(k).Weight)
		if exact := c.Links == nil || c.Loops || c.Routing != prior.None || k < 4; got < want-1e-6 || exact && math.Abs(got-want) > 1e-6 {
			t.Fatalf("seed %d round %d: %+v, %d hops: weight %v, want %v", seed, round, c, k, got, want)
		}
	}
}
