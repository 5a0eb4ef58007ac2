package prior

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
)

// maxNodes lets indices fit into 16 bits.
const maxNodes = 1<<16 - 1

// Network is the nodes and links of a network, as packages get them that find paths in digests.
type Network struct {
	Scheme *pint.Scheme
	Nodes  []uint32   // ids
	Links  [][2]int32 // pairs of indices into Nodes
	Ends   [][]int32  // sets of such indices
}

// Problems returns what is wrong with it, each behind the name of the package that asks.
func (n *Network) Problems(asker string) (problems []error) {
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(asker+": "+format, args...))
	}
	if n.Scheme == nil {
		bad("no coding scheme")
	}
	if len(n.Nodes) == 0 || len(n.Nodes) > maxNodes {
		bad("%d nodes: want 1 to %d", len(n.Nodes), maxNodes)
	}
	seen := make(map[uint32]bool, len(n.Nodes))
	for _, id := range n.Nodes {
		if seen[id] {
			bad("node %d: listed twice", id)
		}
		seen[id] = true
	}
	count := int32(len(n.Nodes))
	absent := func(u int32) bool { return u < 0 || u >= count }
	for i, l := range n.Links {
		if absent(l[0]) || absent(l[1]) {
			bad("link %d from node index %d to %d: there are %d nodes", i, l[0], l[1], count)
			break
		}
	}
	for i, set := range n.Ends {
		if at := slices.IndexFunc(set, absent); at >= 0 {
			bad("ends %d: node index %d: there are %d nodes", i, set[at], count)
			break
		}
	}
	if len(n.Ends) > 1<<16-1 {
		bad("%d sets of ends: want %d at most", len(n.Ends), 1<<16-1)
	}
	return problems
}

// Fallback sets a field that is zero to its default.
func Fallback[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Neighbours lists the neighbours of each node: each link in both directions, no neighbour twice, none its own. The
// neighbours of node u are peers[First[u]:first[u+1]], ascending.
func Neighbours[T uint16 | int32](nodes int, links [][2]int32) (first []int32, peers []T) {
	lists := make([][]T, nodes)
	for _, l := range links {
		if l[0] != l[1] {
			lists[l[0]] = append(lists[l[0]], T(l[1]))
			lists[l[1]] = append(lists[l[1]], T(l[0]))
		}
	}
	first = make([]int32, nodes+1)
	for u, list := range lists {
		slices.Sort(list)
		peers = append(peers, slices.Compact(list)...)
		first[u+1] = int32(len(peers))
	}
	return first, peers
}
