package solve

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
)

// choice of points to be served, and what is proven of it.
type choices struct {
	points []int32
	out    float64 // cost of the others
	bound  float64 // no choice leaves out less
}

// served finds the points of most weight that can be served together: without added links, or with any number of them.
func (m *model) served(links bool) (found choices) {
	np, n, ns := len(m.paths), len(m.points), 0
	if links {
		ns = len(m.servers)
	}
	size := np + n
	if links {
		size += n + ns
	}
	rate, load := np+n, np+2*n // of added links, by point and by server
	lo, hi, cost := make([]float64, size), make([]float64, size), make([]float64, size)
	t := &tree{m: m}
	for i := range n {
		v := np + i
		if links && m.linkable(int32(i)) {
			hi[rate+i] = m.demand[i]
		} else if !m.reaches(int32(i)) {
			continue
		}
		hi[v], cost[v] = 1, -m.cost[i]
		t.enough -= m.cost[i]
		t.whole = append(t.whole, int32(v))
		for _, k := range m.byPoint[i] {
			hi[k] = m.most(&m.paths[k])
		}
	}
	for s := range ns {
		hi[load+s] = m.room[s]
	}
	l := newProgram(lo, hi, cost)
	l.stop = m.stopped
	var balance []term
	for i := range n {
		if hi[np+i] == 0 {
			continue
		}
		row := append(m.sum(m.byPoint[i]), term{int32(np + i), -m.demand[i]})
		if links {
			row = append(row, term{int32(rate + i), 1})
			balance = append(balance, term{int32(rate + i), 1})
		}
		l.addRow(row, 0, 0)
	}
	byServer := make([][]int32, len(m.servers))
	for k := range m.paths {
		byServer[m.paths[k].server] = append(byServer[m.paths[k].server], int32(k))
	}
	for s, users := range byServer {
		row := m.sum(users)
		if links {
			row = append(row, term{int32(load + s), 1})
			balance = append(balance, term{int32(load + s), -1})
		}
		if len(row) > 1 {
			l.addRow(row, math.Inf(-1), m.room[s])
		}
	}
	if links {
		l.addRow(balance, 0, 0)
	}
	chosen := func(l *program) (points []int32) {
		for i := range n {
			if l.x(int32(np+i)) > 0.5 {
				points = append(points, int32(i))
			}
		}
		return points
	}
	b := &budget{}
	switch {
	case links:
		t.leaf = func(l *program) bool {
			points := chosen(l)
			return m.joinable(points, func(i int32) float64 { return l.x(int32(rate) + i) }, l) || m.connectable(points)
		}
	case m.p.Test() != delivery.LossPath:
		t.leaf = func(l *program) bool { return m.realise(&stage{points: chosen(l)}, b) != nil }
	}
	t.separate = m.separator(m.resources(pointers(m.paths)))
	t.found = func(l *program) { found.points = chosen(l) }
	t.run(l)
	found.out = m.leftOut(found.points)
	found.bound = found.out
	if t.cut || b.cut {
		m.unsure = true
	}
	if m.unsure {
		found.bound = 0
		if !math.IsInf(t.bound, 0) {
			found.bound = min(found.out, m.leftOut(nil)+t.bound)
		}
	}
	if slices.Contains(m.capped, true) || links && m.p.TransitAll {
		found.bound = 0 // there may be paths that are not looked at, and other points may use added links
	}
	found.bound = min(found.out, max(found.bound, m.floor(links)))
	return found
}

// joinable reports whether servers have room for the rates of added links beside the paths of a solution. It places the
// largest rates first, each on the servers with the most room. It may miss a way.
func (m *model) joinable(points []int32, rate func(i int32) float64, l *program) bool {
	room := slices.Clone(m.room)
	for k := range m.paths {
		room[m.paths[k].server] -= l.x(int32(k))
	}
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b int32) int { return cmp.Compare(rate(b), rate(a)) })
	for _, i := range points {
		left := rate(i)
		for tried := make([]bool, len(room)); left > slack; {
			best := -1
			for s, v := range m.servers {
				if !tried[s] && (best < 0 || room[s] > room[best]) && !m.joined(i, v) {
					best = s
				}
			}
			if best < 0 || room[best] <= slack {
				return false
			}
			tried[best] = true
			part := min(left, room[best], delivery.AddedCapacity, m.p.Limit())
			room[best] -= part
			left -= part
		}
	}
	return true
}

