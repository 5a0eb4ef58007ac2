package survey

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

var (
	rounds    = flag.Int("survey-rounds", 1, "rounds of each error and network")
	flowCount = flag.Int("survey-flows", 1000, "flows in each round")
	digestsOf = flag.Int("survey-digests", 128, "digests of each flow")
)

// mistake is a network with one error, and the expected result.
type mistake struct {
	m    *Map
	want []string // one of them
}

// mistakes break a map, or the network, in one way each. They keep the flows that it touches.
var mistakes = []struct {
	name string
	make func(n *network, m *Map, r *rand.Rand, flows []flow) (mistake, []flow)
}{
	{"renumbered", func(n *network, m *Map, r *rand.Rand, flows []flow) (mistake, []flow) {
		u := busy(r, flows)
		flows = through(flows, u)
		rename(flows, map[uint32]uint32{u: 914000})
		return mistake{m, []string{fmt.Sprintf("node %d calls itself 914000:", u), "node 914000 speaks"}}, flows
	}},
	{"unknown", func(n *network, m *Map, r *rand.Rand, flows []flow) (mistake, []flow) {
		u := busy(r, flows)
		flows = through(flows, u)
		rename(flows, map[uint32]uint32{u: 1 << 24}) // more than is searched
		return mistake{m, []string{"an unknown node speaks"}}, flows
	}},
	{"swapped", func(n *network, m *Map, r *rand.Rand, flows []flow) (mistake, []flow) {
		for {
			u := busy(r, flows)
			v := u + 1
			if int(v) > len(n.nodes) || slices.Equal(m.neighbours(int32(u-1)), m.neighbours(int32(v-1))) {
				continue // they would be in each other's place without a difference
			}
			if touched := slices.Concat(through(flows, u), through(flows, v)); len(through(flows, v)) > 9 {
				slices.SortFunc(touched, func(a, b flow) int { return a.key.Compare(&b.key) })
				touched = slices.CompactFunc(touched, func(a, b flow) bool { return a.key == b.key })
				rename(touched, map[uint32]uint32{u: v, v: u})
				return mistake{m, []string{fmt.Sprintf("nodes %d and %d look swapped:", u, v)}}, touched
			}
		}
	}},
	{"link", func(n *network, m *Map, r *rand.Rand, flows []flow) (mistake, []flow) {
		for {
			p := flows[r.IntN(len(flows))].paths[0]
			h := r.IntN(len(p) - 1)
			a, b := min(p[h], p[h+1]), max(p[h], p[h+1])
			touched := slices.DeleteFunc(slices.Clone(flows), func(f flow) bool {
				i := slices.Index(f.paths[0], a)
				return i < 0 || !(i > 0 && f.paths[0][i-1] == b || i+1 < len(f.paths[0]) && f.paths[0][i+1] == b)
			})
			if len(touched) < 10 {
				continue
			}
			links := slices.DeleteFunc(slices.Clone(n.links), func(l [2]int32) bool {
				return min(n.nodes[l[0]], n.nodes[l[1]]) == a && max(n.nodes[l[0]], n.nodes[l[1]]) == b
			})
			return mistake{NewMap(m.scheme, n.nodes, links), []string{fmt.Sprintf("link %d–%d is used and not in the topology", a, b)}}, touched
		}
	}},
	{"ttl", func(n *network, m *Map, r *rand.Rand, flows []flow) (mistake, []flow) {
		edge := flows[0].key.Src
		flows = slices.DeleteFunc(slices.Clone(flows), func(f flow) bool { return f.key.Src[12] != edge[12] || f.key.Src[13] != edge[13] })
		for i := range flows {
			flows[i].shift = 1
		}
		return mistake{m, []string{fmt.Sprintf("hosts of 10.%d.0.0/", edge[13])}}, flows
	}},
}

// busy returns a node that many flows lead over.
func busy(r *rand.Rand, flows []flow) uint32 {
	for {
		p := flows[r.IntN(len(flows))].paths[0]
		if u := p[r.IntN(len(p))]; len(through(flows, u)) >= 10 {
			return u
		}
	}
}

func through(flows []flow, u uint32) []flow {
	return slices.DeleteFunc(slices.Clone(flows), func(f flow) bool { return !slices.Contains(f.paths[0], u) })
}

