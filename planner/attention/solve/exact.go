package solve

import (
	"cmp"
	"math"
	"slices"
)

const unlimited = math.MaxInt64 / 4

// search is a branch and bound over reduced, connected parts of a cover.
type search struct {
	stop    func() bool
	stopped bool
	nodes   int
	most    int // nodes after which the bound of pairs alone is given up for a part
	tired   bool
}

// fewNodes is how many nodes a part with few long rows may take before it goes to the search for hard parts.
const fewNodes = 100

// exact finds the cheapest columns that cover all rows. The bound is below it only if stop ended the search.
func exact(c *cover, stop func() bool) (cols []int32, bound int64, nodes int) {
	s := &search{stop: stop}
	d := newReducer(c)
	if !d.run() {
		return nil, unlimited, 0
	}
	cols = d.taken
	for _, k := range cols {
		bound += c.cost[k]
	}
	for _, p := range d.parts() {
		chosen, low := s.part(p)
		bound += low
		for _, k := range chosen {
			cols = append(cols, p.columns[k])
		}
	}
	if s.stopped { // never dearer than a choice without search
		for _, perCost := range []bool{true, false} {
			if other := greedy(c, perCost); c.total(other) < c.total(cols) {
				cols = other
			}
		}
	}
	return cols, bound, s.nodes
}

// part finds the cheapest columns of a part. The bound is below their cost only if the search was stopped.
func (s *search) part(p *part) (cols []int32, bound int64) {
	r := relax(&p.cover)
	if r.bound >= r.cost {
		return r.cols, r.cost
	}
	cols = r.cols
	if !r.manyLong(p) {
		s.most, s.tired = s.nodes+fewNodes, false
		if bound, cols = s.branch(p, r, unlimited); !s.stopped && !s.tired {
			return cols, bound
		}
	}
	if s.stopped = s.stopped || s.stop(); s.stopped {
		return cols, r.bound
	}
	_, cols, bound = s.hard(p, cols, r.bound)
	return cols, bound
}

// solve finds the cheapest columns for what a reducer leaves, if they cost less than limit; else none.
func (s *search) solve(d *reducer, limit int64) (cost int64, cols []int32) {
	if !d.run() {
		return limit, nil
	}
	for _, k := range d.taken {
		cost += d.c.cost[k]
	}
	if cost >= limit {
		return limit, nil
	}
	parts := d.parts()
	slices.SortStableFunc(parts, func(a, b *part) int { return cmp.Compare(len(a.columns), len(b.columns)) })
	relaxed := make([]*relaxation, len(parts))
	for i, p := range parts {
		relaxed[i] = relax(&p.cover)
		if cost += relaxed[i].bound; cost >= limit {
			return limit, nil
		}
	}
	cols = append(make([]int32, 0, len(d.taken)+1), d.taken...)
	for i, p := range parts {
		cost -= relaxed[i].bound
		got, chosen := s.branch(p, relaxed[i], limit-cost)
		if chosen == nil {
			return limit, nil
		}
		cost += got
		for _, k := range chosen {
			cols = append(cols, p.columns[k])
		}
	}
	return cost, cols
}

// branch finds the cheapest columns of a part, if they cost less than limit; else none.
func (s *search) branch(p *part, r *relaxation, limit int64) (cost int64, cols []int32) {
	cost = limit
	if r.cost < cost {
		cost, cols = r.cost, r.cols
	}
	if r.bound >= cost {
		return cost, cols
	}
	s.nodes++
	s.tired = s.tired || s.nodes > s.most
	if s.stopped = s.stopped || s.stop(); s.stopped || s.tired {
		return cost, cols
	}
	try := func(d *reducer) {
		if got, chosen := s.solve(d, cost); chosen != nil {
			cost, cols = got, chosen
		}
	}
	if r.open >= 0 {
		// One of the row's columns is needed: the cheapest, or not that but the next, and so on.
		row := slices.Clone(p.row(r.open))
		slices.SortStableFunc(row, func(a, b int32) int { return cmp.Compare(p.cost[a], p.cost[b]) })
		for i, k := range row {
			d := newReducer(&p.cover)
			for _, j := range row[:i] {
				d.dropCol(j)
			}
			d.choose(k)
			try(d)
		}
		return cost, cols
	}
	if !r.long {
		// Nemhauser and Trotter (Mathematical Programming 8, 1975): whole values of the relaxation are those of some
		// cheapest cover.
		fixed := false
		d := newReducer(&p.cover)
		for k, v := range r.value {
			switch {
			case d.colOut[k] || v == 1:
			case v == 2:
				d.choose(int32(k))
				fixed = true
			default:
				d.dropCol(int32(k))
				fixed = true
			}
		}
		if fixed {
			try(d)
			return cost, cols
		}
	}
	var k int32 = -1 // of half value, in most rows
	d := newReducer(&p.cover)
	for j, v := range r.value {
		if v == 1 && (k < 0 || d.colLen[j] > d.colLen[k]) {
			k = int32(j)
		}
	}
	d.choose(k)
	try(d)
	d = newReducer(&p.cover)
	d.dropCol(k)
	try(d)
	return cost, cols
}

