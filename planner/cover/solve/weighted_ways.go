package solve

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/opt/postman"
)

// labelWays holds the ways between depots and all nodes where several quantities count. For every node it keeps the
// ways that no other way beats in everything that is limited or minimised (E. Martins, "On a multicriteria shortest
// path problem", EJOR 16(2), 1984). Of ways that differ in cost only, maxLabels are kept. All ways that differ in the
// limits are kept.
type labelWays struct {
	p        *cover.Problem
	from, to [][]label
}

// label is a way from or to a depot.
type label struct {
	hops        int32
	prev        int32 // its number at the node before or behind
	iface       int32 // walked to come here, or to leave; -1 at a depot
	delay, cost int64
}

const (
	maxLabels  = 64
	fewLabels  = 6    // that a cut compares at each end
	maxPiece   = 4096 // links of a part that a cut looks at
	bytesPiece = 256
)

// newLabelWays returns nil where links alone count, and the shortest ways suffice.
func newLabelWays(p *cover.Problem) *labelWays {
	if p.MaxDelay == 0 && (p.Minimise == "" || p.Minimise == cover.Links) {
		return nil
	}
	d := &labelWays{p: p}
	d.from = d.search(func(i int) int { return i })
	d.to = d.search(func(i int) int { return p.Graph.Peer(i) })
	return d
}

// cost of leaving by interface i, as far as it adds up.
func (d *labelWays) cost(i int) int64 {
	if d.p.Minimise == cover.Bytes {
		return 1
	}
	return d.p.Weigh(i)
}

func (d *labelWays) usable(i int) bool {
	p := d.p
	return i >= 0 && p.Usable(i) && (p.Directed || p.Usable(p.Graph.Peer(i)))
}

// worse reports whether a is no better than b in anything that counts.
func (d *labelWays) worse(a, b *label) bool {
	return a.cost >= b.cost && (d.p.MaxDelay == 0 || a.delay >= b.delay) && (d.p.MaxHops == 0 || a.hops >= b.hops)
}

// search finds the ways, by delay where that is limited, else by cost. The function step returns the direction that is
// walked for an interface of a node that a way has reached.
func (d *labelWays) search(step func(i int) int) [][]label {
	p, g := d.p, d.p.Graph
	at := make([][]label, g.NumNodes())
	q := opt.Heap[labelItem]{Less: func(a, b *labelItem) bool {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.hops, b.hops), cmp.Compare(a.cost, b.cost), cmp.Compare(a.node, b.node), cmp.Compare(a.iface, b.iface)) < 0
	}}
	for _, v := range p.Depots {
		q.Items = append(q.Items, labelItem{label{prev: -1, iface: -1}, int32(v), 0})
	}
	least := slices.Repeat([]int32{math.MaxInt32}, g.NumNodes()) // hops of a label at the node
	q.Init()
	for len(q.Items) > 0 {
		x := q.Pop()
		v := int(x.node)
		if slices.ContainsFunc(at[v], func(l label) bool { return d.worse(&x.label, &l) }) {
			continue
		}
		if len(at[v]) >= maxLabels && (p.MaxHops == 0 || x.hops >= least[v]) {
			continue
		}
		least[v] = min(least[v], x.hops)
		at[v] = append(at[v], x.label)
		if p.Hosts != nil && p.Hosts[v] && x.hops > 0 {
			continue
		}
		lo, hi := g.Interfaces(v)
		for i := lo; i < hi; i++ {
			walked := step(i)
			if w := g.Neighbor(i); w >= 0 && d.usable(walked) {
				l := label{hops: x.hops + 1, prev: int32(len(at[v]) - 1), iface: int32(walked), delay: x.delay + int64(g.Attr(walked).Delay), cost: x.cost + d.cost(walked)}
				if (p.MaxHops > 0 && int(l.hops) > p.MaxHops) || (p.MaxDelay > 0 && l.delay > p.MaxDelay) {
					continue
				}
				key := l.cost
				if p.MaxDelay > 0 {
					key = l.delay
				}
				q.Push(labelItem{l, int32(w), key})
			}
		}
	}
	return at
}

type labelItem struct {
	label
	node int32
	key  int64
}

// fits reports whether a way, a part and a way home keep to the limits.
func (d *labelWays) fits(a, b *label, hops int, delay int64) bool {
	p := d.p
	return (p.MaxHops == 0 || int(a.hops)+hops+int(b.hops) <= p.MaxHops) && (p.MaxDelay == 0 || a.delay+delay+b.delay <= p.MaxDelay)
}

// reaches reports whether a probe that keeps to the limits can leave by interface i.
func (d *labelWays) reaches(i int) bool {
	g := d.p.Graph
	delay := int64(g.Attr(i).Delay)
	for a := range d.from[g.Node(i)] {
		for b := range d.to[g.Neighbor(i)] {
			if d.fits(&d.from[g.Node(i)][a], &d.to[g.Neighbor(i)][b], 1, delay) {
				return true
			}
		}
	}
	return false
}

