package solve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// ErrSplitReplan is the wish for a plan with few changes where demands may be split.
var ErrSplitReplan = errors.New("a plan that replaces another one with few changes is made for whole demands only")

// Churn is a problem that an older plan solved, and that the changes allowed do not solve.
type Churn struct {
	Interface string // one that is left
	Missing   int    // how many are
	Changes   int    // allowed, beside those that have to be
}

func (e *Churn) Error() string {
	return fmt.Sprintf("no flow was found for %d interfaces, among them %q, with %d changes beside those that have to be; more churn or a partial plan may help",
		e.Missing, e.Interface, e.Changes)
}

// past is an older plan, in terms of the problem.
type past struct {
	flows [][]int32 // by interface: those that carry it and still can, ascending
	must  []bool    // by interface: it has to change, for it is not whole any more, or never was
	count int       // of those, and of the interfaces that are gone
	most  int       // further interfaces that may change
}

// newPast reads an older plan. What flows have no room for any more is taken from them, the largest first.
func (s *solver) newPast() *past {
	in := s.in
	flow, iface := make(map[string]int32, len(in.Flows)), make(map[string]int32, len(in.Interfaces))
	for k := range in.Flows {
		flow[in.Flows[k].ID] = int32(k)
	}
	for k := range in.Interfaces {
		iface[in.Interfaces[k].ID] = int32(k)
	}
	h := &past{flows: make([][]int32, s.p.ifaces), must: make([]bool, s.p.ifaces)}
	held := make([][]int32, s.p.flows)
	gone := map[string]bool{}
	keep := func(i, f string) {
		k, ok := iface[i]
		if !ok {
			gone[i] = true
			return
		}
		g, passed := flow[f]
		if passed {
			_, passed = slices.BinarySearch(s.p.path(g), k)
		}
		if !passed || slices.Contains(h.flows[k], g) {
			h.must[k] = true
			return
		}
		h.flows[k] = append(h.flows[k], g)
		held[g] = append(held[g], k)
	}
	for _, i := range in.Interfaces {
		if f, ok := s.o.Previous.Assignment[i.ID]; ok {
			keep(i.ID, f)
		}
	}
	for _, x := range s.o.Previous.Shares {
		keep(x.Interface, x.Flow)
	}
	for f, list := range held {
		load := int64(0)
		slices.SortFunc(list, func(a, b int32) int {
			return cmp.Or(cmp.Compare(s.p.demand[a], s.p.demand[b]), cmp.Compare(a, b))
		})
		for _, i := range list {
			if load += s.p.demand[i]; load > s.p.room[f] {
				h.flows[i], h.must[i] = without(h.flows[i], int32(f)), true
			}
		}
	}
	for i, want := range s.p.want {
		slices.Sort(h.flows[i])
		if len(h.flows[i]) != int(want) {
			h.flows[i], h.must[i] = h.flows[i][:min(len(h.flows[i]), int(want))], true
		}
		if h.must[i] {
			h.count++
		}
	}
	h.count += len(gone)
	h.most = max(0, s.o.Churn-h.count)
	if s.o.Churn < 0 {
		h.most = s.p.ifaces
	}
	return h
}

// was reports whether flow f carried i.
func (h *past) was(f, i int32) bool { return slices.Contains(h.flows[i], f) }

// replan changes an older plan where it has to be changed, and in so many other interfaces.
func (s *solver) replan() ([]orchestrate.Share, error) {
	if s.in.Split {
		return nil, ErrSplitReplan
	}
	s.p.normalise()
	h := s.newPast()
	m := newMover(s, h)
	m.start()
	b := s.boundFirst(&m.best)
	m.run(1000+200*s.p.ifaces, s.stop)
	best := m.best
	if s.wantsTree() {
		s.churn.Proven = m.decide(&best)
	}
	if h.most >= s.p.ifaces && !s.churn.Proven && (best.lost == 0 || s.o.Partial) {
		shares := s.anyChanges(h, &best)
		if b != nil { // it left out no less
			s.bound = max(s.bound, b.bound)
		}
		return shares, nil
	}
	if best.lost > 0 && !s.o.Partial {
		return nil, s.stuck(h, &best)
	}
	s.churn.Forced = h.count
	// What is proven holds of the plans of any number of changes.
	s.lostBound = 0
	if best.lost > 0 {
		c := s.newCarrier(&best)
		if c.b != nil {
			c.b.run(boundRounds*boundEffort, best.lost, s.stop)
			c.bound = max(c.bound, c.b.bound)
		}
		s.lostBound = c.bound
	}
	s.p.allow(best.lost)
	if s.in.Objective == orchestrate.Balance {
		s.balanceLevel()
		s.bound *= s.p.scale
		return s.shares(&best), nil
	}
	if b == nil || best.lost != m.first {
		b = newBounder(s.p, false)
	}
	b.offerPack(&best)
	b.run(boundRounds*boundEffort, int64(best.used), s.stop)
	s.bound = b.bound
	return s.shares(&best), nil
}

// anyChanges improves a plan as if it were a new one.
func (s *solver) anyChanges(h *past, best *pack) []orchestrate.Share {
	s.churn.Forced = h.count
	if s.in.Objective == orchestrate.Balance {
		defer func() { s.bound *= s.p.scale }()
		return s.partial(best, s.balancePart)
	}
	return s.partial(best, s.concentratePart)
}

