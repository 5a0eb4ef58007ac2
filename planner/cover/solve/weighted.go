package solve

import (
	"container/heap"

	"github.com/hopscope/hopscope/planner/cover"
)

// duplicateWeighted is [net.duplicate] with weights: it adds to an undirected net second traversals of least total weight
// after which only depots have odd degree. It returns a bound below which no plan's second traversals can be, which is
// their weight if stop did not end the search.
//
// The matching is that of duplicate, with distances by weight. If it was stopped, the bound are the balls around nodes of
// odd degree that neither meet each other nor hold a depot: a T-join has to leave every one of them.
func (n *net) duplicateWeighted(depot []bool, weight []int64, stop func() bool) (bound int64) {
	j := &weightedJoiner{
		joiner: joiner{net: n, depot: depot, copied: make([]bool, n.edges()), gone: make([]bool, n.edges()), odd: make([]bool, n.nodes)},
		weight: weight,
	}
	for v := range int32(n.nodes) {
		j.odd[v] = len(n.out(v))%2 == 1 && !depot[v]
	}
	j.leaves()
	for e, c := range j.copied {
		if c {
			bound += weight[e]
		}
	}
	var t []int32
	for v, odd := range j.odd {
		if odd {
			t = append(t, int32(v))
		}
	}
	balls, proven := j.join(t, stop)
	original, sum := n.edges(), int64(0)
	for e := range original {
		if j.copied[e] {
			sum += weight[e]
			h := 2 * e
			n.node = append(n.node, n.node[h], n.node[h+1])
			n.iface = append(n.iface, n.iface[h], n.iface[h+1])
		}
	}
	n.finish()
	if proven {
		return sum
	}
	return bound + balls
}

type weightedJoiner struct {
	joiner
	weight  []int64 // by edge
	home    []int64 // distance to the nearest depot
	way     []int32 // half that leads there
	far     []int64 // from the source of the last search; -1 where it did not come
	reached []int32 // by the last search
	near    []int64 // by place in t: distance to the next of t that was found, or -1
	queue   nodeHeap
}

// join copies the links of the cheapest ways that end at every node of t once, and otherwise at depots.
func (j *weightedJoiner) join(t []int32, stop func() bool) (balls int64, proven bool) {
	if len(t) == 0 {
		return 0, true
	}
	j.toDepots()
	j.far, j.via = make([]int64, j.nodes), make([]int32, j.nodes)
	for v := range j.far {
		j.far[v] = -1
	}
	j.near = make([]int64, len(t))
	mate, proven := j.matching(t, stop)
	for k, v := range t {
		switch u := mate[k]; {
		case u < 0:
			for ; j.home[v] > 0; v = j.head(j.way[v]) {
				e := j.way[v] >> 1
				j.copied[e] = !j.copied[e]
			}
		case int(u) > k:
			j.search(v, func(x int32) bool { return x == t[u] }, -1)
			j.copyWay(v, t[u])
		}
	}
	for k, v := range t {
		r := j.home[v]
		if j.near[k] < r*2 {
			r = max(0, j.near[k]) / 2
		}
		balls += r
	}
	return balls, proven
}

// matching pairs the nodes of t, as [joiner.matching] does.
func (j *weightedJoiner) matching(t []int32, stop func() bool) (mate []int32, proven bool) {
	place, most := make([]int32, j.nodes), int64(0)
	for k, v := range t {
		place[v] = int32(k)
		most = max(most, j.home[v])
	}
	var pairs []pair
	collect := func(k int, v int32, few int, radius int64, twice bool, want func(p pair) bool) {
		found, near := 0, int64(-1)
		j.search(v, func(u int32) bool {
			if !j.odd[u] || u == v {
				return false
			}
			if near < 0 {
				near = j.far[u]
			}
			if w := j.home[u] + j.home[v] - j.far[u]; w > 0 && (twice || place[u] > int32(k)) {
				if p := (pair{int32(k), place[u], w}); want(p) {
					pairs = append(pairs, p)
					found++
				}
			}
			return found == few
		}, radius)
		if near < 0 {
			near = 2 * j.home[v] // the radius is no less than the distance to the depot
		}
		if twice {
			j.near[k] = near
		}
	}
	all := func(pair) bool { return true }
	few := nearest
	if len(t) <= exactTargets {
		few = -1
	}
	for k, v := range t {
		if stop() {
			mate = make([]int32, len(t))
			for k := range mate {
				mate[k] = -1
			}
			return mate, false
		}
		collect(k, v, few, j.home[v]+most, true, all) // a pair that is found from both sides does no harm
	}
	for {
		mate, proof, done := match(len(t), pairs, stop)
		if !done || few < 0 {
			return mate, done
		}
		before := len(pairs)
		short := proof.lookup(len(t))
		room := func(k int, v int32) int64 { return 2*j.home[v] - proof.node[k] }
		widest := room(0, t[0])
		for k, v := range t {
			widest = max(widest, room(k, v))
		}
		for k, v := range t {
			if stop() {
				return mate, false
			}
			if radius := (room(k, v) + widest + 1) >> 1; radius >= 0 {
				collect(k, v, nearest, radius, false, func(p pair) bool { return short(p.u, p.v) < 2*p.weight })
			}
		}
		if len(pairs) == before {
			return mate, true
		}
	}
}

