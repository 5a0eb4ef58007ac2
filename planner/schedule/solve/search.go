package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// search is branch and bound over intervals and phases. It branches on the probes of the row with the fewest choices
// left. Bounds come from the prices; every decision raises them by a known amount.
type search struct {
	*core
	bytes   *prices // bound of the bytes of plans that leave out no more than best does
	left    *prices // bound of the weight left out; nil where all must be seen
	unit    int64   // all costs are multiples of it
	whole   float64 // and all weights of this, if it is not 0
	best    *state  // found so far, or nil
	now     *state
	decided []bool
	open    []int32 // by row: undecided probes
	sort    [][]choice

	nodes, most int
	ended       bool // by stop or by the number of nodes
	stop        func() bool
}

// choice is an option of a probe, with what it adds to the bounds.
type choice struct {
	option      int
	bytes, left float64
}

func newSearch(c *core, bytes, left *prices, best *state, most int, stop func() bool) *search {
	s := &search{core: c, bytes: bytes, left: left, best: best, now: c.newState(), decided: make([]bool, len(c.cost)),
		open: make([]int32, len(c.rows)), most: most, stop: stop, unit: c.unit(), whole: c.whole()}
	for r := range c.rows {
		s.open[r] = int32(len(c.rows[r].probes))
	}
	return s
}

// unit is the greatest common divisor of all costs, and at least 1.
func (c *core) unit() int64 {
	u := int64(0)
	for _, b := range c.cost {
		u = opt.GCD(b, u)
	}
	return max(1, u)
}

// whole is the greatest common divisor of all weights if they are whole numbers, or else 0.
func (c *core) whole() float64 {
	u := 0
	for k := range c.rows {
		w := c.rows[k].weight
		if w != math.Trunc(w) || w > 1e15 {
			return 0
		}
		u = opt.GCD(int(w), u)
	}
	return float64(u)
}

// roundBytes rounds a bound up to a possible cost. It gives away one part in 10^9, since float64 is exact to one part
// in 10^15 and sums here to far better than 10^9.
func roundBytes(bound float64, unit int64) int64 {
	if bound <= 0 {
		return 0
	}
	return int64(math.Ceil(bound*(1-1e-9)/float64(unit)-1e-6)) * unit
}

// roundLeft turns a bound into what weights can be.
func roundLeft(bound, whole float64) float64 {
	bound = max(0, bound-tolerance(bound))
	if whole > 0 {
		return math.Ceil(bound/whole-1e-6) * whole
	}
	return bound
}

// hopeless reports whether no plan with these bounds is better than the best found.
func (s *search) hopeless(bytes, left float64) bool {
	if s.best == nil {
		return false
	}
	if s.left != nil {
		left = roundLeft(left, s.whole)
		switch d := left - s.best.left; {
		case d > tolerance(s.best.left):
			return true
		case d < -tolerance(s.best.left):
			return false
		}
		bytes += s.bytes.left * (s.budget() - s.best.left) // the bound was made for another budget
	}
	return roundBytes(bytes, s.unit) >= s.best.cost
}

// budget is the weight that plans may leave out for which the prices of bytes were made.
func (s *search) budget() float64 { return s.bytes.budget }

// run searches from the root. Afterwards best is the best there is, unless the search ended early.
func (s *search) run() {
	left := 0.0
	if s.left != nil {
		left = s.left.value
	}
	if !s.hopeless(s.bytes.value, left) {
		s.branch(s.bytes.value, left, 1, 0)
	}
}

// branch decides one more probe. All probes that are decided repeat after the given number of bases.
func (s *search) branch(bytes, left float64, repeat int32, depth int) {
	s.nodes++
	if s.nodes >= s.most || s.nodes&63 == 0 && s.stop() {
		s.ended = true
	}
	if s.ended {
		return
	}
	p := s.pick()
	if p < 0 {
		s.leaf()
		return
	}
	for _, ch := range s.choices(p, depth) {
		interval := s.option(ch.option)
		if s.hopeless(bytes+ch.bytes, left+ch.left) || !s.fits(s.now, p, interval) {
			continue
		}
		phases, repeated := int32(1), repeat
		if interval > 0 {
			phases, repeated = s.phases(p, interval, repeat), repeat/opt.GCD(repeat, interval)*interval
		}
		for phase := range phases {
			b, l, ok := s.decide(p, interval, phase)
			if b, l = bytes+ch.bytes+b, left+ch.left+l; ok && !s.hopeless(b, l) {
				s.branch(b, l, repeated, depth+1)
			}
			s.undo(p)
			if s.ended {
				return
			}
		}
	}
}

