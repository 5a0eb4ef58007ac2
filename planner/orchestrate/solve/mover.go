package solve

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// mover improves a packing by small steps, and never has more interfaces elsewhere than it may.
type mover struct {
	*packing
	s     *solver
	h     *past
	best  pack
	score score
	first int64 // weight that the first one leaves out
	free  []int32

	settling bool // it is good enough, and only to be changed less
}

// score rates a packing.
type score struct {
	lost, objective int64
	changes         int
	value           float64 // that leads to better ones
}

// compare compares packings as starts of further search.
func (a score) compare(b score) int {
	return cmp.Or(cmp.Compare(a.lost, b.lost), cmp.Compare(a.objective, b.objective), cmp.Compare(a.value, b.value))
}

// result compares packings as results: of equal ones, the one with fewer changes is better.
func (a score) result(b score) int {
	return cmp.Or(cmp.Compare(a.lost, b.lost), cmp.Compare(a.objective, b.objective), cmp.Compare(a.changes, b.changes))
}

func newMover(s *solver, h *past) *mover { return &mover{packing: newPacking(s.p), s: s, h: h} }

// start keeps what can be kept and finds a place for the rest.
func (m *mover) start() {
	for i, flows := range m.h.flows {
		for _, f := range flows {
			m.put(f, int32(i))
		}
	}
	if m.s.in.Objective == orchestrate.Concentrate { // new flows that carry many interfaces without one
		var kept pack
		m.save(&kept)
		search := newSearch(m.p, &m.s.rnd)
		search.restore(&kept)
		search.collect()
		search.repair(math.MaxInt)
		search.save(&kept)
		m.restore(&kept)
	}
	m.place()
	m.trim()
	m.score = m.rate()
	m.save(&m.best)
	m.first = m.lost
}

// settle reverts changes that gained nothing. It looks for an equally good packing that differs less from the older
// one, by small steps and then by trees.
func (m *mover) settle(best *pack) {
	m.restore(best)
	m.score, m.settling = m.rate(), true
	m.save(&m.best)
	if m.score.changes == 0 {
		return
	}
	m.run(1000+200*m.s.p.ifaces, m.s.stop)
	*best = m.best.clone()
	if !m.s.wantsTree() {
		return
	}
	limit, most := m.p.room, m.p.flows
	if m.s.in.Objective == orchestrate.Balance {
		limit = m.p.capped(m.s.top(best))
	} else {
		most = best.used
	}
	m.p.allow(best.lost)
	defer func() { m.p.groups = nil }()
	for m.changed() > 0 {
		h := *m.h
		h.most = m.changed() - 1
		t := newTree(m.p, limit, most, nil)
		t.past = &h
		if t.search(settleNodes, m.s.stop) != possible {
			return
		}
		var found pack
		t.saveAll(&found)
		m.restore(&found)
		m.trim()
		after := m.rate()
		if after.result(m.score) >= 0 {
			return
		}
		m.score = after
		m.save(best)
	}
}

// settleNodes bounds a tree that looks for fewer changes.
const settleNodes = 1 << 16

func (m *mover) put(f, i int32) {
	if m.pos[f] == none {
		m.open(f)
	}
	m.give(f, i)
}

// changed counts the interfaces that need not change and are not as they were.
func (m *mover) changed() (n int) {
	for i, must := range m.h.must {
		if !must && !m.asBefore(int32(i)) {
			n++
		}
	}
	return n
}

func (m *mover) asBefore(i int32) bool {
	if m.missing[i] > 0 {
		return false
	}
	for _, f := range m.h.flows[i] {
		if m.pos[f] == none || !m.holds(f, i) {
			return false
		}
	}
	return true
}

// differ counts the interfaces that are not as the older plan left them, or the network.
func (m *mover) differ() (n int) {
	for i, flows := range m.h.flows {
		kept := 0
		for _, f := range flows {
			if m.pos[f] != none && m.holds(f, int32(i)) {
				kept++
			}
		}
		if now := m.p.want[i] - m.missing[i]; kept < len(flows) || int(now) > kept {
			n++
		}
	}
	return n
}

// rate returns the score. For Concentrate the loads should be unequal, for Balance equal.
func (m *mover) rate() score {
	c := score{lost: m.lost, changes: m.differ(), value: m.value}
	if m.s.in.Objective == orchestrate.Concentrate {
		c.objective, c.value = int64(len(m.used)), -m.value
		return c
	}
	for _, f := range m.used {
		c.objective = max(c.objective, m.load[f])
	}
	return c
}

