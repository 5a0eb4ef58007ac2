package solve

import (
	"cmp"
	"math"
	"slices"
)

// keep is the rest of the plan before: points in their order keep their paths as long as they fit.
func (b *before) keep(m *model) *solution {
	sol := new(solution)
	for i, flows := range b.bundle {
		one := *b
		one.bundle = slices.Repeat([][]flow{nil}, len(b.bundle))
		for _, f := range sol.flows {
			one.bundle[f.path.point] = b.bundle[f.path.point]
		}
		if one.bundle[i] = flows; flows != nil && one.fit(m) {
			sol.flows = append(sol.flows, flows...)
		}
	}
	return sol
}

// replan looks for the best plan that changes at most a number of points of the plan before. It minimises what is left
// out, then links, then servers, and last the changed points. A point whose assignment no longer holds changes anyway.
// So do the fewest points without which the others fit beside each other. must counts both.
func (m *model) replan(b *before, o *Options) (sol *solution, must int) {
	must = b.gone
	keepable := 0
	for i := range m.points {
		switch {
		case b.bundle[i] != nil:
			keepable++
		case b.served[i]:
			must++
		}
	}
	any := float64(len(m.points))
	g := goal{out: m.leftOut(nil), changes: any, before: b, atMost: true, aim: pointsChanged}
	for i := range m.points {
		g.links += b.links[i] // those that points keep
	}
	clash := 0
	if !b.fit(m) {
		clash = keepable - m.mostKept(g)
	}
	if must += clash; o.Churn >= 0 {
		g.changes = float64(max(o.Churn-must+clash, clash))
	}
	// One aim after the other, each with what has been reached of those before.
	best := m.leaveOut(g, !o.NoLinks)
	if best == nil {
		return nil, must
	}
	g.out = m.leftOut(best.sol.points())
	g.links, g.each = len(best.sol.links()), maxChangedLinks
	if g.links == 0 {
		g.each = 0
	}
	for _, g.aim = range []aim{linksAdded, serversUsed, pointsChanged} {
		reached := math.Inf(1)
		switch g.aim {
		case linksAdded:
			reached = float64(g.links)
		case serversUsed:
			reached = float64(best.sol.servers())
		}
		if f, _ := m.change(g, best.switches, reached); f != nil {
			best = f
		}
		if g.links = len(best.sol.links()); g.links == 0 {
			g.each = 0
		}
		if g.aim == serversUsed {
			g.servers = best.sol.servers()
		}
	}
	return best.sol, must
}

// replaced compares a replacement of an older plan with the best plan without a limit of changes, which has the bounds.
// They hold for the replacement, too, if it leaves out no more, and needs no more links.
func (r *result) replaced(m *model, sol *solution, limited bool) {
	out, links := m.leftOut(sol.points()), len(sol.links())
	bestOut, bestLinks := m.leftOut(r.sol.points()), len(r.sol.links())
	if worse := cmp.Or(cmp.Compare(out, bestOut), cmp.Compare(links, bestLinks), cmp.Compare(sol.servers(), r.sol.servers())); worse > 0 && !limited {
		return
	}
	if out > bestOut {
		r.linkBound = 0
	}
	if out > bestOut || links > bestLinks {
		r.serverBound = m.capacityBound(m.lightest(out))
	}
	r.sol = *sol
}

// maxChangedLinks bounds the added links of a point that changes.
const maxChangedLinks = 2

// leaveOut looks for the plan that leaves out least. It tries no further links, then links to servers, then links to
// switches, as long as something is left out.
func (m *model) leaveOut(g goal, links bool) (best *fewServers) {
	value := math.Inf(1)
	g.aim = weightLeft
	try := func(switches bool) {
		if f, v := m.change(g, switches, value); f != nil {
			best, value = f, v
		}
	}
	if try(false); links && value > 0 {
		g.links, g.each = g.links+maxChangedLinks*len(m.points), maxChangedLinks
		if try(false); value > 0 {
			try(true)
		}
	}
	return best
}

// change searches for a goal, and for less than a value of what is to be small.
func (m *model) change(g goal, switches bool, below float64) (*fewServers, float64) {
	f := newFewServers(m, g, switches, &budget{limit: 10 * changeNodes})
	t := &tree{m: m, best: below, limit: changeNodes, whole: f.whole(), leaf: f.leaf, found: func(*program) {}}
	scarce := f.scarce()
	t.separate = func(l *program) bool {
		added := scarce(l)
		return f.separate(l) || added
	}
	if g.aim == pointsChanged {
		t.enough = -float64(len(m.points))
	}
	t.run(f.program())
	if f.sol == nil {
		return nil, below
	}
	return f, t.best
}