// boundFirst works a while on the bound of Concentrate before the search takes the time that there is.
func (s *solver) boundFirst(best *pack) *bounder {
	if s.in.Objective != orchestrate.Concentrate {
		return nil
	}
	s.p.allow(best.lost)
	defer func() { s.p.groups = nil }()
	b := newBounder(s.p, false)
	b.offerPack(best)
	b.run(boundRounds/5*boundEffort, int64(best.used), s.stop)
	return b
}

// boundRounds is how long a bound of a plan with few changes is worked on, in turns.
const boundRounds = 2000

// stuck is the error where not everything could be carried with the changes allowed.
func (s *solver) stuck(h *past, best *pack) error {
	if _, _, short, missing := s.p.level(slices.Max(s.p.room), true, s.stop); len(short) > 0 {
		return s.together(short, missing)
	}
	e := &Churn{Changes: h.most}
	have := make([]int32, s.p.ifaces)
	for _, i := range best.iface {
		have[i]++
	}
	for i, n := range have {
		if n < s.p.want[i] {
			if e.Missing == 0 {
				e.Interface = s.in.Interfaces[i].ID
			}
			e.Missing++
		}
	}
	return e
}

// mover improves a packing by small steps, and never has more interfaces elsewhere than it may.
type mover struct {
	*packing
	s     *solver
	h     *past
	best  pack
	score score
	first int64 // weight that the first one leaves out
	free  []int32
}

// score says how good a packing is, the first difference counts.
type score struct {
	lost, objective int64
	value           float64
}

func (a score) compare(b score) int {
	return cmp.Or(cmp.Compare(a.lost, b.lost), cmp.Compare(a.objective, b.objective), cmp.Compare(a.value, b.value))
}

func newMover(s *solver, h *past) *mover { return &mover{packing: newPacking(s.p), s: s, h: h} }

// start keeps what can be kept and finds a place for the rest.
func (m *mover) start() {
	for i, flows := range m.h.flows {
		for _, f := range flows {
			m.put(f, int32(i))
		}
	}
	if m.s.in.Objective == orchestrate.Concentrate { // new flows that carry much of what has none
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

// rate gives the score. Of Concentrate the loads should be unequal, of Balance equal.
func (m *mover) rate() score {
	c := score{lost: m.lost, value: m.value}
	if m.s.in.Objective == orchestrate.Concentrate {
		c.objective, c.value = int64(len(m.used)), -m.value
		return c
	}
	for _, f := range m.used {
		c.objective = max(c.objective, m.load[f])
	}
	return c
}

// run makes so many steps.
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
	f := m.used[m.s.rnd.below(len(m.used))]
	for range m.s.rnd.below(4) {
		g := m.used[m.s.rnd.below(len(m.used))]
		if balance := m.s.in.Objective == orchestrate.Balance; balance == (m.load[g] > m.load[f]) && m.load[g] != m.load[f] {
			f = g
		}
	}
	for range 1 + m.s.rnd.below(3) {
		list := m.held[f]
		if len(list) == 0 {
			break
		}
		near := list[m.s.rnd.below(len(list))]
		if all := m.s.rnd.below(2) == 0; all {
			for len(m.held[f]) > 0 {
				m.take(f, m.held[f][0])
			}
		} else {
			m.take(f, near)
		}
		through := m.over[near]
		f = through[m.s.rnd.below(len(through))]
	}
	m.place()
	for k := len(m.used) - 1; k >= 0; k-- { // as trim does, but to be undone
		if f := m.used[k]; len(m.held[f]) == 0 {
			m.close(f)
		}
	}
	after := m.rate()
	if m.changed() > m.h.most || after.compare(before) > 0 && !(after.lost == before.lost && after.objective == before.objective && m.s.rnd.below(8) == 0) {
		m.undo()
		return
	}
	if after.compare(m.score) < 0 {
		m.score = after
		m.save(&m.best)
	}
}

// place gives what is missing to flows, mostly the largest first.
func (m *mover) place() {
	m.free = m.free[:0]
	for i, n := range m.missing {
		for range n {
			m.free = append(m.free, int32(i))
		}
	}
	for k := range m.free {
		j := k + m.s.rnd.below(len(m.free)-k)
		m.free[k], m.free[j] = m.free[j], m.free[k]
	}
	if m.s.rnd.below(4) > 0 {
		slices.SortStableFunc(m.free, func(a, b int32) int { return cmp.Compare(m.p.demand[b], m.p.demand[a]) })
	}
	back := m.s.rnd.below(2) == 0 // what need not change goes back where it was, if it can
	for _, i := range m.free {
		best, least := int32(none), int64(math.MaxInt64)
		flows := m.p.through(i)
		at, n := m.s.rnd.below(max(len(flows), 1)), len(flows)
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
	for {
		var t *tree
		if best.lost > 0 {
			m.p.allow(best.lost - 1)
			t = newTree(m.p, m.p.room, m.p.flows, nil)
			t.past = m.h
			switch t.search(nodes, m.s.stop) {
			case possible:
				t.saveAll(best)
				continue
			case undecided:
				m.p.groups = nil
				return false
			}
		}
		break
	}
	defer func() { m.p.groups = nil }()
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
