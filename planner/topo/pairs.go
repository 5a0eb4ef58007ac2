package topo

import (
	"cmp"
	"slices"
)

// NodePairs gives each pair of different nodes that a link connects once, the smaller node first, in order.
func (g *Graph) NodePairs() [][2]int32 {
	pairs := make([][2]int32, 0, g.NumLinks())
	for l := range g.NumLinks() {
		a, b := g.Ends(l)
		if a, b = g.Node(a), g.Node(b); a != b {
			pairs = append(pairs, [2]int32{int32(min(a, b)), int32(max(a, b))})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return slices.Compact(pairs)
}
