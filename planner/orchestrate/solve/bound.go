package solve

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// one is the unit of prices: they are whole multiples of 1/one, so that sums of them are exact and a bound is proven.
const one = 1 << 32

// bounder proves lower bounds of Concentrate. A price u(i) >= 0 for carrying interface i gives the bound
//
//	copies * sum u(i) + sum over f of min(0, 1 - K(f,u))
//
// where K(f,u) is the most that flow f can earn (a knapsack). This is the Lagrangian relaxation of the rows that demand
// every interface to be carried. Prices come from column generation (Gilmore, Gomory, Operations Research 9(6), 1961).
// A linear programme chooses among ways to use flows, its dual prices go to the knapsacks, and those give new ways.
// Where the knapsacks find nothing better, the bound is that of the linear programme, the best that any prices can
// give. Prices are then rounded to whole numbers. The bound is computed in those, so that no rounding error can raise
// it.
//
// Where something may be left out, the most that it could earn at those prices is subtracted from the bound: another
// knapsack. If flows cost nothing and left-out interfaces cost their weight, the bound is that of the weight left out.
type bounder struct {
	p       *problem
	flow    int64 // cost of a flow, in units of prices: one, or 0 where the bound is of the weight left out
	unit    int64 // value of the price one
	lp      *opt.LP
	sack    opt.Knapsack
	price   []int64
	dearest float64 // the highest price, in units
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

	flowRows bool // every flow has a row in the linear programme
}

// offer is a way to use a flow that earns more than it costs.
type offer struct {
	flow   int32
	profit int64
	items  []int32
	part   []float64
}

const (
	maxFlowRows = 2048 // up to that many flows, each has a row that allows it once
	minSweeps   = 50   // a round
	maxSweeps   = 800
	maxIdle     = 24    // rounds after which nothing more is expected
	progress    = 0.005 // of the bound that counts as such

	flowsAtFirst = 4096 // about so many are priced in each of the first rounds
	partRounds   = 8    // number of those and one
)

func newBounder(p *problem, split bool) *bounder {
	b := emptyBounder(p)
	b.flow = one
	b.sack.Split = split
	b.volume = p.volumeBound()
	b.bound = b.volume
	b.value = float64(b.bound)
	rhs := b.sides(p.real <= maxFlowRows)
	groups := len(rhs)
	for range p.groups {
		rhs = append(rhs, -1)
	}
	b.lp = opt.NewLP(rhs)
	for k, g := range p.groups {
		for _, i := range g.items {
			b.lp.Add([]int32{i, int32(groups + k)}, []float64{1, -float64(g.size[i]) / float64(g.room)}, 0, 0)
		}
	}
	return b
}

// newLoss bounds the weight of what is left out of whole copies, from at least so much on.
func newLoss(p *problem, least int64) *bounder {
	b := emptyBounder(p)
	for i, n := range p.want {
		if n > 0 {
			b.unit = max(b.unit, p.weight[i])
		}
	}
	b.bound = least
	b.value = float64(least) / float64(b.unit)
	b.lp = opt.NewLP(b.sides(true))
	for i, n := range p.want {
		if n > 0 {
			b.lp.Add([]int32{int32(i)}, []float64{1}, float64(p.weight[i])/float64(b.unit), 0)
		}
	}
	return b
}

// mostWorth is the most that everything is worth together, in units of prices. Its products with shares of rooms are
// exact to one unit in a float64, and its sums do not overflow. While the linear programme is far from its solution,
// its own prices have no such bound.
const mostWorth = 1 << 52

func emptyBounder(p *problem) *bounder {
	wanted := 1
	for _, n := range p.want {
		wanted += int(n)
	}
	return &bounder{
		p: p, unit: 1, price: make([]int64, p.ifaces), dearest: mostWorth / float64(wanted), best: make([]int64, p.ifaces),
		offered: make([]int32, p.ifaces), sweeps: minSweeps,
	}
}

// sides returns the right hand sides of the rows of interfaces, and of those of flows if these are wanted.
func (b *bounder) sides(flows bool) []float64 {
	rhs := make([]float64, b.p.ifaces, b.p.ifaces+maxFlowRows)
	for i := range rhs {
		rhs[i] = float64(b.p.want[i])
	}
	if flows {
		b.flowRows = true
		for range b.p.real {
			rhs = append(rhs, -1)
		}
	}
	return rhs
}

// volumeBound is the smallest number of flows whose largest loads sum up to all items.
func (p *problem) volumeBound() int64 {
	most := make([]int64, p.real)
	for f := range p.real {
		var sum int64
		for _, i := range p.path(int32(f)) {
			sum += p.demand[i]
		}
		most[f] = min(sum, p.room[f])
	}
	slices.SortFunc(most, func(a, b int64) int { return cmp.Compare(b, a) })
	left := p.total - p.leaveItems()
	for n, m := range most {
		if left <= 0 {
			return int64(n)
		}
		left -= m
	}
	return int64(len(most))
}

// offerPack adds to the linear programme the ways in which a packing uses its flows. The first packing is also the
// start, with prices that share the cost of a flow among its interfaces.
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
				b.lp.Prices[i] = float64(b.flow) / one / float64(len(items))
			}
		}
		k = e
	}
	b.began = true
	b.lp.Restart()
}

