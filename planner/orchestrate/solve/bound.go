package solve

import (
	"cmp"
	"math"
	"slices"
)

// bounder proves lower bounds of Concentrate. A price u(i) >= 0 for carrying interface i gives the bound
//
//	copies * sum u(i) + sum over f of min(0, 1 - K(f,u))
//
// where K(f,u) is the most that flow f can earn (a knapsack): the Lagrangian relaxation of the rows that want every
// interface carried. Prices come from column generation (Gilmore, Gomory, Operations Research 9(6), 1961): a linear
// programme chooses among ways to use flows, its dual prices go to the knapsacks, and those give new ways. Where the
// knapsacks find nothing better the bound is that of the linear programme, the best that any prices can give. Prices are
// then rounded to whole numbers and the bound is computed in those, so that no rounding error can raise it.
type bounder struct {
	p       *problem
	lp      *relaxation
	sack    knapsack
	price   []int64
	best    []int64 // prices of the best bound
	value   float64 // that bound before rounding up
	bound   int64
	volume  int64 // the bound that looks at the room of flows alone
	done    bool
	offers  []offer
	offered []int32 // by interface: its best offer, or none
	rounds  int
	idle    int // rounds since the bound improved by something
	sweeps  int // a round
	began   bool
	rows    []int32
	effort  int64
}

// offer is a way to use a flow that earns more than it costs.
type offer struct {
	flow   int32
	profit int64
	items  []int32
	part   []float64
}

const (
	maxFlowRows = 2048 // flows up to which each has a row of its own, which says that it is there once
	minSweeps   = 50   // a round
	maxSweeps   = 800
	maxIdle     = 24    // rounds after which nothing more is expected
	progress    = 0.005 // of the bound that counts as such

	flowsAtFirst = 4096 // about so many are priced in each of the first rounds
	partRounds   = 8    // number of those and one
)

func newBounder(p *problem, split bool) *bounder {
	b := &bounder{p: p, price: make([]int64, p.ifaces), best: make([]int64, p.ifaces), offered: make([]int32, p.ifaces), sweeps: minSweeps}
	b.sack.split = split
	b.volume = p.volumeBound()
	b.bound = b.volume
	b.value = float64(b.bound)
	rhs := make([]float64, p.ifaces, p.ifaces+maxFlowRows)
	for i := range rhs {
		rhs[i] = float64(p.copies)
	}
	if p.flows <= maxFlowRows {
		for range p.flows {
			rhs = append(rhs, -1)
		}
	}
	b.lp = newRelaxation(rhs)
	return b
}

// volumeBound is the smallest number of flows whose largest loads sum up to all items.
func (p *problem) volumeBound() int64 {
	most := make([]int64, p.flows)
	for f := range p.flows {
		var sum int64
		for _, i := range p.path(int32(f)) {
			sum += p.demand[i]
		}
		most[f] = min(sum, p.room[f])
	}
	slices.SortFunc(most, func(a, b int64) int { return cmp.Compare(b, a) })
	left := p.total
	for n, m := range most {
		if left <= 0 {
			return int64(n)
		}
		left -= m
	}
	return int64(len(most))
}

// offerPack tells the linear programme of the ways in which a packing uses its flows. The first packing is also where
// it starts, with prices that share what a flow costs among what it carries.
func (b *bounder) offerPack(s *pack) {
	x := 0.0
	if !b.began {
		x = 1
	}
	for k := 0; k < len(s.flow); {
		e := k
		for e < len(s.flow) && s.flow[e] == s.flow[k] {
			e++
		}
		items := s.iface[k:e]
		part := make([]float64, len(items))
		for n := range part {
			part[n] = 1
		}
		b.add(s.flow[k], items, part, x)
		if !b.began {
			for _, i := range items {
				b.lp.u[i] = 1 / float64(len(items))
			}
		}
		k = e
	}
	b.began = true
	b.lp.restart()
}

func (b *bounder) add(f int32, items []int32, part []float64, x float64) {
	b.rows = append(b.rows[:0], items...)
	if len(b.lp.b) > b.p.ifaces {
		b.rows, part = append(b.rows, int32(b.p.ifaces)+f), append(part[:len(part):len(part)], -1)
	}
	b.lp.add(b.rows, part, x)
}

