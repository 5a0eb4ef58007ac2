// Package prior holds the knowledge of a network before any digest of a flow. It consists of the coding scheme, nodes,
// links, and how paths are chosen. From these follow the nodes of each hop and the number of paths. It is pure.
package prior

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/decode/pint"
)

// Model is a Config made ready for use: neighbours, distances, and which nodes can be where on a path. All Tracers that
// follow the same plan in the same network share one. It is safe for concurrent use.
type Model struct {
	Config Config // what the model was made of, defaults filled in; not to be changed
	Nodes  []uint32
	Words  int // of a set of nodes as a bitset

	First []int32  // neighbours of node u: Peers[First[u]:First[u+1]]; nil if nothing is known about links
	Peers []uint16 // ascending
	Dist  []uint8  // hop distances, row after row; nil without links, and for more than maxDistanceNodes nodes

	Weights *weighted // of links; nil unless paths are shortest by weight

	Routed bool // paths are shortest paths, in hops
	Sparse bool // folded values leave bits of the digest alone

	Index             map[uint32]uint16 // of a node's id
	Branch            float64           // log2 of the most nodes that a hop can have beside a known one
	Strict, StrictAny int               // how many digests take the mark from a hop, on a path of the model and on any

	Log2   []float64 // of 0 to the number of nodes
	ends   []nodeSet
	Other  float64 // log2 of the prior odds of paths outside the model
	Bits   float64 // evidence in a digest of one instance with at least one writer
	Parts  bool    // digests carry fragments of ids: each fragment of a hop is evidence once
	Whole  int     // with Parts: digests whose evidence a whole id has
	spaces [pint.MaxHops + 1]Space
	once   [pint.MaxHops + 1]sync.Once
}

// Touched is the probability that a path meets an error of the map, before any flow was seen.
const Touched = 0.3

// Far is the distance of nodes that are not connected, and of those that are too far for any path.
const Far = 255

// nodeSet is a set of nodes, as a list and as a bitset.
type nodeSet struct {
	members []int32
	set     []uint64
}

// Space is the prior of the model for paths of one length, before any digest.
type Space struct {
	Domain []uint64  // nodes that a hop can be: a bitset for each hop
	Size   []int32   // members of each
	Known  uint64    // hops with one member
	Node   []uint16  // that member
	Weight float64   // log2 of the sum of the weights of all paths; an upper bound where paths must not loop
	From   []float64 // log2 of the part of that sum that begins at each node
	Into   []float64 // log2 of the part that ends there; the same as from where links have no direction
	Cover  float64   // probability that a packet's digests distinguish two values of a hop, for the hop where it is least
}

// NewModel checks a Config and makes it ready.
func NewModel(c Config) (*Model, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Model{Config: c, Nodes: slices.Clone(c.Nodes), Words: (len(c.Nodes) + 63) / 64, Routed: c.Routing == Distance || c.Routing == ECMP}
	// Some dialects fill wide digests with few distinct values. Ten bits of evidence are in each of them.
	m.Bits = float64(min(c.Scheme.Width(), 10))
	if q := c.Scheme.Config().ValueBits; q > 0 {
		m.Parts, m.Bits = true, min(m.Bits, float64(q))
		m.Whole = int(float64(q) / m.Bits)
	}
	m.Other = math.Log2(c.Unmodelled / (1 - c.Unmodelled))
	m.Log2 = make([]float64, len(c.Nodes)+1)
	for n := range m.Log2 {
		m.Log2[n] = math.Log2(float64(n))
	}
	if c.Links != nil {
		m.First, m.Peers = Neighbours[uint16](len(m.Nodes), c.Links)
	}
	if c.Links != nil && len(c.Nodes) <= maxDistanceNodes {
		m.measure()
	}
	if c.Routing == Weights {
		m.weigh(c.Links, c.Weights)
	}
	m.Sparse = m.leavesBits()
	m.require()
	for _, list := range c.Ends {
		s := nodeSet{members: slices.Compact(slices.Sorted(slices.Values(list))), set: make([]uint64, m.Words)}
		for _, u := range s.members {
			s.set[u>>6] |= 1 << (u & 63)
		}
		m.ends = append(m.ends, s)
	}
	return m, nil
}

// require finds how much evidence takes the mark from a hop.
func (m *Model) require() {
	m.Index = make(map[uint32]uint16, len(m.Nodes))
	most := len(m.Nodes)
	for u, id := range m.Nodes {
		m.Index[id] = uint16(u)
	}
	if m.First != nil {
		most = 1
		for u := range m.Nodes {
			most = max(most, len(m.Neighbours(uint16(u))))
		}
	}
	doubt := math.Log2(Touched / (1 - m.Config.Confidence))
	m.Branch = m.Log2[most]
	m.Strict = max(int(math.Ceil((doubt+m.Branch)/m.Bits)), 1)
	m.StrictAny = max(int(math.Ceil((doubt+m.Log2[len(m.Nodes)])/m.Bits)), 1)
}

