package pathmix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
)

// Whatever digests say, the result is one: shares that add up to no more than 1, and the same for the same digests.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	for _, s := range []*pint.Scheme{scheme(t, 8, 2, 1), scheme(t, 1, 8, 2), scheme(t, 32, 2, 3), pint.Mininet(), pint.Tofino(false)} {
		for _, links := range [][][2]int32{nil, {}, {{0, 1}, {1, 2}, {2, 0}, {3, 3}}} {
			m, err := NewModel(Config{Scheme: s, Nodes: []uint32{5, 1 << 31, 0, 7}, Links: links, Ends: [][]int32{{}, {1, 2}}})
			if err != nil {
				t.Fatal(err)
			}
			for round := range 8 {
				var d []Digest
				for range r.IntN(300) {
					g := Digest{r.Uint64() >> r.IntN(64), r.Uint32() >> r.IntN(32), uint8(r.Uint32())}
					if round%2 == 0 {
						g.Hops = uint8(r.IntN(5))
					}
					d = append(d, g)
				}
				ends := uint16(round % 4)
				got := m.Fit(d, ends, ends)
				sum := got.Unexplained
				for _, p := range got.Paths {
					sum += p.Share
				}
				for _, s := range got.Inseparable {
					sum += s.Share
				}
				if sum > 1+1e-9 {
					t.Fatalf("%+v: shares of %v", got, sum)
				}
				if second := m.Fit(slices.Clone(d), ends, ends); fmt.Sprint(second) != fmt.Sprint(got) {
					t.Fatalf("%+v, then %+v", got, second)
				}
			}
		}
	}
}

// The paths are found without links as well, where nodes are all that is known.
func TestNodesOnly(t *testing.T) {
	n, r := grid(3), rand.New(rand.NewPCG(1, 13))
	s := scheme(t, 8, 2, 4)
	m, err := NewModel(Config{Scheme: s, Nodes: n.nodes})
	if err != nil {
		t.Fatal(err)
	}
	used := [][]uint32{through(0, 0, 0), through(1, 1, 1)}
	got := m.Fit(flow(r, s, used, shares(2, 0), 600, 0), 0, 0)
	if len(got.Paths) != 2 || !has(got.Paths, used[0]) || !has(got.Paths, used[1]) {
		t.Fatalf("%+v", got)
	}
}
