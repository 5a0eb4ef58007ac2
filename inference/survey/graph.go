package survey

import (
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// Map is the content of the inventory: the nodes, the links, and the scheme by which digests are coded. It does not
// change, and all surveys of the same network and scheme share it.
type Map struct {
	scheme *pint.Scheme
	nodes  []uint32
	index  map[uint32]int32
	first  []int32 // neighbours of the i-th node: peers[first[i]:first[i+1]], ascending; nil if links are not known
	peers  []int32
}

// maxNodes bounds the memory of a search, which has three numbers for each node and hop.
const maxNodes = 1 << 13

// NewMap makes the map of nodes and of links between them, given as pairs of indices. No links at all means that
// nothing is known of them. It is nil for more than 8,192 nodes, whose flows are not surveyed.
func NewMap(scheme *pint.Scheme, nodes []uint32, links [][2]int32) *Map {
	if len(nodes) > maxNodes {
		return nil
	}
	m := &Map{scheme: scheme, nodes: nodes, index: make(map[uint32]int32, len(nodes))}
	for i, id := range nodes {
		m.index[id] = int32(i)
	}
	if links != nil {
		m.first, m.peers = prior.Neighbours[int32](len(nodes), links)
	}
	return m
}

func (m *Map) neighbours(i int32) []int32 { return m.peers[m.first[i]:m.first[i+1]] }

// linked reports whether two nodes are neighbours. Where links are not known, all are.
func (m *Map) linked(a, b int32) bool {
	if m.first == nil {
		return a != b
	}
	_, ok := slices.BinarySearch(m.neighbours(a), b)
	return ok
}

// common appends the nodes that are linked with both of two nodes, up to a limit. Either may be -1 for one that does
// not exist or is not on the map. It appends none if there are more than the limit.
func (m *Map) common(a, b int32, limit int, dst []int32) []int32 {
	if a < 0 {
		a, b = b, a
	}
	if a < 0 || m.first == nil {
		return dst
	}
	from := len(dst)
	for _, u := range m.neighbours(a) {
		if b < 0 || m.linked(u, b) {
			if len(dst)-from == limit {
				return dst[:from]
			}
			dst = append(dst, u)
		}
	}
	return dst
}

// nodeBits returns log2 of the number of nodes, rounded up: the bits that distinguish them.
func (m *Map) nodeBits() int32 { return int32(bits.Len(uint(len(m.nodes)))) }
