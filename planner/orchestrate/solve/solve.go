package solve

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// Method is the algorithm of a plan.
type Method string

const (
	Heuristic Method = "heuristic" // the published one; the bound is that of this package
	Search    Method = "search"    // improve it while there is time, or until it is proven optimal
	Exact     Method = "exact"     // the same, and decide by a tree for as long as it takes
	Auto      Method = "auto"      // search, and decide by a tree where the problem is small
)

// ErrMethod is an unknown method.
var ErrMethod = errors.New("no such method")

// Options holds the settings of Plan.
type Options struct {
	Method   Method // Auto if empty
	Seed     uint64
	Partial  bool              // if not everything can be carried, carry as much as possible instead of an error
	Previous *orchestrate.Plan // plan to be replaced with few changes; nil for none
	Churn    int               // interfaces that may change then, -1 for any number; those that have to change may in any case

	Stop func() bool // whether time is up; nil for never, and then only a proof ends the work
}

// Infeasible is a problem without a solution.
type Infeasible struct {
	Interfaces []orchestrate.Unservable // that cannot be served, each by itself
	Together   []string                 // else interfaces that ask for more than the flows that they pass can carry together
	Missing    int64                    // items of them that remain; 0 if only trying everything showed it
}

func (e *Infeasible) Error() string {
	var b strings.Builder
	b.WriteString("infeasible: ")
	const most = 8
	if len(e.Interfaces) > 0 {
		for k, u := range e.Interfaces[:min(most, len(e.Interfaces))] {
			if k > 0 {
				b.WriteString("; ")
			}
			fmt.Fprintf(&b, "interface %q: %s", u.Interface, u.Reason)
		}
		if n := len(e.Interfaces) - most; n > 0 {
			fmt.Fprintf(&b, "; and %d more", n)
		}
		return b.String()
	}
	b.WriteString("interfaces ")
	for k, i := range e.Together[:min(most, len(e.Together))] {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", i)
	}
	if n := len(e.Together) - most; n > 0 {
		fmt.Fprintf(&b, " and %d more", n)
	}
	if e.Missing > 0 {
		fmt.Fprintf(&b, " together have %d items more than the capacity of the flows that pass them", e.Missing)
	} else {
		b.WriteString(" do not fit into the flows that pass them in any way, if demands are not split")
	}
	return b.String()
}

// NotFound is a problem for which no solution was found, and none was shown not to exist.
type NotFound struct {
	Interface string // one that is left
	Missing   int    // how many are
}

func (e *NotFound) Error() string {
	return fmt.Sprintf("no flow was found for %d interfaces, among them %q; a longer time limit, splitting demands or a partial plan may help", e.Missing, e.Interface)
}

// solver is one call of Plan.
type solver struct {
	in    *orchestrate.Problem
	p     *problem
	o     Options
	stop  func() bool
	rnd   opt.SplitMix
	bound int64

	lostBound int64 // of the weight left out of the carryable interfaces, in the units of the problem
	churn     planner.Churn
	splitOut  bool // something is left out where demands may be split, and no less can be
}

// Plan makes a plan. It works until the plan is proven optimal or Stop returns true, which it calls every few
// milliseconds. The heuristics alone, and a first plan, are finished in any case. The same problem, options and number
// of steps give the same plan.
func Plan(in *orchestrate.Problem, o Options) (*orchestrate.Plan, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	switch o.Method {
	case "":
		o.Method = Auto
	case Heuristic, Search, Exact, Auto:
	default:
		return nil, fmt.Errorf("%w: %q is none of %s, %s, %s, %s", ErrMethod, o.Method, Heuristic, Search, Exact, Auto)
	}
	o.Stop = opt.Never(o.Stop)
	s := &solver{in: in, p: newProblem(in), o: o, stop: o.Stop, rnd: opt.SplitMix(o.Seed)}
	bad := in.Unservable()
	if len(bad) > 0 && !o.Partial {
		return nil, &Infeasible{Interfaces: bad}
	}
	var shares []orchestrate.Share
	var err error
	switch {
	case o.Previous != nil:
		shares, err = s.replan()
	case in.Split && in.Objective == orchestrate.Balance:
		shares, err = s.splitBalance()
	case in.Split:
		shares, err = s.splitConcentrate()
	case in.Objective == orchestrate.Balance:
		shares, err = s.balance()
	default:
		shares, err = s.concentrate()
	}
	if err != nil {
		return nil, err
	}
	plan := orchestrate.NewPlan(in, s.algorithm(), shares)
	if plan.Partial {
		if !o.Partial {
			return nil, s.notFound(shares)
		}
		explain(plan, bad)
	}
	leftOut := float64(s.lostBound*s.p.weightScale + s.p.gone)
	if s.splitOut {
		leftOut = plan.Stats.LeftOut
	}
	plan.SetBound(s.bound, leftOut)
	if o.Previous != nil {
		s.churn.Limit = o.Churn
		plan.Churn = &s.churn
		if s.churn.Changed, err = plan.Replace(in, o.Previous); err != nil {
			return nil, err
		}
		s.churn.Forced = min(s.churn.Forced, s.churn.Changed) // some are left out as they were
	}
	return plan, nil
}

