package solve

import (
	"math/bits"
	"slices"
)

// within finds the cheapest choice among those that change few probes. A price for each change replaces the limit, so
// that the exact method applies. For any price, the result minus the price of the allowed changes is a lower bound. The
// best price is the one at which a choice within the limit and one beyond it cost the same. If their costs do not meet
// the bound there, within branches on probes in which the two differ.
type within struct {
	t          *Traces
	suspicious []int32
	now        []bool // probes that measure in detail now
	detailed   int    // how many
	limit      int    // of changes
	stop       func() bool
	stopped    bool
	nodes      int

	shift  int     // costs are shifted by so much, so that prices have a fraction
	cost   []int64 // by probe
	change int64
	most   int64 // a price at which no change is worth anything

	best  []int32
	least int64 // cost of best with its changes, in units
}

// priced is the cheapest choice at a price of changes, and a bound of what it costs with them, shifted.
type priced struct {
	probes  []int32
	changes int
	bound   int64
}

// switchWithin is Switch with at most limit changes. Where more have to change, it changes as few as it finds.
func (t *Traces) switchWithin(suspicious, detailed []int32, limit int, stop func() bool) *Choice {
	w := newWithin(t, suspicious, detailed, limit, stop)
	fixed := make([]int8, len(t.cost))
	few, _ := w.at(w.most, fixed)
	w.best, w.least = few.probes, w.total(few.probes)
	r := &Choice{Method: Exact, Forced: few.changes}
	w.limit = max(limit, few.changes)
	sure := !w.stopped // that no choice changes fewer
	bound := w.solve(fixed, few)
	r.Probes, r.Nodes, r.Optimal = w.best, w.nodes, sure && bound >= w.least
	r.LowerBound = float64(min(bound, w.least)) / t.unit
	if r.Optimal {
		r.Probes = w.fewest(r.Probes)
	}
	return r
}

// fewest returns a choice that changes fewer probes at no more cost than the cheapest one, if there is one. The
// smallest price of a change separates choices of equal cost.
func (w *within) fewest(probes []int32) []int32 {
	x, _ := w.at(1, make([]int8, len(w.cost)))
	if w.total(x.probes) <= w.total(probes) && x.changes < w.changes(probes) {
		return x.probes
	}
	return probes
}

func newWithin(t *Traces, suspicious, detailed []int32, limit int, stop func() bool) *within {
	n := len(t.cost)
	w := &within{t: t, suspicious: suspicious, now: make([]bool, n), detailed: len(detailed), limit: limit, stop: stop}
	for _, p := range detailed {
		w.now[p] = true
	}
	total := 1 + t.change*int64(n)
	for _, c := range t.cost {
		total += c
	}
	w.shift = min(58-bits.Len64(uint64(total))-bits.Len(uint(n)), 12)
	w.cost = make([]int64, n)
	for p, c := range t.cost {
		w.cost[p] = w.shifted(c)
	}
	w.change = w.shifted(t.change)
	w.most = w.shifted(total) + 1
	return w
}

func (w *within) shifted(c int64) int64 {
	if w.shift < 0 {
		return c >> -w.shift
	}
	return c << w.shift
}

// total is the cost of a choice with its changes, in units.
func (w *within) total(probes []int32) int64 {
	sum := w.t.change * int64(w.changes(probes))
	for _, p := range probes {
		sum += w.t.cost[p]
	}
	return sum
}

func (w *within) changes(probes []int32) int {
	n := w.detailed
	for _, p := range probes {
		if w.now[p] {
			n--
		} else {
			n++
		}
	}
	return n
}

// offer takes a choice within the limit that is cheaper than the best so far.
func (w *within) offer(probes []int32) {
	if w.changes(probes) > w.limit {
		return
	}
	if c := w.total(probes); c < w.least {
		w.best, w.least = probes, c
	}
}