// part is a part of a trail with its ways from and to depots.
type part struct {
	from   int // it begins there, or -1 where a second traversal is left out
	a, b   int // numbers of the ways
	turned bool
	cost   int64 // with all parts before
	pieces int
}

// attach adds to trails the ways from and to depots, as [depotWays.attach] does. It first cuts them into parts that
// with those ways keep to all limits: route first, cut second. Among the ways that it compares it finds a cut of the
// least total, and of those one with the fewest parts.
func (d *labelWays) attach(n *postman.Net, trails [][]int32, copies int) []cover.Walk {
	var walks []cover.Walk
	for _, t := range trails {
		walks = append(walks, d.attachTrail(n, t, copies)...)
	}
	return walks
}

func (d *labelWays) attachTrail(n *postman.Net, t []int32, copies int) []cover.Walk {
	p, m := d.p, len(t)
	node := func(k int) int32 {
		if k == 0 {
			return n.From[t[0]]
		}
		return n.Head(t[k-1])
	}
	there, back, cost := make([]int64, m+1), make([]int64, m+1), make([]int64, m+1)
	for k, h := range t {
		g := p.Graph
		there[k+1] = there[k] + int64(g.Attr(int(n.Label[h])).Delay)
		back[k+1] = back[k] + int64(g.Attr(int(n.Label[h^1])).Delay)
		cost[k+1] = cost[k] + d.cost(int(n.Label[h]))
	}
	best := make([]part, m+1)
	for k := 1; k <= m; k++ {
		best[k] = part{cost: math.MaxInt64}
		if before := best[k-1]; int(t[k-1]>>1) >= copies && before.cost < math.MaxInt64 {
			best[k] = part{from: -1, cost: before.cost, pieces: before.pieces}
		}
		for i := k - 1; i >= 0; i-- {
			fast := min(there[k]-there[i], back[k]-back[i])
			if n.Directed {
				fast = there[k] - there[i]
			}
			if p.MaxHops > 0 && k-i > p.MaxHops || p.MaxDelay > 0 && fast > p.MaxDelay || k-i > d.longest() {
				break
			}
			if best[i].cost == math.MaxInt64 {
				continue
			}
			d.try(&best[k], &best[i], i, k-i, there[k]-there[i], cost[k]-cost[i], node(i), node(k), false)
			if !n.Directed && !p.Redundant && p.MaxDelay > 0 {
				d.try(&best[k], &best[i], i, k-i, back[k]-back[i], cost[k]-cost[i], node(k), node(i), true)
			}
			if p.Hosts != nil && p.Hosts[node(i)] {
				break // no part goes on through a host
			}
		}
	}
	var walks []cover.Walk
	for k := m; k > 0; {
		x := best[k]
		if x.from < 0 {
			k--
			continue
		}
		a, b, piece := node(x.from), node(k), t[x.from:k]
		if x.turned {
			piece = slices.Clone(piece)
			postman.Reverse(piece)
			a, b = b, a
		}
		walks = append(walks, d.close(n, piece, a, b, x.a, x.b))
		k = x.from
	}
	slices.Reverse(walks)
	return walks
}

func (d *labelWays) longest() int {
	if d.p.Minimise == cover.Bytes {
		return bytesPiece
	}
	return maxPiece
}

// try takes for x a part behind before, if it counts less.
func (d *labelWays) try(x, before *part, from, hops int, delay, cost int64, u, v int32, turned bool) {
	as, bs := d.from[u], d.to[v]
	stepA, stepB := 1, 1
	if hops > 1 {
		stepA, stepB = max(1, (len(as)-1)/fewLabels), max(1, (len(bs)-1)/fewLabels)
	}
	for a := 0; a < len(as); a += stepA {
		for b := 0; b < len(bs); b += stepB {
			if !d.fits(&as[a], &bs[b], hops, delay) {
				continue
			}
			total := as[a].cost + cost + bs[b].cost
			if d.p.Minimise == cover.Bytes {
				total = d.p.Size.Of(int(as[a].hops) + hops + int(bs[b].hops))
			}
			total += before.cost
			if total < x.cost || total == x.cost && before.pieces+1 < x.pieces {
				*x = part{from: from, a: a, b: b, turned: turned, cost: total, pieces: before.pieces + 1}
			}
		}
	}
}

// close adds the ways with these numbers from and to the depots.
func (d *labelWays) close(n *postman.Net, piece []int32, u, v int32, a, b int) cover.Walk {
	g := d.p.Graph
	var w cover.Walk
	for l := d.from[u][a]; l.iface >= 0; {
		w = append(w, l.iface)
		l = d.from[g.Node(int(l.iface))][l.prev]
	}
	slices.Reverse(w)
	for _, h := range piece {
		w = append(w, n.Label[h])
	}
	for l := d.to[v][b]; l.iface >= 0; {
		w = append(w, l.iface)
		l = d.to[g.Neighbor(int(l.iface))][l.prev]
	}
	return w
}