// run makes that many steps.
func (m *mover) run(steps int, stop func() bool) {
	for n := range steps {
		if n%64 == 63 && stop() {
			return
		}
		m.step()
	}
}

// step takes something from a few flows that meet, finds places for it, and keeps what is not worse.
func (m *mover) step() {
	if len(m.used) == 0 {
		return
	}
	m.mark()
	before := m.rate()
	f := m.used[m.s.rnd.Below(len(m.used))]
	for range m.s.rnd.Below(4) {
		g := m.used[m.s.rnd.Below(len(m.used))]
		if balance := m.s.in.Objective == orchestrate.Balance; balance == (m.load[g] > m.load[f]) && m.load[g] != m.load[f] {
			f = g
		}
	}
	for range 1 + m.s.rnd.Below(3) {
		list := m.held[f]
		if len(list) == 0 {
			break
		}
		near := list[m.s.rnd.Below(len(list))]
		if all := m.s.rnd.Below(2) == 0; all {
			m.clear(f)
		} else {
			m.carry(f, near)
		}
		through := m.over[near]
		f = through[m.s.rnd.Below(len(through))]
	}
	m.place()
	m.closeEmpty()
	after := m.rate()
	worse := after.compare(before) > 0
	if m.settling {
		worse = after.result(before) > 0
	}
	if m.changed() > m.h.most || worse && !(after.lost == before.lost && after.objective == before.objective && m.s.rnd.Below(8) == 0) {
		m.undo()
		return
	}
	if after.result(m.score) < 0 {
		m.score = after
		m.save(&m.best)
	}
}

// place assigns missing interfaces to flows, mostly the largest first.
func (m *mover) place() {
	m.free = m.absentees(m.free[:0])
	m.s.rnd.Shuffle(m.free)
	if m.s.rnd.Below(4) > 0 {
		slices.SortStableFunc(m.free, func(a, b int32) int { return cmp.Compare(m.p.demand[b], m.p.demand[a]) })
	}
	back := m.s.rnd.Below(2) == 0 // unforced changes are reverted if possible
	for _, i := range m.free {
		best, least := int32(none), int64(math.MaxInt64)
		flows := m.p.through(i)
		at, n := m.s.rnd.Below(max(len(flows), 1)), len(flows)
		for k := range n {
			f := flows[(at+k)%n]
			if !m.fits(f, i) || k > mostLooked && m.pos[f] == none {
				continue
			}
			rank := m.rank(f)
			if back && !m.h.must[i] && m.h.was(f, i) {
				rank = -1
			}
			if rank < least {
				best, least = f, rank
			}
		}
		if best != none {
			m.put(best, i)
		}
	}
}

// rank orders the flows that something can be given to.
func (m *mover) rank(f int32) int64 {
	if m.s.in.Objective == orchestrate.Balance {
		return m.load[f]
	}
	if m.pos[f] == none {
		sum := int64(0)
		for _, j := range m.p.path(f) {
			sum += m.wanted[j]
		}
		return math.MaxInt64/2 - min(sum, m.p.room[f])
	}
	return m.p.room[f] - m.load[f]
}

// decide looks by trees for something better than the best packing, and reports whether there is certainly nothing. It
// gives up after a number of nodes.
func (m *mover) decide(best *pack) bool {
	nodes := int64(1 << 18)
	if m.s.o.Method == Exact {
		nodes = math.MaxInt64
	}
	defer func() { m.p.groups = nil }()
	for best.lost > 0 {
		m.p.allow(best.lost - 1)
		t := newTree(m.p, m.p.room, m.p.flows, nil)
		t.past = m.h
		v := t.search(nodes, m.s.stop)
		if v == undecided {
			return false
		}
		if v == impossible {
			break
		}
		t.saveAll(best)
	}
	for {
		m.p.allow(best.lost)
		limit, most := m.p.room, m.p.flows
		if m.s.in.Objective == orchestrate.Balance {
			limit = m.p.capped(m.s.top(best) - 1)
		} else {
			most = best.used - 1
		}
		if most < 0 || m.s.top(best) == 0 {
			return true
		}
		t := newTree(m.p, limit, most, nil)
		t.past = m.h
		switch t.search(nodes, m.s.stop) {
		case possible:
			t.saveAll(best)
		case impossible:
			return true
		case undecided:
			return false
		}
	}
}
