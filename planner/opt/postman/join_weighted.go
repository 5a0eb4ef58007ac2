package postman

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// AugmentWeighted is [Net.Augment] with weights: it adds to an undirected net second traversals of least total weight
// after which only depots have odd degree. It returns a bound below which no plan's second traversals can be, which is
// their weight if stop did not end the search.
//
// The matching is that of duplicate, with distances by weight.
func (n *Net) AugmentWeighted(depot []bool, weight []int64, stop func() bool) (bound int64) {
	plain, t := n.newJoiner(depot)
	j := &weightedJoiner{joiner: *plain, weight: weight}
	of := func(e int) int64 { return weight[e] }
	bound = j.sum(of)
	rest, proven := j.join(t, stop)
	sum := j.sum(of)
	if j.double(); proven {
		return sum
	}
	return bound + rest
}

type weightedJoiner struct {
	joiner
	weight []int64 // by edge
	home   []int64 // distance to the nearest depot
	way    []int32 // half that leads there
	near   opt.Nearest[int64]
	far    []int64 // from the source of the last search; -1 where it did not come
	least  int64   // weight of an edge
}

// join copies the edges of the cheapest ways that end at every node of t once, and otherwise at depots. It returns a
// bound of their weight too.
func (j *weightedJoiner) join(t []int32, stop func() bool) (bound int64, proven bool) {
	if len(t) == 0 {
		return 0, true
	}
	j.toDepots()
	j.least = slices.Min(j.weight)
	j.via = make([]int32, j.Nodes)
	mate, bound, proven := j.matching(t, stop)
	for k, v := range t {
		switch u := mate[k]; {
		case u < 0:
			for ; j.home[v] > 0; v = j.Head(j.way[v]) {
				e := j.way[v] >> 1
				j.copied[e] = !j.copied[e]
			}
		case int(u) > k:
			j.search(v, t[u], func(x int32) bool { return x == t[u] }, -1)
			j.copyWay(v, t[u])
		}
	}
	return bound, proven
}

// matching pairs the nodes of t, as [joiner.matching] does.
func (j *weightedJoiner) matching(t []int32, stop func() bool) (mate []int32, bound int64, proven bool) {
	place, most := make([]int32, j.Nodes), int64(0)
	for k, v := range t {
		place[v] = int32(k)
		most = max(most, j.home[v])
	}
	var pairs []opt.Pair
	collect := func(k int, few int, radius int64, want func(p opt.Pair) bool) {
		v, found := t[k], 0
		j.search(v, -1, func(u int32) bool {
			if j.odd[u] && u != v {
				p := opt.Pair{U: int32(k), V: place[u], Weight: j.home[u] + j.home[v] - j.far[u]}
				if p.Weight > 0 && want(p) {
					pairs = append(pairs, opt.Pair{U: min(p.U, p.V), V: max(p.U, p.V), Weight: p.Weight})
					found++
				}
			}
			return found == few
		}, radius)
	}
	few := nearest
	if len(t) <= exactTargets {
		few = -1
	}
	for k, v := range t {
		if stop() {
			break
		}
		collect(k, few, j.home[v]+most, func(opt.Pair) bool { return true })
	}
	slices.SortFunc(pairs, func(a, b opt.Pair) int { return cmp.Or(cmp.Compare(a.U, b.U), cmp.Compare(a.V, b.V)) })
	pairs = slices.Compact(pairs)
	for {
		mate, proof, done := opt.Match(len(t), pairs, stop)
		if !done {
			fill(mate, pairs)
			return mate, max(bound, j.nearBound(t)), false
		}
		if few < 0 && !stop() {
			return mate, bound, true
		}
		before, short := len(pairs), proof.Lookup(len(t))
		missing, stopped := j.price(t, &proof, stop, func(k int, radius int64, want func(p opt.Pair) bool) { collect(k, nearest, radius, want) }, short)
		if len(pairs) == before && !stopped {
			return mate, bound, true
		}
		if bound = max(bound, j.dualBound(t, &proof, missing)); stopped {
			return mate, max(bound, j.nearBound(t)), false
		}
	}
}

