package postman

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// Augment adds to an undirected net the fewest second traversals after which only depots have odd degree. It returns
// their number and a lower bound for any plan. Both are equal if stop did not end the search.
//
// The problem is a T-join with free depots: let T be the odd nodes that are no depots. Every node of T walks either to
// its nearest depot or to another node of T. Let d be the distance to the nearest depot and dist that between two
// nodes. Then a matching of T has the weights d(t) + d(u) - dist(t, u). The cost is the sum of all d less the weight of
// that matching. Pairs of weight 0 or less are left out, so that many depots leave little to match.
//
// First come the bridges that the parity decides: an edge with a tree without depots behind it is walked there and back. Where T is
// large, only the nearest pairs enter the matching, and its dual values show which others are worth entering.
func (n *Net) Augment(depot []bool, stop func() bool) (copies, bound int) {
	j, t := n.newJoiner(depot)
	one := func(int) int64 { return 1 }
	forced := int(j.sum(one))
	proven, rest := j.join(t, stop)
	copies = int(j.sum(one))
	if j.double(); proven {
		return copies, copies
	}
	return copies, forced + rest
}

// newJoiner decides what parity decides, and returns the nodes that are left to be joined.
func (n *Net) newJoiner(depot []bool) (j *joiner, t []int32) {
	j = &joiner{Net: n, depot: depot, copied: make([]bool, n.Edges()), gone: make([]bool, n.Edges()), odd: make([]bool, n.Nodes)}
	for v := range int32(n.Nodes) {
		j.odd[v] = len(n.Out(v))%2 == 1 && !depot[v]
	}
	j.leaves()
	for v, odd := range j.odd {
		if odd {
			t = append(t, int32(v))
		}
	}
	return j, t
}

// sum is the weight of the copied edges.
func (j *joiner) sum(weight func(e int) int64) (sum int64) {
	for e, c := range j.copied {
		if c {
			sum += weight(e)
		}
	}
	return sum
}

// double adds to the net the edges that are copied.
func (j *joiner) double() {
	for e, c := range j.copied {
		if c {
			j.repeat(e)
		}
	}
	j.Finish()
}

type joiner struct {
	*Net
	depot  []bool
	odd    []bool // node still needs a further traversal
	copied []bool // by edge
	gone   []bool // by edge: decided
	to     []int32
	via    []int32
	dist   []int32
	queue  []int32
	size   []int // by component: nodes that undecided edges join
}

// leaves decides the edges to nodes of degree 1, and to those that become such.
func (j *joiner) leaves() {
	left := make([]int32, j.Nodes)
	var queue []int32
	for v := range int32(j.Nodes) {
		left[v] = int32(len(j.Out(v)))
		if left[v] == 1 && !j.depot[v] {
			queue = append(queue, v)
		}
	}
	for len(queue) > 0 {
		v := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, h := range j.Out(v) {
			if j.gone[h>>1] {
				continue
			}
			w := j.Head(h)
			j.gone[h>>1], j.copied[h>>1] = true, true
			j.odd[v] = false
			left[v]--
			if left[w]--; !j.depot[w] {
				j.odd[w] = !j.odd[w]
				if left[w] == 1 {
					queue = append(queue, w)
				}
			}
		}
	}
}

// Beyond exactTargets nodes, only the nearest of each are paired at first.
const (
	exactTargets = 64
	nearest      = 12
)

