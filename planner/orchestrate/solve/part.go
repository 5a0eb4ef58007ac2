package solve

import (
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// carrier looks for packings that leave out as little weight as possible, whatever flows they use. It also proves
// bounds of that weight.
type carrier struct {
	s      *solver
	p      *problem // in which nothing may be left out
	best   pack
	bound  int64
	b      *bounder // nil where there are too many flows
	l      *placer
	t      *tree
	steps  int
	nodes  int64
	rounds int
	sack   opt.Knapsack
	unit   int64 // the largest weight
}

// newCarrier starts with a packing, which may be empty.
func (s *solver) newCarrier(start *pack) *carrier {
	q := *s.p
	q.groups = nil
	c := &carrier{s: s, p: &q, nodes: firstNodes, steps: 4*q.ifaces + 200}
	pk := newPacking(&q)
	pk.restore(start)
	pk.save(&c.best)
	c.bound = q.lossBound()
	c.l = newPlacer(pk, q.room, &s.rnd)
	c.l.worth = true
	c.unit = 1
	for i, w := range q.weight {
		c.l.hard[i] = w
		c.unit = max(c.unit, w)
	}
	if q.flows <= maxFlowRows {
		c.b = newLoss(&q, c.bound)
		c.b.offerPack(&c.best)
	}
	return c
}

// lossBound is the least that is left out where demands may be split between the flows that have room for the whole.
func (p *problem) lossBound() int64 {
	t := p.send(true)
	whole, parts := int64(0), 0.0 // of the weight: what is missing of whole copies, and the rest
	for i, left := range t.Left {
		d := p.demand[i]
		whole += left / d * p.weight[i]
		parts += float64(left%d) * float64(p.weight[i]) / float64(d)
	}
	return whole + int64(math.Ceil(parts*(1-1e-9)-1e-9))
}

// send sends all that can be sent, the items of the highest weight first. That gives the most weight, because sets that
// can be sent together are the independent sets of a polymatroid.
func (p *problem) send(whole bool) *transport {
	t := newTransport(p, whole)
	for f := range int32(p.flows) {
		t.Open(f, p.room[f])
	}
	for _, i := range p.byDensity() {
		t.Send(i)
	}
	return t
}

// byDensity lists the interfaces by falling weight of an item.
func (p *problem) byDensity() []int32 {
	list := opt.Ascending[int32](p.ifaces)
	slices.SortStableFunc(list, p.denser)
	return list
}

// denser compares the weights of an item of two interfaces, the larger one first.
func (p *problem) denser(i, j int32) int {
	a, b := bits.Mul64(uint64(p.weight[i]), uint64(p.demand[j]))
	c, d := bits.Mul64(uint64(p.weight[j]), uint64(p.demand[i]))
	switch {
	case a > c || a == c && b > d:
		return -1
	case a < c || b < d:
		return 1
	}
	return 0
}

// proven reports whether less cannot be left out.
func (c *carrier) proven() bool { return c.best.lost <= c.bound }

// run works until it is proven that nothing less can be left out, for that many rounds, or until it is stopped.
func (c *carrier) run(rounds int) {
	for range rounds {
		if c.proven() || c.s.stop() {
			return
		}
		c.round()
	}
}

// heats are the factors by which removed interfaces may be worth more than added ones.
var heats = [...]float64{1, 0.25, 4, 0.5, 16}

func (c *carrier) round() {
	for n := range 20 {
		c.l.heat = heats[n%len(heats)]
		if n == 0 && c.rounds%4 == 3 { // from the best once more
			c.l.restart(&c.best)
		}
		c.p.allow(c.best.lost - 1)
		c.l.run(c.steps/20+1, c.s.stop)
		c.p.groups = nil
		c.note()
		c.refill(c.steps/20 + 1)
		if c.proven() || c.s.stop() {
			return
		}
	}
	c.rounds++
	if c.b != nil && !c.b.done {
		c.b.run(boundEffort, c.best.lost, c.s.stop)
		c.bound = max(c.bound, c.b.bound)
	}
	if c.proven() || !c.s.wantsTree() || c.b != nil && !c.b.done && c.rounds < 3 {
		return
	}
	if c.t == nil {
		c.t = c.tree(c.best.lost - 1)
	}
	switch c.t.search(c.nodes, c.s.stop) {
	case possible:
		c.t.saveAll(&c.best)
		c.t = nil
	case impossible:
		c.bound = c.best.lost
	case undecided:
		c.nodes *= 2
		if c.b != nil { // its prices may have become better
			c.t = nil
		}
	}
}

// note keeps a packing that leaves out less than the best one.
func (c *carrier) note() {
	if c.l.lost < c.best.lost {
		c.l.save(&c.best)
		c.t = nil
	}
}

// refill empties a few flows and fills them, one after the other, with the most valuable of all that is missing. It
// does so that many times, and keeps results that are no worse.
func (c *carrier) refill(times int) {
	l, rnd := c.l, &c.s.rnd
	value := make([]int64, c.p.ifaces)
	for range times {
		l.mark()
		before := l.lost
		flows := []int32{int32(rnd.Below(c.p.flows))}
		for range 1 + rnd.Below(4) {
			f := int32(rnd.Below(c.p.flows))
			if path := c.p.path(flows[0]); len(path) > 0 { // one that meets it, and changes places with another
				through := c.p.through(path[rnd.Below(len(path))])
				f = through[rnd.Below(len(through))]
			}
			if !slices.Contains(flows, f) {
				flows = append(flows, f)
				k := rnd.Below(len(flows))
				flows[k], flows[len(flows)-1] = f, flows[k]
			}
		}
		for _, f := range flows {
			l.clear(f)
		}
		noise := noises[rnd.Below(len(noises))]
		for _, f := range flows {
			for _, i := range c.p.path(f) {
				value[i] = 0
				if l.missing[i] > 0 {
					value[i] = int64(float64(l.p.weight[i]) / float64(c.unit) * (1 + noise*rnd.Float()) * (1 << 20))
				}
			}
			if c.sack.Solve(c.p.path(f), c.p.room[f], 0, c.p.demand, value) > 0 {
				l.fillBest(f, &c.sack)
			}
		}
		if l.lost > before && rnd.Below(64) > 0 {
			l.undo()
		}
		c.note()
	}
	l.lower(l.limit)
}

// tree decides whether so much weight is enough to be left out.
func (c *carrier) tree(weight int64) *tree {
	c.p.allow(weight)
	defer func() { c.p.groups = nil }()
	var price []int64
	if c.b != nil {
		price = c.b.fair()
	}
	t := newTree(c.p, c.p.room, c.p.flows, price)
	t.all = price != nil
	return t
}

// Rounds of the first turn at the weight left out, and turns at the objective before the next one.
const (
	firstRounds = 12
	firstTurns  = 64
)

// partial solves problems for whole interfaces of which some are left out. The first part leaves out as little as
// possible. Then second optimises the objective among the plans that leave out no more, and reports whether it is
// proven. They take turns until one is.
func (s *solver) partial(start *pack, second func(best *pack, turns int) bool) pack {
	c := s.newCarrier(start)
	if s.o.Method == Heuristic {
		if c.b != nil {
			c.b.run(math.MaxInt64, c.best.lost, s.stop)
			c.bound = max(c.bound, c.b.bound)
		}
		s.p.allow(c.best.lost)
		second(&c.best, 0)
		s.lostBound = c.bound
		return c.best
	}
	c.run(firstRounds)
	for turns := firstTurns; ; turns *= 2 {
		lost := c.best.lost
		s.p.allow(lost)
		if c.proven() {
			turns = math.MaxInt
		}
		proven := second(&c.best, turns)
		for c.t = nil; proven && !c.proven() && c.best.lost == lost && !s.stop(); {
			c.run(1)
		}
		if s.stop() || c.proven() && proven && c.best.lost == lost {
			break
		}
		c.run(firstRounds / 2)
	}
	s.lostBound = c.bound
	return c.best
}
