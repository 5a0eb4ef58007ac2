package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// placer looks for a flow for every copy of every interface with no flow above its room, whatever the number of used
// flows. An interface without room evicts those that were hard to place least often (ejection with penalties: Nagata,
// Bräysy, Operations Research Letters 37(5), 2009).
type placer struct {
	*packing
	limit []int64 // by flow: room, at most the capacity
	rnd   *opt.SplitMix
	pool  []int32 // interfaces with a copy that has no flow
	hard  []int64 // how often an interface found no room
	worth bool    // an evicted interface costs its weight instead, and less valuable ones stay out
	heat  float64 // by how much less at most it may be worth nevertheless
}

func newPlacer(s *packing, limit []int64, rnd *opt.SplitMix) *placer {
	l := &placer{packing: s, limit: limit, rnd: rnd, hard: slices.Repeat([]int64{1}, s.p.ifaces)}
	for f := range int32(s.p.flows) {
		if s.pos[f] == none {
			s.open(f)
		}
	}
	l.lower(limit)
	return l
}

// lower sets the room of the flows and throws out what does not fit any more.
func (l *placer) lower(limit []int64) {
	l.limit = limit
	for f := range int32(l.p.flows) {
		for l.load[f] > limit[f] {
			l.carry(f, l.held[f][len(l.held[f])-1])
		}
	}
	l.pool = l.absentees(l.pool[:0])
	l.mark()
}

// restart goes back to a packing.
func (l *placer) restart(from *pack) {
	l.restore(from)
	for f := range int32(l.p.flows) {
		if l.pos[f] == none {
			l.open(f)
		}
	}
	l.lower(l.limit)
}

func (l *placer) able(f, i int32) bool {
	return l.limit[f] >= l.p.demand[i] && (l.p.copies == 1 || !l.holds(f, i))
}

// run makes up to that many steps, and reports whether everything has its place, except what may be left out.
func (l *placer) run(steps int, stop func() bool) bool {
	for n := 0; !l.enough(); n++ {
		if n == steps || n%64 == 63 && stop() {
			return false
		}
		l.mark()
		k := l.rnd.Below(len(l.pool))
		i := l.pool[k]
		l.pool[k] = l.pool[len(l.pool)-1]
		l.pool = l.pool[:len(l.pool)-1]
		l.place(i)
		if l.rnd.Below(4) == 0 {
			l.shift()
		}
	}
	return true
}

// place assigns i to the least loaded flow that has room, or makes room where that costs least.
func (l *placer) place(i int32) {
	d, best, least := l.p.demand[i], int32(none), int64(math.MaxInt64)
	for _, f := range l.p.through(i) {
		if l.able(f, i) && l.limit[f]-l.load[f] >= d && l.load[f] < least {
			best, least = f, l.load[f]
		}
	}
	if best != none {
		l.give(best, i)
		return
	}
	cheapest := math.Inf(1)
	if !l.worth {
		l.hard[i]++
	}
	for _, f := range l.p.through(i) {
		if !l.able(f, i) {
			continue
		}
		if c := l.evict(f, i, false) * (1 + l.rnd.Float()/4); c < cheapest {
			best, cheapest = f, c
		}
	}
	if best != none && l.worth && cheapest > float64(l.p.weight[i])*(1+l.heat*l.rnd.Float()*l.rnd.Float()) {
		best = none
	}
	if best == none { // no flow could carry it even alone, or not for its worth
		l.pool = append(l.pool, i)
		return
	}
	l.evict(best, i, true)
	l.give(best, i)
}

// evict makes room for i on f by removing the cheapest interfaces for their size, but not those that need not go after
// all. It returns the sum of the penalties. Without really nothing changes.
func (l *placer) evict(f, i int32, really bool) (cost float64) {
	need := l.p.demand[i] - (l.limit[f] - l.load[f])
	held := l.held[f]
	// One that is large enough is often the best.
	single, price := -1, math.Inf(1)
	for k, j := range held {
		if l.p.demand[j] >= need && float64(l.hard[j]) < price {
			single, price = k, float64(l.hard[j])
		}
	}
	var chosen [8]int32
	n, sum, got := 0, 0.0, int64(0)
	for got < need && n < len(chosen) {
		best, ratio := int32(none), math.Inf(1)
		for _, j := range held {
			if r := float64(l.hard[j]) / float64(l.p.demand[j]); r < ratio && !slices.Contains(chosen[:n], j) {
				best, ratio = j, r
			}
		}
		if best == none {
			break
		}
		chosen[n] = best
		n++
		sum += float64(l.hard[best])
		got += l.p.demand[best]
	}
	if got < need || price <= sum {
		if single < 0 {
			// Only taking everything is certain to do.
			for _, j := range held {
				sum += float64(l.hard[j])
			}
			if really {
				for len(l.held[f]) > 0 {
					l.throw(f, l.held[f][0])
				}
			}
			return sum
		}
		if really {
			l.throw(f, held[single])
		}
		return price
	}
	if really {
		for _, j := range chosen[:n] {
			l.throw(f, j)
		}
	}
	return sum
}

func (l *placer) throw(f, i int32) {
	l.carry(f, i)
	l.pool = append(l.pool, i)
}

// shift moves something at random to another flow with room.
func (l *placer) shift() {
	i := int32(l.rnd.Below(l.p.ifaces))
	flows := l.p.through(i)
	if len(flows) < 2 {
		return
	}
	from, to := int32(none), flows[l.rnd.Below(len(flows))]
	start := l.rnd.Below(len(flows))
	for k := range min(len(flows), 64) {
		if f := flows[(start+k)%len(flows)]; l.holds(f, i) {
			from = f
			break
		}
	}
	if from == none || from == to || !l.able(to, i) || l.limit[to]-l.load[to] < l.p.demand[i] {
		return
	}
	l.carry(from, i)
	l.give(to, i)
}
