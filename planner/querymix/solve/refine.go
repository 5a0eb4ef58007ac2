package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/querymix"
)

// offer solves for one item a query, and keeps the choice if its rate is the highest so far.
func (s *search) offer(items []item) {
	if c := s.fixed(items); c != nil && (s.best == nil || c.prices.rate > s.best.prices.rate) {
		s.best = c
	}
}

// fixed finds the highest rate for one item a query; nil if there is no mix.
func (s *search) fixed(items []item) *choice {
	sol := s.mix(items, s.floor, s.pursue)
	if sol == nil || sol.lacks {
		return nil
	}
	return &choice{items: items, sol: sol, prices: sol}
}

// settle completes a choice for all queries. The worst-off queries cannot be improved, so their share is kept, and the
// worst of the others is improved. Queries with goals come first, then the rest. A query with a price is worst off in
// every best mix.
func (s *search) settle(c *choice) {
	floor := slices.Clone(s.floor)
	c.limits = make([][]int, len(floor))
	for pass := range 2 {
		left := make([]bool, len(floor))
		for q := range left {
			left[q] = s.pursue[q] == (pass == 0)
		}
		for slices.Contains(left, true) && !s.stop() {
			sol := s.mix(c.items, floor, left)
			if sol == nil || sol.lacks {
				return
			}
			c.sol = sol
			progress := sol.progress(c.items, len(floor))
			worst, fixed := none, false
			for q := range left {
				if !left[q] {
					continue
				}
				if worst == none || progress[q] < progress[worst] {
					worst = q
				}
				if sol.rates[q] > 1e-9 {
					left[q], fixed = false, true
					floor[q] = max(floor[q], sol.rate*c.items[q].need)
					c.limits[q] = sol.rivals(q)
				}
			}
			if !fixed {
				left[worst] = false
				floor[worst] = max(floor[worst], progress[worst]*c.items[worst].need)
			}
		}
	}
}

// rivals are the queries other than q that have a price.
func (s *solution) rivals(q int) (list []int) {
	for r := range s.rates {
		if r != q && (s.rates[r] > 1e-9 || s.floors[r] > 1e-9) {
			list = append(list, r)
		}
	}
	return list
}

// rank sorts the progress of queries with goals, and of the others, the worst first.
func (s *search) rank(c *choice) {
	for q, x := range c.sol.progress(c.items, len(s.floor)) {
		pass := 1
		if s.pursue[q] {
			pass = 0
		}
		c.levels[pass] = append(c.levels[pass], x)
	}
	slices.Sort(c.levels[0])
	slices.Sort(c.levels[1])
}

// better reports whether the first difference is in favour of c.
func (c *choice) better(d *choice) bool {
	for pass := range c.levels {
		for k, x := range c.levels[pass] {
			if y := d.levels[pass][k]; math.Abs(x-y) > 1e-7*y {
				return x > y
			}
		}
	}
	return false
}

// refine settles the best choice. It then changes single widths as long as that improves one query and worsens none
// that is as badly off.
func (s *search) refine() {
	s.settle(s.best)
	s.rank(s.best)
	s.rates = make([]float64, len(s.items))
	for improved := true; improved; {
		improved = false
		for i, it := range s.items {
			if s.best.items[it.query].width == it.width {
				continue
			}
			if s.stop() {
				return
			}
			items := slices.Clone(s.best.items)
			items[it.query] = it
			c := s.fixed(items)
			s.rates[i] = 0
			if c == nil {
				continue
			}
			s.rates[i] = c.prices.rate
			if c.prices.rate < s.best.prices.rate*(1-1e-9) || !s.within(items) {
				continue
			}
			s.settle(c)
			if s.rank(c); c.better(s.best) {
				s.best, improved = c, true
				break
			}
		}
	}
}

// finish writes the result into a plan.
func (s *search) finish(plan *querymix.Plan) {
	for q := range plan.Queries {
		d := &plan.Queries[q]
		w := d.Widths[s.best.items[q].width]
		d.Bits, d.Instances, d.Fragments, d.Carrying = w.Bits, w.Instances, w.Fragments, w.Packets
		for _, r := range s.best.limits[q] {
			d.LimitedBy = append(d.LimitedBy, plan.Queries[r].Name)
		}
		d.GoalPrice, d.FloorPrice = s.best.prices.rates[q], s.best.prices.floors[q]
	}
	for i, it := range s.items {
		if s.rates[i] > 0 && s.best.items[it.query].width != it.width {
			plan.Queries[it.query].Widths[it.width].Objective = 1 / s.rates[i]
		}
	}
	var sets [][]int
	for _, set := range s.best.sol.sets {
		var queries []int
		for _, i := range set {
			queries = append(queries, s.best.items[i].query)
		}
		sets = append(sets, queries)
	}
	plan.Arrange(sets, s.best.sol.shares)
	st := &plan.Stats
	st.Nodes = s.nodes
	if s.bound = max(s.bound, s.best.prices.rate); s.bound > 0 && !math.IsInf(s.bound, 1) {
		st.LowerBound = min(1/s.bound, st.Objective)
	}
	st.Optimal = st.Objective-st.LowerBound <= 1e-9*st.Objective
}
