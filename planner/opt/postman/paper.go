package postman

import (
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/opt"
)

// INTPath is the Euler plan of INT-path as published (INFOCOM 2019), the baseline of the measurements. A component with
// more than two odd nodes repeatedly loses a shortest path between two of those. The rest has an Euler trail, or an
// Euler circuit that is pasted into a path that it touches. The number of paths is the smallest; their lengths are
// arbitrary.
//
// The path taken out goes from a random node to the odd node farthest from it in the authors' program. In the paper
// it goes between a random pair, as it does here. With balanced set it is the longest of the shortest paths between
// any two odd nodes. O(k (V + E)) and O(k odd (V + E)).
//
// The published program fails on parallel edges, several components and isolated nodes; this one follows the text
// there. Once stop returns true, no further path is removed, and Hierholzer's algorithm does the rest.
func (n *Net) INTPath(balanced bool, r *rand.Rand, stop func() bool) [][]int32 {
	e := &extractor{Net: n, gone: make([]bool, n.Edges()), dist: make([]int32, n.Nodes), via: make([]int32, n.Nodes)}
	var trails [][]int32
	// Components fall apart while paths are removed; each part is handled separately.
	parts := e.parts(nil)
	for len(parts) > 0 {
		part := parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		odd := e.odd(part)
		if len(odd) <= 2 || stop() {
			continue // dealt with below
		}
		var a, b int32
		if balanced {
			a, b = e.farthestPair(odd)
		} else {
			i := r.IntN(len(odd))
			j := r.IntN(len(odd) - 1)
			if j >= i {
				j++
			}
			a, b = odd[i], odd[j]
		}
		trails = append(trails, e.removePath(a, b))
		parts = append(parts, e.parts(part)...)
	}
	return e.finish(trails)
}

type extractor struct {
	*Net
	gone  []bool
	dist  []int32 // edges from the source of the last search, -1 where it did not come
	via   []int32 // half that led to the node
	queue []int32
}

// parts are the components of what is left among nodes (nil: all) that have edges.
func (e *extractor) parts(nodes []int32) (parts [][]int32) {
	if nodes == nil {
		nodes = opt.Ascending[int32](e.Nodes)
	}
	for _, v := range nodes {
		e.dist[v] = -1
	}
	for _, v := range nodes {
		if e.dist[v] < 0 {
			if e.search(v); len(e.queue) > 1 || e.degree(v) > 0 {
				parts = append(parts, append([]int32(nil), e.queue...))
			}
		}
	}
	return parts
}

// search goes breadth first from v through nodes whose dist is -1.
func (e *extractor) search(v int32) {
	e.dist[v], e.via[v] = 0, -1
	e.queue = append(e.queue[:0], v)
	for at := 0; at < len(e.queue); at++ {
		u := e.queue[at]
		for _, h := range e.Out(u) {
			if w := e.Head(h); !e.gone[h>>1] && e.dist[w] < 0 {
				e.dist[w], e.via[w] = e.dist[u]+1, h
				e.queue = append(e.queue, w)
			}
		}
	}
}

func (e *extractor) degree(v int32) (d int) {
	for _, h := range e.Out(v) {
		if !e.gone[h>>1] {
			d++
		}
	}
	return d
}

func (e *extractor) odd(part []int32) (odd []int32) {
	for _, v := range part {
		if e.degree(v)%2 == 1 {
			odd = append(odd, v)
		}
	}
	return odd
}

// from searches from v, in the part that v is in.
func (e *extractor) from(v int32) {
	for _, u := range e.queue {
		e.dist[u] = -1
	}
	e.search(v)
}

func (e *extractor) farthestPair(odd []int32) (a, b int32) {
	most := int32(-1)
	e.reset()
	for _, u := range odd {
		e.from(u)
		for _, v := range odd {
			if e.dist[v] > most {
				most, a, b = e.dist[v], u, v
			}
		}
	}
	return a, b
}

func (e *extractor) reset() {
	for v := range e.dist {
		e.dist[v] = -1
	}
	e.queue = e.queue[:0]
}

// removePath removes a shortest path from a to b.
func (e *extractor) removePath(a, b int32) []int32 {
	e.reset()
	e.from(b)
	var trail []int32
	for v := a; v != b; {
		h := e.via[v] ^ 1
		trail = append(trail, h)
		e.gone[h>>1] = true
		v = e.Head(h)
	}
	return trail
}

// finish covers what is left: trails between two odd nodes, and circuits, pasted into the first trail that they touch.
func (e *extractor) finish(trails [][]int32) [][]int32 {
	w := &walker{Net: e.Net, used: e.gone, next: append([]int32(nil), e.first[:e.Nodes]...)}
	w.start, w.end = make([]int32, e.Nodes), make([]int32, e.Nodes)
	for v := range int32(e.Nodes) {
		odd := int32(e.degree(v) & 1)
		w.start[v], w.end[v] = odd, odd
	}
	for v := range int32(e.Nodes) {
		if w.start[v] > 0 {
			trails = append(trails, w.trail(nil, v, e.Edges()+1))
		}
	}
	for k := len(trails) - 1; k >= 0; k-- { // those of two odd nodes first: each takes the circuits of its own component
		trails[k] = w.splice(trails[k])
	}
	for v := range int32(e.Nodes) {
		if w.leave(v) >= 0 {
			trails = append(trails, append([]int32(nil), w.tour(v)...))
		}
	}
	return trails
}
