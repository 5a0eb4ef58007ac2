package topo

import (
	"cmp"
	"slices"
)

// Diameter is the greatest number of links on a shortest path between two nodes that have one. O(V (V + E)).
func (g *Graph) Diameter() int {
	n := g.NumNodes()
	seen := make([]int32, n) // the source that reached the node last, plus 1
	dist := make([]int32, n)
	queue := make([]int32, 0, n)
	var most int32
	for s := range n {
		seen[s], dist[s] = int32(s+1), 0
		queue = append(queue[:0], int32(s))
		for at := 0; at < len(queue); at++ {
			v := queue[at]
			for i := g.first[v]; i < g.first[v+1]; i++ {
				p := g.peer[i]
				if p < 0 {
					continue
				}
				if w := g.node[p]; seen[w] != int32(s+1) {
					seen[w], dist[w] = int32(s+1), dist[v]+1
					queue = append(queue, w)
				}
			}
		}
		most = max(most, dist[queue[len(queue)-1]])
	}
	return int(most)
}

// Path is a way through the graph.
type Path struct {
	Interfaces []int32 // by which it leaves its nodes, in order; empty from a node to itself
	Cost       int64   // sum of the weights
}

// KShortestPaths returns up to k paths from src to dst that visit no node twice, shortest first. Paths that differ only
// in which of several parallel links they take are different. Equally short paths come in the order of their
// interfaces. Which of many ties are among the k is deterministic, but not by that order.
//
// Yen's algorithm (Management Science 17(11), 1971), with Lawler's restriction: a path deviates only from where it left
// its own parent. O(k L (E log E)) for paths of L links.
func (g *Graph) KShortestPaths(src, dst, k int) []Path {
	if k <= 0 {
		return nil
	}
	type candidate struct {
		Path
		from int // place at which it left its parent
	}
	var tree *Tree
	cutNode := make([]bool, g.NumNodes())
	cutIface := make(map[int]bool)
	up := func(i int) bool { return !cutIface[i] && !cutNode[g.Node(i)] && !cutNode[g.Neighbor(i)] }
	walk := func(prefix []int32, from int) (Path, bool) {
		tree = g.ShortestPaths(tree, dst, up)
		if tree.Distance(from) == Unreachable {
			return Path{}, false
		}
		p := Path{Interfaces: slices.Clone(prefix)}
		for _, i := range prefix {
			p.Cost += int64(g.Attr(int(i)).Weight)
		}
		p.Cost += tree.Distance(from)
		for v := from; v != dst; {
			i := tree.NextHops(v)[0]
			p.Interfaces = append(p.Interfaces, i)
			v = g.Neighbor(int(i))
		}
		return p, true
	}
	first, ok := walk(nil, src)
	if !ok {
		return nil
	}
	found := []candidate{{first, 0}}
	var waiting []candidate
	for len(found) < k {
		last := found[len(found)-1]
		for at := last.from; at < len(last.Interfaces); at++ {
			prefix := last.Interfaces[:at]
			spur := g.Node(int(last.Interfaces[at]))
			for _, i := range prefix {
				cutNode[g.Node(int(i))] = true
			}
			for _, f := range found {
				if len(f.Interfaces) > at && slices.Equal(f.Interfaces[:at], prefix) {
					cutIface[int(f.Interfaces[at])] = true
				}
			}
			if p, ok := walk(prefix, spur); ok {
				same := func(c candidate) bool { return slices.Equal(c.Interfaces, p.Interfaces) }
				if !slices.ContainsFunc(waiting, same) {
					waiting = append(waiting, candidate{p, at})
				}
			}
			clear(cutNode)
			clear(cutIface)
		}
		if len(waiting) == 0 {
			break
		}
		best := 0
		for i := range waiting {
			if cmp.Or(cmp.Compare(waiting[i].Cost, waiting[best].Cost), slices.Compare(waiting[i].Interfaces, waiting[best].Interfaces)) < 0 {
				best = i
			}
		}
		found = append(found, waiting[best])
		waiting = slices.Delete(waiting, best, best+1)
	}
	paths := make([]Path, len(found))
	for i, c := range found {
		paths[i] = c.Path
	}
	return paths
}
