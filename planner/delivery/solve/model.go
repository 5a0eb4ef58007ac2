package solve

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/opt"
)

// model is a network with the usable paths of its points.
type model struct {
	*network
	stop    func() bool
	demand  []float64 // by point: rate to be reserved
	room    []float64 // by server
	cost    []float64 // by point: its weight, in units that make it a whole number
	unit    float64   // of costs
	blur    float64   // total difference between weights and costs
	paths   []path
	byPoint [][]int32 // paths by point
	capped  []bool    // by point: there are more paths
	usable  int       // paths before those not needed were left out
	pairs   int       // point and server pairs with a usable path
	ways    [][]path  // by point: paths that begin with an added link to a switch; made when needed
	nodes   int       // of all searches
	unsure  bool      // a search was cut short, or left out possibly better ones
	timeout bool      // by stop
}

func newModel(p *delivery.Problem, stop func() bool) *model {
	m := &model{network: newNetwork(p), stop: stop}
	m.demand, m.room = make([]float64, len(m.points)), make([]float64, len(m.servers))
	m.capped, m.byPoint, m.ways = make([]bool, len(m.points)), make([][]int32, len(m.points)), make([][]path, len(m.points))
	for i, v := range m.servers {
		m.room[i] = p.Nodes[v].Residual()
	}
	m.weigh()
	for i, v := range m.points {
		x := &p.Nodes[v]
		m.demand[i] = p.Reserved(x.Rate)
		var list []path
		limit := maxPaths
		if m.stopped() {
			limit = fewPaths
		}
		list, m.capped[i] = m.network.paths(int32(i), v, x.Deadline, m.leastUp(x), limit)
		m.usable += len(list)
		seen := make([]bool, len(m.servers))
		for _, q := range list {
			if !seen[q.server] {
				seen[q.server] = true
				m.pairs++
			}
		}
		m.paths = append(m.paths, list...)
	}
	m.paths = m.needed(m.paths)
	if columns := max(maxColumns, leastColumns*len(m.points)); !m.largeWith(min(columns, len(m.paths))) {
		m.paths = m.some(m.paths)
	}
	m.unsure = m.unsure || slices.Contains(m.capped, true)
	for k := range m.paths {
		q := &m.paths[k]
		m.byPoint[q.point] = append(m.byPoint[q.point], int32(k))
	}
	return m
}

// weigh turns the weights of points into whole numbers: searches end sooner where costs are. Weights with more than three
// digits behind the point are rounded, and then little is proven.
func (m *model) weigh() {
	const digits = 1000
	unit := 0
	for _, v := range m.points {
		w := m.p.Nodes[v].Worth()
		c := math.Round(w * digits)
		m.cost = append(m.cost, c)
		if d := math.Abs(w - c/digits); d > 1e-12*w {
			m.blur += d
		}
		unit = opt.GCD(unit, int(c))
	}
	m.unit = float64(unit) / digits
	for i := range m.cost {
		m.cost[i] = math.Round(m.cost[i] / float64(unit))
	}
}

// leftOut is the cost of the points that are not in a list.
func (m *model) leftOut(points []int32) (sum float64) {
	for _, c := range m.cost {
		sum += c
	}
	for _, i := range points {
		sum -= m.cost[i]
	}
	return sum
}

// leastUp is the least probability of working that a single path of a point may have.
func (m *model) leastUp(x *delivery.Node) float64 {
	switch m.p.Test() {
	case delivery.LossPath, delivery.LossJoint:
		return 1 - x.Loss
	case delivery.LossExact:
		if m.p.Reserve <= 1 {
			return 1 - x.Loss
		}
	}
	return 0
}

