package digests

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/planner/opt"
)

// mapError is a way in which a map can be wrong.
type mapError struct {
	name string
	make func(w *errorWorld, r *rand.Rand) bool // false: try again
}

// errorWorld is a network and a map of it that may be wrong. It has the links, the true id of each node, and the
// routes of flows.
type errorWorld struct {
	nodes   int
	ends    []int32   // where flows begin and end
	peers   [][]int32 // of the network
	links   [][2]int32
	ids     []uint32 // real ones; the map has each node's number
	cost    map[[2]int32]float64
	dist    [][]uint8                                // rows of hop distances by destination, once they are needed
	touches func(path []int32) bool                  // the error concerns a flow on that path
	reroute func(path []int32, r *rand.Rand) []int32 // the path of a touched flow instead; nil for the same
	skipped int                                      // hops before the first that never write, of touched flows
	draw    func(r *rand.Rand) []int32               // nil: a shortest path
	config  func(c *prior.Config)                    // the error of the map
}

func newErrorWorld(n *network) *errorWorld {
	w := &errorWorld{nodes: n.graph.NumNodes(), ends: n.ends(), links: n.links(), ids: n.nodes()}
	w.connect(w.links)
	return w
}

func (w *errorWorld) connect(links [][2]int32) {
	w.peers, w.dist = make([][]int32, w.nodes), make([][]uint8, w.nodes)
	for _, l := range links {
		if l[0] != l[1] && !slices.Contains(w.peers[l[0]], l[1]) {
			w.peers[l[0]] = append(w.peers[l[0]], l[1])
			w.peers[l[1]] = append(w.peers[l[1]], l[0])
		}
	}
}

// distances returns the hops from each node to one.
func (w *errorWorld) distances(to int32) []uint8 {
	if w.dist[to] == nil {
		w.dist[to] = hopsFrom(w.peers, to)
	}
	return w.dist[to]
}

func hopsFrom(peers [][]int32, to int32) []uint8 {
	d := make([]uint8, len(peers))
	for i := range d {
		d[i] = math.MaxUint8
	}
	d[to] = 0
	for queue := []int32{to}; len(queue) > 0; queue = queue[1:] {
		for _, v := range peers[queue[0]] {
			if d[v] == math.MaxUint8 {
				d[v] = d[queue[0]] + 1
				queue = append(queue, v)
			}
		}
	}
	return d
}

// shortest draws a shortest path of two nodes or more, each next hop evenly. It is nil if they are too far from each
// other.
func (w *errorWorld) shortest(r *rand.Rand, from, to int32) []int32 {
	d := w.distances(to)
	if d[from] == 0 || d[from] >= 62 {
		return nil
	}
	path := []int32{from}
	for u := from; u != to; path = append(path, u) {
		n, next := 0, int32(0)
		for _, v := range w.peers[u] {
			if d[v] == d[u]-1 {
				if n++; r.IntN(n) == 0 {
					next = v
				}
			}
		}
		u = next
	}
	return path
}

func (w *errorWorld) end(r *rand.Rand) int32 { return w.ends[r.IntN(len(w.ends))] }

// any draws a path between random ends.
func (w *errorWorld) any(r *rand.Rand) []int32 {
	for {
		if w.draw != nil {
			if p := w.draw(r); p != nil {
				return p
			}
		} else if p := w.shortest(r, w.end(r), w.end(r)); p != nil {
			return p
		}
	}
}

// flow draws a path that the error concerns or not. ok is false if there is hardly one.
func (w *errorWorld) flow(r *rand.Rand, touched bool) (path []int32, ok bool) {
	for range 20_000 {
		p := w.any(r)
		if w.touches != nil && w.touches(p) != touched {
			continue
		}
		if touched && w.reroute != nil {
			if p = w.reroute(p, r); p == nil {
				continue
			}
		}
		return p, true
	}
	return nil, false
}

// on reports whether a path leads over one of some nodes.
func on(nodes ...int32) func([]int32) bool {
	return func(path []int32) bool {
		return slices.ContainsFunc(path, func(u int32) bool { return slices.Contains(nodes, u) })
	}
}

