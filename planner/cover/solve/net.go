package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt"
)

// net is the multigraph that walks are cut from. An edge stands for one traversal that the plan will hold: a link, one
// direction of a link, or the second traversal of a link. Edge e has two halves, 2e and 2e+1: half 2e leaves its first
// node, and walking it means walking the edge from there. In a directed net only even halves can be walked.
type net struct {
	directed bool
	nodes    int
	node     []int32 // that a half leaves
	iface    []int32 // of the topology, by half
	first    []int32 // halves that leave node v: adj[first[v]:first[v+1]]
	adj      []int32
	comp     []int32 // connected component of a node
	comps    int
	seed     uint64 // of random moves
}

func (n *net) edges() int            { return len(n.node) / 2 }
func (n *net) head(h int32) int32    { return n.node[h^1] }
func (n *net) walkable(h int32) bool { return !n.directed || h&1 == 0 }

// out gives the halves that leave v.
func (n *net) out(v int32) []int32 { return n.adj[n.first[v]:n.first[v+1]] }

// newNet holds the edges of the problem that want selects (nil: all that are wanted). A want is asked with the interface
// that the edge leaves by; in an undirected problem with that of the link's first end.
func newNet(p *cover.Problem, want func(i int) bool) *net {
	g := p.Graph
	n := &net{directed: p.Directed, nodes: g.NumNodes()}
	size := g.NumLinks()
	if p.Directed {
		size *= 2
	}
	n.node, n.iface = make([]int32, 0, 2*size), make([]int32, 0, 2*size)
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		first, second := p.Wanted(l)
		if first && (want == nil || want(x)) {
			n.add(g.Node(x), g.Node(y), x, y)
		}
		if p.Directed && second && (want == nil || want(y)) {
			n.add(g.Node(y), g.Node(x), y, x)
		}
	}
	n.finish()
	return n
}

// add adds an edge from a to b, whose halves belong to interfaces x and y.
func (n *net) add(a, b, x, y int) {
	n.node = append(n.node, int32(a), int32(b))
	n.iface = append(n.iface, int32(x), int32(y))
}

// finish makes the adjacency and the components.
func (n *net) finish() {
	n.first, n.adj = opt.Group(n.node, n.nodes)
	n.comp, n.comps = n.components(nil)
}

// openHosts gives every half at a host a node of its own, since no trail goes on at one.
func (n *net) openHosts(host []bool) {
	if host == nil {
		return
	}
	for h, v := range n.node {
		if host[v] {
			n.node[h] = int32(n.nodes)
			n.nodes++
		}
	}
	n.finish()
}

// components numbers the components that the edges not in gone make.
func (n *net) components(gone []bool) (comp []int32, count int) {
	comp = slices.Repeat([]int32{-1}, n.nodes)
	var stack []int32
	for v := range comp {
		if comp[v] >= 0 {
			continue
		}
		comp[v] = int32(count)
		stack = append(stack[:0], int32(v))
		for len(stack) > 0 {
			u := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, h := range n.out(u) {
				if gone != nil && gone[h>>1] {
					continue
				}
				if w := n.head(h); comp[w] < 0 {
					comp[w] = int32(count)
					stack = append(stack, w)
				}
			}
		}
		count++
	}
	return comp, count
}

// ends gives how many trails of a smallest cover start and how many end at each node. In an undirected net a trail has
// two ends and no direction, so an odd node has one start and one end, of which it uses one.
func (n *net) ends() (start, end []int32) {
	start, end = make([]int32, n.nodes), make([]int32, n.nodes)
	for v := range n.nodes {
		out := int32(0)
		for _, h := range n.out(int32(v)) {
			if h&1 == 0 {
				out++
			}
		}
		degree := int32(len(n.out(int32(v))))
		if !n.directed {
			start[v], end[v] = degree&1, degree&1
			continue
		}
		in := degree - out
		start[v], end[v] = max(0, out-in), max(0, in-out)
	}
	return start, end
}

// fewest gives for every component the number of edges and of the trails that cover them without a second traversal:
// half the odd nodes (directed: the surplus of leaving edges), or one where all nodes are balanced.
func (n *net) fewest() (edges, trails []int) {
	edges, trails = make([]int, n.comps), make([]int, n.comps)
	start, _ := n.ends()
	for v := range n.nodes {
		c := n.comp[v]
		edges[c] += len(n.out(int32(v)))
		trails[c] += int(start[v])
	}
	for c := range edges {
		edges[c] /= 2
		if !n.directed {
			trails[c] /= 2
		}
		if edges[c] > 0 {
			trails[c] = max(trails[c], 1)
		}
	}
	return edges, trails
}

// bound is the number of probes that any cover needs in which a probe has at most maxHops links (0: any number).
func (n *net) bound(maxHops int) int {
	edges, trails := n.fewest()
	sum := 0
	for c, t := range trails {
		if maxHops > 0 {
			t = max(t, (edges[c]+maxHops-1)/maxHops)
		}
		sum += t
	}
	return sum
}

// walks turns trails of halves into walks by interfaces.
func (n *net) walks(trails [][]int32) []cover.Walk {
	total := 0
	for _, t := range trails {
		total += len(t)
	}
	all := make([]int32, 0, total)
	walks := make([]cover.Walk, len(trails))
	for k, t := range trails {
		from := len(all)
		for _, h := range t {
			all = append(all, n.iface[h])
		}
		walks[k] = all[from:len(all):len(all)]
	}
	return walks
}

// reverse turns a trail round.
func reverse(trail []int32) {
	slices.Reverse(trail)
	for i := range trail {
		trail[i] ^= 1
	}
}