func (b *bounder) add(f int32, items []int32, part []float64, x float64) {
	b.rows = append(b.rows[:0], items...)
	if b.flowRows {
		b.rows, part = append(b.rows, int32(b.p.ifaces)+f), append(part[:len(part):len(part)], -1)
	}
	b.lp.Add(b.rows, part, float64(b.flow)/one, x)
}

// run works on the bound for about the given effort. It ends early if stopped, at target, or where this relaxation
// cannot improve further.
func (b *bounder) run(effort, target int64, stop func() bool) {
	for end := b.effort + effort; !b.done && b.effort < end; {
		from := b.lp.Effort
		for b.lp.Sweeps < b.sweeps {
			if stop() {
				return
			}
			b.lp.Sweep()
		}
		b.lp.Average()
		b.effort += b.lp.Effort - from
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
// yield no bound.
func (b *bounder) round() {
	p := b.p
	b.rounds++
	parts := p.real/flowsAtFirst + 1
	if b.rounds >= partRounds {
		parts = 1
	}
	var sum, penalty, most int64
	for i := range b.price {
		u := b.lp.Prices[i] * one
		if !(u < b.dearest) { // or is no number
			u = b.dearest
		}
		b.price[i] = int64(u)
		if b.flow == 0 { // nothing is worth more than it costs to leave it out
			b.price[i] = min(b.price[i], b.most(i))
		}
		sum += b.price[i] * int64(p.want[i])
		b.offered[i] = none
	}
	b.offers = b.offers[:0]
	for f := b.rounds % parts; f < p.real; f += parts {
		k := b.sack.Solve(p.path(int32(f)), p.room[f], b.flow, p.demand, b.price)
		most = max(most, k)
		if k > b.flow {
			if penalty < sum { // else nothing is bounded, and the sum could overflow
				penalty += k - b.flow
			}
			b.offer(int32(f))
		}
	}
	b.effort += int64(4 * len(p.pathItem) / parts)
	if parts > 1 {
		b.addOffers()
		return
	}
	sum -= p.leave(b.price, p.want)
	value, bound := float64(sum-penalty)/one, b.ceil(sum-penalty)
	if v := float64(sum) / float64(most); b.flow == one && most > one && v > value {
		value, bound = v, ceilDiv(sum, most)
	}
	b.bound = max(b.bound, bound)
	b.idle++
	if value > b.value {
		if value > b.value+progress/float64(min(b.unit, 1000)) {
			b.idle = 0
		}
		b.value = value
		copy(b.best, b.price)
	}
	if added := b.addOffers(); added == 0 || b.idle >= 4 {
		b.sweeps = min(b.sweeps*3/2, maxSweeps)
	}
	if b.rounds%8 == 0 {
		b.lp.Prune(0.3)
	}
	// The cost of the linear programme is no bound, but shows when a better one is no longer likely.
	if b.idle >= maxIdle || b.idle > 2 && math.Ceil(b.lp.Cost()*float64(b.unit)-0.02) <= float64(b.bound) {
		b.done = true
	}
}

// most is the price that is worth as much as leaving out i.
func (b *bounder) most(i int) int64 {
	hi, lo := bits.Mul64(uint64(b.p.weight[i]), one)
	if hi >= uint64(b.unit) { // i cannot be carried
		return 0
	}
	price, _ := bits.Div64(hi, lo, uint64(b.unit))
	return int64(price)
}

// ceil rounds up a sum of prices to what is bounded.
func (b *bounder) ceil(sum int64) int64 {
	if sum <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(sum), uint64(b.unit))
	q, r := bits.Div64(hi, lo, one)
	if r > 0 {
		q++
	}
	return int64(q)
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
	v := -float64(b.flow) / one
	if b.flowRows {
		v -= b.lp.Prices[b.p.ifaces+int(f)]
	}
	for n, i := range b.sack.Items {
		v += b.sack.Part[n] * b.lp.Prices[i]
	}
	if v <= 1e-6 {
		return
	}
	profit, wanted := int64(v*one), false
	for n, i := range b.sack.Items {
		if b.sack.Part[n] > 0 && (b.offered[i] == none || b.offers[b.offered[i]].profit < profit) {
			b.offered[i] = int32(len(b.offers))
			wanted = true
		}
	}
	if !wanted {
		return
	}
	o := offer{flow: f, profit: profit}
	for n, i := range b.sack.Items {
		if b.sack.Part[n] > 0 {
			o.items, o.part = append(o.items, i), append(o.part, b.sack.Part[n])
		}
	}
	b.offers = append(b.offers, o)
}

// addOffers adds to the linear programme the offers that are the best for some interface.
func (b *bounder) addOffers() (added int) {
	for n := range b.offers {
		o := &b.offers[n]
		if slices.ContainsFunc(o.items, func(i int32) bool { return b.offered[i] == int32(n) }) {
			b.add(o.flow, o.items, o.part, 0)
			added++
		}
	}
	return added
}

// fair returns the best prices, lowered until no flow earns more than it costs.
func (b *bounder) fair() []int64 {
	if b.flow == 0 {
		return slices.Clone(b.best)
	}
	most := int64(one)
	for f := range int32(b.p.real) {
		most = max(most, b.sack.Solve(b.p.path(f), b.p.room[f], one, b.p.demand, b.best))
	}
	price := make([]int64, len(b.best))
	for i, u := range b.best {
		price[i] = int64(float64(u) / float64(most) * one * (1 - 1e-9))
	}
	return price
}
