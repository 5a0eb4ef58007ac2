package solve

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/planner/querymix"
)

// search looks for widths and the mix of sets.
type search struct {
	bits   int
	stop   func() bool
	items  []item    // query by query
	floor  []float64 // by query
	pursue []bool    // by query: its goal counts
	kept   []int     // by query: the width in which it stays as it was; none if there is no such width
	churn  int       // how many queries may be coded in another way than before; -1 for any number

	nodes int
	best  *choice
	bound float64   // no plan has a higher rate
	rates []float64 // of the best plan with another item instead, by item: 0 if there is none
}

// choice is an item for every query, and the best mix of them.
type choice struct {
	items  []item // by query
	sol    *solution
	prices *solution    // of the first level, which is the objective
	limits [][]int      // by query: those that would have to have less for it to have more
	levels [2][]float64 // progress of queries that pursue goals, and of the others, in ascending order
}

// add takes a query and those of its widths that can be used.
func (s *search) add(d *querymix.PlannedQuery, usable []int, kept int) {
	q := len(s.floor)
	for _, k := range usable {
		w := d.Widths[k]
		s.items = append(s.items, item{query: q, width: k, bits: w.Bits * w.Instances, need: w.Packets / d.Goal})
	}
	s.floor = append(s.floor, max(d.Frequency, querymix.MinShare))
	s.pursue = append(s.pursue, d.Demand != querymix.WantFrequency)
	s.kept = append(s.kept, kept)
}

// narrowest are the items with the fewest bits.
func (s *search) narrowest() []item {
	list := make([]item, len(s.floor))
	for _, it := range s.items {
		if n := &list[it.query]; n.need == 0 || it.bits < n.bits {
			*n = it
		}
	}
	return list
}

// hold finds out whether all frequencies can be held, and lowers them all by the same factor if not and if that is
// allowed.
func (s *search) hold(plan *querymix.Plan, partial bool) error {
	items := s.narrowest()
	part, floor := make([]bool, len(items)), make([]float64, len(items))
	for q := range items {
		if part[q] = plan.Queries[q].Frequency > 0; part[q] {
			items[q].need = s.floor[q]
		}
	}
	if !slices.Contains(part, true) {
		return nil
	}
	sol := newMix(s.bits, items, floor, part).solve(func() bool { return false })
	if sol.rate >= 1-1e-12 {
		return nil
	}
	if partial {
		plan.Held = sol.rate * (1 - 1e-9)
		for q := range s.floor {
			s.floor[q] = max(plan.Queries[q].Frequency*plan.Held, querymix.MinShare)
		}
		return nil
	}
	var names []string
	for q := range items {
		if d := &plan.Queries[q]; sol.rates[q] > 1e-9 {
			names = append(names, fmt.Sprintf("%q (on %.4g %% of packets, with %d bits or more)", d.Name, 100*d.Frequency, items[q].bits))
		}
	}
	return fmt.Errorf("queries %s: packets of %d bits cannot carry them that often; %.4g %% of these frequencies are possible", strings.Join(names, ", "), s.bits, 100*sol.rate)
}

// fill finds the queries for which the frequencies of others leave no packets, and leaves them out if that is allowed.
func (s *search) fill(plan *querymix.Plan, partial bool) error {
	items := s.narrowest()
	floor := slices.Clone(s.floor)
	for q := range floor {
		items[q].need = 1
		if floor[q] <= querymix.MinShare {
			floor[q] = 0
		}
	}
	out := make([]bool, len(floor))
	var names []string
	for q := range floor {
		if floor[q] > 0 {
			continue
		}
		part := make([]bool, len(floor))
		part[q] = true
		sol := newMix(s.bits, items, floor, part).solve(func() bool { return false })
		if out[q] = sol.lacks || sol.rate < querymix.MinShare; out[q] {
			names = append(names, strconv.Quote(plan.Queries[q].Name))
			plan.LeftOut = append(plan.LeftOut, querymix.LeftOut{Name: plan.Queries[q].Name, Reason: "the frequencies of others leave no packets for it"})
		}
	}
	switch {
	case len(names) == 0:
		return nil
	case !partial:
		return fmt.Errorf("query %s: the frequencies of others leave no packets of %d bits for it", strings.Join(names, ", "), s.bits)
	}
	index := make([]int, len(out))
	kept := 0
	for q, gone := range out {
		if index[q] = kept; !gone {
			plan.Queries[kept], s.floor[kept], s.pursue[kept], s.kept[kept] = plan.Queries[q], s.floor[q], s.pursue[q], s.kept[q]
			kept++
		}
	}
	plan.Queries, s.floor, s.pursue, s.kept = plan.Queries[:kept], s.floor[:kept], s.pursue[:kept], s.kept[:kept]
	s.items = slices.DeleteFunc(s.items, func(it item) bool { return out[it.query] })
	for i := range s.items {
		s.items[i].query = index[s.items[i].query]
	}
	return nil
}

