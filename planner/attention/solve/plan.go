package solve

import (
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/opt"
)

// Method is a way to choose the probes that measure in detail.
type Method string

// The methods.
const (
	Exact       Method = "exact"        // the least cost, proven
	Greedy      Method = "greedy"       // most newly covered links per cost
	GreedyLinks Method = "greedy-links" // most newly covered links, whatever the cost
	FANTH       Method = "fant-h"       // the search as published
)

// Methods lists the methods.
var Methods = []Method{Exact, Greedy, GreedyLinks, FANTH}

// Options are the options of [Plan].
type Options struct {
	Method      Method      // Exact if empty
	Alpha, Beta float64     // FANTH: acceleration factors, 0 to 1; both 0 for the least cost
	Stop        func() bool // ends the search with the best found; nil for never
	Partial     bool        // leave out suspicious links that are on no probe, rather than fail

	// Previous is the present plan of the network. At most Churn of its probes are turned on or off, or any number if
	// Churn is negative. If new suspicious links force more changes, as few as possible are made.
	Previous *attention.Plan
	Churn    int
}

// The kinds of errors that callers test.
var (
	ErrNoProbe = errors.New("is on no probe")
	ErrMethod  = errors.New("cannot be planned so")
)

// Plan chooses the probes of p that measure in detail.
//
// With a previous plan, the problem's list of detailed probes is taken from there.
func Plan(p *attention.Problem, o Options) (*attention.Plan, error) {
	if o.Previous != nil {
		p = p.After(o.Previous)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	// Only suspicious links need numbers.
	number := make(map[string]int32, len(p.Suspicious))
	var suspicious []int32
	for _, l := range p.Suspicious {
		if _, ok := number[l]; !ok {
			number[l] = int32(len(number))
			suspicious = append(suspicious, number[l])
		}
	}
	probes, cost := make([][]int32, len(p.Probes)), make([]float64, len(p.Probes))
	detailed := make(map[string]bool, len(p.Detailed))
	for _, name := range p.Detailed {
		detailed[name] = true
	}
	now := make([]int32, 0, len(p.Detailed))
	var on []int32 // of all probes, one behind the other
	for k := range p.Probes {
		t := &p.Probes[k]
		cost[k] = t.Cost
		if detailed[t.ID] {
			now = append(now, int32(k))
		}
		first := len(on)
		for _, l := range t.Links {
			if i, ok := number[l]; ok {
				on = append(on, i)
			}
		}
		probes[k] = on[first:len(on):len(on)]
	}
	t := NewTraces(len(number), probes, cost, p.SwitchCost)
	var missing []string
	listed := make([]bool, len(number))
	for _, l := range p.Suspicious {
		if k := number[l]; len(t.Through(k)) == 0 && !listed[k] {
			listed[k] = true
			missing = append(missing, l)
		}
	}
	if len(missing) > 0 && !o.Partial {
		more := ""
		if len(missing) > 1 {
			more = fmt.Sprintf(", and so are %d more", len(missing)-1)
		}
		return nil, fmt.Errorf("attention: suspicious link %s %w%s", missing[0], ErrNoProbe, more)
	}
	r, err := t.Switch(suspicious, now, o)
	if err != nil {
		return nil, err
	}
	plan := attention.NewPlan(p, string(r.Method), r.Probes)
	plan.OnNoProbe, plan.Partial = missing, len(missing) > 0
	s := &plan.Stats
	for _, l := range missing {
		s.LeftOut += p.Weight(l)
	}
	s.LeftOutBound = s.LeftOut // no plan does better
	if o.Previous != nil {
		plan.Churn = &planner.Churn{Limit: max(o.Churn, -1), Changed: s.Changes, Forced: min(r.Forced, s.Changes)}
		if err := plan.Renumber(p, o.Previous); err != nil {
			return nil, fmt.Errorf("attention: %w", err)
		}
	}
	s.Optimal, s.Nodes, s.LowerBound = r.Optimal, r.Nodes, min(r.LowerBound, s.Objective)
	if s.Optimal {
		s.LowerBound = s.Objective
	}
	return plan, nil
}

// Choice is the result of Switch.
type Choice struct {
	Method     Method
	Probes     []int32 // that measure in detail
	LowerBound float64 // of the cost with changes
	Optimal    bool
	Nodes      int // of the search
	Forced     int // after a previous plan, the fewest changes of any choice
}

// Switch chooses the probes that measure in detail for one measurement cycle, after one in which the detailed ones did.
// Suspicious links that are on no probe are left out.
func (t *Traces) Switch(suspicious, detailed []int32, o Options) (*Choice, error) {
	if o.Method == "" {
		o.Method = Exact
	}
	o.Stop = opt.Never(o.Stop)
	if !(o.Alpha >= 0 && o.Alpha <= 1 && o.Beta >= 0 && o.Beta <= 1) {
		return nil, fmt.Errorf("attention: acceleration factors %v and %v %w: they lie between 0 and 1", o.Alpha, o.Beta, ErrMethod)
	}
	if o.Previous != nil && o.Churn >= 0 {
		if o.Method != Exact {
			return nil, fmt.Errorf("attention: a limit of changes %w as %q: only method %q keeps it", ErrMethod, o.Method, Exact)
		}
		return t.switchWithin(suspicious, detailed, o.Churn, o.Stop), nil
	}
	c, probes, stay := t.rows(suspicious, detailed)
	r := &Choice{Method: o.Method}
	var w *within
	if o.Previous != nil {
		w = newWithin(t, suspicious, detailed, 0, o.Stop)
		few, _ := w.at(w.most, make([]int8, len(t.cost)))
		r.Forced = few.changes
	}
	var cols []int32
	var bound int64
	switch o.Method {
	case Exact:
		cols, bound, r.Nodes = exact(c, o.Stop)
	case Greedy, GreedyLinks:
		cols = greedy(c, o.Method == Greedy)
		bound = rootBound(c, o.Stop)
	case FANTH:
		var proven bool
		cols, r.Nodes, proven = fantH(c, o.Alpha, o.Beta, o.Stop)
		if bound = c.total(cols); !proven {
			bound = rootBound(c, o.Stop)
		}
	default:
		return nil, fmt.Errorf("attention: method %q %w: there are %v", o.Method, ErrMethod, Methods)
	}
	cost := c.total(cols)
	r.Optimal = bound >= cost
	for _, k := range cols {
		r.Probes = append(r.Probes, probes[k])
	}
	r.Probes = append(r.Probes, stay...)
	bound += t.change * int64(len(detailed)-len(stay))
	for _, p := range stay {
		bound += t.cost[p]
	}
	r.LowerBound = float64(bound) / t.unit
	if w != nil && o.Method == Exact && r.Optimal {
		r.Probes = w.fewest(r.Probes)
	}
	return r, nil
}

// total adds up the costs of columns.
func (c *cover) total(cols []int32) (sum int64) {
	for _, k := range cols {
		sum += c.cost[k]
	}
	return sum
}

// rootBound is a lower bound without search.
func rootBound(c *cover, stop func() bool) (bound int64) {
	d := newReducer(c)
	if !d.run() {
		return unlimited
	}
	bound = c.total(d.taken)
	for _, p := range d.parts() {
		r := relax(&p.cover)
		if r.bound < r.cost && r.manyLong(p) {
			d := newDual(&p.cover)
			d.ascend()
			d.improve(r.cost, 300, 1, stop)
			r.bound = max(r.bound, d.bound())
		}
		bound += r.bound
	}
	return bound
}