func (s *solver) algorithm() string {
	if s.o.Method == Heuristic {
		return "into-" + s.in.Objective + "-" + string(Heuristic)
	}
	return "into-" + s.in.Objective
}

// explain sets the reasons of interfaces that no plan could serve.
func explain(plan *orchestrate.Plan, bad []orchestrate.Unservable) {
	why := make(map[string]string, len(bad))
	for _, u := range bad {
		why[u.Interface] = u.Reason
	}
	for k := range plan.Unserved {
		u := &plan.Unserved[k]
		if reason, ok := why[u.Interface]; ok {
			u.Reason += ": " + reason
		}
	}
}

func (s *solver) notFound(shares []orchestrate.Share) error {
	left := make([]int64, len(s.in.Interfaces))
	for i, d := range s.in.Interfaces {
		left[i] = d.Demand * int64(s.in.Copies())
	}
	for _, h := range shares {
		left[h.Interface] -= h.Items
	}
	e := &NotFound{}
	for i, n := range left {
		if n > 0 {
			if e.Missing == 0 {
				e.Interface = s.in.Interfaces[i].ID
			}
			e.Missing++
		}
	}
	return e
}

// together is the error for interfaces with a higher total demand than there is room. Where demands and rooms were
// divided, and rooms rounded down, the missing number would mislead the reader.
func (s *solver) together(short []int32, missing int64) error {
	if s.p.scale != 1 {
		missing = 0
	}
	return &Infeasible{Together: s.names(short), Missing: missing}
}

func (s *solver) names(ifaces []int32) (names []string) {
	for _, i := range ifaces {
		names = append(names, s.in.Interfaces[i].ID)
	}
	return names
}

// treeCopies is up to how many interfaces, counted as often as they are to be carried, a tree is tried unasked.
const treeCopies = 150

func (s *solver) wantsTree() bool {
	return s.o.Method == Exact || s.o.Method == Auto && s.p.ifaces*s.p.copies <= treeCopies
}

func (p *problem) packed(s *pack) []orchestrate.Share {
	shares := make([]orchestrate.Share, 0, len(s.flow))
	for k, f := range s.flow {
		shares = append(shares, orchestrate.Share{Interface: s.iface[k], Flow: f, Items: p.demand[s.iface[k]]})
	}
	return shares
}

// restore original demands where the problem was normalised.
func (s *solver) shares(best *pack) []orchestrate.Share {
	shares := s.p.packed(best)
	for k := range shares {
		shares[k].Items = s.in.Interfaces[shares[k].Interface].Demand
	}
	return shares
}

// concentrate solves Concentrate for whole interfaces.
func (s *solver) concentrate() ([]orchestrate.Share, error) {
	at := s.p.concentrateHeuristic()
	s.p.normalise()
	p := s.p
	search := newSearch(p, &s.rnd)
	var best pack
	if s.o.Method == Heuristic && p.copies == 1 {
		search.assign(at)
		search.save(&best)
		if search.absent > 0 {
			best = s.partial(&best, s.concentratePart)
			return s.shares(&best), nil
		}
		s.concentrateBound(&best)
		return s.shares(&best), nil
	}
	search.start(at)
	if search.absent > 0 {
		if err := s.fit(search); err != nil {
			return nil, err
		}
		search.save(&best)
		if search.absent > 0 && s.o.Partial {
			best = s.partial(&best, s.concentratePart)
			return s.shares(&best), nil
		}
	}
	search.save(&best)
	if search.absent > 0 {
		s.bound = newBounder(p, false).bound
		return s.shares(&best), nil
	}
	if s.o.Method == Heuristic {
		s.concentrateBound(&best)
		return s.shares(&best), nil
	}
	b := newBounder(p, false)
	b.offerPack(&best)
	s.improve(search, b, &best, math.MaxInt)
	return s.shares(&best), nil
}

// concentrateBound bounds the flows of plans that leave out no more than is allowed.
func (s *solver) concentrateBound(best *pack) {
	b := newBounder(s.p, false)
	b.offerPack(best)
	b.run(math.MaxInt64, int64(best.used), s.stop)
	s.bound = b.bound
}

// concentratePart makes the flows used few where something may be left out. It reports whether it is proven.
func (s *solver) concentratePart(best *pack, turns int) bool {
	search := newSearch(s.p, &s.rnd)
	search.restore(best)
	search.save(best)
	if s.o.Method == Heuristic {
		s.concentrateBound(best)
		return false
	}
	b := newBounder(s.p, false)
	b.offerPack(best)
	s.improve(search, b, best, turns)
	return s.bound >= int64(best.used)
}