// mix finds the best mix of some items. Floors of only MinShare are enforced once a mix falls below them, which is
// rare. The result is nil if there was no time for any mix.
func (s *search) mix(items []item, floor []float64, part []bool) *solution {
	active := slices.Clone(floor)
	for q := range active {
		if active[q] <= querymix.MinShare {
			active[q] = 0
		}
	}
	level := s.level(part, items, floor)
	for {
		sol := newMix(s.bits, items, active, level).solve(s.stop)
		if sol == nil || sol.lacks {
			return sol
		}
		below := false
		for q, x := range sol.carried(items, len(floor)) {
			if active[q] == 0 && x < floor[q]*(1-1e-9) {
				active[q], below = floor[q], true
			}
		}
		if !below {
			return sol
		}
	}
}

// run finds the best choice, in which at most limit queries are coded in another way than before. It returns the fewest
// forced changes, if these are more or if there was an earlier plan.
func (s *search) run(limit int) (forced int, err error) {
	if !slices.Contains(s.pursue, true) {
		for q := range s.pursue {
			s.pursue[q] = true
		}
	}
	if slices.ContainsFunc(s.kept, func(k int) bool { return k != none }) {
		forced = s.changed(limit)
	} else {
		s.churn = -1
		s.tree()
	}
	if s.best == nil {
		return 0, fmt.Errorf("no plan was found in time for %d queries", len(s.floor))
	}
	s.refine()
	return forced, nil
}

// level are the queries of some that could be worst off: not those whose floor alone is more than any other can have.
func (s *search) level(part []bool, items []item, floor []float64) []bool {
	least := make([]float64, len(floor)) // need, by query
	for _, it := range items {
		if n := least[it.query]; n == 0 || it.need < n {
			least[it.query] = it.need
		}
	}
	top := math.Inf(1) // no rate is above
	for q, n := range least {
		if part[q] {
			top = min(top, 1/n)
		}
	}
	level := slices.Clone(part)
	for _, it := range items {
		least[it.query] = max(least[it.query], it.need) // now the largest
	}
	for q, n := range least {
		if part[q] && floor[q]/n > top*(1+1e-9) {
			level[q] = false
		}
	}
	return level
}

// tree finds the highest rate by branch and bound over widths.
func (s *search) tree() {
	type node struct {
		items []item
		bound float64
	}
	open := []node{{s.items, math.Inf(1)}}
	s.bound = 0
	for len(open) > 0 {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		if s.best != nil && (n.bound <= s.best.prices.rate*(1+1e-10) || s.stop()) {
			s.bound = max(s.bound, n.bound)
			continue
		}
		s.nodes++
		sol := s.mix(n.items, s.floor, s.pursue)
		switch {
		case sol == nil:
			s.bound = max(s.bound, n.bound)
			continue
		case sol.lacks:
			continue
		}
		bound := min(n.bound, sol.bound)
		use := make([]float64, len(n.items))
		for k, y := range sol.shares {
			for _, i := range sol.sets[k] {
				use[i] += y
			}
		}
		main, split, most := s.divide(n.items, use)
		if s.within(main) {
			s.offer(main)
		} else if denied, q := s.denied(n.items, main); denied > s.churn {
			continue
		} else if split < 0 {
			split = q
			most = slices.IndexFunc(n.items, func(it item) bool { return it.query == q && it.width == s.kept[q] })
		}
		if split < 0 {
			s.bound = max(s.bound, bound)
			continue
		}
		var without, with []item
		for i, it := range n.items {
			if it.query != split || i != most {
				without = append(without, it)
			}
			if it.query != split || i == most {
				with = append(with, it)
			}
		}
		open = append(open, node{without, bound}, node{with, bound})
	}
}

// divide finds the most used item of each query, and the query whose use is divided most evenly, with its item. The
// query is none where every query uses one item.
func (s *search) divide(items []item, use []float64) (main []item, split, most int) {
	main = make([]item, len(s.floor))
	top, sum := make([]float64, len(s.floor)), make([]float64, len(s.floor))
	at := make([]int, len(s.floor))
	for i, it := range items {
		sum[it.query] += use[i] / it.need
		if main[it.query].need == 0 || use[i]/it.need > top[it.query] {
			main[it.query], top[it.query], at[it.query] = it, use[i]/it.need, i
		}
	}
	split, most = none, none
	least := 1 - 1e-9
	for q := range main {
		if part := top[q] / sum[q]; part < least {
			split, most, least = q, at[q], part
		}
	}
	return main, split, most
}