// run works on the bound until it has made about the given effort, is stopped, or is done: at target, or where nothing
// more is to be expected of this relaxation.
func (b *bounder) run(effort, target int64, stop func() bool) {
	for end := b.effort + effort; !b.done && b.effort < end; {
		from := b.lp.effort
		for b.lp.sweeps < b.sweeps {
			if stop() {
				return
			}
			b.lp.sweep()
		}
		b.lp.average()
		b.effort += b.lp.effort - from
		if stop() {
			return
		}
		b.round()
		if b.bound >= target {
			b.done = true
		}
	}
}

// round prices all flows once. The first rounds, whose prices are far from good, price a part of many flows each, and
// give no bound.
func (b *bounder) round() {
	p := b.p
	b.rounds++
	parts := p.flows/flowsAtFirst + 1
	if b.rounds >= partRounds {
		parts = 1
	}
	var sum, penalty, most int64
	for i := range b.price {
		b.price[i] = int64(b.lp.u[i] * one)
		sum += b.price[i]
		b.offered[i] = none
	}
	b.offers = b.offers[:0]
	for f := b.rounds % parts; f < p.flows; f += parts {
		k := b.sack.solve(p.path(int32(f)), p.room[f], one, p.demand, b.price)
		most = max(most, k)
		if k > one {
			penalty += k - one
			b.offer(int32(f))
		}
	}
	b.effort += int64(4 * len(p.pathItem) / parts)
	if parts > 1 {
		b.take()
		return
	}
	sum *= int64(p.copies)
	value, bound := float64(sum-penalty)/one, ceilDiv(sum-penalty, one)
	if v := float64(sum) / float64(most); most > one && v > value {
		value, bound = v, ceilDiv(sum, most)
	}
	b.bound = max(b.bound, bound)
	b.idle++
	if value > b.value {
		if value > b.value+progress {
			b.idle = 0
		}
		b.value = value
		copy(b.best, b.price)
	}
	if added := b.take(); added == 0 || b.idle >= 4 {
		b.sweeps = min(b.sweeps*3/2, maxSweeps)
	}
	if b.rounds%8 == 0 {
		b.lp.prune(0.3)
	}
	// What the linear programme costs is no bound, but says when to stop looking for a better one.
	if b.idle >= maxIdle || b.idle > 2 && math.Ceil(b.lp.cost()-0.02) <= float64(b.bound) {
		b.done = true
	}
}

func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// offer notes the answer of the last knapsack, where it earns more than it costs.
func (b *bounder) offer(f int32) {
	v := -1.0
	if len(b.lp.b) > b.p.ifaces {
		v -= b.lp.u[b.p.ifaces+int(f)]
	}
	for n, i := range b.sack.items {
		v += b.sack.part[n] * b.lp.u[i]
	}
	if v <= 1e-6 {
		return
	}
	profit, wanted := int64(v*one), false
	for n, i := range b.sack.items {
		if b.sack.part[n] > 0 && (b.offered[i] == none || b.offers[b.offered[i]].profit < profit) {
			b.offered[i] = int32(len(b.offers))
			wanted = true
		}
	}
	if !wanted {
		return
	}
	o := offer{flow: f, profit: profit}
	for n, i := range b.sack.items {
		if b.sack.part[n] > 0 {
			o.items, o.part = append(o.items, i), append(o.part, b.sack.part[n])
		}
	}
	b.offers = append(b.offers, o)
}

// take adds to the linear programme the offers that are the best for some interface.
func (b *bounder) take() (added int) {
	for n := range b.offers {
		o := &b.offers[n]
		if slices.ContainsFunc(o.items, func(i int32) bool { return b.offered[i] == int32(n) }) {
			b.add(o.flow, o.items, o.part, 0)
			added++
		}
	}
	return added
}

// fair gives the best prices, lowered until no flow earns more than it costs.
func (b *bounder) fair() []int64 {
	most := int64(one)
	for f := range int32(b.p.flows) {
		most = max(most, b.sack.solve(b.p.path(f), b.p.room[f], one, b.p.demand, b.best))
	}
	price := make([]int64, len(b.best))
	for i, u := range b.best {
		price[i] = int64(float64(u) / float64(most) * one * (1 - 1e-9))
	}
	return price
}
