// Package solve finds intervals and phases for the probes of a schedule.
//
// Links that the same probes pass count once. A probe that passes a link alone has to be sent at least as often as that
// link is to be seen. Links seen by such probes are settled. The rest falls into pieces, which are solved one by one.
// The steps are a greedy start, a Lagrangian bound of a linear program for all phases, local search, and branch and
// bound over intervals and phases. Phases are then spread in slots, agent by agent, and probes that take turns are
// moved together. Until then intervals and phases are sought in bases, since rounding phases down to the base lengthens no
// gap.
//
// The bound: a window as long as a link's period contains a start of a probe of interval I with probability min(1, period/I),
// and these add up to at least 1 for each link.
package solve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/schedule"
)

// Options are the options of [Plan].
type Options struct {
	Seed     uint64
	Stop     func() bool    // ends the search with the best found; nil for never
	Partial  bool           // leave out links that cannot be seen in time, rather than fail
	Previous *schedule.Plan // keep this plan's times of probes, as far as Churn asks; nil for a new plan
	Churn    int            // most probes that may change against Previous; below 0 for any number
}

// The kinds of errors that callers test.
var (
	ErrNoProbe = errors.New("is on no probe")
	ErrLimit   = errors.New("cannot be seen in time")
)

// Plan finds intervals and phases for the probes of p.
func Plan(p *schedule.Problem, o Options) (*schedule.Plan, error) {
	r, err := p.Resolve()
	if err != nil {
		return nil, err
	}
	o.Stop = opt.Never(o.Stop)
	x := &planning{r: r, o: o, rng: rand.New(rand.NewPCG(o.Seed, 1)), reason: make([]string, len(r.Links)), skip: make([]bool, len(r.Links))}
	c, err := x.seeable()
	if err != nil {
		return nil, err
	}
	x.sum = c.newState()
	if err := x.solve(c); err != nil {
		return nil, err
	}
	if o.Previous != nil {
		return x.replan(c)
	}
	times := x.times(c)
	return x.plan(times, x.spread(c, times, nil)), nil
}

// planning is a plan in the making.
type planning struct {
	r      *schedule.Resolved
	o      Options
	rng    *rand.Rand
	skip   []bool   // by link: certainly not seen in time
	reason []string // by link, where it is not seen
	sum    *state   // of the whole core

	bytesBound int64
	leftBound  float64
	unproven   bool
	nodes      int
}

// seeable makes the core of the links that are not certainly left unseen.
func (x *planning) seeable() (*core, error) {
	c := newCore(x.r, nil)
	on := make([]bool, len(x.r.Links))
	first, count, kind := -1, 0, ErrNoProbe
	out := func(l int32, reason string, err error) {
		if x.skip[l], x.reason[l] = true, reason; first < 0 {
			first, kind = int(l), err
		}
		x.leftBound += x.r.Links[l].Weight
		count++
	}
	for k := range c.rows {
		what := c.tooMuch(int32(k))
		for _, l := range c.rows[k].links {
			if on[l] = true; what != "" {
				out(l, "the limit of "+what+" leaves no room to see it in time", ErrLimit)
			}
		}
	}
	for l := range on {
		if !on[l] && x.r.Links[l].Period > 0 {
			out(int32(l), "no probe passes it", ErrNoProbe)
		}
	}
	switch {
	case count == 0:
		return c, nil
	case x.o.Partial:
		return newCore(x.r, x.skip), nil
	}
	more := ""
	if count > 1 {
		more = fmt.Sprintf("; %d more links cannot be seen in time", count-1)
	}
	link := &x.r.Links[first]
	if kind == ErrNoProbe {
		return nil, fmt.Errorf("schedule: link %s %w%s", link.Name, kind, more)
	}
	return nil, fmt.Errorf("schedule: link %s %w, every %v ms: %s%s", link.Name, kind, x.r.Millis(link.Period), x.reason[first], more)
}

// tooMuch names a limit that keeps row k from being seen in time by whatever probes, if nothing else is sent.
func (c *core) tooMuch(k int32) (what string) {
	row := &c.rows[k]
	looks := 0.0
	for _, p := range row.probes {
		most := float64(c.starts(c.grid[0]))
		for _, u := range c.uses[p] {
			l := &c.caps[u.limit]
			if n := l.room * (1 + 1e-12) / u.bytes; n < most {
				most, what = n, l.what
			}
		}
		// An interval that divides the hyperperiod: the number of starts is one of the grid.
		starts := int64(0)
		for _, i := range c.grid {
			if float64(c.starts(i)) <= most {
				starts = c.starts(i)
				break
			}
		}
		looks += float64(starts)
	}
	if looks*float64(row.period) >= float64(c.n) {
		return ""
	}
	return what
}