var networks = []struct {
	name        string
	least, most int
	typical     int
	edges       int // where hosts are, at most
	make        func(t testing.TB) *network
}{
	{"kdl", 8, 59, 25, 60, func(t testing.TB) *network { return kdl(t) }},
	{"fat-tree", 3, 5, 5, 1000, func(testing.TB) *network { return fatTree(8) }},
}

// Each error of the inventory is named, and no other, in a network with flows that it touches.
func TestErrorsAreNamed(t *testing.T) {
	testkit.Long(t)
	for _, net := range networks {
		n := net.make(t)
		r := rand.New(rand.NewPCG(11, 3))
		r.Shuffle(len(n.edges), func(i, j int) { n.edges[i], n.edges[j] = n.edges[j], n.edges[i] })
		n.edges = n.edges[:min(len(n.edges), net.edges)]
		right := NewMap(testScheme(t, net.typical), n.nodes, n.links)
		for _, x := range mistakes {
			named := 0
			for range *rounds {
				c, flows := x.make(n, right, r, n.flows(r, *flowCount, net.least, net.most))
				all := deviations(c.m, r, flows, *digestsOf)
				errors, _ := Decide(all, minFlows)
				got := names(errors)
				found := false
				for _, g := range got {
					ok := slices.ContainsFunc(c.want, func(w string) bool { return strings.HasPrefix(g, w) })
					if found = found || ok; !ok && x.name != "unknown" || ok && strings.Contains(g, "TTL 254:") != (x.name == "ttl") {
						t.Errorf("%s, %s: %q, want %q", net.name, x.name, g, c.want)
					}
				}
				if found {
					named++
				} else {
					t.Logf("%s, %s: %d flows touched, %d deviate: %q, want %q", net.name, x.name, len(flows), len(all), got, c.want)
				}
			}
			t.Logf("%s, %s: named in %d of %d", net.name, x.name, named, *rounds)
			if named < *rounds {
				t.Errorf("%s, %s: not named in %d of %d rounds", net.name, x.name, *rounds-named, *rounds)
			}
		}
	}
}

// Where the inventory is right nothing is named, whatever flows do: they change their paths, take several in turn, and
// carry digests that are forged.
func TestRightInventory(t *testing.T) {
	for _, net := range networks {
		n := net.make(t)
		m := NewMap(testScheme(t, net.typical), n.nodes, n.links)
		r := rand.New(rand.NewPCG(5, 5))
		for range *rounds {
			flows := n.flows(r, *flowCount/4, net.least, net.most)
			for i := range flows {
				f := &flows[i]
				switch i % 5 {
				case 0:
					f.forged = true
				case 1, 2, 3: // several paths between the same ends, one after the other or in turn
					p := f.paths[0]
					for range []int{1, 1, 3, 15}[i/5%4] {
						var ids []uint32
						for _, u := range n.path(r, int32(p[0]-1), int32(p[len(p)-1]-1)) {
							ids = append(ids, n.nodes[u])
						}
						f.paths = append(f.paths, ids)
					}
					if i%5 == 1 {
						f.changes = 1 + r.IntN(100)
					}
				}
			}
			all := deviations(m, r, flows, *digestsOf)
			errors, _ := Decide(all, minFlows)
			if got := names(errors); len(got) > 0 {
				t.Errorf("%s: %q of a right inventory", net.name, got)
			}
			if len(all)*200 > len(flows) {
				t.Errorf("%s: %d of %d flows deviate, the first: %v %v", net.name, len(all), len(flows), all[0].Flow, all[0].Errors)
			}
		}
	}
}

// The evidence for an error is counted in bits, so that narrow digests take more of them.
func TestNarrowDigests(t *testing.T) {
	n := fatTree(8)
	m := NewMap(testWidth(t, 5, 2, 4), n.nodes, n.links)
	r := rand.New(rand.NewPCG(3, 9))
	flows := n.flows(r, 300, 3, 5)
	if all := deviations(m, r, flows[:100], 256); len(all) > 0 {
		t.Errorf("%d flows deviate from a right map, the first: %v", len(all), all[0].Errors)
	}
	u := busy(r, flows)
	flows = through(flows, u)
	rename(flows, map[uint32]uint32{u: 914000})
	errors, _ := Decide(deviations(m, r, flows, 256), 0)
	if len(errors) != 1 || errors[0].Node != 914000 {
		t.Errorf("%q for node %d that calls itself 914000", names(errors), u)
	}
}