// join copies the edges of the cheapest ways that end at every node of t once, and otherwise at depots. If stop ended
// the search before, it returns a bound of their number.
func (j *joiner) join(t []int32, stop func() bool) (proven bool, bound int) {
	if len(t) == 0 {
		return true, 0
	}
	j.dist, j.via = slices.Repeat([]int32{-1}, j.Nodes), make([]int32, j.Nodes)
	j.count()
	var most int32
	j.to = j.toDepots()
	for v, d := range j.to {
		if j.odd[v] {
			most = max(most, d)
		}
	}
	place := make([]int32, j.Nodes)
	for k, v := range t {
		place[v] = int32(k)
	}
	mate, proven, bound := j.matching(t, place, most, stop)
	parity := make([]bool, j.Nodes)
	for v := range int32(j.Nodes) {
		parity[v] = j.depot[v] && len(j.Out(v))%2 == 1
	}
	for h, c := range j.copied {
		if c {
			parity[j.From[2*h]] = !parity[j.From[2*h]]
			parity[j.From[2*h+1]] = !parity[j.From[2*h+1]]
		}
	}
	for k, v := range t {
		switch u := mate[k]; {
		case u < 0 && !proven: // time is up, and every search would take some
			j.goHome(v)
		case u < 0:
			d := j.nearestDepot(v, parity)
			parity[d] = !parity[d]
			j.copyWay(v, d)
		case int(u) > k:
			j.search(v, func(x int32) bool { return x == t[u] }, int32(j.Nodes))
			j.copyWay(v, t[u])
		}
	}
	return proven, bound
}

// count finds how many nodes of every component a search can reach.
func (j *joiner) count() {
	j.size = make([]int, j.Comps)
	for v := range int32(j.Nodes) {
		if slices.ContainsFunc(j.Out(v), func(h int32) bool { return !j.gone[h>>1] }) {
			j.size[j.Comp[v]]++
		}
	}
}

// matching pairs the nodes of t, and returns a bound of the edges that their ways take: the number itself if proven.
func (j *joiner) matching(t, place []int32, most int32, stop func() bool) (mate []int32, proven bool, bound int) {
	var pairs []opt.Pair
	collect := func(k int, few int, radius int32, want func(p opt.Pair) bool) {
		v, found := t[k], 0
		j.search(v, func(u int32) bool {
			if j.odd[u] {
				p := opt.Pair{U: int32(k), V: place[u], Weight: int64(j.to[u] + j.to[v] - j.dist[u])}
				if p.Weight > 0 && want(p) {
					pairs = append(pairs, opt.Pair{U: min(p.U, p.V), V: max(p.U, p.V), Weight: p.Weight})
					found++
				}
			}
			return found == few
		}, radius)
	}
	if len(t) <= exactTargets {
		for k, v := range t {
			collect(k, -1, j.to[v]+most, func(p opt.Pair) bool { return p.U < p.V })
		}
		if mate, _, proven = opt.Match(len(t), pairs, stop); !proven {
			bound = j.nearBound(t)
		}
		return mate, proven, bound
	}
	for k, v := range t {
		if stop() {
			break
		}
		collect(k, nearest, 2*j.to[v]-1, func(opt.Pair) bool { return true }) // from the node that is farther from a depot
	}
	slices.SortFunc(pairs, func(a, b opt.Pair) int { return cmp.Or(cmp.Compare(a.U, b.U), cmp.Compare(a.V, b.V)) })
	pairs = slices.Compact(pairs)
	for {
		mate, proof, done := opt.Match(len(t), pairs, stop)
		if !done {
			fill(mate, pairs)
			return mate, false, max(bound, j.nearBound(t))
		}
		// A pair that is missing has 2 dist < room(v) + room(u), so that it is near to the one that has more room.
		before, short := len(pairs), proof.Lookup(len(t))
		room := func(k int32) int64 { return 2*int64(j.to[t[k]]) - proof.Node[k] }
		missing, stopped := int64(0), false // by how much the dual values fall short
		for k := range t {
			own := room(int32(k))
			if stopped = stopped || stop(); stopped {
				missing += max(0, 2*own-2)
				continue
			}
			worst, found := int64(0), 0
			collect(k, nearest, int32(own-1), func(p opt.Pair) bool {
				other := room(p.V)
				if other > own || other == own && p.V < p.U {
					return false
				}
				lacks := 2*p.Weight - short(p.U, p.V)
				if worst = max(worst, lacks); lacks > 0 {
					found++
				}
				if found == nearest { // those that the search does not come to are as far or farther
					worst = max(worst, 2*(own-int64(j.dist[t[p.V]])))
				}
				return lacks > 0
			})
			missing += worst
		}
		if len(pairs) == before && !stopped {
			return mate, true, bound
		}
		if bound = max(bound, j.dualBound(t, &proof, missing)); stopped {
			return mate, false, max(bound, j.nearBound(t))
		}
	}
}

