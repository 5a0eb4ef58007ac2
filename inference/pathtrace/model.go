package pathtrace

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/decode/pint"
)

// Model is a Config made ready for use: neighbours, distances, and which nodes can be where on a path. All Tracers that follow the
// same plan in the same network share one. It is safe for concurrent use.
type Model struct {
	config Config
	nodes  []uint32
	words  int // of a set of nodes as a bitset

	first []int32  // neighbours of node u: peers[first[u]:first[u+1]]; nil if nothing is known about links
	peers []uint16 // ascending
	dist  []uint8  // hop distances, row after row; nil without links, and for more than maxDistanceNodes nodes

	weights *weighted // of links; nil unless paths are shortest by weight

	routed bool // paths are shortest paths, in hops
	sparse bool // folded values leave bits of the digest alone

	index             map[uint32]uint16 // of a node's id
	branch            float64           // log2 of the most nodes that a hop can have beside a known one
	strict, strictAny int               // how many digests take the mark from a hop, on a path of the model and on any

	log2   []float64 // of 0 to the number of nodes
	ends   []nodeSet
	other  float64 // log2 of the prior odds of paths that the model does not know
	bits   float64 // evidence in a digest of one instance with at least one writer
	spaces [pint.MaxHops + 1]space
	once   [pint.MaxHops + 1]sync.Once
}

// far is the distance of nodes that are not connected, and of those that are too far for any path.
const far = 255

// nodeSet is a set of nodes, as a list and as a bitset.
type nodeSet struct {
	members []int32
	set     []uint64
}

// space is what the model says about paths of one length, before any digest.
type space struct {
	domain []uint64  // nodes that a hop can be: a bitset for each hop
	size   []int32   // members of each
	known  uint64    // hops with one member
	node   []uint16  // that member
	weight float64   // log2 of the sum of the weights of all paths; an upper bound where paths must not loop
	from   []float64 // log2 of the part of that sum that begins at each node
	into   []float64 // log2 of the part that ends there; the same as from where links have no direction
	cover  float64   // probability that a packet's digests distinguish two values of a hop, for the hop where it is least
}

// NewModel checks a Config and makes it ready.
func NewModel(c Config) (*Model, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Model{config: c, nodes: slices.Clone(c.Nodes), words: (len(c.Nodes) + 63) / 64, routed: c.Routing == Distance || c.Routing == ECMP}
	// Some dialects fill wide digests with few distinct values. Ten bits of evidence are in each of them.
	m.bits = float64(min(c.Scheme.Width(), 10))
	m.other = math.Log2(c.Unmodelled / (1 - c.Unmodelled))
	m.log2 = make([]float64, len(c.Nodes)+1)
	for n := range m.log2 {
		m.log2[n] = math.Log2(float64(n))
	}
	if c.Links != nil {
		m.first, m.peers = Neighbours[uint16](len(m.nodes), c.Links)
	}
	if c.Links != nil && len(c.Nodes) <= maxDistanceNodes {
		m.measure()
	}
	if c.Routing == Weights {
		m.weigh(c.Links, c.Weights)
	}
	m.sparse = m.leavesBits()
	m.require()
	for _, list := range c.Ends {
		s := nodeSet{members: slices.Compact(slices.Sorted(slices.Values(list))), set: make([]uint64, m.words)}
		for _, u := range s.members {
			s.set[u>>6] |= 1 << (u & 63)
		}
		m.ends = append(m.ends, s)
	}
	return m, nil
}

// require finds how much evidence takes the mark from a hop.
func (m *Model) require() {
	m.index = make(map[uint32]uint16, len(m.nodes))
	most := len(m.nodes)
	for u, id := range m.nodes {
		m.index[id] = uint16(u)
	}
	if m.first != nil {
		most = 1
		for u := range m.nodes {
			most = max(most, len(m.neighbours(uint16(u))))
		}
	}
	doubt := math.Log2(touched / (1 - m.config.Confidence))
	m.branch = m.log2[most]
	m.strict = max(int(math.Ceil((doubt+m.branch)/m.bits)), 1)
	m.strictAny = max(int(math.Ceil((doubt+m.log2[len(m.nodes)])/m.bits)), 1)
}

// linked reports whether there is a link between two nodes.
func (m *Model) linked(u, w uint16) bool {
	if m.first == nil {
		return true
	}
	_, ok := slices.BinarySearch(m.neighbours(u), w)
	return ok
}

// leavesBits reports whether there are bits of digests in which the folded values of all nodes agree.
func (m *Model) leavesBits() bool {
	s, varies := m.config.Scheme, uint32(0)
	for id := range uint32(32) {
		p := s.Packet(id, 0)
		if p.Baseline {
			continue
		}
		first := s.Value(&p, pint.Folded, m.nodes[0])
		for _, u := range m.nodes {
			varies |= s.Value(&p, pint.Folded, u) ^ first
		}
	}
	return varies != 0 && varies != uint32(1<<s.Width()-1)
}

// Config returns what the model was made of, defaults filled in.
func (m *Model) Config() Config { return m.config }

func (m *Model) neighbours(u uint16) []uint16 { return m.peers[m.first[u]:m.first[u+1]] }

// measure fills the table of distances, by breadth-first search from every node.
func (m *Model) measure() {
	v := len(m.nodes)
	m.dist = make([]uint8, v*v)
	queue := make([]uint16, 0, v)
	for s := range v {
		row := m.dist[s*v:][:v]
		for i := range row {
			row[i] = far
		}
		row[s] = 0
		queue = append(queue[:0], uint16(s))
		for i := 0; i < len(queue); i++ {
			u := queue[i]
			if row[u] == far-1 {
				break
			}
			for _, w := range m.neighbours(u) {
				if row[w] == far {
					row[w] = row[u] + 1
					queue = append(queue, w)
				}
			}
		}
	}
}

