package papers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// multigraph draws a graph with parallel links and loops, often in several parts.
func multigraph(r *rand.Rand) *topo.Graph {
	b := topo.NewBuilder("random")
	nodes := 2 + r.IntN(10)
	for n := range nodes {
		b.AddNode(fmt.Sprint("n", n), topo.NoTier)
	}
	for range 1 + r.IntN(2*nodes) {
		b.AddLink(topo.LinkEnd{Node: r.IntN(nodes)}, topo.LinkEnd{Node: r.IntN(nodes)})
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// TestCoverFromDepots passes as few links as can be a second time. Links that no depot reaches are left out.
func TestCoverFromDepots(t *testing.T) {
	s := start(t)
	for k := range instances {
		r := random(3, k)
		p := &cover.Problem{Graph: multigraph(r)}
		p.Depots = r.Perm(p.Graph.NumNodes())[:1+r.IntN(3)%p.Graph.NumNodes()]
		p.Skip = make([]bool, p.Graph.NumLinks())
		for l := range p.Skip {
			p.Skip[l] = r.IntN(8) == 0
		}
		plan, err := solve.Plan(p, solve.Options{Partial: true, Stop: stopAfter(1 << 14)})
		if err != nil {
			t.Fatal(err)
		}
		if err := cover.Check(p, plan); err != nil {
			t.Errorf("instance %d: %v", k, err)
		}
		var links [][2]int
		for l := range p.Graph.NumLinks() {
			if x, y := p.Graph.Ends(l); !p.Skip[l] {
				links = append(links, [2]int{p.Graph.Node(x), p.Graph.Node(y)})
			}
		}
		hold(t, fmt.Sprint("instance ", k), map[string]any{"nodes": p.Graph.NumNodes(), "links": links, "depots": p.Depots},
			&plan.Stats.Stats, coverTruth(t, s, p.Graph.NumNodes(), links, p.Depots))
	}
}

// coverTruth adds second traversals until no node but depots is odd.
func coverTruth(t *testing.T, s *solver, nodes int, links [][2]int, depots []int) truth {
	home := make([]bool, nodes) // nodes that a depot reaches
	depot := make([]bool, nodes)
	for _, d := range depots {
		home[d], depot[d] = true, true
	}
	for range nodes {
		for _, l := range links {
			home[l[0]] = home[l[0]] || home[l[1]]
			home[l[1]] = home[l[0]]
		}
	}
	m := new(model)
	var want truth
	at := make([][]term, nodes)
	degree := make([]float64, nodes)
	for _, l := range links {
		if !home[l[0]] {
			want.leftOut++
			continue
		}
		want.objective++
		twice := m.choice(1)
		for _, n := range l {
			degree[n]++
			at[n] = append(at[n], term{twice, 1})
		}
	}
	for n := range nodes {
		if home[n] && !depot[n] {
			half := m.variable(0, math.Inf(1), true)
			m.equal(-degree[n], append(merged(at[n]), term{half, -2})...)
		}
	}
	if len(m.Cost) == 0 {
		return want
	}
	_, twice, ok := s.solve(t, m)
	if !ok {
		t.Fatal("passing every link twice is no cover")
	}
	want.objective += twice
	return want
}

// merged adds up terms of the same variable, which a row must not have twice.
func merged(terms []term) (list []term) {
	sum := map[int]int{}
	for _, x := range terms {
		if k, ok := sum[x.at]; ok {
			list[k].value += x.value
			continue
		}
		sum[x.at] = len(list)
		list = append(list, x)
	}
	return list
}
