package solve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
)

// stage is a choice of points, linked points and servers that has to be turned into rates.
type stage struct {
	points   []int32 // to be served
	linked   []int32 // of these, with one added link each; a point may be there twice
	servers  []int32 // that may be used; nil for all
	switches bool    // links may be added to switches; else to servers only
	kept     []int32 // points beside these, which keep their paths
}

// budget bounds searches.
type budget struct {
	limit int // nodes left; 0 for any number
	cut   bool
}

// flow is a rate on a path.
type flow struct {
	path *path
	rate float64
}

// solution is what a plan is made from.
type solution struct {
	flows []flow
}

// servers counts the servers in use.
func (s *solution) servers() int {
	var used []int32
	for _, f := range s.flows {
		if !slices.Contains(used, f.path.server) {
			used = append(used, f.path.server)
		}
	}
	return len(used)
}

// realiser searches the far ends of added links, and paths that lose too much to be used together.
//
// With only the rates to decide this is a linear programme. In it a linked point may at first send to all servers, as
// if it had a link to each. Where it sends to several, the search branches. It tries a link to one of them, then to
// another, and finally only links to switches, from where paths lead on. A server to which the point already has a link
// stands for links to switches only.
type realiser struct {
	m       *model
	st      *stage
	b       *budget
	choice  []choice // by linked point
	banned  []*path
	careful []int32 // points none of whose paths may carry more than is reserved beyond their rate
	allowed []bool  // servers
	direct  map[directEnds]*path
	seen    map[string]bool // sets of banned paths, with the choices that were made
}

// choice is the decision about the added link of a point.
type choice struct {
	kind   choiceKind
	end    int32   // server, or node
	except []int32 // nodes that the link does not lead to
}

type choiceKind uint8

const (
	anywhere choiceKind = iota // any server
	toServer
	toSwitches // any switch
	toSwitch
)

// realise returns rates for a stage, or nil.
func (m *model) realise(st *stage, b *budget) *solution {
	r := &realiser{m: m, st: st, b: b, choice: make([]choice, len(st.linked)), allowed: make([]bool, len(m.servers)), direct: map[directEnds]*path{}}
	for s := range r.allowed {
		r.allowed[s] = st.servers == nil || slices.Contains(st.servers, int32(s))
	}
	if m.p.Test() != delivery.LossPath && b.limit == 0 {
		b.limit = lossNodes
	}
	return r.node()
}

// lossNodes bounds a search where paths may lose too much together: there are many sets of paths to leave out.
const lossNodes = 2000

// directEnds names the path of an added link to a server.
type directEnds struct {
	point, server int32
	loose         bool
}

// directPath is the path of an added link to a server. While the end of the link is open it also stands for links to
// switches. The limit of a path is then no limit of the link.
func (r *realiser) directPath(i, s int32, open bool) *path {
	e := directEnds{i, s, open && r.st.switches && r.m.p.PathLimit > 0}
	p := r.direct[e]
	if p == nil {
		q := r.m.direct(i, s)
		q.loose = e.loose
		p = &q
		r.direct[e] = p
	}
	return p
}

// columns lists the paths that are open to the points.
func (r *realiser) columns() (list []*path) {
	m := r.m
	twice := false // some point has two links, which may open the same paths
	for k, i := range r.st.linked {
		twice = twice || slices.Contains(r.st.linked[:k], i)
	}
	add := func(p *path) {
		if r.allowed[p.server] && !slices.Contains(r.banned, p) && !(twice && slices.Contains(list, p)) {
			list = append(list, p)
		}
	}
	for _, i := range r.st.points {
		for _, k := range m.byPoint[i] {
			add(&m.paths[k])
		}
	}
	for k, i := range r.st.linked {
		c := &r.choice[k]
		switch c.kind {
		case anywhere:
			for s, v := range m.servers {
				if !m.joined(i, v) || r.st.switches {
					add(r.directPath(i, int32(s), true))
				}
			}
		case toServer:
			add(r.directPath(i, c.end, false))
		default:
			r.waysOf(i, c, add)
		}
	}
	slices.SortStableFunc(list, func(a, b *path) int { return cmp.Compare(a.point, b.point) })
	return list
}

