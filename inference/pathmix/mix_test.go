package pathmix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/internal/testkit"
)

// flow draws digests of packets that take paths with some shares. Some digests are wrong.
func flow(r *rand.Rand, s *pint.Scheme, paths [][]uint32, shares []float64, n int, wrong float64) (digests []Digest) {
	for range n {
		id, p := r.Uint32(), paths[draw(r, shares)]
		v := s.Digest(id, p)
		if r.Float64() < wrong {
			v = r.Uint64() >> (64 - s.Width()*s.Instances())
		}
		digests = append(digests, Digest{v, id, uint8(len(p))})
	}
	return digests
}

func model(t testing.TB, s *pint.Scheme, n *net) *Model {
	t.Helper()
	m, err := NewModel(Config{Scheme: s, Nodes: n.nodes, Links: n.links})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The paths of sprayed flows are found exactly, with equal shares and with small ones, and with wrong digests among
// them. There are four paths with 200 digests of 2 × 8 bits, and sixteen with 2,000. The seeds are fixed, so that the
// figures are always the same. The lower bounds of their 95 % intervals show that they are no luck; hopscope-bench pint
// narrows these with more runs.
func TestTargets(t *testing.T) {
	testkit.Long(t)
	for i, n := range fabrics(t) {
		for j, c := range []struct {
			paths, digests, runs int
			least, wrong, want   float64
		}{
			{4, 200, 120, 0, 0, .95}, {4, 200, 120, .1, 0, .95}, {4, 200, 60, .1, .01, .9},
			{16, 2000, 12, 0, 0, .9}, {16, 2000, 12, .03, 0, .9}, {16, 2000, 12, .03, .01, .9},
		} {
			t.Run(fmt.Sprintf("%s/%d of %d, least %v, wrong %v", n.name, c.paths, c.digests, c.least, c.wrong), func(t *testing.T) {
				var s score
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				for range c.runs {
					sch := scheme(t, 8, 2, r.Uint32())
					used, _ := n.spray(r, c.paths)
					s.add(used, model(t, sch, n).Fit(flow(r, sch, used, shares(c.paths, c.least), c.digests, c.wrong), 0, 0))
				}
				t.Logf("%v, at least %.1f %%", &s, 100*s.lower())
				if float64(s.exact) < c.want*float64(s.runs) || s.ghost > 1e-3*float64(s.runs) {
					t.Errorf("want %.0f %%, and ghosts below 10⁻³", 100*c.want)
				}
			})
		}
	}
}

// lower is the lower bound of the 95 % interval of Wilson for the share of exact runs.
func (s *score) lower() float64 {
	const z = 1.96
	n, p := float64(s.runs), float64(s.exact)/float64(s.runs)
	return (p + z*z/2/n - z*math.Sqrt(p*(1-p)/n+z*z/4/n/n)) / (1 + z*z/n)
}

// grid is two switches in each of some layers, all linked with both of the next, between two ends.
func grid(layers int) *net {
	n := &net{name: "grid", nodes: []uint32{100, 200}}
	before := []int32{0}
	for l := range layers {
		a := int32(len(n.nodes))
		n.nodes = append(n.nodes, uint32(10*l), uint32(10*l+1))
		for _, u := range before {
			n.links = append(n.links, [2]int32{u, a}, [2]int32{u, a + 1})
		}
		before = []int32{a, a + 1}
	}
	for _, u := range before {
		n.links = append(n.links, [2]int32{u, 1})
	}
	return n
}

// through is a path of the grid.
func through(sides ...int) []uint32 {
	p := []uint32{100}
	for l, s := range sides {
		p = append(p, uint32(10*l+s))
	}
	return append(p, 200)
}

// A packet that one switch writes into carries one hop, so that no number of packets shows which switches are on a path
// together. All four paths are published as inseparable. With two instances, or where several switches write into a
// packet, the two paths are found.
func TestInseparable(t *testing.T) {
	n, used := grid(2), [][]uint32{through(0, 0), through(1, 1)}
	for _, c := range []struct {
		name  string
		pint  pint.Config
		apart bool
	}{
		{"one writer", pint.Baseline(8), false},
		{"one wide writer", pint.Baseline(16), false},
		{"two instances", pint.Config{Bits: 8, Instances: 2, Tau: 1}, true},
		{"several writers", pint.Config{Bits: 8, Instances: 1, P: []float64{.5}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := pint.New(c.pint)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 3))
			got := model(t, s, n).Fit(flow(r, s, used, []float64{.5, .5}, 1500, 0), 0, 0)
			if c.apart {
				if len(got.Paths) != 2 || len(got.Inseparable) != 0 || !has(got.Paths, used[0]) || !has(got.Paths, used[1]) {
					t.Fatalf("%+v", got)
				}
				return
			}
			if len(got.Paths) != 0 || len(got.Inseparable) != 1 || got.Inseparable[0].Share < .99 {
				t.Fatalf("%+v", got)
			}
			for _, p := range [][]uint32{through(0, 0), through(0, 1), through(1, 0), through(1, 1)} {
				if !slices.ContainsFunc(got.Inseparable[0].Paths, func(q []uint32) bool { return slices.Equal(p, q) }) {
					t.Errorf("%d is not among %d", p, got.Inseparable[0].Paths)
				}
			}
		})
	}
}

