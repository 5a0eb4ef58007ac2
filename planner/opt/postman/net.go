package postman

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// Net is the multigraph that trails are cut from. An edge is one traversal: of a link, of one direction of a link, or the second of a link.
// Edge e has two halves, 2e and 2e+1: half 2e leaves its first node, and walking it means walking the edge from there. In a directed net
// only even halves can be walked.
//
// A net is made by setting Directed and Nodes, [Net.Add] for each edge, and [Net.Finish].
type Net struct {
	Directed bool
	Nodes    int
	From     []int32 // node that a half leaves
	Label    []int32 // the caller's, by half
	first    []int32 // halves that leave node v: adj[first[v]:first[v+1]]
	adj      []int32
	Comp     []int32 // connected component of a node
	Comps    int
	Seed     uint64 // of random moves
}

// Edges is the number of edges.
func (n *Net) Edges() int { return len(n.From) / 2 }

// Head is the node that half h leads to.
func (n *Net) Head(h int32) int32 { return n.From[h^1] }

// Walkable reports whether half h can be walked.
func (n *Net) Walkable(h int32) bool { return !n.Directed || h&1 == 0 }

// Out is the halves that leave v. A trail takes them in this order; the caller may permute them.
func (n *Net) Out(v int32) []int32 { return n.adj[n.first[v]:n.first[v+1]] }

// Add adds an edge from a to b, whose halves have the labels x and y.
func (n *Net) Add(a, b, x, y int) {
	n.From = append(n.From, int32(a), int32(b))
	n.Label = append(n.Label, int32(x), int32(y))
}

// repeat adds a further traversal of edge e.
func (n *Net) repeat(e int) {
	n.From = append(n.From, n.From[2*e], n.From[2*e+1])
	n.Label = append(n.Label, n.Label[2*e], n.Label[2*e+1])
}

// Finish makes the adjacency and the components, in O(V + E).
func (n *Net) Finish() {
	n.first, n.adj = opt.Group(n.From, n.Nodes)
	n.Comp, n.Comps = n.components(nil)
}

// Detach replaces each marked node by a separate node for every half there, so that trails end there.
func (n *Net) Detach(marked []bool) {
	if marked == nil {
		return
	}
	for h, v := range n.From {
		if marked[v] {
			n.From[h] = int32(n.Nodes)
			n.Nodes++
		}
	}
	n.Finish()
}

// components numbers the components that the edges not in gone make.
func (n *Net) components(gone []bool) (comp []int32, count int) {
	comp = slices.Repeat([]int32{-1}, n.Nodes)
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
			for _, h := range n.Out(u) {
				if gone != nil && gone[h>>1] {
					continue
				}
				if w := n.Head(h); comp[w] < 0 {
					comp[w] = int32(count)
					stack = append(stack, w)
				}
			}
		}
		count++
	}
	return comp, count
}

// Ends returns the number of trails of a smallest cover that start and that end at each node. In an undirected net a
// trail has two ends and no direction. An odd node then has one start and one end, of which it uses one.
func (n *Net) Ends() (start, end []int32) {
	start, end = make([]int32, n.Nodes), make([]int32, n.Nodes)
	for v := range n.Nodes {
		out := int32(0)
		for _, h := range n.Out(int32(v)) {
			if h&1 == 0 {
				out++
			}
		}
		degree := int32(len(n.Out(int32(v))))
		if !n.Directed {
			start[v], end[v] = degree&1, degree&1
			continue
		}
		in := degree - out
		start[v], end[v] = max(0, out-in), max(0, in-out)
	}
	return start, end
}

// Fewest returns, for every component, the number of edges and of the trails that cover them without a second
// traversal. That is half the odd nodes (directed: the surplus of leaving edges), or one where all nodes are balanced.
func (n *Net) Fewest() (edges, trails []int) {
	edges, trails = make([]int, n.Comps), make([]int, n.Comps)
	start, _ := n.Ends()
	for v := range n.Nodes {
		c := n.Comp[v]
		edges[c] += len(n.Out(int32(v)))
		trails[c] += int(start[v])
	}
	for c := range edges {
		edges[c] /= 2
		if !n.Directed {
			trails[c] /= 2
		}
		if edges[c] > 0 {
			trails[c] = max(trails[c], 1)
		}
	}
	return edges, trails
}

// Bound is the number of trails of at most that many edges that any cover needs (0: any number of edges).
func (n *Net) Bound(most int) int {
	edges, trails := n.Fewest()
	sum := 0
	for c, t := range trails {
		if most > 0 {
			t = max(t, (edges[c]+most-1)/most)
		}
		sum += t
	}
	return sum
}

// Rotate turns closed trails so that they begin at a depot.
func (n *Net) Rotate(trails [][]int32, depot []bool) {
	for k, t := range trails {
		for i, h := range t {
			if depot[n.From[h]] {
				if n.Head(t[len(t)-1]) == n.From[t[0]] {
					trails[k] = append(append(make([]int32, 0, len(t)), t[i:]...), t[:i]...)
				}
				break
			}
		}
	}
}

// Split cuts trails at the marked nodes, which no trail passes. A closed one begins at such a node if it can.
func (n *Net) Split(trails [][]int32, at []bool) [][]int32 {
	if at == nil {
		return trails
	}
	var out [][]int32
	n.Rotate(trails, at)
	for _, t := range trails {
		from := 0
		for k := 1; k < len(t); k++ {
			if at[n.From[t[k]]] {
				out = append(out, t[from:k:k])
				from = k
			}
		}
		out = append(out, t[from:len(t):len(t)])
	}
	return out
}

// Reverse turns a trail round.
func Reverse(trail []int32) {
	slices.Reverse(trail)
	for i := range trail {
		trail[i] ^= 1
	}
}
