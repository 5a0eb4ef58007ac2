package solve

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
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

// newPast reads an older plan. Interfaces for which flows have no room any more are removed, the largest first.
func (s *solver) newPast() *past {
	in := s.in
	flow := opt.Index[orchestrate.Flow, int32](in.Flows, func(f *orchestrate.Flow) string { return f.ID })
	iface := opt.Index[orchestrate.Interface, int32](in.Interfaces, func(i *orchestrate.Interface) string { return i.ID })
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
				h.flows[i], h.must[i] = opt.Without(h.flows[i], int32(f)), true
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

// replan changes an older plan where it has to, and in that many other interfaces.
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
		s.anyChanges(h, &best)
		if b != nil { // it left out no less
			s.bound = max(s.bound, b.bound)
		}
		m.settle(&best)
		return s.shares(&best), nil
	}
	if best.lost > 0 && !s.o.Partial {
		return nil, s.stuck(h, &best)
	}
	m.settle(&best)
	s.churn.Forced = h.count
	// The proven bounds hold for plans of any number of changes.
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
func (s *solver) anyChanges(h *past, best *pack) {
	s.churn.Forced = h.count
	if s.in.Objective == orchestrate.Balance {
		*best = s.partial(best, s.balancePart)
		s.bound *= s.p.scale
		return
	}
	*best = s.partial(best, s.concentratePart)
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