// needed leaves out paths to servers without room, and paths that another one can replace. That is a path of the same
// point to the same server through a part of their elements. Where only the rates matter, just the elements that can
// get scarce are compared.
func (m *model) needed(list []path) []path {
	list = slices.DeleteFunc(list, func(q path) bool { return m.room[q.server] <= tiny })
	scarce := make([]bool, len(m.free))
	for _, r := range m.resources(pointers(list)) {
		for _, e := range r.elements {
			scarce[e] = true
		}
	}
	key := make([][]int32, len(list))
	for k, q := range list {
		for _, e := range q.element {
			if m.p.Test() != delivery.LossPath || scarce[e] {
				key[k] = append(key[k], e)
			}
		}
	}
	if m.p.PathLimit > 0 {
		return list // another path cannot take more than it takes itself
	}
	out := make([]bool, len(list))
	type ends struct{ point, server, via int32 }
	kept := map[ends][]int{} // paths with few elements come first
	order := opt.Ascending[int](len(list))
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(len(key[i]), len(key[j])) })
	for _, i := range order {
		e := ends{list[i].point, list[i].server, list[i].via}
		if out[i] = slices.ContainsFunc(kept[e], func(j int) bool { return opt.Subset(key[j], key[i]) }); !out[i] {
			kept[e] = append(kept[e], i)
		}
	}
	left := list[:0]
	for k, q := range list {
		if !out[k] {
			left = append(left, q)
		}
	}
	return left
}

const (
	maxColumns = 2500 // paths of all points together that the search works with
	fewPaths   = 50   // of a point, once the time is over

	leastColumns = 10 // paths of every point that the search works with, however many points there are
)

// some leaves out paths if there are too many to search. Of every point the fastest to each server stay, then the next
// fastest, up to its share.
func (m *model) some(list []path) []path {
	if len(list) <= maxColumns {
		return list
	}
	share := max(leastColumns, maxColumns/len(m.points))
	rank := make([]int, len(list)) // among paths of a point to the same server
	count := map[[2]int32]int{}
	of := make([][]int, len(m.points))
	for k, q := range list { // by latency within a point
		e := [2]int32{q.point, q.server}
		rank[k] = count[e]
		count[e]++
		of[q.point] = append(of[q.point], k)
	}
	var left []path
	for i, all := range of {
		if len(all) > share {
			slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
			all = all[:share]
			slices.Sort(all)
			m.capped[i] = true
		}
		for _, k := range all {
			left = append(left, list[k])
		}
	}
	return left
}

// pointers refers to paths where they are.
func pointers(list []path) []*path {
	refs := make([]*path, len(list))
	for k := range list {
		refs[k] = &list[k]
	}
	return refs
}

// resource is a set of elements that the same paths pass, the scarcest of which counts.
type resource struct {
	free     float64
	users    []int32 // indices of paths
	elements []int32
}

// resources lists what paths share and cannot all have: elements with less free capacity than the points that may pass
// them could send. An element of a single path is a bound of that path.
func (m *model) resources(list []*path) []resource {
	type use struct{ element, path int32 }
	var uses []use
	for k, q := range list {
		for _, e := range q.element {
			uses = append(uses, use{e, int32(k)})
		}
	}
	slices.SortFunc(uses, func(a, b use) int { return cmp.Or(cmp.Compare(a.element, b.element), cmp.Compare(a.path, b.path)) })
	all := make([]int32, len(uses))
	for i, x := range uses {
		all[i] = x.path
	}
	var found []resource
	type shape struct{ count, first, middle, last int32 }
	alike := map[shape][]int{} // resources that may have the same users
next:
	for i, j := 0, 0; i < len(uses); i = j {
		e := uses[i].element
		for j = i; j < len(uses) && uses[j].element == e; j++ {
		}
		u := all[i:j:j]
		most, last := 0.0, int32(-1)
		for _, k := range u { // paths of a point follow each other
			if p := list[k].point; p != last {
				most += m.demand[p]
				last = p
			}
		}
		if most <= m.free[e] {
			continue
		}
		like := shape{int32(len(u)), u[0], u[len(u)/2], u[len(u)-1]}
		for _, r := range alike[like] {
			if slices.Equal(found[r].users, u) {
				found[r].free = min(found[r].free, m.free[e])
				found[r].elements = append(found[r].elements, e)
				continue next
			}
		}
		alike[like] = append(alike[like], len(found))
		found = append(found, resource{m.free[e], u, []int32{e}})
	}
	return found
}

// most is the largest rate that a path can carry.
func (m *model) most(q *path) float64 {
	most := min(m.demand[q.point], m.room[q.server])
	if !q.loose {
		most = min(most, m.p.Limit())
	}
	for _, e := range q.element {
		most = min(most, m.free[e])
	}
	if q.via >= 0 {
		most = min(most, delivery.AddedCapacity)
	}
	return most
}