// pick returns a probe of the unseen row with the fewest undecided probes, or -1 if there is no such row.
func (s *search) pick() int32 {
	best := -1
	for r := range s.rows {
		if s.open[r] > 0 && !s.now.seen[r] && (best < 0 || s.open[r] < s.open[best] || s.open[r] == s.open[best] && s.bytes.row[r] > s.bytes.row[best]) {
			if best = r; s.open[r] == 1 {
				break
			}
		}
	}
	if best < 0 {
		return -1
	}
	row, probe, least := &s.rows[best], int32(-1), math.Inf(1)
	for _, p := range row.probes {
		if s.decided[p] {
			continue
		}
		for j := 1; j <= len(s.grid) && s.grid[j-1] <= row.period; j++ {
			if e := s.bytes.extra[p][j]; probe < 0 || e < least {
				probe, least = p, e
			}
		}
	}
	return probe
}

// choices lists the options of a probe, the most promising first.
func (s *search) choices(p int32, depth int) []choice {
	for len(s.sort) <= depth {
		s.sort = append(s.sort, nil)
	}
	list := s.sort[depth][:0]
	for j := range len(s.grid) + 1 {
		if !s.core.open(p, j) {
			continue
		}
		ch := choice{option: j, bytes: s.bytes.extra[p][j]}
		if s.left != nil {
			ch.left = s.left.extra[p][j]
		}
		list = append(list, ch)
	}
	slices.SortStableFunc(list, func(a, b choice) int {
		switch d := a.left - b.left; {
		case d < 0 || d == 0 && a.bytes < b.bytes:
			return -1
		case d > 0 || a.bytes > b.bytes:
			return 1
		}
		return 0
	})
	s.sort[depth] = list
	return list
}

// phases is how many phases of p are worth a try. Shifting everything in time changes nothing, so what is decided repeats
// and only phases up to that count. Where the interval is short enough for all rows that are not seen, any phase will do.
func (s *search) phases(p, interval, repeat int32) int32 {
	for _, r := range s.on[p] {
		if !s.now.seen[r] && s.rows[r].period < interval && len(s.rows[r].probes) > 1 {
			return opt.GCD(interval, repeat)
		}
	}
	return 1
}

// decide fixes a probe. It returns the increase of the bounds by rows that are now known to be seen or not. The result
// ok is false where a row that must be seen is not.
func (s *search) decide(p, interval, phase int32) (bytes, left float64, ok bool) {
	s.decided[p] = true
	ok = true
	for _, r := range s.on[p] {
		s.open[r]--
		if s.now.seen[r] {
			s.open[r] += closed // reported already
		}
	}
	if interval > 0 {
		s.set(s.now, p, interval, phase)
	}
	for _, r := range s.on[p] {
		switch {
		case s.open[r] >= closed/2:
			s.open[r] -= closed
		case s.now.seen[r]:
			bytes += s.bytes.see[r]
			if s.left != nil {
				left += s.left.see[r]
			}
		case s.open[r] == 0 && !s.partial:
			ok = false
		case s.open[r] == 0:
			bytes += s.bytes.skip[r]
			left += s.left.skip[r]
		}
	}
	return bytes, left, ok
}

const closed = 1 << 30

// undo takes a decision back.
func (s *search) undo(p int32) {
	s.decided[p] = false
	for _, r := range s.on[p] {
		s.open[r]++
	}
	if s.now.interval[p] > 0 {
		s.set(s.now, p, 0, 0)
	}
}

// leaf evaluates the decisions. Every row is seen, or all its probes are decided, so the others send as little as they
// can.
func (s *search) leaf() {
	var more []int32
	ok := true
	for p := range s.decided {
		if s.must[p] && !s.decided[p] {
			if !s.fits(s.now, int32(p), s.slow[p]) {
				ok = false
				break
			}
			s.set(s.now, int32(p), s.slow[p], 0)
			more = append(more, int32(p))
		}
	}
	if ok && (s.partial || !slices.Contains(s.now.seen, false)) && (s.best == nil || s.now.better(s.best)) {
		s.best = s.now.clone()
	}
	for _, p := range more {
		s.set(s.now, p, 0, 0)
	}
}
