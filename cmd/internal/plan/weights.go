package plan

import (
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/topo"
)

// lightest draws a path of that many switches to a node such that no other path is lighter. It is nil if there is none.
func (t *Tracer) lightest(rng *rand.Rand, to, hops int, edge bool) (path []uint32) {
	g := t.graph
	t.tree = g.ShortestPaths(t.tree, to, nil)
	// These are the switches that such a path passes with that many hops still to go.
	reach := make([][]bool, hops)
	for h := range reach {
		reach[h] = make([]bool, g.NumNodes())
	}
	reach[0][to] = true
	next := func(v, h int) (list []int) { // where a path can go on from a switch
		for _, i := range t.tree.NextHops(v) {
			if u := g.Neighbor(int(i)); reach[h-1][u] {
				list = append(list, u)
			}
		}
		return list
	}
	var begins []int
	for h := 1; h < hops; h++ {
		for v := range g.NumNodes() {
			reach[h][v] = v != to && len(next(v, h)) > 0
		}
	}
	for v := range g.NumNodes() {
		if reach[hops-1][v] && (!edge || g.Tier(v) == topo.Edge) {
			begins = append(begins, v)
		}
	}
	if len(begins) == 0 {
		return nil
	}
	v := begins[rng.IntN(len(begins))]
	path = append(path, uint32(v))
	for h := hops - 1; h > 0; h-- {
		ways := next(v, h)
		v = ways[rng.IntN(len(ways))]
		path = append(path, uint32(v))
	}
	return path
}
