package solve

import (
	"math/big"

	"github.com/hopscope/hopscope/planner/querymix"
)

// oracle finds the best plan in exact arithmetic and by looking at everything: all widths, all sets that fit, a simplex
// method with Bland's rule. It shares nothing with the planner but the problem.
type oracle struct {
	p *querymix.Problem
}

// rat is the exact value of a number.
func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// floors are the least shares.
func (o *oracle) floors() []*big.Rat {
	list := make([]*big.Rat, len(o.p.Queries))
	for q := range list {
		list[q] = rat(max(float64(o.p.Queries[q].Frequency), querymix.MinShare))
	}
	return list
}

// pursued are the queries with goals, or all if none has.
func (o *oracle) pursued() []bool {
	list, any := make([]bool, len(o.p.Queries)), false
	for q := range list {
		list[q] = o.p.Queries[q].Within > 0 || o.p.Queries[q].Frequency == 0
		any = any || list[q]
	}
	for q := range list {
		list[q] = list[q] || !any
	}
	return list
}

// needs are packets over goal of a width for every query; nil if a width is too wide.
func (o *oracle) needs(widths []int) []*big.Rat {
	list := make([]*big.Rat, len(widths))
	for q := range list {
		query := &o.p.Queries[q]
		if query.Widths[widths[q]].Total() > o.p.Bits {
			return nil
		}
		goal := query.Within
		if goal == 0 {
			for _, w := range query.Widths {
				if w.Total() <= o.p.Bits && (goal == 0 || w.Packets < goal) {
					goal = w.Packets
				}
			}
		}
		list[q] = new(big.Rat).Quo(rat(query.Widths[widths[q]].Packets), rat(goal))
	}
	return list
}

// sets are all sets of queries that fit into the bits.
func (o *oracle) sets(widths []int) (list []uint) {
	for s := uint(1); s < 1<<len(widths); s++ {
		bits := 0
		for q, w := range widths {
			if s>>q&1 != 0 {
				bits += o.p.Queries[q].Widths[w].Total()
			}
		}
		if bits <= o.p.Bits {
			list = append(list, s)
		}
	}
	return list
}

// each calls f for every choice of widths.
func (o *oracle) each(f func(widths []int)) {
	widths := make([]int, len(o.p.Queries))
	for {
		f(widths)
		q := 0
		for ; q < len(widths); q++ {
			if widths[q]++; widths[q] < len(o.p.Queries[q].Widths) {
				break
			}
			widths[q] = 0
		}
		if q == len(widths) {
			return
		}
	}
}

// best maximises λ, where query q has a share of least[q] + λ·grow[q] or more. It returns nil if there is no λ ≥ 0.
func best(sets []uint, least, grow []*big.Rat) *big.Rat {
	// Variables: a share a set, then λ. Rows: -Σ y + λ·grow ≤ -least, Σ y ≤ 1.
	n := len(sets) + 1
	var a [][]*big.Rat
	var b []*big.Rat
	for q := range least {
		row := make([]*big.Rat, n)
		for k, s := range sets {
			row[k] = big.NewRat(-int64(s>>q&1), 1)
		}
		row[n-1] = grow[q]
		a, b = append(a, row), append(b, new(big.Rat).Neg(least[q]))
	}
	row := make([]*big.Rat, n)
	for k := range row {
		row[k] = big.NewRat(1, 1)
	}
	row[n-1] = new(big.Rat)
	a, b = append(a, row), append(b, big.NewRat(1, 1))
	c := make([]*big.Rat, n)
	for k := range c {
		c[k] = new(big.Rat)
	}
	c[n-1].SetInt64(1)
	return simplex(a, b, c)
}