// relaxation bounds the cost of a cover by its rows of two columns alone: with halves of columns allowed, that is a
// largest flow. Where these rows two-colour their columns no halves are needed and the bound is their exact cost.
type relaxation struct {
	bound    int64
	value    []int8  // by column, in halves
	long     bool    // there are rows of more than two columns
	longRows int     // how many
	open     int     // a long row that the whole values do not cover, the shortest; -1 if there is none
	cost     int64   // of cols
	cols     []int32 // a cover made from the values; never nil
}

// manyLong reports whether so many rows of a part are long that the relaxation is weak.
func (r *relaxation) manyLong(p *part) bool { return 4*r.longRows >= p.rows() }

func relax(c *cover) *relaxation {
	r := &relaxation{value: make([]int8, len(c.cost)), open: -1}
	f := newPairFlow(c)
	r.bound, r.long, r.longRows = f.bound, f.long > 0, f.long
	if r.long {
		f.coverLong(c)
	}
	f.close()
	for k := range r.value {
		r.value[k], _ = f.value(int32(k))
	}
	r.round(c)
	return r
}

// round makes a cover of columns with a value of at least a half, and the cheapest column of each row still open. Then
// it removes redundant columns.
func (r *relaxation) round(c *cover) {
	in := make([]bool, len(c.cost))
	for k, v := range r.value {
		in[k] = v > 0
	}
	covered := make([]int32, c.rows()) // by how many columns
	for i := range covered {
		row := c.row(i)
		whole := false
		for _, k := range row {
			if in[k] {
				covered[i]++
			}
			whole = whole || r.value[k] == 2
		}
		if len(row) > 2 && !whole && (r.open < 0 || len(row) < len(c.row(r.open))) {
			r.open = i
		}
	}
	for i := range covered {
		if covered[i] > 0 {
			continue
		}
		row := c.row(i)
		add := row[0]
		for _, k := range row {
			if in[k] {
				add = -1
				break
			}
			if c.cost[k] < c.cost[add] {
				add = k
			}
		}
		if add >= 0 {
			in[add] = true
		}
	}
	r.cols = prune(c, in)
	for _, k := range r.cols {
		r.cost += c.cost[k]
	}
}

// prune takes columns out of a cover that it does not need, dearest first, and lists the others.
func prune(c *cover, in []bool) []int32 {
	covered := make([]int32, c.rows())
	need := make([]int32, len(c.cost)) // rows that only this column covers
	only := func(r int) int32 {
		for _, k := range c.row(r) {
			if in[k] {
				return k
			}
		}
		return -1
	}
	for r := range covered {
		for _, k := range c.row(r) {
			if in[k] {
				covered[r]++
			}
		}
		if covered[r] == 1 {
			need[only(r)]++
		}
	}
	cols := make([]int32, 0, len(in))
	var spare []int32
	for k := range in {
		if in[k] {
			cols = append(cols, int32(k))
			if need[k] == 0 {
				spare = append(spare, int32(k))
			}
		}
	}
	if len(spare) == 0 {
		return cols
	}
	slices.SortStableFunc(spare, func(a, b int32) int { return cmp.Compare(c.cost[b], c.cost[a]) })
	start, rows := c.transpose()
	for _, k := range spare {
		if need[k] > 0 {
			continue
		}
		in[k] = false
		for _, r := range rows[start[k]:start[k+1]] {
			if covered[r]--; covered[r] == 1 {
				need[only(int(r))]++
			}
		}
	}
	return slices.DeleteFunc(cols, func(k int32) bool { return !in[k] })
}
