package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/schedule"
)

// spread moves phases within what the links allow, so that an agent starts few probes in a slot, and far apart. Fixed
// ones stay, unless links would not be seen in time then; nil is none. It returns a bound of the most starts of an
// agent in a slot, for these intervals.
func (p *planning) spread(c *core, t schedule.Times, fixed []bool) (bound int) {
	r := p.r
	x := &spreading{r: r, c: c, t: t, stop: p.o.Stop, fixed: fixed, turns: make([][]int32, len(r.Probes))}
	if fixed == nil {
		x.fixed = make([]bool, len(r.Probes))
	}
	for k := range c.rows {
		row := &c.rows[k]
		alone, many := false, 0
		for _, p := range row.probes {
			if i := t.Interval[p]; i > 0 {
				many++
				alone = alone || i <= int(row.period)*r.Base
			}
		}
		if !alone && many > 1 {
			for _, p := range row.probes {
				if t.Interval[p] > 0 {
					x.turns[p] = append(x.turns[p], int32(k))
				}
			}
		}
	}
	x.settle(p.sum)
	lists := make([][]int32, len(r.Agents)+1) // the last is of probes without an agent
	for p := range r.Probes {
		if t.Interval[p] == 0 {
			continue
		}
		a := int(r.Probes[p].Agent)
		if a < 0 {
			a = len(r.Agents)
		}
		lists[a] = append(lists[a], int32(p))
	}
	agents := 0
	for a, list := range lists {
		if len(list) == 0 {
			continue
		}
		b := x.agent(list)
		if x.rotate(list, agents); a < len(r.Agents) {
			bound = max(bound, b)
		}
		agents++
	}
	return bound
}

// settle makes phases of probes that take turns such that links are seen in time. Where the phase of a fixed probe does
// not fit the others, all of them get the coarse phases, which do.
func (x *spreading) settle(s *state) {
	for p := range x.turns {
		if len(x.turns[p]) > 0 && !x.inTime(int32(p)) {
			for q := range x.turns {
				if len(x.turns[q]) > 0 {
					x.t.Phase[q], x.fixed[q] = int(s.phase[q])*x.r.Base, false
				}
			}
			return
		}
	}
}

// rotate moves all probes of an agent by the same time, so that agents do not start together. The golden ratio spreads any
// number of agents about evenly.
func (x *spreading) rotate(list []int32, agent int) {
	repeat := 1
	for _, p := range list {
		if len(x.turns[p]) > 0 || x.fixed[p] {
			return
		}
		repeat = repeat / opt.GCD(repeat, x.t.Interval[p]) * x.t.Interval[p]
	}
	_, part := math.Modf(float64(agent) * 0.6180339887498949)
	by := int(part * float64(repeat))
	for _, p := range list {
		x.t.Phase[p] = (x.t.Phase[p] + by) % x.t.Interval[p]
	}
}

type spreading struct {
	r     *schedule.Resolved
	c     *core
	t     schedule.Times
	fixed []bool    // by probe: stays
	turns [][]int32 // by probe: rows that it sees together with others
	stop  func() bool
	times []int
}

// agent places the probes of one agent. Those that take turns with others stay where they are, or move a little.
func (x *spreading) agent(list []int32) (bound int) {
	slices.SortStableFunc(list, func(a, b int32) int { return x.t.Interval[a] - x.t.Interval[b] })
	repeat, starts, even := 1, 0, true
	for _, p := range list {
		i := x.t.Interval[p]
		repeat = repeat / opt.GCD(repeat, i) * i
		even = even && x.free(p) && i == x.t.Interval[list[0]]
	}
	for _, p := range list {
		starts += repeat / x.t.Interval[p]
	}
	bound = (starts + repeat - 1) / repeat
	if even { // all alike: evenly over the interval
		for k, p := range list {
			x.t.Phase[p] = int(int64(k) * int64(repeat) / int64(len(list)))
		}
		return bound
	}
	old := make([]int, len(list))
	for k, p := range list {
		old[k] = x.t.Phase[p]
	}
	for apart := repeat / starts; apart >= 1; apart-- {
		if x.apart(list, apart) {
			return bound
		}
		for k, p := range list {
			x.t.Phase[p] = old[k]
		}
		if apart > 8 {
			apart -= apart / 8
		}
		if x.stop() {
			break
		}
	}
	x.balance(list, repeat)
	return bound
}

