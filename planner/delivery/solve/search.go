package solve

import (
	"fmt"
	"math"
	"slices"

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

// goal says what a search for few servers has to reach: some points need not be served as the others are, but by an added
// link each, or not at all.
type goal struct {
	apart int  // points that are linked or left out; or links, where a point may have two
	links bool // they are linked
	twice bool // a point may have two links
}

// fewest finds a solution of least servers for a goal, with fewer than best, and stops at enough. Bound is the least
// that may be.
func (m *model) fewest(g goal, best, enough int, switches bool, b *budget) (sol *solution, bound int, cut bool) {
	np, n, ns := len(m.paths), len(m.points), len(m.servers)
	// Variables: rates of paths; by point, the rate of its added link and whether it is apart; by server, the rate of added
	// links, and whether it is used.
	rate, apart, load, used := np, np+n, np+2*n, np+2*n+ns
	second, size := used+ns, used+ns // whether a point has two links
	if g.twice {
		size += n
	}
	lo, hi, cost := make([]float64, size), make([]float64, size), make([]float64, size)
	reached := make([]bool, ns)
	for k := range m.paths {
		hi[k] = m.most(&m.paths[k])
		reached[m.paths[k].server] = true
	}
	for i := range n {
		if g.apart > 0 && (!g.links || m.linkable(int32(i))) {
			hi[apart+i] = 1
			if g.links {
				hi[rate+i] = min(m.demand[i], delivery.AddedCapacity)
			}
			if g.twice {
				hi[rate+i], hi[second+i] = m.demand[i], 1
			}
		}
	}
	// Of the servers that no path reaches, those with most room are enough, one for every added link. They are used in this
	// order.
	var others []int32
	for s := range ns {
		if reached[s] || switches && g.links {
			continue
		}
		others = append(others, int32(s))
	}
	slices.SortStableFunc(others, func(a, b int32) int {
		if m.room[a] != m.room[b] {
			return int(math.Copysign(1, m.room[b]-m.room[a]))
		}
		return int(a - b)
	})
	if !g.links {
		others = others[:0]
	}
	others = others[:min(len(others), g.apart)]
	for s := range ns {
		if m.room[s] > tiny && (reached[s] || switches && g.links || slices.Contains(others, int32(s))) {
			hi[used+s], cost[used+s] = 1, 1
			if g.links {
				hi[load+s] = m.room[s]
			}
		}
	}
	l := newProgram(lo, hi, cost)
	l.stop = m.stopped
	for i := range n {
		row := m.sum(m.of[i])
		if g.links {
			l.addRow(append(row, term{int32(rate + i), 1}), m.demand[i], m.demand[i])
			most := min(m.demand[i], delivery.AddedCapacity)
			row := []term{{int32(rate + i), 1}, {int32(apart + i), -most}}
			if g.twice {
				row = append(row, term{int32(second + i), -min(m.demand[i]-most, delivery.AddedCapacity)})
				l.addRow([]term{{int32(second + i), 1}, {int32(apart + i), -1}}, math.Inf(-1), 0)
			}
			l.addRow(row, math.Inf(-1), 0)
		} else {
			l.addRow(append(row, term{int32(apart + i), m.demand[i]}), m.demand[i], m.demand[i])
		}
	}
	var sum, balance []term
	for i := range n {
		sum = append(sum, term{int32(apart + i), 1})
		if g.twice {
			sum = append(sum, term{int32(second + i), 1})
		}
		balance = append(balance, term{int32(rate + i), 1})
	}
	l.addRow(sum, float64(g.apart), float64(g.apart))
	byServer := make([][]int32, ns)
	for k := range m.paths {
		byServer[m.paths[k].server] = append(byServer[m.paths[k].server], int32(k))
	}
	for s := range ns {
		if hi[used+s] == 0 {
			continue
		}
		row := append(m.sum(byServer[s]), term{int32(used + s), -m.room[s]})
		if g.links {
			row = append(row, term{int32(load + s), 1})
			balance = append(balance, term{int32(load + s), -1})
		}
		l.addRow(row, math.Inf(-1), 0)
	}
	if g.links {
		l.addRow(balance, 0, 0)
	}
	for i := 1; i < len(others); i++ {
		l.addRow([]term{{int32(used) + others[i-1], 1}, {int32(used) + others[i], -1}}, 0, math.Inf(1))
	}
	t := &tree{m: m, best: float64(best), enough: float64(enough), limit: b.limit}
	scarce := m.separator(m.resources(pointers(m.paths)))
	t.separate = func(l *program) bool {
		added := scarce(l)
		// A point sends no more to a server than that is used for.
		for i := range n {
			for a, k := range m.of[i] {
				s := m.paths[k].server
				if slices.ContainsFunc(m.of[i][:a], func(j int32) bool { return m.paths[j].server == s }) {
					continue
				}
				most := min(m.demand[i], m.room[s])
				sum, row := -most*l.x(int32(used)+s), []term{{int32(used) + s, -most}}
				for _, j := range m.of[i][a:] {
					if m.paths[j].server == s {
						sum += l.x(j)
						row = append(row, term{j, 1})
					}
				}
				if sum > 1e-4 {
					l.addRow(row, math.Inf(-1), 0)
					added = true
				}
			}
		}
		return added
	}
	for i := range n {
		t.whole = append(t.whole, int32(apart+i))
		if g.twice {
			t.whole = append(t.whole, int32(second+i))
		}
	}
	for s := range ns {
		t.whole = append(t.whole, int32(used+s))
	}
	failed := map[string]bool{}
	t.leaf = func(l *program) bool {
		st := &stage{switches: switches, servers: []int32{}}
		for i := range n {
			isApart := l.x(int32(apart+i)) > 0.5
			if isApart && g.links {
				st.linked = append(st.linked, int32(i))
				if g.twice && l.x(int32(second+i)) > 0.5 {
					st.linked = append(st.linked, int32(i))
				}
			}
			if !isApart || g.links {
				st.points = append(st.points, int32(i))
			}
		}
		for s := range ns {
			if l.x(int32(used+s)) > 0.5 {
				st.servers = append(st.servers, int32(s))
			}
		}
		// Further down the tree the same choice comes up again.
		key := fmt.Sprint(st.linked, st.servers, st.points)
		if failed[key] {
			return false
		}
		got := m.realise(st, b)
		if got == nil {
			failed[key] = true
			return false
		}
		sol = got
		return true
	}
	t.found = func(*program) {}
	t.run(l)
	cut = t.cut || b.cut
	switch {
	case !cut:
		bound = int(t.best)
	case math.IsInf(t.bound, 0):
		bound = 0
	default:
		bound = min(int(t.bound), int(t.best))
	}
	return sol, bound, cut
}