// Linked reports whether there is a link between two nodes.
func (m *Model) Linked(u, w uint16) bool {
	if m.First == nil {
		return true
	}
	_, ok := slices.BinarySearch(m.Neighbours(u), w)
	return ok
}

// leavesBits reports whether there are bits of digests in which the folded values of all nodes agree.
func (m *Model) leavesBits() bool {
	s, varies := m.Config.Scheme, uint32(0)
	for id := range uint32(32) {
		p := s.Packet(id, 0)
		if p.Baseline {
			continue
		}
		first := s.Value(&p, pint.Folded, m.Nodes[0])
		for _, u := range m.Nodes {
			varies |= s.Value(&p, pint.Folded, u) ^ first
		}
	}
	return varies != 0 && varies != uint32(1<<s.Width()-1)
}

// Neighbours returns the neighbours of a node, ascending; links must be known.
func (m *Model) Neighbours(u uint16) []uint16 { return m.Peers[m.First[u]:m.First[u+1]] }

// measure fills the table of distances, by breadth-first search from every node.
func (m *Model) measure() {
	v := len(m.Nodes)
	m.Dist = make([]uint8, v*v)
	queue := make([]uint16, 0, v)
	for s := range v {
		row := m.Dist[s*v:][:v]
		for i := range row {
			row[i] = Far
		}
		row[s] = 0
		queue = append(queue[:0], uint16(s))
		for i := 0; i < len(queue); i++ {
			u := queue[i]
			if row[u] == Far-1 {
				break
			}
			for _, w := range m.Neighbours(u) {
				if row[w] == Far {
					row[w] = row[u] + 1
					queue = append(queue, w)
				}
			}
		}
	}
}

// Distance returns the hops between two nodes, 255 of those that are not connected; links must be known.
func (m *Model) Distance(u, w uint16) int { return int(m.Dist[int(u)*len(m.Nodes)+int(w)]) }

// Distances returns the hop distances from u.
func (m *Model) Distances(u uint16) []uint8 { return m.Dist[int(u)*len(m.Nodes):][:len(m.Nodes)] }

// Space returns the prior for paths of k hops, before any digest. The first call for each k does the work.
func (m *Model) Space(k int) *Space {
	s := &m.spaces[k]
	m.once[k].Do(func() {
		v := len(m.Nodes)
		s.Domain, s.Size, s.From = make([]uint64, k*m.Words), make([]int32, k), make([]float64, v)
		switch {
		case m.Weights != nil:
			m.lightest(s, k)
		case m.Routed:
			m.shortest(s, k)
		default:
			for h := range k {
				for u := range v {
					s.Domain[h*m.Words+u>>6] |= 1 << (u & 63)
				}
			}
			m.count(s, k)
		}
		sum := 0.0
		for u, n := range s.From {
			sum += n
			s.From[u] = math.Log2(n)
		}
		s.Weight = math.Log2(sum)
		for u, n := range s.Into {
			s.Into[u] = math.Log2(n)
		}
		if s.Into == nil {
			s.Into = s.From
		}
		s.Cover = m.coverage(k)
		s.Node = make([]uint16, k)
		for h := range k {
			row := s.Domain[h*m.Words:][:m.Words]
			if s.Size[h] = Popcount(row); s.Size[h] == 1 {
				s.Known |= 1 << h
				s.Node[h] = uint16(Lowest(row))
			}
		}
	})
	return s
}

// coverage estimates the cover of a space from the writers of some packets.
func (m *Model) coverage(k int) float64 {
	const packets = 1000
	s := m.Config.Scheme
	var counts [pint.MaxHops]int
	for id := range uint32(packets) {
		var any uint64
		for inst := range s.Instances() {
			p := s.Packet(id, inst)
			any |= s.Writers(&p, k)
		}
		for ; any != 0; any &= any - 1 {
			counts[bits.TrailingZeros64(any)]++
		}
	}
	cover := float64(max(slices.Min(counts[:k]), 1)) / packets
	if m.Parts { // two ids may differ in one fragment alone
		return cover / float64(s.Fragments())
	}
	return cover * (1 - math.Exp2(-float64(s.Width())))
}

