package topo

import (
	"cmp"
	"slices"
)

// NodePairs returns each pair of different nodes that a link connects once, the smaller node first, in order.
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

// PairWeights returns for each of the NodePairs the weight from its smaller node to the other, and back. Of several links between two
// nodes the lightest counts, in each direction.
func (g *Graph) PairWeights() [][2]uint32 {
	pairs := g.NodePairs()
	weights := make([][2]uint32, len(pairs))
	for l := range g.NumLinks() {
		a, b := g.Ends(l)
		if g.Node(a) > g.Node(b) {
			a, b = b, a
		}
		pair := [2]int32{int32(g.Node(a)), int32(g.Node(b))}
		i, ok := slices.BinarySearchFunc(pairs, pair, func(x, y [2]int32) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) })
		if !ok {
			continue // from a node to itself
		}
		for way, end := range [2]int{a, b} {
			if w := g.Attr(end).Weight; weights[i][way] == 0 || w < weights[i][way] {
				weights[i][way] = w
			}
		}
	}
	return weights
}
