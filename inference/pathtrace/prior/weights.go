package prior

import (
	"container/heap"
	"math"
)

// maxWeightedNodes lets the table of weighted distances, four bytes for each pair, fit into 64 MiB.
const maxWeightedNodes = 1 << 12

// MaxWeight is the largest weight of a link, that of wide metrics of IS-IS. Sums over the longest path fit into 32 bits.
const MaxWeight = 1<<24 - 1

// unreachable is the weighted distance of nodes that no path of weights connects.
const unreachable = math.MaxUint32

// weighted holds the shortest paths by the weights of links. It is nil unless paths are shortest by weight.
type weighted struct {
	v    int
	link []uint32 // weight of each entry of Model.peers, towards that neighbour
	dist []uint32 // from each node to each, row after row
}

// checkWeights reports what is wrong with the weights of a Config.
func (c *Config) checkWeights(bad func(format string, args ...any)) {
	switch {
	case c.Routing != Weights && c.Weights != nil:
		bad("weights of links with routing %v", c.Routing)
	case c.Routing != Weights:
	case len(c.Weights) != len(c.Links):
		bad("%d weights for %d links: want one for each", len(c.Weights), len(c.Links))
	case len(c.Nodes) > maxWeightedNodes:
		bad("routing %v of %d nodes: want %d at most", c.Routing, len(c.Nodes), maxWeightedNodes)
	default:
		for i, w := range c.Weights {
			if min(w[0], w[1]) < 1 || max(w[0], w[1]) > MaxWeight {
				bad("link %d has the weights %d and %d: want 1 to %d", i, w[0], w[1], MaxWeight)
				return
			}
		}
	}
}

// weigh fills the table of weighted distances. Of several links between two nodes the lightest counts, in each direction.
func (m *Model) weigh(links [][2]int32, weights [][2]uint32) {
	v := len(m.Nodes)
	g := &weighted{v: v, link: make([]uint32, len(m.Peers)), dist: make([]uint32, v*v)}
	for i := range g.link {
		g.link[i] = unreachable
	}
	lightest := func(from, to int32, weight uint32) {
		for i := m.First[from]; i < m.First[from+1]; i++ {
			if int32(m.Peers[i]) == to {
				g.link[i] = min(g.link[i], weight)
			}
		}
	}
	for i, l := range links {
		lightest(l[0], l[1], weights[i][0])
		lightest(l[1], l[0], weights[i][1])
	}
	for i := range g.dist {
		g.dist[i] = unreachable
	}
	m.Weights = g
	var q queue
	for from := range v {
		row := g.dist[from*v:][:v]
		row[from] = 0
		for q = append(q[:0], reached{0, uint16(from)}); len(q) > 0; {
			at := heap.Pop(&q).(reached)
			if at.dist > row[at.node] {
				continue
			}
			for i := m.First[at.node]; i < m.First[at.node+1]; i++ {
				u := m.Peers[i]
				// Sums that 32 bits do not hold belong to paths of more hops than a digest can cover.
				if d := uint64(at.dist) + uint64(g.link[i]); d < uint64(row[u]) {
					row[u] = uint32(d)
					heap.Push(&q, reached{uint32(d), u})
				}
			}
		}
	}
}

// reached is a node in the queue of Dijkstra's algorithm.
type reached struct {
	dist uint32
	node uint16
}

type queue []reached

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].dist < q[j].dist }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(reached)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

func (g *weighted) distance(u, w uint16) uint32 { return g.dist[int(u)*g.v+int(w)] }

// between reports whether a shortest path from a to c can lead over b.
func (g *weighted) between(a, b, c uint16) bool {
	return uint64(g.distance(a, b))+uint64(g.distance(b, c)) == uint64(g.distance(a, c))
}

// Fits reports whether a node can be at hop h of a shortest path that has the nodes of the hops lo and hi already.
func (g *weighted) Fits(path []uint16, lo, hi, h int, u uint16) bool {
	switch {
	case lo > hi:
		return true
	case h < lo:
		return g.between(u, path[lo], path[hi])
	case h > hi:
		return g.between(path[lo], path[hi], u)
	}
	return g.between(path[lo], u, path[hi])
}

// ShortestByWeight reports whether a whole path is a shortest one, where paths are that by weight.
func (m *Model) ShortestByWeight(path []uint16) bool {
	g := m.Weights
	if g == nil {
		return true
	}
	sum := uint64(0)
	for h, u := range path[1:] {
		weight := uint32(unreachable)
		for i := m.First[path[h]]; i < m.First[path[h]+1]; i++ {
			if m.Peers[i] == u {
				weight = g.link[i]
			}
		}
		sum += uint64(weight)
	}
	return sum == uint64(g.distance(path[0], path[len(path)-1]))
}

// lightest finds the possible nodes at each hop of shortest paths of k nodes by weight, and counts these paths. It goes
// hop by hop from every node on, and back from the nodes reached with the last hop.
func (m *Model) lightest(s *Space, k int) {
	v := len(m.Nodes)
	s.Into = make([]float64, v)
	ways, seen := make([]float64, k*v), make([]bool, k*v) // to, and later from, each node at each hop
	layers := make([][]uint16, k)
	for from := range v {
		layers[0] = append(layers[0][:0], uint16(from))
		ways[from] = 1
		for h := 1; h < k; h++ {
			layers[h] = layers[h][:0]
			for _, u := range layers[h-1] {
				m.onward(from, u, func(w uint16) {
					at := h*v + int(w)
					if !seen[at] {
						seen[at] = true
						layers[h] = append(layers[h], w)
					}
					ways[at] += ways[(h-1)*v+int(u)]
				})
			}
		}
		for _, u := range layers[k-1] {
			s.Into[u] += ways[(k-1)*v+int(u)]
			s.From[from] += ways[(k-1)*v+int(u)]
			s.Domain[(k-1)*m.Words+int(u)>>6] |= 1 << (u & 63)
		}
		// A node of a layer is on a path if one of the next layer is that it leads on to.
		alive := layers[k-1]
		for h := k - 2; h >= 0 && len(alive) > 0; h-- {
			for _, u := range alive {
				seen[(h+1)*v+int(u)] = false // marks the rest of the layer
			}
			kept := layers[h][:0:0]
			for _, u := range layers[h] {
				leads := false
				m.onward(from, u, func(w uint16) { leads = leads || !seen[(h+1)*v+int(w)] })
				if leads {
					kept = append(kept, u)
					s.Domain[h*m.Words+int(u)>>6] |= 1 << (u & 63)
				}
			}
			for _, u := range alive {
				seen[(h+1)*v+int(u)] = true
			}
			alive = kept
		}
		for h, layer := range layers {
			for _, u := range layer {
				ways[h*v+int(u)], seen[h*v+int(u)] = 0, false
			}
		}
	}
}

// onward visits the neighbours of u that come after it on shortest paths by weight from a node.
func (m *Model) onward(from int, u uint16, visit func(w uint16)) {
	g := m.Weights
	row := g.dist[from*g.v:][:g.v]
	for i := m.First[u]; i < m.First[u+1]; i++ {
		if w := m.Peers[i]; uint64(row[u])+uint64(g.link[i]) == uint64(row[w]) {
			visit(w)
		}
	}
}