// solve finds intervals and coarse phases for c.
func (x *planning) solve(c *core) error {
	type group struct {
		whole  *part
		pieces []*piece
		parts  []*part
	}
	var groups []*group
	var all []*piece
	for _, w := range c.parts() {
		m := w.mustSee()
		m.reduce()
		g := &group{whole: w}
		for _, q := range m.parts() {
			g.parts, g.pieces = append(g.parts, q), append(g.pieces, &piece{core: &q.core})
		}
		for p := range m.cost {
			if len(m.on[p]) == 0 && len(m.uses[p]) == 0 && m.must[p] { // decided
				c.set(x.sum, w.probes[p], m.slow[p], 0)
				x.bytesBound += m.cost[p] * m.starts(m.slow[p])
			}
		}
		groups, all = append(groups, g), append(all, g.pieces...)
	}
	for _, q := range all {
		q.first(x.o.Stop)
	}
	bySize := slices.Clone(all)
	slices.SortStableFunc(bySize, func(a, b *piece) int { return len(a.cost) - len(b.cost) })
	for _, q := range bySize {
		switch {
		case q.best == nil || x.o.Previous == nil || x.o.Churn < 0:
			q.more(x.rng, x.o.Stop)
		case !q.proven && len(q.rows) <= smallRows: // the time is for plans near the older one
			q.search(fewNodes, x.o.Stop)
		}
	}
	for _, g := range groups {
		if i := slices.IndexFunc(g.pieces, func(q *piece) bool { return q.best == nil }); i >= 0 {
			if !x.o.Partial {
				return x.infeasible(g.pieces[i])
			}
			if err := x.leaveOut(c, g.whole); err != nil {
				return err
			}
			continue
		}
		for i, q := range g.pieces {
			x.adopt(c, q, func(p int32) int32 { return g.whole.probes[g.parts[i].probes[p]] })
		}
	}
	return nil
}

// adopt makes the best state of a piece part of the whole.
func (x *planning) adopt(c *core, q *piece, number func(p int32) int32) {
	q.settle()
	for p, i := range q.best.interval {
		c.set(x.sum, number(int32(p)), i, q.best.phase[p])
	}
	x.bytesBound += q.bytesBound
	x.leftBound += q.leftBound
	x.unproven = x.unproven || !q.proven
	x.nodes += q.nodes
}

// leaveOut solves a part in which not all can be seen, or no way was found to see all.
func (x *planning) leaveOut(c *core, w *part) error {
	for p := range w.cost { // decisions for seeing all
		if k := w.probes[p]; x.sum.interval[k] > 0 {
			x.bytesBound -= c.cost[k] * c.starts(x.sum.interval[k])
			c.set(x.sum, k, 0, 0)
		}
	}
	w.partial = true
	q := &piece{core: &w.core}
	q.first(x.o.Stop)
	q.more(x.rng, x.o.Stop)
	x.adopt(c, q, func(p int32) int32 { return w.probes[p] })
	for r, seen := range q.best.seen {
		if !seen {
			for _, l := range w.rows[r].links {
				x.reason[l] = noRoom
			}
		}
	}
	return nil
}

// infeasible is the error of a piece in which not all can be seen.
func (x *planning) infeasible(q *piece) error {
	s := q.newState()
	for p := range q.cost {
		if q.must[p] {
			q.set(s, int32(p), q.slow[p], 0)
		}
	}
	for k := range q.caps {
		if l := &q.caps[k]; s.used[k] > l.room*(1+1e-12) {
			return fmt.Errorf("schedule: some links %w: %s would be %.6g bit/s, at most %.6g are allowed, and no other probe can take over",
				ErrLimit, l.what, x.bps(s.used[k]), x.bps(l.room))
		}
	}
	s, _ = q.begin()
	worth := make([]float64, len(q.rows))
	for r := range worth {
		worth[r] = 1
	}
	q.greedy(s, worth)
	name, count := "", 0
	for r, seen := range s.seen {
		if !seen {
			count++
			if name == "" {
				name = x.r.Links[q.rows[r].links[0]].Name
			}
		}
	}
	tight, most := "", -1.0
	for k := range q.caps {
		if share := s.used[k] / q.caps[k].room; share > most {
			tight, most = q.caps[k].what, share
		}
	}
	how := "no schedule was found in time that sees all"
	if q.proven {
		how = "no schedule sees all"
	}
	if name == "" {
		return fmt.Errorf("schedule: some links %w within the limits: %s; the tightest is that of %s", ErrLimit, how, tight)
	}
	return fmt.Errorf("schedule: some links %w within the limits, such as %s: %s; the tightest is that of %s", ErrLimit, name, how, tight)
}

const noRoom = "the limits leave no room to see it in time beside others"

// bps turns the bytes of a hyperperiod into bits per second.
func (x *planning) bps(bytes float64) float64 { return 8 * bytes / x.r.Seconds(x.r.Hyper) }

// times are the intervals and coarse phases that were found, in slots.
func (x *planning) times(c *core) schedule.Times {
	times := schedule.Times{Interval: make([]int, len(c.cost)), Phase: make([]int, len(c.cost))}
	for p, i := range x.sum.interval {
		times.Interval[p], times.Phase[p] = int(i)*x.r.Base, int(x.sum.phase[p])*x.r.Base
	}
	return times
}

// plan makes a plan of the result. In any plan of these intervals, at least peak probes of an agent start in one slot.
func (x *planning) plan(times schedule.Times, peak int) *schedule.Plan {
	plan := schedule.NewPlan(x.r, "lagrange", times)
	names := make(map[string]string, len(x.reason))
	for l, reason := range x.reason {
		if reason != "" {
			names[x.r.Links[l].Name] = reason
		}
	}
	for k := range plan.NotSeen {
		if plan.NotSeen[k].Reason = names[plan.NotSeen[k].Link]; plan.NotSeen[k].Reason == "" {
			plan.NotSeen[k].Reason = noRoom
		}
	}
	s := &plan.Stats
	s.PeakBound, s.Nodes = min(peak, s.Peak), x.nodes
	s.LowerBound = min(float64(x.bytesBound)/x.r.Seconds(x.r.Hyper), s.Objective)
	s.LeftOutBound = min(x.leftBound, s.LeftOut)
	s.Optimal = !x.unproven && planner.Near(s.LowerBound, s.Objective) && planner.Near(s.LeftOutBound, s.LeftOut)
	return plan
}