// count counts the paths of k hops from every node. Without links these are all sequences of nodes. With links it counts
// walks, which are more than the paths without loops.
func (m *Model) count(s *Space, k int) {
	v := len(m.Nodes)
	if m.First == nil {
		n := 1.0
		for h := 1; h < k; h++ {
			if m.Config.Loops {
				n *= float64(v)
			} else {
				n *= float64(max(v-h, 0))
			}
		}
		for u := range s.From {
			s.From[u] = n
		}
		return
	}
	for u := range s.From {
		s.From[u] = 1
	}
	if k == 1 {
		return
	}
	// The walks that begin with each link and direction. Without loops, none turns back.
	ways, next := make([]float64, len(m.Peers)), make([]float64, len(m.Peers))
	for i := range ways {
		ways[i] = 1
	}
	sum := func() {
		for u := range v {
			s.From[u] = 0
			for _, n := range ways[m.First[u]:m.First[u+1]] {
				s.From[u] += n
			}
		}
	}
	for sum(); k > 2; k-- {
		for u := range v {
			for i := m.First[u]; i < m.First[u+1]; i++ {
				w := m.Peers[i]
				next[i] = s.From[w]
				if back, ok := slices.BinarySearch(m.Neighbours(w), uint16(u)); ok && !m.Config.Loops {
					next[i] = max(next[i]-ways[int(m.First[w])+back], 0)
				}
			}
		}
		ways, next = next, ways
		sum()
	}
}

// shortest finds which nodes are where on shortest paths of k nodes, and weighs these paths.
func (m *Model) shortest(s *Space, k int) {
	v := len(m.Nodes)
	order, alive, ways := make([]uint16, 0, v), make([]bool, v), make([]float64, v)
	for from := range v {
		row := m.Dist[from*v:][:v]
		order = order[:0]
		var fill [pint.MaxHops + 2]int
		for _, d := range row {
			if int(d) < k {
				fill[d+1]++
			}
		}
		if fill[k] == 0 {
			continue // nothing is that far
		}
		for d := range k {
			fill[d+1] += fill[d]
		}
		order = order[:fill[k]]
		for u, d := range row {
			if int(d) < k {
				order[fill[d]] = uint16(u)
				fill[d]++
			}
		}
		clear(alive)
		clear(ways)
		for i := len(order) - 1; i >= 0; i-- {
			u := order[i]
			d := int(row[u])
			if d == k-1 {
				alive[u], ways[u] = true, 1
			} else {
				for _, w := range m.Neighbours(u) {
					if int(row[w]) == d+1 && alive[w] {
						alive[u] = true
						ways[u] += ways[w]
					}
				}
			}
			if alive[u] {
				s.Domain[d*m.Words+int(u)>>6] |= 1 << (u & 63)
			}
		}
		s.From[from] = ways[from]
		if m.Config.Routing == ECMP { // the paths between a pair share the weight 1
			s.From[from] = 0
			for _, d := range row {
				if int(d) == k-1 {
					s.From[from]++
				}
			}
		}
	}
}

// LogWeight is log2 of the weight of a path.
func (m *Model) LogWeight(path []uint16) float64 {
	if m.Config.Routing != ECMP {
		return 0
	}
	w := 0.0
	last := path[len(path)-1]
	for i, u := range path[:len(path)-1] {
		next := 0
		for _, x := range m.Neighbours(u) {
			if m.Distance(x, last) == len(path)-2-i {
				next++
			}
		}
		w -= math.Log2(float64(next))
	}
	return w
}

// Total is log2 of the weights of all paths of k hops with these ends.
func (m *Model) Total(s *Space, ingress, egress uint16) float64 {
	return min(m.TotalOf(s, s.From, ingress), m.TotalOf(s, s.Into, egress))
}

// TotalOf weighs the paths with one end in a set, by the weights of the paths with that end at each node.
func (m *Model) TotalOf(s *Space, weights []float64, set uint16) float64 {
	if m.End(set) == nil {
		return s.Weight
	}
	sum := 0.0
	for _, u := range m.ends[set-1].members {
		sum += math.Exp2(weights[u])
	}
	return math.Log2(sum)
}

// End is a set of ends by its number, or nil for 0 and for numbers that have no set.
func (m *Model) End(set uint16) []uint64 {
	if set == 0 || int(set) > len(m.ends) {
		return nil
	}
	return m.ends[set-1].set
}

// Lowest returns the least member of a set of nodes, 0 of an empty one.
func Lowest(set []uint64) int {
	for i, w := range set {
		if w != 0 {
			return i<<6 + bits.TrailingZeros64(w)
		}
	}
	return 0
}

// Popcount returns the number of members of a set of nodes.
func Popcount(set []uint64) int32 {
	n := 0
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return int32(n)
}
