package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/opt"
)

// before is the plan that another one replaces, as far as it still holds.
type before struct {
	bundle  [][]flow            // by point: all its flows, where it can keep them; nil otherwise
	served  []bool              // by point: it was served
	gone    int                 // points that were served and are no more in the problem
	load    []map[int32]float64 // of bundles, by element
	servers []map[int32]float64 // of bundles, by server
	links   []int               // of bundles: added links
}

// newBefore determines which points can keep their paths. Their rate is the same, every path exists with the same
// ports, and it is still in time, reliable and wide enough.
func (m *model) newBefore(old *delivery.Plan, noLinks bool) *before {
	n := len(m.points)
	b := &before{
		bundle: make([][]flow, n), served: make([]bool, n),
		load: make([]map[int32]float64, n), servers: make([]map[int32]float64, n), links: make([]int, n),
	}
	w, err := delivery.Wire(m.p, nil)
	if err != nil {
		return b // the problem is not valid
	}
	id := opt.Index[delivery.Node, int32](m.p.Nodes, func(x *delivery.Node) string { return x.ID })
	gone := map[string]bool{}
	broken := make([]bool, n)
	for k := range old.Assignment {
		d := &old.Assignment[k]
		v, ok := id[d.Point]
		if !ok || m.kind(v) != delivery.PointNode {
			gone[d.Point] = true
			continue
		}
		i := m.place[v]
		b.served[i] = true
		added := slices.ContainsFunc(old.AddedLinks, func(l delivery.AddedLink) bool { return len(d.Path) > 1 && l.A == d.Path[0] && l.B == d.Path[1] })
		if p := m.same(d, added, w, id); p != nil {
			b.bundle[i] = append(b.bundle[i], flow{p, d.Rate})
		} else {
			broken[i] = true
		}
	}
	b.gone = len(gone)
	for i := range n {
		if broken[i] || !m.fits(int32(i), b.bundle[i]) {
			b.bundle[i] = nil
			continue
		}
		b.load[i], b.servers[i] = map[int32]float64{}, map[int32]float64{}
		var s solution
		for _, f := range b.bundle[i] {
			for _, e := range f.path.element {
				b.load[i][e] += f.rate
			}
			b.servers[i][f.path.server] += f.rate
			s.flows = append(s.flows, f)
		}
		if b.links[i] = len(s.links()); noLinks && b.links[i] > 0 {
			b.bundle[i], b.links[i] = nil, 0
		}
	}
	return b
}

// same returns a path of an older plan, or nil. It may begin with an added link that is still to be built.
func (m *model) same(d *delivery.Assignment, added bool, w *delivery.Wiring, id map[string]int32) *path {
	if len(d.Path) < 2 || len(d.Ports) != len(d.Path)-1 {
		return nil
	}
	p := &path{point: m.place[id[d.Point]], via: -1, up: 1}
	for k, name := range d.Path {
		v, ok := id[name]
		if !ok || slices.Contains(p.nodes, v) {
			return nil
		}
		p.nodes = append(p.nodes, v)
		if k > 0 && k < len(d.Path)-1 {
			if !m.forwards(v) {
				return nil
			}
			e := m.element(v)
			p.element = append(p.element, e)
			p.latency += delivery.SwitchLatency
			p.up *= m.up[e]
		}
		if k == 0 {
			continue
		}
		link, to, _, ok := w.Link(d.Path[k-1], d.Ports[k-1])
		switch {
		case ok && to == name:
			p.links, p.element = append(p.links, int32(link)), append(p.element, int32(link))
			p.latency += m.p.Links[link].Latency
			p.up *= m.up[link]
		case !ok && k == 1 && added && !m.joined(p.point, v):
			p.links, p.via = append(p.links, -1), v
			p.latency += delivery.AddedLatency
			p.up *= delivery.AddedUp
		default:
			return nil
		}
	}
	last := p.nodes[len(p.nodes)-1]
	if m.kind(last) != delivery.ServerNode || m.p.Nodes[last].ID != d.Server {
		return nil
	}
	p.server = m.place[last]
	slices.Sort(p.element)
	return p
}

// fits reports whether a point can send so, if no other point sends.
func (m *model) fits(i int32, flows []flow) bool {
	x := &m.p.Nodes[m.points[i]]
	free, room, sum := map[int32]float64{}, map[int32]float64{}, 0.0
	for _, f := range flows {
		sum += f.rate
		if !(f.rate > 0) || f.rate > m.p.Limit()+slack || f.path.latency > x.Deadline+latencySlack || f.path.up < m.leastUp(x)-1e-12 {
			return false
		}
		room[f.path.server] += f.rate
		for _, e := range m.elements(f.path) {
			free[e] += f.rate
		}
	}
	for e, rate := range free {
		if e >= 0 && rate > m.free[e]+slack || e < 0 && rate > delivery.AddedCapacity+slack {
			return false
		}
	}
	for s, rate := range room {
		if rate > m.room[s]+slack {
			return false
		}
	}
	return math.Abs(sum-m.demand[i]) <= 1e-6 && !m.tooLossy(i, flows)
}

// apart is the model without points that keep their flows, and without what these take.
func (m *model) apart(b *before, kept []int32) *model {
	one, net := *m, *m.network
	one.ways = make([][]path, len(m.points)) // which of them are needed depends on free capacities
	net.free, one.room = slices.Clone(m.free), slices.Clone(m.room)
	one.network = &net
	for _, i := range kept {
		for e, rate := range b.load[i] {
			net.free[e] = max(0, net.free[e]-rate)
		}
		for s, rate := range b.servers[i] {
			one.room[s] = max(0, one.room[s]-rate)
		}
	}
	return &one
}

// fit reports whether all points that can keep what they have can do so together.
func (b *before) fit(m *model) bool {
	free, room := slices.Clone(m.free), slices.Clone(m.room)
	for i := range b.bundle {
		if b.bundle[i] == nil {
			continue
		}
		for e, rate := range b.load[i] {
			if free[e] -= rate; free[e] < -slack {
				return false
			}
		}
		for s, rate := range b.servers[i] {
			if room[s] -= rate; room[s] < -slack {
				return false
			}
		}
	}
	return true
}