// waysOf adds the paths by a link to a switch: to one, or to any but some. If only one server can be reached from a
// switch, a link to that server is as good. This needs that the point has no link to it, and that one path can carry as
// much as several.
func (r *realiser) waysOf(i int32, c *choice, add func(*path)) {
	m := r.m
	ways := m.beyond(i)
	for from := 0; from < len(ways); {
		v, to, first, several := ways[from].via, from, int32(-1), m.p.PathLimit > 0
		for ; to < len(ways) && ways[to].via == v; to++ {
			if s := ways[to].server; r.allowed[s] {
				several = several || first >= 0 && s != first || m.joined(i, m.servers[s])
				first = s
			}
		}
		if several && (c.kind == toSwitches && !slices.Contains(c.except, v) || c.kind == toSwitch && c.end == v) {
			for k := from; k < to; k++ {
				add(&ways[k])
			}
		}
		from = to
	}
}

// node searches on from the present choices.
func (r *realiser) node() *solution {
	m := r.m
	if r.b.limit > 0 {
		if r.b.limit--; r.b.limit == 0 {
			r.b.limit = -1
		}
	}
	if m.nodes++; r.b.limit < 0 || m.stopped() {
		r.b.cut = true
		return nil
	}
	list := r.columns()
	l, byPoint, byServer, how := m.fill(list, r.st.points, r.careful)
	switch how {
	case infeasible:
		return nil
	case stalled:
		r.b.cut = true
		return nil
	}
	if k := r.undecided(l, list, byPoint); k >= 0 {
		return r.decide(k, l, list, byPoint[r.st.linked[k]], byServer)
	}
	sol := new(solution)
	for _, i := range r.st.points {
		flows := m.flows(l, list, byPoint[i], m.demand[i])
		if m.tooLossy(i, flows) {
			return r.avoid(i, flows)
		}
		sol.flows = append(sol.flows, flows...)
	}
	return sol
}

// represents reports whether a path only stands for links to switches: from a point to a server that it has a link to already.
func (m *model) represents(p *path) bool {
	return p.via == m.servers[p.server] && m.joined(p.point, p.via)
}

// undecided returns a link with an open end, or -1. It belongs to the point of the highest rate that uses more added
// links than it has, or one that cannot be added.
func (r *realiser) undecided(l *program, list []*path, byPoint [][]int32) int {
	found := -1
	for k, i := range r.st.linked {
		if found >= 0 && r.m.demand[i] <= r.m.demand[r.st.linked[found]] {
			continue
		}
		switch kind := r.choice[k].kind; kind {
		case anywhere, toSwitches:
			if r.overused(i, kind, l, list, byPoint[i]) {
				found = k
			}
		}
	}
	return found
}

// overused reports whether point i uses more ends of a kind, servers or switches, than it has open links for.
func (r *realiser) overused(i int32, kind choiceKind, l *program, list []*path, users []int32) bool {
	open := 0
	var decided, ends []int32
	for k, j := range r.st.linked {
		if c := &r.choice[k]; j == i {
			switch c.kind {
			case kind:
				open++
			case toServer:
				decided = append(decided, r.m.servers[c.end])
			case toSwitch:
				decided = append(decided, c.end)
			}
		}
	}
	for _, k := range users {
		p := list[k]
		v := p.via
		if p.loose && l.x(k) > 1e-7 && kind == anywhere && (l.x(k) > r.m.p.PathLimit+slack || slices.Contains(decided, v)) {
			return true
		}
		if v < 0 || l.x(k) <= 1e-7 || slices.Contains(decided, v) || slices.Contains(ends, v) || (v == r.m.servers[p.server]) != (kind == anywhere) {
			continue
		}
		if ends = append(ends, v); len(ends) > open || r.m.represents(p) {
			return true
		}
	}
	return false
}