const (
	searchEffort = 100_000 // of one turn, about 0.3 ms
	boundEffort  = 500_000 // the same
	firstNodes   = 2_000   // of a tree; every further one may have twice as many
)

// improve takes that many turns at the packing and its bound, about as long at each until the bound is done.
func (s *solver) improve(search *search, b *bounder, best *pack, turns int) {
	var decide *tree
	nodes, turn, next := int64(firstNodes), 0, 0
	for ; b.bound < int64(best.used) && turn < turns && !s.stop(); turn++ {
		before := best.used
		search.tight(float64(b.volume) >= 0.8*b.lp.Cost())
		for end := max(search.effort+searchEffort, b.effort); search.effort < end && int64(len(search.used)) > b.bound && !s.stop(); {
			for range 8 {
				if search.try() {
					search.save(best)
				}
			}
			if s.p.spare() > 0 && search.squeeze() {
				search.save(best)
			}
		}
		if best.used < before {
			b.offerPack(best)
			decide = nil
		}
		b.run(boundEffort, int64(best.used), s.stop)
		if !b.done || b.bound >= int64(best.used) || !s.wantsTree() || turn < next && s.o.Method != Exact {
			continue
		}
		if decide == nil {
			decide = newTree(s.p, s.p.room, best.used-1, b.fair())
		}
		switch decide.search(nodes, s.stop) {
		case possible:
			decide.saveAll(best)
			search.restore(best)
			decide = nil
		case impossible:
			b.bound = max(b.bound, int64(best.used))
		case undecided:
			nodes *= 2
			next = 2*turn + 8
		}
	}
	s.bound = b.bound
}

// fit looks for a place for everything where a first try left something over. Proof that there is none is an error,
// except for partial plans.
func (s *solver) fit(search *search) error {
	p := s.p
	if _, _, short, missing := p.level(slices.Max(p.room), true, s.stop); len(short) > 0 {
		if s.o.Partial {
			return nil
		}
		return s.together(short, missing)
	}
	var keep pack
	search.save(&keep)
	l := newPlacer(search.packing, p.room, &s.rnd)
	t := newTree(p, p.room, p.flows, nil)
	for nodes := int64(firstNodes); !s.stop(); nodes *= 2 {
		if l.run(20*p.ifaces+2000, s.stop) {
			search.trim()
			return nil
		}
		if s.o.Partial && nodes > firstNodes { // others look for it from now on
			break
		}
		switch t.search(nodes, s.stop) {
		case possible:
			t.save(&keep)
			search.restore(&keep)
			return nil
		case impossible:
			search.restore(&keep)
			if s.o.Partial {
				return nil
			}
			return s.hopeless()
		}
	}
	search.restore(&keep)
	return nil
}

// splitConcentrate solves Concentrate where demands may be split.
func (s *solver) splitConcentrate() ([]orchestrate.Share, error) {
	at := s.p.concentrateHeuristic()
	if err := s.splitLoss(); err != nil {
		return nil, err
	}
	p := s.p
	sp := newSplitter(p, &s.rnd)
	b := newBounder(p, true)
	s.bound = b.bound
	for _, f := range at { // whole interfaces are a start
		if f != none && sp.pos[f] == none {
			sp.use(f)
		}
	}
	sp.complete(math.MaxInt) // which splitLoss made sure of
	b.offerTransport(sp.transport, sp.used)
	var decide *splitTree
	nodes, turn, next := int64(firstNodes), 0, 0
	for ; s.o.Method != Heuristic && b.bound < int64(len(sp.used)) && !s.stop(); turn++ {
		for end := max(sp.Effort+searchEffort, b.effort); sp.Effort < end && b.bound < int64(len(sp.used)) && !s.stop(); {
			if sp.try() {
				b.offerTransport(sp.transport, sp.used)
				decide = nil
			}
		}
		b.run(boundEffort, int64(len(sp.used)), s.stop)
		if !b.done || b.bound >= int64(len(sp.used)) || !s.wantsTree() || turn < next && s.o.Method != Exact {
			continue
		}
		if decide == nil {
			decide = newSplitTree(p, len(sp.used)-1, b.fair())
		}
		switch decide.search(nodes, s.stop) {
		case possible:
			sp.replace(decide.used)
			decide = nil
		case impossible:
			b.bound = max(b.bound, int64(len(sp.used)))
		case undecided:
			nodes *= 2
			next = 2*turn + 8
		}
	}
	if s.o.Method == Heuristic {
		b.run(math.MaxInt64, int64(len(sp.used)), s.stop)
	}
	s.bound = b.bound
	return sp.shares(sp.used), nil
}
