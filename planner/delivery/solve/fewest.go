package solve

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
)

// goal is the goal of a search for few servers: some points may be left out, and some are linked.
type goal struct {
	out   float64 // most that the points left out may cost together
	links int     // to be added
	each  int     // links that one point may have

	aim     aim     // the quantity that is minimised
	before  *before // the plan that is replaced, if one is
	changes float64 // most points that may change
	atMost  bool    // links may be fewer
	servers int     // most that may be used; 0 for any number
}

// aim is the quantity that a search minimises.
type aim uint8

const (
	serversUsed aim = iota
	weightLeft
	linksAdded
	pointsChanged
)

// fewest finds a solution of least servers for a goal, with fewer than best, and stops at enough. Bound is the least
// that may be.
func (m *model) fewest(g goal, best, enough int, switches bool, b *budget) (sol *solution, bound int, cut bool) {
	f := newFewServers(m, g, switches, b)
	t := &tree{m: m, best: float64(best), enough: float64(enough), limit: b.limit, whole: f.whole(), leaf: f.leaf, found: func(*program) {}}
	scarce := m.separator(m.resources(pointers(m.paths)))
	t.separate = func(l *program) bool {
		added := scarce(l)
		return f.separate(l) || added
	}
	t.run(f.program())
	cut = t.cut || b.cut
	switch {
	case !cut:
		bound = int(t.best)
	case math.IsInf(t.bound, 0):
		bound = 0
	default:
		bound = min(int(t.bound), int(t.best))
	}
	return f.sol, bound, cut
}

// fewServers is a search for few servers as a linear programme, with the best solution so far. Its variables come in
// groups. First are the rates of paths. Each point has the rate of its added links, and whether it is left out. Each
// server has the rate of added links, and whether the server is used. Each point again has whether it has a first link,
// a second, and so on. The fields below hold where each group begins.
type fewServers struct {
	m        *model
	g        goal
	switches bool // links may lead to switches
	budget   *budget

	rate, out, load, used, link, keep int
	hi, cost                          []float64 // by variable
	others                            []int32   // servers that no path reaches, in the order in which they are used

	sol    *solution
	kept   []int32         // points that keep their paths in it
	failed map[string]bool // choices of points and servers that have no solution
}

func newFewServers(m *model, g goal, switches bool, b *budget) *fewServers {
	np, n, ns := len(m.paths), len(m.points), len(m.servers)
	f := &fewServers{
		m: m, g: g, switches: switches, budget: b, failed: map[string]bool{},
		rate: np, out: np + n, load: np + 2*n, used: np + 2*n + ns, link: np + 2*n + 2*ns,
	}
	size := f.link + g.each*n
	if f.keep = size; g.before != nil {
		size += n // by point, whether it keeps its paths
	}
	f.hi, f.cost = make([]float64, size), make([]float64, size)
	f.pointLimits()
	f.serverLimits()
	if g.before != nil {
		f.keepLimits()
	}
	return f
}

// linkOf is the variable of a link of a point.
func (f *fewServers) linkOf(i, number int) int32 { return int32(f.link + number*len(f.m.points) + i) }

// pointLimits sets how much paths and added links can carry, and which points can be left out or linked.
func (f *fewServers) pointLimits() {
	m, g := f.m, f.g
	for k := range m.paths {
		f.hi[k] = m.most(&m.paths[k])
	}
	for i := range m.points {
		if g.out >= m.cost[i] {
			f.hi[f.out+i] = 1
		}
		if g.each == 0 || !m.linkable(int32(i)) {
			continue
		}
		f.hi[f.rate+i] = min(m.demand[i], float64(g.each)*delivery.AddedCapacity)
		for number := range g.each {
			f.hi[f.linkOf(i, number)] = 1
		}
	}
}

// serverLimits sets which servers can be used, and chooses the others.
func (f *fewServers) serverLimits() {
	m := f.m
	everywhere := f.switches && f.g.links > 0 // a link to a switch may lead to any server
	reached := make([]bool, len(m.servers))
	for k := range m.paths {
		reached[m.paths[k].server] = true
	}
	if f.g.links > 0 && !everywhere {
		f.others = f.spare(reached)
	}
	for s := range m.servers {
		if m.room[s] > tiny && (reached[s] || everywhere || slices.Contains(f.others, int32(s))) {
			f.hi[f.used+s], f.cost[f.used+s] = 1, 1
			if f.g.links > 0 {
				f.hi[f.load+s] = m.room[s]
			}
		}
	}
}

// spare lists the servers that no path reaches and that are worth a look: those with most room, one for every added link.
func (f *fewServers) spare(reached []bool) (list []int32) {
	room := f.m.room
	for s, ok := range reached {
		if !ok {
			list = append(list, int32(s))
		}
	}
	slices.SortStableFunc(list, func(a, b int32) int {
		if room[a] != room[b] {
			return int(math.Copysign(1, room[b]-room[a]))
		}
		return int(a - b)
	})
	return list[:min(len(list), f.g.links)]
}

// program makes the rows.
func (f *fewServers) program() *program {
	l := newProgram(make([]float64, len(f.hi)), f.hi, f.cost)
	l.stop = f.m.stopped
	for i := range f.m.points {
		f.pointRows(l, i)
	}
	f.sumRows(l)
	f.serverRows(l)
	for i := 1; i < len(f.others); i++ {
		l.addRow([]term{{int32(f.used) + f.others[i-1], 1}, {int32(f.used) + f.others[i], -1}}, 0, math.Inf(1))
	}
	return l
}

