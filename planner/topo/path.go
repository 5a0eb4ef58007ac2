package topo

import (
	"math"

	"github.com/hopscope/hopscope/planner/opt"
)

// Unreachable is the distance of nodes that have no path to the destination.
const Unreachable = math.MaxInt64

// Tree holds the shortest paths from all nodes to one destination. Its memory is reused by [Graph.ShortestPaths].
type Tree struct {
	Dst   int
	dist  []int64
	first []int32
	hops  []int32
	near  opt.Nearest[int64]
}

// Distance is the sum of the weights from node n to the destination, or Unreachable.
func (t *Tree) Distance(n int) int64 { return t.dist[n] }

// NextHops returns the interfaces of n that begin a shortest path (the ECMP set), in the order of their ports. It is empty for the
// destination and for nodes that cannot reach it. The slice belongs to the tree.
func (t *Tree) NextHops(n int) []int32 { return t.hops[t.first[n]:t.first[n+1]] }

// ShortestPaths fills t with the shortest paths to dst by the weights of the directions used. Interfaces for which up
// returns false are left out, in their direction only; up may be nil. If t is nil a new tree is made.
//
// Breadth first search where all weights are 1, O(V + E); else Dijkstra's algorithm, O(E log E).
func (g *Graph) ShortestPaths(t *Tree, dst int, up func(i int) bool) *Tree {
	if t == nil {
		t = new(Tree)
	}
	n := g.NumNodes()
	t.Dst = dst
	t.dist = resize(t.dist, n)
	for i := range t.dist {
		t.dist[i] = Unreachable
	}
	t.dist[dst] = 0
	if g.attrs == nil {
		g.breadthFirst(t, up)
	} else {
		g.dijkstra(t, up)
	}
	t.first = resize(t.first, n+1)
	t.first[0] = 0
	t.hops = t.hops[:0]
	for v := range n {
		if t.dist[v] != Unreachable {
			for i := g.first[v]; i < g.first[v+1]; i++ {
				// Weights are positive, so no link from a node to itself can pass this test.
				w := g.Neighbor(int(i))
				if w >= 0 && t.dist[w] != Unreachable && t.dist[w]+int64(g.Attr(int(i)).Weight) == t.dist[v] && (up == nil || up(int(i))) {
					t.hops = append(t.hops, i)
				}
			}
		}
		t.first[v+1] = int32(len(t.hops))
	}
	return t
}

func (g *Graph) breadthFirst(t *Tree, up func(int) bool) {
	q := append(t.hops[:0], int32(t.Dst))
	for at := 0; at < len(q); at++ {
		v := q[at]
		for i := g.first[v]; i < g.first[v+1]; i++ {
			p := g.peer[i] // the direction that leads to v
			if p < 0 || up != nil && !up(int(p)) {
				continue
			}
			if w := g.node[p]; t.dist[w] == Unreachable {
				t.dist[w] = t.dist[v] + 1
				q = append(q, w)
			}
		}
	}
	t.hops = q
}

func (g *Graph) dijkstra(t *Tree, up func(int) bool) {
	t.near.Begin(g.NumNodes(), Unreachable)
	t.near.Reach(int32(t.Dst), 0)
	for v, d, ok := t.near.Next(); ok; v, d, ok = t.near.Next() {
		for i := g.first[v]; i < g.first[v+1]; i++ {
			if p := g.peer[i]; p >= 0 && (up == nil || up(int(p))) {
				t.near.Reach(g.node[p], d+int64(g.attrs[p].Weight))
			}
		}
	}
	copy(t.dist, t.near.Dist)
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