// Two instances of one writer carry pairs of hops. These two sets of four paths have the same pairs.
func TestInseparablePairs(t *testing.T) {
	s, err := pint.New(pint.Config{Bits: 8, Instances: 2, Tau: 1})
	if err != nil {
		t.Fatal(err)
	}
	used := [][]uint32{through(0, 0, 0), through(0, 1, 1), through(1, 0, 1), through(1, 1, 0)}
	r := rand.New(rand.NewPCG(1, 4))
	got := model(t, s, grid(3)).Fit(flow(r, s, used, shares(4, 0), 2000, 0), 0, 0)
	if len(got.Paths) != 0 || len(got.Inseparable) != 1 || len(got.Inseparable[0].Paths) != 8 {
		t.Fatalf("%+v", got)
	}
}

func has(list []Path, path []uint32) bool {
	return slices.ContainsFunc(list, func(p Path) bool { return slices.Equal(p.Nodes, path) })
}

// Packets that take a path which the links do not have make no ghosts: their share is published as unexplained.
func TestUnknownPath(t *testing.T) {
	var s score
	r := rand.New(rand.NewPCG(1, 5))
	for _, n := range fabrics(t) {
		for _, digests := range []int{200, 1000} {
			for run := range 20 {
				sch := scheme(t, 8, 2, r.Uint32())
				used, _ := n.spray(r, 3)
				odd := slices.Clone(used[0])
				odd[1+run%(len(odd)-2)] = 1 << 20 // an unknown node
				share := []float64{.3, .3, .2, .2}
				got := model(t, sch, n).Fit(flow(r, sch, append(used, odd), share, digests, .01), 0, 0)
				s.add(used, got)
				if math.Abs(got.Unexplained-.2) > .2 {
					t.Errorf("%s, %d digests: a share of %.2f is unexplained, want .2", n.name, digests, got.Unexplained)
				}
			}
		}
	}
	t.Log(&s)
	if s.ghost > 1e-3*float64(s.runs) || s.exact < s.runs*9/10 {
		t.Error("there are ghosts, or too few exact results")
	}
}

// Packets that go over a switch anywhere in the network first take paths of several lengths, which are not the shortest.
func TestDetours(t *testing.T) {
	var s score
	r := rand.New(rand.NewPCG(1, 6))
	for _, n := range fabrics(t) {
		for range 10 {
			sch := scheme(t, 8, 2, r.Uint32())
			var used [][]uint32
			from, to := n.edges[r.IntN(len(n.edges))], n.edges[r.IntN(len(n.edges))]
			for len(used) < 6 && from != to {
				over := n.edges[r.IntN(len(n.edges))]
				a, b := n.shortest(from, over, 100), n.shortest(over, to, 100)
				if over == from || over == to {
					continue
				}
				p := slices.Concat(a[r.IntN(len(a))], b[r.IntN(len(b))][1:])
				if q := slices.Clone(p); len(slices.Compact(sorted(q))) < len(p) || slices.ContainsFunc(used, func(q []uint32) bool { return slices.Equal(p, q) }) {
					continue
				}
				used = append(used, p)
			}
			if len(used) > 0 {
				got := model(t, sch, n).Fit(flow(r, sch, used, shares(len(used), 0), 1000, .01), 0, 0)
				s.add(used, got)
			}
		}
	}
	t.Log(&s)
	if s.ghost > 1e-3*float64(s.runs) || s.exact < s.runs*9/10 {
		t.Error("there are ghosts, or too few exact results")
	}
}

func sorted(p []uint32) []uint32 {
	slices.Sort(p)
	return p
}

// Shares that change while the digests come, and the order of the digests, make no difference but to the shares.
func TestOrder(t *testing.T) {
	n := fabrics(t)[0]
	r := rand.New(rand.NewPCG(1, 7))
	sch := scheme(t, 8, 2, 9)
	used, _ := n.spray(r, 4)
	var digests []Digest
	for step := range 10 { // from the first two to the last two
		x := float64(step) / 18
		digests = append(digests, flow(r, sch, used, []float64{.5 - x, .5 - x, x, x}, 60, 0)...)
	}
	m := model(t, sch, n)
	got := m.Fit(digests, 0, 0)
	var s score
	if s.add(used, got); s.exact != 1 {
		t.Fatalf("%+v, want %d", got, used)
	}
	for _, p := range got.Paths {
		if math.Abs(p.Share-.25) > .1 {
			t.Errorf("a share of %.2f, want .25", p.Share)
		}
	}
	r.Shuffle(len(digests), func(i, j int) { digests[i], digests[j] = digests[j], digests[i] })
	if second := m.Fit(digests, 0, 0); fmt.Sprint(second) != fmt.Sprint(got) {
		t.Errorf("in another order: %+v, not %+v", second, got)
	}
}

// Digests that no switch wrote lead to no path.
func TestForged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for _, n := range fabrics(t) {
		for _, c := range []struct{ bits, instances int }{{8, 2}, {8, 1}, {1, 8}} {
			sch := scheme(t, c.bits, c.instances, r.Uint32())
			m := model(t, sch, n)
			for range 3 {
				got := m.Fit(flow(r, sch, [][]uint32{{1, 2, 3, 4, 5}}, []float64{1}, 500, 1), 0, 0)
				if len(got.Paths) > 0 || got.Unexplained < .5 {
					t.Errorf("%s, %+v: %+v", n.name, c, got)
				}
			}
		}
	}
}