// over reports whether a path leads over a link.
func over(a, b int32) func([]int32) bool {
	return func(path []int32) bool {
		for i := 1; i < len(path); i++ {
			if path[i-1] == a && path[i] == b || path[i-1] == b && path[i] == a {
				return true
			}
		}
		return false
	}
}

// weighted draws shortest paths by random weights of links.
func (w *errorWorld) weighted(r *rand.Rand) {
	w.cost = map[[2]int32]float64{}
	for _, l := range w.links {
		c := math.Exp(r.NormFloat64())
		w.cost[l], w.cost[[2]int32{l[1], l[0]}] = c, c
	}
	w.draw = func(r *rand.Rand) []int32 {
		from, to := w.end(r), w.end(r)
		best, back := w.cheapest(to)
		if from == to || math.IsInf(best[from], 1) {
			return nil
		}
		path := []int32{from}
		for u := from; u != to; path = append(path, u) {
			u = back[u]
		}
		if len(path) > 62 {
			return nil
		}
		return path
	}
	w.touches = func(path []int32) bool {
		return int(w.distances(path[len(path)-1])[path[0]]) != len(path)-1
	}
}

// cheapest returns the cost from each node to one, by Dijkstra's algorithm, and the next node on the way.
func (w *errorWorld) cheapest(to int32) (best []float64, next []int32) {
	best, next = make([]float64, w.nodes), make([]int32, w.nodes)
	for i := range best {
		best[i] = math.Inf(1)
	}
	best[to] = 0
	queue := opt.Heap[costNode]{Items: []costNode{{to, 0}}, Less: func(a, b *costNode) bool { return a.cost < b.cost }}
	for len(queue.Items) > 0 {
		x := queue.Pop()
		if x.cost > best[x.node] {
			continue
		}
		for _, v := range w.peers[x.node] {
			if c := x.cost + w.cost[[2]int32{x.node, v}]; c < best[v] {
				best[v], next[v] = c, x.node
				queue.Push(costNode{v, c})
			}
		}
	}
	return best, next
}

type costNode struct {
	node int32
	cost float64
}

// around leads a path around one of its links, if there is a way that meets no node twice.
func (w *errorWorld) around(path []int32, r *rand.Rand) []int32 {
	i := r.IntN(len(path) - 1)
	used := make([]bool, w.nodes)
	for _, u := range path {
		used[u] = true
	}
	used[path[i+1]] = false
	back := make([]int32, w.nodes)
	for v := range back {
		back[v] = -1
	}
	for queue := []int32{path[i]}; len(queue) > 0; queue = queue[1:] {
		u := queue[0]
		for _, v := range w.peers[u] {
			if used[v] || back[v] >= 0 || u == path[i] && v == path[i+1] {
				continue
			}
			back[v] = u
			if v != path[i+1] {
				queue = append(queue, v)
				continue
			}
			var way []int32
			for ; v != path[i]; v = back[v] {
				way = append(way, v)
			}
			slices.Reverse(way)
			p := slices.Concat(path[:i+1], way, path[i+2:])
			if len(p) > 62 {
				return nil
			}
			return p
		}
	}
	return nil
}