// mostKept counts the points that can keep what they have beside each other; what becomes of the others does not matter.
func (m *model) mostKept(g goal) (count int) {
	f := newFewServers(m, g, false, &budget{})
	t := &tree{m: m, best: math.MaxInt32, enough: -float64(len(m.points)), limit: changeNodes, separate: f.scarce()}
	for i := range m.points {
		if f.keeps(i) {
			t.whole = append(t.whole, int32(f.keep+i))
		}
	}
	t.found = func(l *program) { count = len(f.choice(l).kept) }
	t.run(f.program())
	return count
}

// changeNodes bounds a search of points to be changed.
const changeNodes = 3000

// keeps reports whether a point can keep what it has.
func (f *fewServers) keeps(i int) bool { return f.g.before != nil && f.g.before.bundle[i] != nil }

// keepLimits sets which points can keep their paths, and what the search minimises.
func (f *fewServers) keepLimits() {
	b := f.g.before
	if f.g.aim != serversUsed {
		clear(f.cost)
	}
	for i, c := range f.m.cost {
		if !f.keeps(i) {
			if f.g.aim == weightLeft {
				f.cost[f.out+i] = c
			}
			continue
		}
		f.hi[f.keep+i] = 1
		switch f.g.aim {
		case weightLeft:
			f.cost[f.out+i] = c
		case linksAdded:
			f.cost[f.keep+i] = float64(b.links[i])
		case pointsChanged:
			f.cost[f.keep+i] = -1
		}
		for s := range b.servers[i] {
			if f.hi[f.used+int(s)] = 1; f.g.aim == serversUsed {
				f.cost[f.used+int(s)] = 1
			}
			if f.g.links > 0 {
				f.hi[f.load+int(s)] = f.m.room[s]
			}
		}
	}
	if f.g.aim == linksAdded {
		for i := range f.m.points {
			for number := range f.g.each {
				f.cost[f.linkOf(i, number)] = 1
			}
		}
	}
}

// keptLoad adds to a row the load of points that keep their paths.
func (f *fewServers) keptLoad(row []term, load func(b *before, i int) float64) []term {
	for i := range f.m.points {
		if f.keeps(i) {
			if x := load(f.g.before, i); x > 0 {
				row = append(row, term{int32(f.keep + i), x})
			}
		}
	}
	return row
}

// keepRows adds the rows of a replan: limits of changed points and used servers, and the servers of kept points. A
// point that was not served changes where it is now.
func (f *fewServers) keepRows(l *program) {
	var changes, used []term
	count := 0.0
	for i := range f.m.points {
		switch {
		case f.keeps(i):
			changes = append(changes, term{int32(f.keep + i), -1})
			count++
			for _, s := range sorted(f.g.before.servers[i]) {
				l.addRow([]term{{int32(f.keep + i), 1}, {int32(f.used) + s, -1}}, math.Inf(-1), 0)
			}
		case !f.g.before.served[i]:
			if f.hi[f.out+i] > 0 {
				changes = append(changes, term{int32(f.out + i), -1})
			}
			count++
		}
	}
	if len(changes) > 0 {
		l.addRow(changes, math.Inf(-1), f.g.changes-count)
	}
	if f.g.servers > 0 {
		for s := range f.m.servers {
			used = append(used, term{int32(f.used + s), 1})
		}
		l.addRow(used, math.Inf(-1), float64(f.g.servers))
	}
}

func sorted(of map[int32]float64) (list []int32) {
	for s := range of {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

// scarce adds rows for links and switches that the present values overload, kept paths included.
func (f *fewServers) scarce() func(l *program) bool {
	m := f.m
	users := make([][]term, len(m.free))
	for k := range m.paths {
		for _, e := range m.paths[k].element {
			users[e] = append(users[e], term{int32(k), 1})
		}
	}
	for e := range users {
		users[e] = f.keptLoad(users[e], func(b *before, i int) float64 { return b.load[i][int32(e)] })
	}
	return func(l *program) (added bool) {
		for e, row := range users {
			sum := 0.0
			for _, x := range row {
				sum += x.a * l.x(x.v)
			}
			if sum > m.free[e]+slack {
				l.addRow(row, math.Inf(-1), m.free[e])
				added = true
			}
		}
		return added
	}
}

// realise returns rates for a choice, beside those of kept points.
func (f *fewServers) realise(st *stage) *solution {
	if len(st.kept) == 0 {
		return f.m.realise(st, f.budget)
	}
	one := f.m.apart(f.g.before, st.kept)
	sol := new(solution)
	if len(st.points) > 0 {
		sol = one.realise(st, f.budget)
	}
	f.m.nodes, f.m.timeout, f.m.unsure = one.nodes, one.timeout, one.unsure
	if sol == nil {
		return nil
	}
	for _, i := range st.kept {
		sol.flows = append(sol.flows, f.g.before.bundle[i]...)
	}
	return sol
}