// connectable reports whether points can be served together if every link that can be added is.
func (m *model) connectable(points []int32) bool {
	var list []*path
	for _, i := range points {
		for _, k := range m.byPoint[i] {
			list = append(list, &m.paths[k])
		}
		if !m.linkable(i) {
			continue
		}
		for s, v := range m.servers {
			if !m.joined(i, v) {
				p := m.direct(i, int32(s))
				list = append(list, &p)
			}
		}
	}
	_, _, _, how := m.fill(list, points, nil)
	if how == infeasible {
		for _, i := range points {
			if m.linkable(i) {
				list = append(list, pointers(m.beyond(i))...)
			}
		}
		slices.SortStableFunc(list, func(a, b *path) int { return cmp.Compare(a.point, b.point) })
		_, _, _, how = m.fill(list, points, nil)
	}
	m.unsure = m.unsure || how == stalled
	return how == optimal
}

// fewestLinked is a lower bound of the points that need links when a cost of at most out is left out. It lets one link
// of a point carry its whole rate and lead to all servers.
func (m *model) fewestLinked(out float64) int {
	f := newFewServers(m, goal{out: out, links: len(m.points), each: 1}, true, &budget{})
	cost := make([]float64, len(f.hi))
	for i := range m.points {
		if f.hi[f.linkOf(i, 0)] > 0 {
			f.hi[f.rate+i], cost[f.linkOf(i, 0)] = m.demand[i], 1
		}
	}
	l := newProgram(make([]float64, len(f.hi)), f.hi, cost)
	l.stop = m.stopped
	for i := range m.points {
		row := m.sum(m.byPoint[i])
		if f.hi[f.out+i] > 0 {
			row = append(row, term{int32(f.out + i), m.demand[i]})
		}
		if f.hi[f.rate+i] > 0 {
			row = append(row, term{int32(f.rate + i), 1})
			l.addRow([]term{{int32(f.rate + i), 1}, {f.linkOf(i, 0), -m.demand[i]}}, math.Inf(-1), 0)
		}
		l.addRow(row, m.demand[i], m.demand[i])
	}
	var left []term
	for i, c := range m.cost {
		if f.hi[f.out+i] > 0 {
			left = append(left, term{int32(f.out + i), c})
		}
	}
	if len(left) > 0 {
		l.addRow(left, math.Inf(-1), out)
	}
	f.serverRows(l)
	whole := f.whole()[:0]
	for i := range m.points {
		whole = append(whole, f.linkOf(i, 0), int32(f.out+i))
	}
	t := &tree{
		m: m, best: float64(len(m.points) + 1), enough: 0, whole: whole, found: func(*program) {}, limit: directNodes,
		separate: m.separator(m.resources(pointers(m.paths))),
	}
	t.run(l)
	switch {
	case !t.cut && t.best <= float64(len(m.points)):
		return int(t.best)
	case math.IsInf(t.bound, 0):
		return 0
	}
	return max(0, int(min(t.bound, t.best)))
}

// sum is a row that adds variables up.
func (m *model) sum(vars []int32) []term {
	row := make([]term, 0, len(vars)+1)
	for _, v := range vars {
		row = append(row, term{v, 1})
	}
	return row
}

// separator adds rows for resources that the present values overload. The variables of paths come first.
func (m *model) separator(list []resource) func(l *program) bool {
	return func(l *program) bool {
		added := false
		for _, r := range list {
			sum := 0.0
			for _, k := range r.users {
				sum += l.x(k)
			}
			if sum > r.free+slack {
				l.addRow(m.sum(r.users), math.Inf(-1), r.free)
				added = true
			}
		}
		return added
	}
}
