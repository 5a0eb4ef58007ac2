package solve

import (
	"math"

	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/schedule"
)

// replan makes a plan that keeps intervals and phases of an older one. It begins with the older plan, and changes as
// few probes as it can find so that links are seen. Then it improves as long as no more probes than the limit are
// different. Without a limit of changes it has the best intervals that were found, near the older plan or not.
func (x *planning) replan(c *core) (*schedule.Plan, error) {
	old := x.older()
	forced := 0 // probes that are not there any more change by themselves
	for _, there := range old.there {
		if !there {
			forced++
		}
	}
	x.sum, forced = x.fewChanges(c, old, x.sum, forced)
	times, fixed := x.times(c), make([]bool, len(c.cost))
	for p, i := range times.Interval {
		if i > 0 && i == old.Interval[p] && int(x.sum.phase[p]) == old.Phase[p]/x.r.Base {
			times.Phase[p], fixed[p] = old.Phase[p], true
		}
	}
	x.meet(c, times, fixed)
	plan := x.plan(times, x.spread(c, times, fixed))
	before, _ := schedule.Elements(x.r, x.o.Previous)
	after, capacity := schedule.Elements(x.r, plan)
	if err := plan.Replace(before, after, capacity); err != nil {
		return nil, err
	}
	switch n := plan.Transition.Churn(); {
	case x.o.Churn < 0:
		forced = 0 // not looked for
	case n > max(x.o.Churn, forced): // phases had to move
		forced = n
	default:
		forced = min(forced, n) // phases stayed after all
	}
	plan.Count(x.o.Churn, forced)
	return plan, nil
}

// olderTimes are intervals and phases of an older plan, by the probes of the problem.
type olderTimes struct {
	schedule.Times
	there []bool // by probe of the plan: the problem has it
}

// older reads the older plan. Invalid intervals and phases count as not sent.
func (x *planning) older() olderTimes {
	old := olderTimes{schedule.Times{Interval: make([]int, len(x.r.Probes)), Phase: make([]int, len(x.r.Probes))}, make([]bool, len(x.o.Previous.Probes))}
	index := opt.Index[schedule.ResolvedProbe, int](x.r.Probes, func(p *schedule.ResolvedProbe) string { return p.ID })
	for k := range x.o.Previous.Probes {
		e := &x.o.Previous.Probes[k]
		p, ok := index[e.ID]
		if old.there[k] = ok; !ok {
			continue
		}
		interval, phase := math.Round(e.Interval/x.r.Slot), math.Round(e.Phase/x.r.Slot)
		if !(interval >= 1 && interval <= float64(x.r.Hyper) && phase >= 0 && phase < interval) || math.Abs(interval*x.r.Slot-e.Interval) > 1e-6*x.r.Slot {
			continue
		}
		for _, i := range x.r.Grid {
			if i == int(interval) {
				old.Interval[p], old.Phase[p] = i, int(phase)
			}
		}
	}
	return old
}

// fewChanges finds a state near the older plan, of which that many probes are gone. It returns the number of forced
// changes, including those.
func (x *planning) fewChanges(c *core, old olderTimes, fresh *state, gone int) (s *state, forced int) {
	before := c.newState()
	for p, i := range old.Interval {
		before.interval[p], before.phase[p] = int32(i/x.r.Base), int32(old.Phase[p]/x.r.Base)
	}
	s = c.newState()
	for p, i := range before.interval {
		if i > 0 && c.fits(s, int32(p), i) { // where a limit is lower now, the last ones are not sent
			c.set(s, int32(p), i, before.phase[p])
		}
	}
	changed := func(s *state) int {
		n := gone
		for p, i := range s.interval {
			if i != before.interval[p] || i > 0 && s.phase[p] != before.phase[p] {
				n++
			}
		}
		return n
	}
	// First what must change: each time the probe that sees most more, in the way of the best plan if that sees as much.
	c.partial = true
	for s.left > fresh.left+tolerance(fresh.left) {
		p, interval, phase := c.mostSeen(s, fresh)
		if p < 0 || x.o.Stop() {
			break
		}
		c.set(s, p, interval, phase)
	}
	if s.left > fresh.left+tolerance(fresh.left) {
		worth := make([]float64, len(c.rows))
		for r := range worth {
			worth[r] = c.rows[r].weight
		}
		c.greedy(s, worth)
	}
	if s.left > fresh.left+tolerance(fresh.left) { // limits are in the way: only the best plan is known to do
		s = c.towards(s, fresh)
	}
	forced = changed(s)
	if x.o.Churn < 0 {
		if fresh.better(s) {
			s = fresh
		}
		c.settle(s, before)
		return s, forced
	}
	if forced >= x.o.Churn {
		return s, forced
	}
	kept := s.clone()
	all := opt.Ascending[int32](len(c.cost))
	allowed := func() bool { return changed(s) <= x.o.Churn }
	c.nearby(s, fresh, allowed, all, x.o.Stop)
	c.improveWithin(s, x.bytesBound, 4000+60*len(c.cost), allowed, x.rng, x.o.Stop)
	if changed(fresh) <= x.o.Churn && fresh.better(s) {
		s = fresh
	}
	if !s.better(kept) {
		s = kept
	}
	c.settle(s, before)
	return s, forced
}

