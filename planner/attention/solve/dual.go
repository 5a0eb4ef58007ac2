package solve

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// dual bounds the cost of a cover by prices of its rows: the linear relaxation over rows of any length. A column is
// taken if the prices of its rows exceed its cost, even if rows are then covered twice. The sum of prices minus these
// savings is a lower bound for any prices. The volume algorithm (F. Barahona and R. Anbil, Mathematical Programming 87,
// 2000) improves the prices. It also yields shares of columns that nearly solve the relaxation.
//
// All sums are of whole numbers, so that the bound is proven and not merely computed.
type dual struct {
	c       *cover
	gcd     int64 // of the costs, which every cover's cost is a multiple of
	shift   int   // a price of 1 is 1<<shift; below 0 costs lose their last bits
	cost    []int64
	most    []int64 // that a row's price can be: the cost of its cheapest column
	price   []int64 // of rows, the best so far
	reduced []int64 // cost of columns at these prices, less the prices of their rows
	sum     int64   // bound at these prices, shifted
	share   []float64

	try, left []int64 // prices under trial, and reduced costs
	over      []float64
}

func newDual(c *cover) *dual {
	n, m := len(c.cost), c.rows()
	ints := make([]int64, 3*n+3*m)
	cut := func(k int) []int64 {
		s := ints[:k:k]
		ints = ints[k:]
		return s
	}
	d := &dual{c: c, cost: cut(n), reduced: cut(n), left: cut(n), most: cut(m), price: cut(m), try: cut(m)}
	floats := make([]float64, n+m)
	d.share, d.over = floats[:n], floats[n:]
	high := int64(1)
	for _, x := range c.cost {
		high = max(high, x)
		d.gcd = opt.GCD(d.gcd, x)
	}
	d.gcd = max(d.gcd, 1)
	d.shift = min(60-bits.Len64(uint64(high))-bits.Len(uint(n+m)), 20)
	for k, x := range c.cost {
		if d.cost[k] = x >> max(-d.shift, 0); d.shift > 0 {
			d.cost[k] = x << d.shift
		}
	}
	for r := range m {
		d.most[r] = math.MaxInt64
		for _, k := range c.row(r) {
			d.most[r] = min(d.most[r], d.cost[k])
		}
	}
	return d
}

// bound is the least cost of any cover.
func (d *dual) bound() int64 {
	b := d.sum << max(-d.shift, 0)
	if d.shift > 0 {
		b = (d.sum + 1<<d.shift - 1) >> d.shift
	}
	return (b + d.gcd - 1) / d.gcd * d.gcd
}

// above reports whether a bound that is more higher than that of the best prices excludes every cover below limit.
func (d *dual) above(more, limit int64) bool {
	return d.shift >= 0 && d.sum+more > (limit-d.gcd)<<d.shift
}

// ascend starts with prices that no column's cost is below: rows of few columns first, what is left of the cheapest.
func (d *dual) ascend() {
	order := opt.Ascending[int32](d.c.rows())
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(len(d.c.row(int(a))), len(d.c.row(int(b)))) })
	left := slices.Clone(d.cost)
	for _, r := range order {
		row := d.c.row(int(r))
		p := left[row[0]]
		for _, k := range row {
			p = min(p, left[k])
		}
		for _, k := range row {
			left[k] -= p
		}
		d.price[r] = p
	}
}

// value is the bound at prices, and fills in the reduced costs.
func (d *dual) value(price, reduced []int64) (sum int64) {
	copy(reduced, d.cost)
	for r, p := range price {
		sum += p
		for _, k := range d.c.row(r) {
			reduced[k] -= p
		}
	}
	for _, x := range reduced {
		sum += min(x, 0)
	}
	return sum
}

// improve raises the bound by at most that many rounds of price changes, from the present prices on. It ends early when
// the bound reaches limit, stops rising, or stop returns true.
func (d *dual) improve(limit int64, rounds int, step float64, stop func() bool) {
	d.sum = d.value(d.price, d.reduced)
	for k, x := range d.reduced {
		d.share[k] = 0
		if x <= 0 {
			d.share[k] = 1
		}
	}
	unit := math.Exp2(float64(d.shift))
	target := float64(limit) * unit
	worse, last, mix := 0, d.sum, 0.1
	for i := range rounds {
		if d.bound() >= limit || step < 1e-4 || i&15 == 15 && stop() {
			return
		}
		if i%100 == 99 {
			if step < 0.05 && float64(d.sum-last) < 2e-6*float64(d.sum) {
				return
			}
			last = d.sum
			mix = max(mix*0.8, 0.01)
		}
		norm := 0.0
		for r := range d.over {
			s := 1.0
			for _, k := range d.c.row(r) {
				s -= d.share[k]
			}
			if s < 0 && d.price[r] == 0 {
				s = 0
			}
			d.over[r] = s
			norm += s * s
		}
		if norm < 1e-9 {
			return
		}
		t := step * max(1.05*target-float64(d.sum), 0.01*target) / norm
		for r, s := range d.over {
			d.try[r] = min(max(d.price[r]+int64(t*s), 0), d.most[r])
		}
		sum := d.value(d.try, d.left)
		for k, x := range d.left {
			d.share[k] *= 1 - mix
			if x <= 0 {
				d.share[k] += mix
			}
		}
		if sum <= d.sum {
			if worse++; worse >= 20 || step > 0.2 && worse >= 8 {
				worse = 0
				step *= 0.66
			}
			continue
		}
		d.sum, worse = sum, 0
		d.price, d.try = d.try, d.price
		d.reduced, d.left = d.left, d.reduced
		step = min(step*1.1, 2)
	}
}