// toDepots gives every node's distance to the nearest depot.
func (j *weightedJoiner) toDepots() {
	j.home, j.way = make([]int64, j.nodes), make([]int32, j.nodes)
	q := &j.queue
	*q = (*q)[:0]
	for v := range int32(j.nodes) {
		if j.home[v] = -1; j.depot[v] {
			j.home[v] = 0
			heap.Push(q, nodeItem{0, v})
		}
	}
	for q.Len() > 0 {
		x := heap.Pop(q).(nodeItem)
		if x.dist != j.home[x.node] {
			continue
		}
		for _, h := range j.out(x.node) {
			w, d := j.head(h), x.dist+j.weight[h>>1]
			if j.home[w] < 0 || d < j.home[w] {
				j.home[w], j.way[w] = d, h^1
				heap.Push(q, nodeItem{d, w})
			}
		}
	}
}

// search goes from v over what is not decided, the nearest nodes first, until one is accepted or radius is reached (-1:
// none).
func (j *weightedJoiner) search(v int32, accept func(u int32) bool, radius int64) {
	for _, u := range j.reached {
		j.far[u] = -1
	}
	j.far[v], j.via[v] = 0, -1
	j.reached = append(j.reached[:0], v)
	q := &j.queue
	*q = append((*q)[:0], nodeItem{0, v})
	for q.Len() > 0 {
		x := heap.Pop(q).(nodeItem)
		if x.dist != j.far[x.node] {
			continue
		}
		if radius >= 0 && x.dist > radius || accept(x.node) {
			return
		}
		for _, h := range j.out(x.node) {
			if j.gone[h>>1] {
				continue
			}
			w, d := j.head(h), x.dist+j.weight[h>>1]
			if j.far[w] < 0 {
				j.reached = append(j.reached, w)
			}
			if j.far[w] < 0 || d < j.far[w] {
				j.far[w], j.via[w] = d, h
				heap.Push(q, nodeItem{d, w})
			}
		}
	}
}

type nodeItem struct {
	dist int64
	node int32
}

type nodeHeap []nodeItem

func (h nodeHeap) Len() int { return len(h) }
func (h nodeHeap) Less(i, j int) bool {
	return h[i].dist < h[j].dist || h[i].dist == h[j].dist && h[i].node < h[j].node
}
func (h nodeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *nodeHeap) Push(x any)   { *h = append(*h, x.(nodeItem)) }
func (h *nodeHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// weights gives what a traversal of every edge counts at least. A probe that comes to a link has as many labels of switches
// as it has passed links since its depot, and one more.
func (c *coverer) weights(n *net) (weight []int64, sum int64) {
	weight = make([]int64, n.edges())
	for e := range weight {
		i := int(n.iface[2*e])
		weight[e] = c.p.Weigh(i)
		if c.p.Minimise == cover.Bytes {
			before := c.ways.from[n.node[2*e]]
			if other := c.ways.from[n.node[2*e+1]]; !c.p.Directed {
				before = min(before, other)
			}
			weight[e] = c.p.Size.At(int(before) + 1)
		}
		sum += weight[e]
	}
	return weight, sum
}

// weighted reports whether traversals count anything but links.
func (c *coverer) weighted() bool { return c.p.Minimise != "" && c.p.Minimise != cover.Links }

// duplicate adds the second traversals to n, and sets the bound.
func (c *coverer) duplicate(n *net, depot []bool) {
	if !c.weighted() && !c.p.Directed {
		original := n.edges()
		_, bound := n.duplicate(depot, c.o.Stop)
		c.bound = original + bound
		return
	}
	weight, sum := c.weights(n)
	if c.p.Directed {
		sum += n.balanceDirections(depot, weight, c.o.Stop)
	} else {
		sum += n.duplicateWeighted(depot, weight, c.o.Stop)
	}
	c.bound = int(sum)
}

// objective is the number of probes, or with depots what the walks between them count.
func (c *coverer) objective(walks []cover.Walk) float64 {
	if c.p.Depots == nil {
		return float64(len(walks))
	}
	sum := int64(0)
	for _, w := range walks {
		sum += c.p.Length(w)
	}
	return float64(sum)
}