// at finds the cheapest choice at a price of each change. Probes that are fixed are detailed (1) or not (-1). It is false
// if nothing is left for some link.
func (w *within) at(price int64, fixed []int8) (priced, bool) {
	price += w.change
	adjusted := func(p int32) int64 { // beside the changes that turn all probes off
		if w.now[p] {
			return w.cost[p] - price
		}
		return w.cost[p] + price
	}
	r := priced{bound: price * int64(w.detailed)}
	in := make([]bool, len(w.cost))
	for p := range w.cost {
		p := int32(p)
		if fixed[p] > 0 || fixed[p] == 0 && adjusted(p) < 0 {
			in[p] = true
			r.probes = append(r.probes, p)
			r.bound += adjusted(p)
		}
	}
	c, of := &cover{start: []int32{0}}, []int32(nil)
	column := make([]int32, len(w.cost)) // plus one
	for _, l := range w.suspicious {
		through := w.t.Through(l)
		if len(through) == 0 || slices.ContainsFunc(through, func(p int32) bool { return in[p] }) {
			continue
		}
		n := len(c.col)
		for _, p := range through {
			if fixed[p] < 0 {
				continue
			}
			if column[p] == 0 {
				of = append(of, p)
				c.cost = append(c.cost, adjusted(p))
				column[p] = int32(len(of))
			}
			c.col = append(c.col, column[p]-1)
		}
		if len(c.col) == n {
			return priced{}, false
		}
		c.start = append(c.start, int32(len(c.col)))
	}
	cols, bound, nodes := exact(c, w.stop)
	w.nodes += nodes
	w.stopped = w.stopped || bound < c.total(cols)
	r.bound += bound
	for _, k := range cols {
		r.probes = append(r.probes, of[k])
	}
	r.changes = w.changes(r.probes)
	return r, true
}

// solve finds the cheapest choice within the limit and with the fixed probes, if it is cheaper than the best so far. It
// returns a bound. few is the choice of fewest changes.
func (w *within) solve(fixed []int8, few priced) (bound int64) {
	many, _ := w.at(0, fixed)
	w.offer(many.probes)
	bound = w.unshifted(many.bound)
	if many.changes <= w.limit {
		return bound
	}
	few, many, bound = w.price(fixed, few, many, bound)
	if bound >= w.least || w.stopped {
		return bound
	}
	// One of the probes in which the two differ, the dearest: as it is now, or changed.
	var at int32 = -1
	for _, both := range [...][2][]int32{{few.probes, many.probes}, {many.probes, few.probes}} {
		for _, p := range both[0] {
			if fixed[p] == 0 && !slices.Contains(both[1], p) && (at < 0 || w.cost[p] > w.cost[at]) {
				at = p
			}
		}
	}
	if at < 0 {
		return bound
	}
	lowest := w.least
	for _, way := range [...]int8{1, -1} {
		if w.nodes++; w.stopped || w.stop() {
			w.stopped = true
			return bound
		}
		child := slices.Clone(fixed)
		child[at] = way
		if few, ok := w.at(w.most, child); ok && few.changes <= w.limit {
			w.offer(few.probes)
			lowest = min(lowest, w.solve(child, few))
		}
	}
	return max(bound, min(lowest, w.least))
}

// price finds the best price of changes, and the choices on both sides of the limit there.
func (w *within) price(fixed []int8, few, many priced, bound int64) (priced, priced, int64) {
	for bound < w.least && !w.stopped {
		price := (w.plain(few) - w.plain(many)) / int64(many.changes-few.changes)
		if price <= 0 {
			break
		}
		x, _ := w.at(price, fixed)
		w.offer(x.probes)
		bound = max(bound, w.unshifted(x.bound-price*int64(w.limit)))
		if x.changes == few.changes || x.changes == many.changes {
			break
		}
		if x.changes <= w.limit {
			few = x
		} else {
			many = x
		}
	}
	return few, many, bound
}

// plain is the cost of a choice without a price of changes, shifted.
func (w *within) plain(x priced) int64 {
	sum := w.change * int64(x.changes)
	for _, p := range x.probes {
		sum += w.cost[p]
	}
	return sum
}

// unshifted is the lowest cost in units that a bound allows.
func (w *within) unshifted(b int64) int64 {
	if w.shift < 0 {
		return b << -w.shift
	}
	return (b + 1<<w.shift - 1) >> w.shift
}
