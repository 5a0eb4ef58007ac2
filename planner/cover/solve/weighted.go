package solve

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt"
)

// duplicateWeighted is [net.duplicate] with weights: it adds to an undirected net second traversals of least total weight
// after which only depots have odd degree. It returns a bound below which no plan's second traversals can be, which is
// their weight if stop did not end the search.
//
// The matching is that of duplicate, with distances by weight.
func (n *net) duplicateWeighted(depot []bool, weight []int64, stop func() bool) (bound int64) {
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

// join copies the links of the cheapest ways that end at every node of t once, and otherwise at depots. It gives a bound of
// their weight too.
func (j *weightedJoiner) join(t []int32, stop func() bool) (bound int64, proven bool) {
	if len(t) == 0 {
		return 0, true
	}
	j.toDepots()
	j.least = slices.Min(j.weight)
	j.via = make([]int32, j.nodes)
	mate, bound, proven := j.matching(t, stop)
	for k, v := range t {
		switch u := mate[k]; {
		case u < 0:
			for ; j.home[v] > 0; v = j.head(j.way[v]) {
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
	place, most := make([]int32, j.nodes), int64(0)
	for k, v := range t {
		place[v] = int32(k)
		most = max(most, j.home[v])
	}
	var pairs []pair
	collect := func(k int, few int, radius int64, want func(p pair) bool) {
		v, found := t[k], 0
		j.search(v, -1, func(u int32) bool {
			if j.odd[u] && u != v {
				p := pair{int32(k), place[u], j.home[u] + j.home[v] - j.far[u]}
				if p.weight > 0 && want(p) {
					pairs = append(pairs, pair{min(p.u, p.v), max(p.u, p.v), p.weight})
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
		collect(k, few, j.home[v]+most, func(pair) bool { return true })
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.u, b.u), cmp.Compare(a.v, b.v)) })
	pairs = slices.Compact(pairs)
	for {
		mate, proof, done := match(len(t), pairs, stop)
		if !done {
			fill(mate, pairs)
			return mate, max(bound, j.nearBound(t)), false
		}
		if few < 0 && !stop() {
			return mate, bound, true
		}
		before, short := len(pairs), proof.lookup(len(t))
		missing, stopped := j.price(t, &proof, stop, func(k int, radius int64, want func(p pair) bool) { collect(k, nearest, radius, want) }, short)
		if len(pairs) == before && !stopped {
			return mate, bound, true
		}
		if bound = max(bound, j.dualBound(t, &proof, missing)); stopped {
			return mate, max(bound, j.nearBound(t)), false
		}
	}
}

// price collects pairs for which the dual values fall short, and gives by how much they do at most in all.
func (j *weightedJoiner) price(t []int32, proof *duals, stop func() bool, collect func(k int, radius int64, want func(p pair) bool), short func(u, v int32) int64) (missing int64, stopped bool) {
	room := func(k int32) int64 { return 2*j.home[t[k]] - proof.node[k] }
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
		collect(k, own, func(p pair) bool {
			other := room(p.v)
			if other > own || other == own && p.v < p.u {
				return false
			}
			lacks := 2*p.weight - short(p.u, p.v)
			if worst = max(worst, lacks); lacks > 0 {
				found++
			}
			if found == nearest { // those that the search does not come to are as far or farther
				worst = max(worst, 2*(own-j.far[t[p.v]]))
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
	near, from := make([]int64, j.nodes), make([]int32, j.nodes)
	var all opt.Nearest[int64]
	all.Begin(j.nodes, -1)
	for _, v := range t {
		from[v], near[v] = v, 2*j.home[v]
		all.Reach(v, 0)
	}
	for v, d, ok := all.Next(); ok; v, d, ok = all.Next() {
		for _, h := range j.out(v) {
			if w := j.head(h); !j.gone[h>>1] && all.Reach(w, d+j.weight[h>>1]) {
				from[w] = from[v]
			}
		}
	}
	dist := all.Dist
	for e, weight := range j.weight {
		x, y := j.node[2*e], j.node[2*e+1]
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

// dualBound is what dual values prove that fall short for some pairs: raising those of one of the nodes makes up for it.
func (j *weightedJoiner) dualBound(t []int32, proof *duals, missing int64) int64 {
	cost, value := int64(0), missing
	for k, v := range t {
		cost += 2 * j.home[v]
		value += proof.node[k]
	}
	for _, b := range proof.blossom {
		value += b.value * int64(len(b.nodes)-1)
	}
	return (cost - value + 1) / 2
}

// toDepots gives every node's distance to the nearest depot.
func (j *weightedJoiner) toDepots() {
	var near opt.Nearest[int64]
	near.Begin(j.nodes, -1)
	j.way = make([]int32, j.nodes)
	for v := range int32(j.nodes) {
		if j.depot[v] {
			near.Reach(v, 0)
		}
	}
	for v, d, ok := near.Next(); ok; v, d, ok = near.Next() {
		for _, h := range j.out(v) {
			if w := j.head(h); near.Reach(w, d+j.weight[h>>1]) {
				j.way[w] = h ^ 1
			}
		}
	}
	j.home = near.Dist
}

// search goes from v over what is not decided, the nearest nodes first, until one is accepted or radius is reached (-1:
// none), or until no way to the target can be shorter than one that was found (-1: none).
func (j *weightedJoiner) search(v, target int32, accept func(u int32) bool, radius int64) {
	j.near.Begin(j.nodes, -1)
	j.near.Reach(v, 0)
	j.far, j.via[v] = j.near.Dist, -1
	for x, dist, ok := j.near.Next(); ok; x, dist, ok = j.near.Next() {
		if radius >= 0 && dist > radius || accept(x) || target >= 0 && j.far[target] >= 0 && dist+j.least >= j.far[target] {
			return
		}
		for _, h := range j.out(x) {
			if w := j.head(h); !j.gone[h>>1] && j.near.Reach(w, dist+j.weight[h>>1]) {
				j.via[w] = h
			}
		}
	}
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