// pointRows: a point gets its whole demand over paths and added links, or is left out.
func (f *fewServers) pointRows(l *program, i int) {
	m := f.m
	demand, row := m.demand[i], m.sum(m.byPoint[i])
	if f.hi[f.out+i] > 0 {
		row = append(row, term{int32(f.out + i), demand})
	}
	if f.keeps(i) {
		row = append(row, term{int32(f.keep + i), demand})
	}
	if f.hi[f.rate+i] == 0 {
		l.addRow(row, demand, demand)
		return
	}
	l.addRow(append(row, term{int32(f.rate + i), 1}), demand, demand)
	row = []term{{int32(f.rate + i), 1}}
	for number := range f.g.each {
		v := f.linkOf(i, number)
		row = append(row, term{v, -min(max(0, demand-float64(number)*delivery.AddedCapacity), delivery.AddedCapacity)})
		if number > 0 {
			l.addRow([]term{{v, 1}, {f.linkOf(i, number-1), -1}}, math.Inf(-1), 0)
		}
	}
	l.addRow(row, math.Inf(-1), 0)
	if f.hi[f.out+i] > 0 {
		l.addRow([]term{{f.linkOf(i, 0), 1}, {int32(f.out + i), 1}}, math.Inf(-1), 1)
	}
	if f.keeps(i) {
		l.addRow([]term{{f.linkOf(i, 0), 1}, {int32(f.keep + i), 1}}, math.Inf(-1), 1)
	}
}

// sumRows adds the rows for the limit of what is left out, and for the number of added links.
func (f *fewServers) sumRows(l *program) {
	var out, links []term
	for i := range f.m.points {
		if f.hi[f.out+i] > 0 {
			out = append(out, term{int32(f.out + i), f.m.cost[i]})
		}
		for number := range f.g.each {
			links = append(links, term{f.linkOf(i, number), 1})
		}
		if f.keeps(i) && f.g.before.links[i] > 0 {
			links = append(links, term{int32(f.keep + i), float64(f.g.before.links[i])})
		}
	}
	if len(out) > 0 {
		l.addRow(out, math.Inf(-1), f.g.out)
	}
	if len(links) > 0 {
		least := float64(f.g.links)
		if f.g.atMost {
			least = 0
		}
		l.addRow(links, least, float64(f.g.links))
	}
	if f.g.before != nil {
		f.keepRows(l)
	}
}

// serverRows adds two kinds of rows. A server has its room for paths and added links if it is used, and none otherwise.
// All that added links carry arrives at servers.
func (f *fewServers) serverRows(l *program) {
	m := f.m
	byServer := make([][]int32, len(m.servers))
	for k := range m.paths {
		byServer[m.paths[k].server] = append(byServer[m.paths[k].server], int32(k))
	}
	var balance []term
	for i := range m.points {
		balance = append(balance, term{int32(f.rate + i), 1})
	}
	for s := range m.servers {
		if f.hi[f.used+s] == 0 {
			continue
		}
		row := append(m.sum(byServer[s]), term{int32(f.used + s), -m.room[s]})
		if f.g.links > 0 {
			row = append(row, term{int32(f.load + s), 1})
			balance = append(balance, term{int32(f.load + s), -1})
		}
		if f.g.before != nil {
			row = f.keptLoad(row, func(b *before, i int) float64 { return b.servers[i][int32(s)] })
		}
		l.addRow(row, math.Inf(-1), 0)
	}
	if f.g.links > 0 {
		l.addRow(balance, 0, 0)
	}
}

// separate adds rows that the present values violate: a point sends no more to a server than that is used for.
func (f *fewServers) separate(l *program) (added bool) {
	m := f.m
	for i := range m.points {
		for a, k := range m.byPoint[i] {
			s := m.paths[k].server
			if slices.ContainsFunc(m.byPoint[i][:a], func(j int32) bool { return m.paths[j].server == s }) {
				continue
			}
			most := min(m.demand[i], m.room[s])
			sum, row := -most*l.x(int32(f.used)+s), []term{{int32(f.used) + s, -most}}
			for _, j := range m.byPoint[i][a:] {
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

// whole lists the variables that are 0 or 1.
func (f *fewServers) whole() (list []int32) {
	for i := range f.m.points {
		for number := range f.g.each {
			list = append(list, f.linkOf(i, number))
		}
		if f.hi[f.out+i] > 0 {
			list = append(list, int32(f.out+i))
		}
		if f.keeps(i) {
			list = append(list, int32(f.keep+i))
		}
	}
	for s := range f.m.servers {
		list = append(list, int32(f.used+s))
	}
	return list
}

// leaf finds out whether the choice of points and servers has a solution, and keeps it.
func (f *fewServers) leaf(l *program) bool {
	st := f.choice(l)
	// Further down the tree the same choice comes up again.
	key := fmt.Sprint(st.linked, st.servers, st.points, st.kept)
	if f.failed[key] {
		return false
	}
	got := f.realise(st)
	if got == nil {
		f.failed[key] = true
		return false
	}
	f.sol, f.kept = got, st.kept
	return true
}

// choice reads which points are served or linked, and which servers are used.
func (f *fewServers) choice(l *program) *stage {
	chosen := func(v int32) bool { return l.x(v) > 0.5 }
	st := &stage{switches: f.switches, servers: []int32{}}
	for i := range f.m.points {
		for number := range f.g.each {
			if chosen(f.linkOf(i, number)) {
				st.linked = append(st.linked, int32(i))
			}
		}
		switch {
		case f.keeps(i) && chosen(int32(f.keep+i)):
			st.kept = append(st.kept, int32(i))
		case !chosen(int32(f.out + i)):
			st.points = append(st.points, int32(i))
		}
	}
	for s := range f.m.servers {
		if chosen(int32(f.used + s)) {
			st.servers = append(st.servers, int32(s))
		}
	}
	return st
}
