package solve

import (
	"math"

	"github.com/hopscope/hopscope/planner/delivery"
)

// served finds the most points that can be served without added links, and points that can be together. The bound is
// above their number only if the search was cut short.
func (m *model) served() (points []int32, bound int) {
	np, ns := len(m.paths), len(m.points)
	lo, hi, cost := make([]float64, np+ns), make([]float64, np+ns), make([]float64, np+ns)
	for k := range m.paths {
		hi[k] = m.most(&m.paths[k])
	}
	t := &tree{m: m, best: 0, enough: -float64(ns)}
	possible := 0
	for i := range ns {
		sum := 0.0
		for _, k := range m.of[i] {
			sum += hi[k]
		}
		if sum >= m.demand[i]-slack {
			hi[np+i], cost[np+i] = 1, -1
			possible++
			t.whole = append(t.whole, int32(np+i))
		} else {
			for _, k := range m.of[i] {
				hi[k] = 0
			}
		}
	}
	t.enough = -float64(possible)
	l := newProgram(lo, hi, cost)
	l.stop = m.stopped
	for i := range ns {
		if hi[np+i] > 0 {
			l.addRow(append(m.sum(m.of[i]), term{int32(np + i), -m.demand[i]}), 0, 0)
		}
	}
	byServer := make([][]int32, len(m.servers))
	for k := range m.paths {
		byServer[m.paths[k].server] = append(byServer[m.paths[k].server], int32(k))
	}
	for s, users := range byServer {
		if len(users) > 1 {
			l.addRow(m.sum(users), math.Inf(-1), m.room[s])
		}
	}
	t.separate = m.separator(m.resources(pointers(m.paths)))
	t.found = func(l *program) {
		points = points[:0]
		for i := range ns {
			if l.x(int32(np+i)) > 0.5 {
				points = append(points, int32(i))
			}
		}
	}
	b := &budget{}
	if m.p.Test() != delivery.LossPath {
		t.leaf = func(l *program) bool {
			var all []int32
			for i := range ns {
				if l.x(int32(np+i)) > 0.5 {
					all = append(all, int32(i))
				}
			}
			return m.realise(&stage{points: all}, b) != nil
		}
	}
	t.run(l)
	if bound = len(points); t.cut || b.cut {
		m.unsure = true
		if bound = possible; !math.IsInf(t.bound, 0) {
			bound = min(possible, int(-t.bound))
		}
	}
	return points, bound
}

// sum is a row that adds variables up.
func (m *model) sum(vars []int32) []term {
	row := make([]term, 0, len(vars)+1)
	for _, v := range vars {
		row = append(row, term{v, 1})
	}
	return row
}

// separator adds rows for resources that the present values ask too much of. The variables of paths come first.
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
