package solve

import (
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// piece is a core with what is known of its best state.
type piece struct {
	*core
	best        *state // nil where none is found in which all is seen that must be
	bytes, left *prices
	bytesBound  int64
	leftBound   float64
	proven      bool // best is the best there is; or, if it is nil, nothing is
	nodes       int
}

// How long is tried to find the best: numbers rather than times, so that the result is the same on every machine.
const (
	boundSteps = 400
	fewNodes   = 20_000
	manyNodes  = 1_000_000
	smallRows  = 1000
)

// first finds a state and a bound without search.
func (x *piece) first(stop func() bool) {
	s, ok := x.begin()
	if !ok {
		x.proven = true // the forced starts are too much
		return
	}
	worth := make([]float64, len(x.rows))
	for r := range worth {
		if worth[r] = 1; x.partial {
			worth[r] = x.rows[r].weight
		}
	}
	all := opt.Ascending[int32](len(x.cost))
	x.start(s, worth, all)
	x.raise(stop)
	if !x.done() {
		s, _ = x.begin()
		x.start(s, x.bytes.row, all)
		x.done()
	}
}

// start completes s and keeps it if it is the best so far.
func (x *piece) start(s *state, worth []float64, all []int32) {
	x.greedy(s, worth)
	x.lower(s, all, nil)
	x.offerState(s)
}

// offerState keeps s if it is the best so far.
func (x *piece) offerState(s *state) bool {
	if !x.partial && slices.Contains(s.seen, false) {
		return false
	}
	if x.best == nil || s.better(x.best) {
		x.best = s.clone()
		return true
	}
	return false
}

// raise makes bounds for the best state so far.
func (x *piece) raise(stop func() bool) {
	target, budget := 0.0, 0.0
	if x.best != nil {
		target, budget = float64(x.best.cost), x.best.left
	} else {
		for _, b := range x.cost {
			target += float64(b) * float64(x.starts(x.grid[0]))
		}
	}
	if x.partial {
		x.left = newRelaxation(x.core, goal{}).bound(x.left, budget, boundSteps, stop)
		x.leftBound = max(x.leftBound, min(roundLeft(x.left.value, x.whole()), budget))
	}
	x.bytes = newRelaxation(x.core, goal{bytes: true, budget: budget}).bound(x.bytes, target, boundSteps, stop)
	x.bytesBound = max(x.bytesBound, roundBytes(x.bytes.value, x.unit()))
}

// done reports whether the best state is proven to be the best there is.
func (x *piece) done() bool {
	if x.best != nil && x.best.left <= x.leftBound+tolerance(x.best.left) && x.bytesBound >= x.best.cost {
		x.proven = true
	}
	return x.proven
}

// search branches, at most into that many nodes.
func (x *piece) search(most int, stop func() bool) {
	s := newSearch(x.core, x.bytes, x.left, x.best, most, stop)
	s.run()
	x.nodes += s.nodes
	if s.best != nil {
		x.best = s.best
	}
	x.proven = !s.ended
}

// more takes the time that is left.
func (x *piece) more(rng *rand.Rand, stop func() bool) {
	if x.proven {
		return
	}
	small := len(x.rows) <= smallRows // a node of the search costs as much as there are rows
	if small {
		if x.search(fewNodes, stop); x.proven || stop() {
			return
		}
	}
	s := x.best
	if s == nil {
		s, _ = x.begin()
		x.greedy(s, x.bytes.row)
	}
	s = s.clone()
	x.improve(s, x.bytesBound, 10_000+200*len(x.cost), rng, stop)
	if x.offerState(s) || !small {
		x.raise(stop)
	}
	switch {
	case x.done() || stop():
	case small:
		x.search(manyNodes, stop)
	default:
		x.search(fewNodes, stop)
	}
}

// settle makes the bounds those of the best state where it is proven.
func (x *piece) settle() {
	if x.best == nil {
		return
	}
	if x.proven {
		x.bytesBound, x.leftBound = x.best.cost, x.best.left
	}
	x.bytesBound, x.leftBound = min(x.bytesBound, x.best.cost), min(x.leftBound, x.best.left)
}
