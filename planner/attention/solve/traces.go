package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// Traces are the probes of a network, by the links that they pass. They are made once; the suspicious links change every
// measurement cycle.
type Traces struct {
	cost   []int64 // in units
	change int64   // cost of a probe that changes, in units
	unit   float64 // units in 1
	start  []int32 // by link, into of
	probes []int32 // probes, ascending, each once a link
}

// NewTraces indexes probes. Links are numbered from 0 to links-1; a probe may pass one more than once. A probe that
// changes between basic and detailed measurement costs change more.
func NewTraces(links int, probes [][]int32, cost []float64, change float64) *Traces {
	t := &Traces{cost: make([]int64, len(cost)), unit: unit(cost, change)}
	for k, c := range cost {
		t.cost[k] = int64(math.Round(c * t.unit))
	}
	t.change = int64(math.Round(change * t.unit))
	t.start, t.probes = opt.Passing(probes, links, func(l int32) int32 { return l })
	return t
}

// Through returns the probes that pass link l, ascending. The slice belongs to t.
func (t *Traces) Through(l int32) []int32 { return t.probes[t.start[l]:t.start[l+1]] }

// unit is the factor that makes costs whole numbers with an exact sum. Costs with more than six decimals are rounded to
// one part in 2⁵⁰ of their sum.
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

// rows returns the distinct rows of the suspicious links, with columns numbered from 0, and the probe of each column.
// Probes whose change would cost more than they do stay detailed and are listed apart. Links on them make no rows.
func (t *Traces) rows(suspicious, detailed []int32) (c *cover, probes, stay []int32) {
	column := make([]int32, len(t.cost)) // plus one; -1 for those that stay
	c = &cover{start: []int32{0}}
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
	seen := newRowSet(c, len(t.cost))
next:
	for _, l := range suspicious {
		through := t.Through(l)
		if len(through) == 2 && seen.pair(through[0], through[1]) {
			continue
		}
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
		if len(through) == 0 || (len(through) != 2 || seen.pairs == nil) && !seen.add(n) {
			c.col = c.col[:n]
			continue
		}
		c.start = append(c.start, int32(len(c.col)))
	}
	return c, probes, stay
}

// rowSet finds rows of a cover that are there already. Most rows have two probes: these are bits of a matrix, where that
// is small. All others are in a hash table.
type rowSet struct {
	c     *cover
	n     uint64   // probes
	pairs []uint64 // by first probe, then second
	slot  []int32  // row plus one; open addressing
	used  int
}

func newRowSet(c *cover, probes int) *rowSet {
	s := &rowSet{c: c, n: uint64(probes), slot: make([]int32, 64)}
	if bits := s.n * s.n; bits <= 1<<21 {
		s.pairs = make([]uint64, bits/64+1)
	}
	return s
}

// pair reports whether a row of two probes has been there before. Without a matrix the result is unknown, and false.
func (s *rowSet) pair(a, b int32) bool {
	if s.pairs == nil {
		return false
	}
	i := uint64(a)*s.n + uint64(b)
	w, bit := &s.pairs[i/64], uint64(1)<<(i%64)
	if *w&bit != 0 {
		return true
	}
	*w |= bit
	return false
}

// add reports whether the row that begins at c.col[n], and is about to be ended, is a new one. Columns of a row come in
// the order of their probes, so that equal rows are the same.
func (s *rowSet) add(n int) bool {
	row := s.c.col[n:]
	if 2*s.used >= len(s.slot) {
		old := s.slot
		s.slot = make([]int32, 4*len(old))
		for _, r := range old {
			if r > 0 {
				i := s.find(s.c.row(int(r) - 1))
				s.slot[i] = r
			}
		}
	}
	i := s.find(row)
	if s.slot[i] > 0 {
		return false
	}
	s.slot[i] = int32(len(s.c.start)) // the row's number plus one: start holds one more than there are rows
	s.used++
	return true
}

// find returns the slot of a row, or the free slot for it.
func (s *rowSet) find(row []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, k := range row {
		h = (h ^ uint64(k)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	mask := uint64(len(s.slot) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		if r := s.slot[i]; r == 0 || slices.Equal(s.c.row(int(r)-1), row) {
			return i
		}
	}
}