// linkable reports whether a point could use an added link to a server.
func (m *model) linkable(i int32) bool {
	x := &m.p.Nodes[m.points[i]]
	return x.Deadline >= delivery.AddedLatency-latencySlack && delivery.AddedUp >= m.leastUp(x)-1e-12
}

// joined reports whether a point has a link to a node.
func (m *model) joined(i, v int32) bool {
	u := m.points[i]
	return slices.ContainsFunc(m.hops[m.start[u]:m.start[u+1]], func(h hop) bool { return h.to == v })
}

// direct is the path of an added link from a point to a server.
func (m *model) direct(i, server int32) path {
	return path{
		point: i, server: server, nodes: []int32{m.points[i], m.servers[server]}, links: []int32{-1},
		latency: delivery.AddedLatency, up: delivery.AddedUp, via: m.servers[server],
	}
}

// beyond lists the paths of a point that begin with an added link to a forwarding node.
func (m *model) beyond(i int32) []path {
	if m.ways[i] != nil {
		return m.ways[i]
	}
	all := []path{}
	x, u := &m.p.Nodes[m.points[i]], m.points[i]
	for v := range int32(len(m.p.Nodes)) {
		e := m.element(v)
		if v == u || !m.forwards(v) || m.free[e] <= tiny || m.joined(i, v) {
			continue
		}
		up := delivery.AddedUp * m.up[e]
		list, more := m.network.paths(i, v, x.Deadline-delivery.AddedLatency-delivery.SwitchLatency, m.leastUp(x)/up, 200)
		m.unsure = m.unsure || more
		for _, q := range list {
			if slices.Contains(q.nodes, u) {
				continue
			}
			q.nodes, q.links = slices.Insert(q.nodes, 0, u), slices.Insert(q.links, 0, -1)
			at, _ := slices.BinarySearch(q.element, e)
			q.element = slices.Insert(q.element, at, e)
			q.latency += delivery.AddedLatency + delivery.SwitchLatency
			q.up *= up
			q.via = v
			all = append(all, q)
		}
	}
	m.ways[i] = m.needed(all)
	return m.ways[i]
}

// lightest is the least rate that points send which leave out no more than a cost: a bound that divides points.
func (m *model) lightest(out float64) (rate float64) {
	out += m.blur / m.unit
	order := opt.Ascending[int32](len(m.points))
	for _, d := range m.demand {
		rate += d
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(m.demand[b]/m.cost[b], m.demand[a]/m.cost[a]) })
	for _, i := range order {
		part := min(1, out/m.cost[i])
		rate -= part * m.demand[i]
		if out -= part * m.cost[i]; out <= 0 {
			break
		}
	}
	return max(0, rate)
}

// floor is a lower bound of the cost that any plan leaves out, whatever paths it uses. It is the larger of two costs:
// the rate beyond the room of all servers, and the points that certainly cannot be served.
func (m *model) floor(links bool) float64 {
	room := 0.0
	for _, x := range m.room {
		room += x
	}
	order := opt.Ascending[int32](len(m.points))
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(m.demand[a]/m.cost[a], m.demand[b]/m.cost[b]) })
	fits, sure := 0.0, 0.0
	for _, i := range order {
		part := min(1, room/m.demand[i])
		fits += part * m.cost[i]
		room -= part * m.demand[i]
		if !m.capped[i] && !(links && (m.linkable(i) || m.p.TransitAll)) && !m.reaches(i) {
			sure += m.cost[i]
		}
	}
	return max(0, math.Ceil(m.leftOut(nil)-fits-1e-6), sure)
}

// reaches reports whether the paths of a point are wide enough for it, one by one.
func (m *model) reaches(i int32) bool {
	sum := 0.0
	for _, k := range m.byPoint[i] {
		sum += m.most(&m.paths[k])
	}
	return sum >= m.demand[i]-slack
}

// capacityBound is the fewest servers whose room together is enough for a rate.
func (m *model) capacityBound(rate float64) int {
	room := slices.Clone(m.room)
	slices.Sort(room)
	slices.Reverse(room)
	for n, c := range room {
		if rate <= slack {
			return n
		}
		rate -= c
	}
	if rate <= slack {
		return len(room)
	}
	return math.MaxInt32
}

// slack is the tolerance of sums of rates, in Gbit/s.
const slack = 1e-7