func (m *Model) distance(u, w uint16) int { return int(m.dist[int(u)*len(m.nodes)+int(w)]) }

// distances gives the hop distances from u.
func (m *Model) distances(u uint16) []uint8 { return m.dist[int(u)*len(m.nodes):][:len(m.nodes)] }

// space gives what is known about paths of k hops before any digest. The first call for each k does the work.
func (m *Model) space(k int) *space {
	s := &m.spaces[k]
	m.once[k].Do(func() {
		v := len(m.nodes)
		s.domain, s.size, s.from = make([]uint64, k*m.words), make([]int32, k), make([]float64, v)
		switch {
		case m.weights != nil:
			m.lightest(s, k)
		case m.routed:
			m.shortest(s, k)
		default:
			for h := range k {
				for u := range v {
					s.domain[h*m.words+u>>6] |= 1 << (u & 63)
				}
			}
			m.count(s, k)
		}
		sum := 0.0
		for u, n := range s.from {
			sum += n
			s.from[u] = math.Log2(n)
		}
		s.weight = math.Log2(sum)
		for u, n := range s.into {
			s.into[u] = math.Log2(n)
		}
		if s.into == nil {
			s.into = s.from
		}
		s.cover = m.coverage(k)
		s.node = make([]uint16, k)
		for h := range k {
			row := s.domain[h*m.words:][:m.words]
			if s.size[h] = popcount(row); s.size[h] == 1 {
				s.known |= 1 << h
				s.node[h] = uint16(lowest(row))
			}
		}
	})
	return s
}

// coverage estimates the cover of a space from the writers of some packets.
func (m *Model) coverage(k int) float64 {
	const packets = 1000
	s := m.config.Scheme
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
	return float64(max(slices.Min(counts[:k]), 1)) / packets * (1 - math.Exp2(-float64(s.Width())))
}

// count counts the paths of k hops from every node. Without links these are all sequences of nodes. With links it counts
// walks, which are more than the paths without loops.
func (m *Model) count(s *space, k int) {
	v := len(m.nodes)
	if m.first == nil {
		n := 1.0
		for h := 1; h < k; h++ {
			if m.config.Loops {
				n *= float64(v)
			} else {
				n *= float64(max(v-h, 0))
			}
		}
		for u := range s.from {
			s.from[u] = n
		}
		return
	}
	for u := range s.from {
		s.from[u] = 1
	}
	if k == 1 {
		return
	}
	// The walks that begin with each link and direction. Without loops, none turns back.
	ways, next := make([]float64, len(m.peers)), make([]float64, len(m.peers))
	for i := range ways {
		ways[i] = 1
	}
	sum := func() {
		for u := range v {
			s.from[u] = 0
			for _, n := range ways[m.first[u]:m.first[u+1]] {
				s.from[u] += n
			}
		}
	}
	for sum(); k > 2; k-- {
		for u := range v {
			for i := m.first[u]; i < m.first[u+1]; i++ {
				w := m.peers[i]
				next[i] = s.from[w]
				if back, ok := slices.BinarySearch(m.neighbours(w), uint16(u)); ok && !m.config.Loops {
					next[i] = max(next[i]-ways[int(m.first[w])+back], 0)
				}
			}
		}
		ways, next = next, ways
		sum()
	}
}

// shortest finds which nodes are where on shortest paths of k nodes, and weighs these paths.
func (m *Model) shortest(s *space, k int) {
	v := len(m.nodes)
	order, alive, ways := make([]uint16, 0, v), make([]bool, v), make([]float64, v)
	for from := range v {
		row := m.dist[from*v:][:v]
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
				for _, w := range m.neighbours(u) {
					if int(row[w]) == d+1 && alive[w] {
						alive[u] = true
						ways[u] += ways[w]
					}
				}
			}
			if alive[u] {
				s.domain[d*m.words+int(u)>>6] |= 1 << (u & 63)
			}
		}
		s.from[from] = ways[from]
		if m.config.Routing == ECMP { // the paths between a pair share the weight 1
			s.from[from] = 0
			for _, d := range row {
				if int(d) == k-1 {
					s.from[from]++
				}
			}
		}
	}
}

// logWeight is log2 of the weight of a path.
func (m *Model) logWeight(path []uint16) float64 {
	if m.config.Routing != ECMP {
		return 0
	}
	w := 0.0
	last := path[len(path)-1]
	for i, u := range path[:len(path)-1] {
		next := 0
		for _, x := range m.neighbours(u) {
			if m.distance(x, last) == len(path)-2-i {
				next++
			}
		}
		w -= math.Log2(float64(next))
	}
	return w
}

// total is log2 of the weights of all paths of k hops with these ends.
func (m *Model) total(s *space, ingress, egress uint16) float64 {
	return min(m.totalOf(s, s.from, ingress), m.totalOf(s, s.into, egress))
}

// totalOf weighs the paths with one end in a set, by the weights of the paths with that end at each node.
func (m *Model) totalOf(s *space, weights []float64, set uint16) float64 {
	if m.end(set) == nil {
		return s.weight
	}
	sum := 0.0
	for _, u := range m.ends[set-1].members {
		sum += math.Exp2(weights[u])
	}
	return math.Log2(sum)
}

// end is a set of ends by its number, or nil for 0 and for numbers that have no set.
func (m *Model) end(set uint16) []uint64 {
	if set == 0 || int(set) > len(m.ends) {
		return nil
	}
	return m.ends[set-1].set
}