// settle restores the former times of probes, one at a time, where this makes nothing worse.
func (c *core) settle(s, before *state) {
	for changed := true; changed; {
		changed = false
		for k, i := range before.interval {
			p, now, at := int32(k), s.interval[k], s.phase[k]
			if now == i && (i == 0 || at == before.phase[k]) || i > 0 && !c.fits(s, p, i) {
				continue
			}
			left, cost := s.left, s.cost
			c.set(s, p, i, before.phase[k])
			if s.left > left+tolerance(left) || s.cost > cost {
				c.set(s, p, now, at)
				continue
			}
			changed = true
		}
	}
}

// mostSeen finds the change of one probe after which most weight is seen, and of these the cheapest.
func (c *core) mostSeen(s, fresh *state) (probe, interval, phase int32) {
	probe = -1
	var gain, cost float64
	seen := map[int32]bool{}
	for r := range c.rows {
		if s.seen[r] {
			continue
		}
		for _, p := range c.rows[r].probes {
			if seen[p] {
				continue
			}
			seen[p] = true
			now, at, left := s.interval[p], s.phase[p], s.left
			try := func(i, f int32) {
				if i == 0 || !c.fits(s, p, i) {
					return
				}
				c.set(s, p, i, f)
				g, b := left-s.left, float64((c.starts(i)-c.starts(now))*c.cost[p])
				if g > tolerance(left) && (probe < 0 || g > gain+tolerance(gain) || g > gain-tolerance(gain) && b < cost) {
					probe, interval, phase, gain, cost = p, i, f, g, b
				}
				c.set(s, p, now, at)
			}
			try(fresh.interval[p], fresh.phase[p])
			for _, i := range c.grid {
				try(i, at%i)
			}
		}
	}
	return probe, interval, phase
}

// towards goes from s to fresh, probe by probe. Reductions come first, so that there is room for increases.
func (c *core) towards(s, fresh *state) *state {
	best := s
	s = s.clone()
	for _, less := range [...]bool{true, false} {
		for p := range c.cost {
			i, f := fresh.interval[p], fresh.phase[p]
			if less == (c.starts(i) <= c.starts(s.interval[p])) && (i != s.interval[p] || f != s.phase[p]) {
				c.set(s, int32(p), i, f)
			}
		}
	}
	if !s.better(best) {
		return best
	}
	return s
}

// nearby sets probes to the intervals of the best plan, one or two at a time, as long as this is allowed and saves
// bytes.
func (c *core) nearby(s, fresh *state, allowed func() bool, all []int32, stop func() bool) {
	for changed := true; changed && !stop(); {
		changed = false
		for _, p := range all {
			now, at, left, cost := s.interval[p], s.phase[p], s.left, s.cost
			if now == 0 {
				continue
			}
			var log []change
			c.lowerOne(s, p, &log)
			switch {
			case len(log) == 0:
			case s.cost < cost && s.left <= left+tolerance(left) && allowed():
				changed = true
			default:
				c.set(s, p, now, at)
			}
		}
		for _, p := range all { // one is sent more often, as in the best plan, and others more seldom
			if c.starts(fresh.interval[p]) <= c.starts(s.interval[p]) || !c.fits(s, p, fresh.interval[p]) {
				continue
			}
			left, cost := s.left, s.cost
			log := []change{{p, s.interval[p], s.phase[p]}}
			c.set(s, p, fresh.interval[p], fresh.phase[p])
			done := map[int32]bool{p: true}
			for _, r := range c.on[p] {
				for _, q := range c.rows[r].probes {
					if !done[q] {
						done[q] = true
						c.lowerOne(s, q, &log)
						if !allowed() {
							k := len(log) - 1
							c.set(s, log[k].probe, log[k].interval, log[k].phase)
							log = log[:k]
							break
						}
					}
				}
			}
			if len(log) > 0 && s.cost < cost && s.left <= left+tolerance(left) && allowed() {
				changed = true
				continue
			}
			for k := len(log) - 1; k >= 0; k-- {
				c.set(s, log[k].probe, log[k].interval, log[k].phase)
			}
		}
	}
}

// meet moves probes that take turns with a fixed one to its place within the base.
func (x *planning) meet(c *core, t schedule.Times, fixed []bool) {
	for k := range c.rows {
		offset := -1
		for _, p := range c.rows[k].probes {
			if fixed[p] && t.Interval[p] > 0 {
				offset = t.Phase[p] % x.r.Base
			}
		}
		for _, p := range c.rows[k].probes {
			if offset >= 0 && !fixed[p] && t.Interval[p] > 0 {
				t.Phase[p] = t.Phase[p]/x.r.Base*x.r.Base + offset
			}
		}
	}
}