// price collects pairs for which the dual values fall short, and returns the most by which they do in total.
func (j *weightedJoiner) price(t []int32, proof *opt.Duals, stop func() bool, collect func(k int, radius int64, want func(p opt.Pair) bool), short func(u, v int32) int64) (missing int64, stopped bool) {
	room := func(k int32) int64 { return 2*j.home[t[k]] - proof.Node[k] }
	for k := range t {
		own := room(int32(k))
		if stopped = stopped || stop(); stopped {
			missing += max(0, 2*own)
			continue
		}
		if own < 0 {
			continue
		}
		worst, found := int64(0), 0
		collect(k, own, func(p opt.Pair) bool {
			other := room(p.V)
			if other > own || other == own && p.V < p.U {
				return false
			}
			lacks := 2*p.Weight - short(p.U, p.V)
			if worst = max(worst, lacks); lacks > 0 {
				found++
			}
			if found == nearest { // those that the search does not come to are as far or farther
				worst = max(worst, 2*(own-j.far[t[p.V]]))
			}
			return lacks > 0
		})
		missing += worst
	}
	return missing, stopped
}

// nearBound: a node goes to its nearest depot, or two share a way that is as long as it is to the nearest other. Where one
// search from all of them meets itself, it has come from two that are as near to one another as any.
func (j *weightedJoiner) nearBound(t []int32) int64 {
	near, from := make([]int64, j.Nodes), make([]int32, j.Nodes)
	var all opt.Nearest[int64]
	all.Begin(j.Nodes, -1)
	for _, v := range t {
		from[v], near[v] = v, 2*j.home[v]
		all.Reach(v, 0)
	}
	for v, d, ok := all.Next(); ok; v, d, ok = all.Next() {
		for _, h := range j.Out(v) {
			if w := j.Head(h); !j.gone[h>>1] && all.Reach(w, d+j.weight[h>>1]) {
				from[w] = from[v]
			}
		}
	}
	dist := all.Dist
	for e, weight := range j.weight {
		x, y := j.From[2*e], j.From[2*e+1]
		if dist[x] < 0 || dist[y] < 0 || j.gone[e] || from[x] == from[y] {
			continue
		}
		d := dist[x] + weight + dist[y]
		near[from[x]], near[from[y]] = min(near[from[x]], d), min(near[from[y]], d)
	}
	halves := int64(0)
	for _, v := range t {
		halves += near[v]
	}
	return (halves + 1) / 2
}

// dualBound is the bound of dual values that fall short for some pairs. Raising those of one node of each pair makes up
// for it.
func (j *weightedJoiner) dualBound(t []int32, proof *opt.Duals, missing int64) int64 {
	cost, value := int64(0), missing
	for k, v := range t {
		cost += 2 * j.home[v]
		value += proof.Node[k]
	}
	for _, b := range proof.Blossoms {
		value += b.Value * int64(len(b.Nodes)-1)
	}
	return (cost - value + 1) / 2
}

// toDepots sets every node's distance to the nearest depot.
func (j *weightedJoiner) toDepots() {
	var near opt.Nearest[int64]
	near.Begin(j.Nodes, -1)
	j.way = make([]int32, j.Nodes)
	for v := range int32(j.Nodes) {
		if j.depot[v] {
			near.Reach(v, 0)
		}
	}
	for v, d, ok := near.Next(); ok; v, d, ok = near.Next() {
		for _, h := range j.Out(v) {
			if w := j.Head(h); near.Reach(w, d+j.weight[h>>1]) {
				j.way[w] = h ^ 1
			}
		}
	}
	j.home = near.Dist
}

// search visits undecided nodes from v on, the nearest first. It returns the first accepted node. It returns -1 at
// radius, or when no way to the target can be shorter than one that was found.
func (j *weightedJoiner) search(v, target int32, accept func(u int32) bool, radius int64) {
	j.near.Begin(j.Nodes, -1)
	j.near.Reach(v, 0)
	j.far, j.via[v] = j.near.Dist, -1
	for x, dist, ok := j.near.Next(); ok; x, dist, ok = j.near.Next() {
		if radius >= 0 && dist > radius || accept(x) || target >= 0 && j.far[target] >= 0 && dist+j.least >= j.far[target] {
			return
		}
		for _, h := range j.Out(x) {
			if w := j.Head(h); !j.gone[h>>1] && j.near.Reach(w, dist+j.weight[h>>1]) {
				j.via[w] = h
			}
		}
	}
}