// decide tries one end after another for an added link.
func (r *realiser) decide(slot int, l *program, list []*path, users []int32, byServer [][]int32) *solution {
	m, i, was := r.m, r.st.linked[slot], r.choice[slot]
	defer func() { r.choice[slot] = was }()
	type end struct {
		v, server int32
		rate      float64
	}
	var ends []end
	for _, k := range users {
		p := list[k]
		if p.via < 0 || (p.via == m.servers[p.server]) != (was.kind == anywhere) {
			continue
		}
		at := slices.IndexFunc(ends, func(e end) bool { return e.v == p.via })
		if at < 0 {
			at = len(ends)
			ends = append(ends, end{v: p.via, server: p.server})
		}
		ends[at].rate += l.x(k)
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(b.rate, a.rate) })
	if was.kind == toSwitches {
		// One of the switches in use, or else any but these.
		except := slices.Clone(was.except)
		for _, e := range ends {
			if e.rate <= 1e-7 {
				break
			}
			r.choice[slot] = choice{kind: toSwitch, end: e.v}
			if sol := r.node(); sol != nil {
				return sol
			}
			except = append(except, e.v)
		}
		r.choice[slot] = choice{kind: toSwitches, except: except}
		return r.node()
	}
	var tried []int32
	for _, e := range ends {
		if m.joined(i, e.v) {
			continue
		}
		// Of servers that are alike one is enough.
		if m.alone(list, byServer[e.server]) && !r.chosen(e.server) {
			if slices.ContainsFunc(tried, func(s int32) bool { return m.room[s] == m.room[e.server] }) {
				continue
			}
			tried = append(tried, e.server)
		}
		r.choice[slot] = choice{kind: toServer, end: e.server}
		if sol := r.node(); sol != nil {
			return sol
		}
	}
	if r.st.switches {
		r.choice[slot] = choice{kind: toSwitches}
		return r.node()
	}
	return nil
}

// alone reports whether only added links lead to a server, one from every linked point.
func (m *model) alone(list []*path, users []int32) bool {
	for _, k := range users {
		if p := list[k]; p.via < 0 || p.via != m.servers[p.server] {
			return false
		}
	}
	if len(users) == 0 {
		return true
	}
	s := m.servers[list[users[0]].server]
	return !slices.ContainsFunc(m.hops[m.start[s]:m.start[s+1]], func(h hop) bool { return m.kind(h.to) == delivery.PointNode })
}

// chosen reports whether some added link has been decided to lead to a server.
func (r *realiser) chosen(s int32) bool {
	return slices.ContainsFunc(r.choice, func(c choice) bool { return c.kind == toServer && c.end == s })
}

// avoid searches on without one of the paths whose loss together is too much, one after another. Where more is reserved
// than sent, it first tries to spread the rate so that any one path may fail.
func (r *realiser) avoid(i int32, flows []flow) *solution {
	if r.m.p.Test() != delivery.LossJoint {
		r.m.unsure = true // other rates on the same paths might do
	}
	if r.m.p.Reserve > 1 && !slices.Contains(r.careful, i) {
		r.careful = append(r.careful, i)
		sol := r.node()
		r.careful = r.careful[:len(r.careful)-1]
		if sol != nil {
			return sol
		}
	}
	for _, f := range flows {
		r.banned = append(r.banned, f.path)
		if r.known() {
			r.banned = r.banned[:len(r.banned)-1]
			continue
		}
		sol := r.node()
		r.banned = r.banned[:len(r.banned)-1]
		if sol != nil {
			return sol
		}
	}
	return nil
}

// known reports whether the same paths have been banned before, in another order, and remembers them.
func (r *realiser) known() bool {
	names := make([]string, 0, len(r.banned))
	for _, p := range r.banned {
		names = append(names, fmt.Sprint(p.nodes, p.links))
	}
	slices.Sort(names)
	key := fmt.Sprint(names, r.choice, r.careful)
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	was := r.seen[key]
	r.seen[key] = true
	return was
}