// nearBound: a node goes to its nearest depot, or two share a way that is as long as it is to the nearest other.
func (j *joiner) nearBound(t []int32) int {
	halves := 0
	for _, v := range t {
		near := 2 * j.to[v]
		j.search(v, func(u int32) bool {
			if j.odd[u] {
				near = min(near, j.dist[u])
			}
			return j.odd[u]
		}, near)
		halves += int(near)
	}
	return (halves + 1) / 2
}

// dualBound is the bound of dual values that fall short for some pairs. Raising those of one node of each pair makes up
// for it.
func (j *joiner) dualBound(t []int32, proof *opt.Duals, missing int64) int {
	cost, value := int64(0), missing
	for k, v := range t {
		cost += 2 * int64(j.to[v])
		value += proof.Node[k]
	}
	for _, b := range proof.Blossoms {
		value += b.Value * int64(len(b.Nodes)-1)
	}
	return int((cost - value + 1) / 2)
}

// fill adds pairs to a matching, those of greatest weight first.
func fill(mate []int32, pairs []opt.Pair) {
	slices.SortStableFunc(pairs, func(a, b opt.Pair) int { return cmp.Compare(b.Weight, a.Weight) })
	for _, p := range pairs {
		if mate[p.U] < 0 && mate[p.V] < 0 {
			mate[p.U], mate[p.V] = p.V, p.U
		}
	}
}

// toDepots returns every node's distance to the nearest depot.
func (j *joiner) toDepots() []int32 {
	dist := make([]int32, j.Nodes)
	queue := make([]int32, 0, j.Nodes)
	for v := range int32(j.Nodes) {
		if dist[v] = -1; j.depot[v] {
			dist[v] = 0
			queue = append(queue, v)
		}
	}
	for at := 0; at < len(queue); at++ {
		for _, h := range j.Out(queue[at]) {
			if w := j.Head(h); dist[w] < 0 {
				dist[w] = dist[queue[at]] + 1
				queue = append(queue, w)
			}
		}
	}
	return dist
}

// search goes breadth first from v over what is not decided, until a node is accepted or radius is reached.
func (j *joiner) search(v int32, accept func(u int32) bool, radius int32) {
	for _, u := range j.queue {
		j.dist[u] = -1
	}
	j.dist[v], j.via[v] = 0, -1
	j.queue = append(j.queue[:0], v)
	size := j.size[j.Comp[v]]
	for at := 0; at < len(j.queue) && len(j.queue) < size; at++ { // in dense nets all are found long before the last edge
		u := j.queue[at]
		if j.dist[u] >= radius {
			return
		}
		for _, h := range j.Out(u) {
			if w := j.Head(h); j.dist[w] < 0 && !j.gone[h>>1] {
				j.dist[w], j.via[w] = j.dist[u]+1, h
				j.queue = append(j.queue, w)
				if accept(w) {
					return
				}
			}
		}
	}
}

// nearestDepot finds one of the depots nearest to v, if possible one that is odd: it becomes even, and the plan has a
// walk less.
func (j *joiner) nearestDepot(v int32, parity []bool) int32 {
	found := int32(-1)
	j.search(v, func(u int32) bool {
		if !j.depot[u] {
			return false
		}
		if found < 0 || j.dist[u] == j.dist[found] && parity[u] {
			found = u
		}
		return parity[found]
	}, j.to[v])
	return found
}

// goHome walks from v to a nearest depot.
func (j *joiner) goHome(v int32) {
	for j.to[v] > 0 {
		for _, h := range j.Out(v) {
			if w := j.Head(h); j.to[w] == j.to[v]-1 {
				j.copied[h>>1] = !j.copied[h>>1]
				v = w
				break
			}
		}
	}
}

// copyWay walks back from u to v, the source of the last search. An edge that two ways share is walked by neither: they
// could both do without. No optimal matching shares one, but a search that was stopped may.
func (j *joiner) copyWay(v, u int32) {
	for u != v {
		h := j.via[u]
		j.copied[h>>1] = !j.copied[h>>1]
		u = j.From[h]
	}
}
