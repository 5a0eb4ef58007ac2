package solve

import (
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt/postman"
)

// newNet holds the edges of the problem that want selects (nil: all that are wanted). A want is asked with the interface
// that the edge leaves by; in an undirected problem with that of the link's first end.
func newNet(p *cover.Problem, want func(i int) bool) *postman.Net {
	g := p.Graph
	n := &postman.Net{Directed: p.Directed, Nodes: g.NumNodes()}
	size := g.NumLinks()
	if p.Directed {
		size *= 2
	}
	n.From, n.Label = make([]int32, 0, 2*size), make([]int32, 0, 2*size)
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		first, second := p.Wanted(l)
		if first && (want == nil || want(x)) {
			n.Add(g.Node(x), g.Node(y), x, y)
		}
		if p.Directed && second && (want == nil || want(y)) {
			n.Add(g.Node(y), g.Node(x), y, x)
		}
	}
	n.Finish()
	return n
}

// walks turns trails of halves into walks by interfaces.
func walks(n *postman.Net, trails [][]int32) []cover.Walk {
	total := 0
	for _, t := range trails {
		total += len(t)
	}
	all := make([]int32, 0, total)
	list := make([]cover.Walk, len(trails))
	for k, t := range trails {
		from := len(all)
		for _, h := range t {
			all = append(all, n.Label[h])
		}
		list[k] = all[from:len(all):len(all)]
	}
	return list
}