// simplex maximises c·x for a·x ≤ b, x ≥ 0. It uses a dictionary, an extra variable for a start, and Bland's rule
// (Chvátal, "Linear Programming", 1983, chapters 2 and 3). The result is nil if nothing is feasible.
func simplex(a [][]*big.Rat, b, c []*big.Rat) *big.Rat {
	m, n := len(a), len(c)
	// Row i: basic variable = d[i][n+1] - Σ d[i][j]·x[j]; column n is the extra variable.
	d := make([][]*big.Rat, m+1)
	basic, free := make([]int, m), make([]int, n+1)
	for j := range free {
		free[j] = j
	}
	least := 0
	for i := range m {
		d[i] = append(append([]*big.Rat{}, a[i]...), big.NewRat(-1, 1), b[i])
		basic[i] = n + 1 + i
		if b[i].Cmp(b[least]) < 0 {
			least = i
		}
	}
	d[m] = make([]*big.Rat, n+2)
	for i := range d {
		for j := range d[i] {
			if d[i][j] == nil {
				d[i][j] = new(big.Rat)
			}
			d[i][j] = new(big.Rat).Set(d[i][j])
		}
	}
	pivot := func(r, k int) {
		inv := new(big.Rat).Inv(d[r][k])
		for j := range d[r] {
			d[r][j].Mul(d[r][j], inv)
		}
		d[r][k].Set(inv)
		for i := range d {
			if i == r || d[i][k].Sign() == 0 {
				continue
			}
			f := new(big.Rat).Set(d[i][k])
			d[i][k].SetInt64(0)
			for j := range d[i] {
				d[i][j].Sub(d[i][j], new(big.Rat).Mul(f, d[r][j]))
			}
		}
		basic[r], free[k] = free[k], basic[r]
	}
	// The last row is the objective: value = -d[m][n+1] + Σ -d[m][j]·x[j], so a negative entry is worth raising.
	run := func(closed int) {
		for {
			k := -1
			for j := range n + 1 {
				if free[j] != closed && d[m][j].Sign() < 0 && (k < 0 || free[j] < free[k]) {
					k = j
				}
			}
			if k < 0 {
				return
			}
			r := -1
			var most *big.Rat
			for i := range m {
				if d[i][k].Sign() > 0 {
					ratio := new(big.Rat).Quo(d[i][n+1], d[i][k])
					if r < 0 || ratio.Cmp(most) < 0 || ratio.Cmp(most) == 0 && basic[i] < basic[r] {
						r, most = i, ratio
					}
				}
			}
			pivot(r, k) // r < 0 would be an unbounded λ, which shares forbid
		}
	}
	if b[least].Sign() < 0 {
		d[m][n].SetInt64(1) // maximise minus the extra variable
		pivot(least, n)
		run(-1)
		if d[m][n+1].Sign() != 0 {
			return nil
		}
		for r, v := range basic {
			if v == n { // still basic, at 0: out
				for k := range n + 1 {
					if d[r][k].Sign() != 0 {
						pivot(r, k)
						break
					}
				}
			}
		}
	}
	// The true objective in terms of free variables.
	for j := range d[m] {
		d[m][j].SetInt64(0)
	}
	for j, v := range free {
		if v < n {
			d[m][j].Sub(d[m][j], c[v])
		}
	}
	for i, v := range basic {
		if v < n && c[v].Sign() != 0 {
			for j := range d[m] {
				d[m][j].Add(d[m][j], new(big.Rat).Mul(c[v], d[i][j]))
			}
		}
	}
	run(n)
	return d[m][n+1]
}

// objective is the least that any plan can have; nil if there is no plan.
func (o *oracle) objective() (least *big.Rat) {
	o.each(func(widths []int) {
		if rate := o.rate(widths); rate != nil && rate.Sign() > 0 {
			if t := new(big.Rat).Inv(rate); least == nil || t.Cmp(least) < 0 {
				least = t
			}
		}
	})
	return least
}

// rate is the best for some widths; nil if there is no plan.
func (o *oracle) rate(widths []int) *big.Rat {
	need := o.needs(widths)
	if need == nil {
		return nil
	}
	return best(o.rows(widths, need, o.floors(), o.pursued()))
}

// rows are rows for floors, and for the shares that a rate takes.
func (o *oracle) rows(widths []int, need, floor []*big.Rat, part []bool) (sets []uint, least, grow []*big.Rat) {
	// A set of rows twice: s>>q has to find a query for both.
	n := len(widths)
	for _, s := range o.sets(widths) {
		sets = append(sets, s|s<<n)
	}
	for q := range n {
		least, grow = append(least, floor[q]), append(grow, new(big.Rat))
	}
	for q := range n {
		g := new(big.Rat)
		if part[q] {
			g = need[q]
		}
		least, grow = append(least, new(big.Rat)), append(grow, g)
	}
	return sets, least, grow
}

// fair returns the progress of queries in the plan for some widths that improves the worst off first. It raises all
// that can be raised together, and finds for each whether it could be raised alone.
func (o *oracle) fair(widths []int) []*big.Rat {
	need, floor := o.needs(widths), o.floors()
	pursued := o.pursued()
	n := len(widths)
	for pass := range 2 {
		left := make([]bool, n)
		count := 0
		for q := range left {
			if left[q] = pursued[q] == (pass == 0); left[q] {
				count++
			}
		}
		for count > 0 {
			rate := best(o.rows(widths, need, floor, left))
			kept := append([]*big.Rat{}, floor...)
			for q := range n {
				if share := new(big.Rat).Mul(rate, need[q]); left[q] && share.Cmp(kept[q]) > 0 {
					kept[q] = share
				}
			}
			for q := range n {
				if !left[q] {
					continue
				}
				only := make([]bool, n)
				only[q] = true
				if best(o.rows(widths, need, kept, only)).Cmp(rate) <= 0 {
					left[q] = false
					floor[q] = kept[q]
					count--
				}
			}
		}
	}
	for q := range n {
		floor[q] = new(big.Rat).Quo(floor[q], need[q])
	}
	return floor
}
