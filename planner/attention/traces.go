package attention

import (
	"math"
	"slices"
)

// Traces are the probes of a network, by the links that they pass. They are made once; the suspicious links change every
// measurement cycle.
type Traces struct {
	cost   []int64 // in units
	change int64   // cost of a probe that changes, in units
	unit   float64 // units in 1
	start  []int32 // by link, into of
	of     []int32 // probes, ascending, each once a link
}

// NewTraces indexes probes. Links are numbered from 0 to links-1; a probe may pass one more than once. A probe that
// changes between basic and detailed measurement costs change more.
func NewTraces(links int, probes [][]int32, cost []float64, change float64) *Traces {
	t := &Traces{cost: make([]int64, len(cost)), unit: unit(cost, change), start: make([]int32, links+1)}
	for k, c := range cost {
		t.cost[k] = int64(math.Round(c * t.unit))
	}
	t.change = int64(math.Round(change * t.unit))
	last := make([]int32, links) // probe that passed the link last, plus one
	for k, p := range probes {
		for _, l := range p {
			if last[l] != int32(k)+1 {
				last[l] = int32(k) + 1
				t.start[l+1]++
			}
		}
	}
	for l := range links {
		t.start[l+1] += t.start[l]
	}
	t.of = make([]int32, t.start[links])
	clear(last)
	next := slices.Clone(t.start[:links])
	for k, p := range probes {
		for _, l := range p {
			if last[l] != int32(k)+1 {
				last[l] = int32(k) + 1
				t.of[next[l]] = int32(k)
				next[l]++
			}
		}
	}
	return t
}

// Through gives the probes that pass link l, ascending. The slice belongs to t.
func (t *Traces) Through(l int32) []int32 { return t.of[t.start[l]:t.start[l+1]] }

// unit is what costs have to be multiplied with to become whole numbers whose sum is exact. Costs with more than six
// decimals are rounded to one part in 2⁵⁰ of their sum.
func unit(cost []float64, change float64) float64 {
	sum := 1 + change*float64(len(cost))
	for _, c := range cost {
		sum += c
	}
	for u := 1.0; u <= 1e6 && u*sum < 1<<52; u *= 10 {
		whole := func(c float64) bool { return math.Abs(c*u-math.Round(c*u)) <= 1e-9 }
		if whole(change) && !slices.ContainsFunc(cost, func(c float64) bool { return !whole(c) }) {
			return u
		}
	}
	return math.Exp2(math.Floor(50 - math.Log2(sum)))
}

// rows gives the rows that the suspicious links make, without doubles, with columns numbered from 0, and the probes that
// the columns stand for. Probes that stay detailed in any case, because a change would cost more than they do, are listed
// apart, and the links on them make no rows.
func (t *Traces) rows(suspicious, detailed []int32) (c *cover, probes, stay []int32) {
	column := make([]int32, len(t.cost)) // plus one; -1 for those that stay
	c = &cover{start: make([]int32, 1, len(suspicious)+1), col: make([]int32, 0, 2*len(suspicious))}
	cost := func(p int32) int64 { return t.cost[p] }
	if t.change > 0 {
		now := make([]bool, len(t.cost))
		for _, p := range detailed {
			now[p] = true
			if t.cost[p] < t.change {
				column[p] = -1
				stay = append(stay, p)
			}
		}
		cost = func(p int32) int64 { // beside the changes that turn all detailed probes off
			if now[p] {
				return t.cost[p] - t.change
			}
			return t.cost[p] + t.change
		}
	}
	var seen rowSet
	seen.init(len(suspicious))
next:
	for _, l := range suspicious {
		through := t.Through(l)
		n := len(c.col)
		for _, p := range through {
			switch k := column[p]; {
			case k < 0:
				c.col = c.col[:n]
				continue next
			case k == 0:
				probes = append(probes, p)
				c.cost = append(c.cost, cost(p))
				column[p] = int32(len(probes))
				fallthrough
			default:
				c.col = append(c.col, column[p]-1)
			}
		}
		if len(through) == 0 || !seen.add(c, n) {
			c.col = c.col[:n]
			continue
		}
		c.start = append(c.start, int32(len(c.col)))
	}
	return c, probes, stay
}

// rowSet finds rows that are there already: open addressing over the rows of a cover.
type rowSet struct {
	slot []int32 // row plus one
	mask uint64
}

func (s *rowSet) init(rows int) {
	n := 16
	for n < 2*rows {
		n *= 2
	}
	s.slot, s.mask = make([]int32, n), uint64(n-1)
}

// add reports whether the row that begins at c.col[n], and is about to be ended, is a new one.
func (s *rowSet) add(c *cover, n int) bool {
	row := c.col[n:]
	h := uint64(14695981039346656037)
	for _, k := range row { // the columns of a row come in the order of their probes, the same in equal rows
		h = (h ^ uint64(k)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	for i := h & s.mask; ; i = (i + 1) & s.mask {
		r := s.slot[i]
		if r == 0 {
			s.slot[i] = int32(len(c.start)) // the row's number plus one: start holds one more than the rows
			return true
		}
		if slices.Equal(c.row(int(r)-1), row) {
			return false
		}
	}
}