// mapErrors are the rows of the table.
var mapErrors = []mapError{
	{"none", func(*errorWorld, *rand.Rand) bool { return true }},
	{"a node renumbered", func(w *errorWorld, r *rand.Rand) bool {
		p := w.any(r)
		x := p[r.IntN(len(p))]
		w.ids[x] = 1_000_000 + r.Uint32N(1_000_000)
		w.touches = on(x)
		return true
	}},
	{"neighbours swapped", func(w *errorWorld, r *rand.Rand) bool {
		p := w.any(r)
		i := r.IntN(len(p) - 1)
		a, b := p[i], p[i+1]
		w.ids[a], w.ids[b] = w.ids[b], w.ids[a]
		w.touches = on(a, b)
		return true
	}},
	{"sender's TTL 254", func(w *errorWorld, r *rand.Rand) bool {
		w.skipped = 1
		w.touches = nil
		return true
	}},
	{"1 % of nodes renumbered", func(w *errorWorld, r *rand.Rand) bool {
		var list []int32
		for _, x := range r.Perm(w.nodes)[:max(w.nodes/100, 1)] {
			w.ids[x] = 1_000_000 + uint32(x)
			list = append(list, int32(x))
		}
		w.touches = on(list...)
		return true
	}},
	{"IGP weights", func(w *errorWorld, r *rand.Rand) bool {
		w.weighted(r)
		return true
	}},
	{"a link missing", func(w *errorWorld, r *rand.Rand) bool {
		p := w.any(r)
		i := r.IntN(len(p) - 1)
		a, b := p[i], p[i+1]
		w.touches = over(a, b)
		w.config = func(c *prior.Config) {
			c.Links = slices.DeleteFunc(c.Links, func(l [2]int32) bool { return l == [2]int32{a, b} || l == [2]int32{b, a} })
		}
		return true
	}},
	{"a link too many", func(w *errorWorld, r *rand.Rand) bool {
		a := r.Int32N(int32(w.nodes))
		d := w.distances(a)
		b := r.Int32N(int32(w.nodes))
		if d[b] < 3 || d[b] > 6 {
			return false
		}
		w.config = func(c *prior.Config) { c.Links = append(c.Links, [2]int32{a, b}) }
		w.touches = func(p []int32) bool {
			s, e := p[0], p[len(p)-1]
			da, db := w.distances(a), w.distances(b)
			return min(int(da[s])+int(db[e]), int(db[s])+int(da[e]))+1 <= len(p)-1
		}
		return true
	}},
	{"detours", func(w *errorWorld, r *rand.Rand) bool {
		w.reroute = w.around
		return true
	}},
}

// errorFlow is the result of a flow.
type errorFlow struct {
	touched, wrong, wrongMarked, published, certain bool
	right                                           int // digests until the right path, or one with the wrong hop named, was published for good; 0 if never
	publishedAt, certainAt                          int
}

// settledFor is the number of consecutive digests that must agree with a path without a mark until its flow is no
// longer followed. Only a digest that disagrees could bring the mark back.
const settledFor = 100

// trace sends the digests of a flow, of which the first switches may see the wrong hop number.
func (w *errorWorld) trace(t *pathtrace.Tracer, s *pint.Scheme, path []int32, skipped, digests int, r *rand.Rand, dst []uint32, seen func(n int, s *pathtrace.Status, right bool)) (out errorFlow) {
	f := pathtrace.Flow{Source: r.Uint32()}
	real := make([]uint32, skipped, skipped+len(path))
	for _, u := range path {
		real = append(real, w.ids[u])
	}
	settled := 0
	for n := 1; n <= digests && settled < settledFor; n++ {
		id := r.Uint32()
		digest := uint64(0)
		if skipped == 0 {
			digest = s.Digest(id, real)
		}
		for h := skipped; skipped > 0 && h < len(real); h++ {
			digest = s.Write(digest, id, h+1, real[h])
		}
		if e := t.Add(&f, id, len(real), digest); e == pathtrace.Verified && out.certain {
			settled++
			continue
		}
		settled = 0
		st, ok := t.Path(&f, 0, dst[:0])
		if !ok || !st.Complete {
			out.right, out.published, out.certain = 0, false, false
			continue
		}
		good, exact := true, true
		for h, u := range st.Nodes {
			known := st.Known>>h&1 != 0
			good = good && (u == real[h] && h >= skipped || !known)
			exact = exact && known
		}
		if skipped > 0 && good {
			good = st.Known == (uint64(1)<<len(real)-1)&^(1<<skipped-1)
		} else if good && !exact {
			for h, u := range path {
				if st.Known>>h&1 == 0 && uint32(u) == w.ids[u] {
					good = false // the hop that is named is right
				}
			}
		}
		if seen != nil {
			seen(n, &st, good)
		}
		if out.publishedAt == 0 {
			out.publishedAt = n
		}
		if st.Marked == 0 {
			out.wrong = out.wrong || !good || !exact
			if out.certainAt == 0 {
				out.certainAt = n
			}
		} else if !good {
			out.wrongMarked = true
		}
		if good && out.right == 0 {
			out.right = n
		} else if !good {
			out.right = 0
		}
		out.published, out.certain = good, st.Marked == 0
	}
	t.Release(&f)
	return out
}