// free reports whether p can have any phase.
func (x *spreading) free(p int32) bool { return len(x.turns[p]) == 0 && !x.fixed[p] }

// apart places probes, those of the shortest intervals first, such that all starts are that many slots apart. It
// reports false if that fails.
func (x *spreading) apart(list []int32, apart int) bool {
	var placed []int32
	for _, first := range [...]bool{true, false} { // those that take turns have less choice
		for _, p := range list {
			if x.free(p) == first {
				continue
			}
			i := x.t.Interval[p]
			if i < apart {
				return false
			}
			blocked := x.blocked(placed, i, apart)
			if !x.place(p, func(phase int) bool { return blocked[phase] == 0 }) {
				return false
			}
			placed = append(placed, p)
		}
	}
	return true
}

// blocked counts by phase of an interval the starts of placed probes that are nearer than apart.
func (x *spreading) blocked(placed []int32, interval, apart int) []int {
	count := make([]int, interval+1)
	for _, q := range placed {
		g := opt.GCD(interval, x.t.Interval[q])
		if 2*apart-1 >= g { // everywhere
			count[0]++
			continue
		}
		for s := x.t.Phase[q] % g; s < interval; s += g {
			from, to := s-apart+1, s+apart
			if from < 0 {
				count[from+interval]++
				count[interval]--
				from = 0
			}
			if to > interval {
				count[0]++
				count[to-interval]--
				to = interval
			}
			count[from]++
			count[to]--
		}
	}
	for s := 1; s <= interval; s++ {
		count[s] += count[s-1]
	}
	return count[:interval]
}

// place sets p to the first phase from its own on that is good and in which all links of p are still seen in time.
func (x *spreading) place(p int32, good func(phase int) bool) bool {
	now, i := x.t.Phase[p], x.t.Interval[p]
	if x.fixed[p] {
		return good(now)
	}
	tries := 0
	for k := range i {
		phase := (now + k) % i
		if !good(phase) {
			continue
		}
		if x.t.Phase[p] = phase; len(x.turns[p]) == 0 || k == 0 || x.inTime(p) {
			return true
		}
		if tries++; tries == 256 {
			break
		}
	}
	x.t.Phase[p] = now
	return false
}

// inTime reports whether all rows that p sees together with others are seen in time.
func (x *spreading) inTime(p int32) bool {
	for _, k := range x.turns[p] {
		row := &x.c.rows[k]
		repeat := 1
		for _, q := range row.probes {
			if i := x.t.Interval[q]; i > 0 {
				repeat = repeat / opt.GCD(repeat, i) * i
			}
		}
		x.times = x.times[:0]
		for _, q := range row.probes {
			if i := x.t.Interval[q]; i > 0 {
				for s := x.t.Phase[q]; s < repeat; s += i {
					x.times = append(x.times, s)
				}
			}
		}
		slices.Sort(x.times)
		last := x.times[len(x.times)-1] - repeat
		for _, s := range x.times {
			if s-last > int(row.period)*x.r.Base {
				return false
			}
			last = s
		}
	}
	return true
}

// balance places probes, those of the shortest intervals first, in the slots that have fewest starts.
func (x *spreading) balance(list []int32, repeat int) {
	load := make([]int, repeat)
	for _, first := range [...]bool{true, false} {
		for _, p := range list {
			if x.free(p) == first {
				continue
			}
			i := x.t.Interval[p]
			worst := make([]int, i)
			least := int(^uint(0) >> 1)
			for s, n := range load {
				worst[s%i] = max(worst[s%i], n)
			}
			for _, n := range worst {
				least = min(least, n)
			}
			for level := least; !x.place(p, func(phase int) bool { return worst[phase] <= level }) && level < len(list); {
				level++
			}
			for s := x.t.Phase[p]; s < repeat; s += i {
				load[s]++
			}
		}
	}
}
