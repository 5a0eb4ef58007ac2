package solve

import "math"

// A bound of schedules comes from this: begin a window as long as the period of a link at a random moment. A probe of
// interval I starts in it with probability min(1, period/I), and some probe on the link must start in it for certain. So
// the probabilities of the probes on a link add up to 1 or more. Of all mixtures of intervals with this property, and
// within the limits, the one of fewest bytes bounds all schedules, whatever their phases.
//
// That linear program is bounded in turn by its Lagrangian relaxation. It has a price for every row and every limit,
// and each probe chooses its best interval independently. Any prices give a valid bound; subgradient steps make them
// good.

// prices are multipliers, and what follows from them.
type prices struct {
	row, limit []float64
	left       float64 // of a unit of weight that is left out; for bounds of bytes

	value  float64     // the bound
	budget float64     // that it was made for
	extra  [][]float64 // by probe and option: how much the bound rises if the probe has it
	skip   []float64   // by row: how much it rises if the row is not seen; infinite where it must be
	see    []float64   // by row: how much it rises if the row is seen
}

// options are the intervals that a probe can have: not sent, which is 0, and those of the grid.
func (c *core) option(j int) int32 {
	if j == 0 {
		return 0
	}
	return c.grid[j-1]
}

// open reports whether probe p can have option j.
func (c *core) open(p int32, j int) bool {
	if j == 0 {
		return !c.must[p]
	}
	return c.grid[j-1] <= c.slow[p]
}

// goal is the quantity that a bound is about.
type goal struct {
	bytes  bool    // of bytes, of plans that leave out no more than budget; otherwise of the weight left out
	budget float64 // of a core that is partial
}

// relaxation holds what evaluating prices needs.
type relaxation struct {
	*core
	goal   goal
	weight float64     // of all rows
	share  [][]float64 // by period and option: how certain a look in the period is
	sum    []float64   // by period
	best   []int       // by probe: the option
	grad   []float64   // by row, by limit, and of the price of leaving out
}

func newRelaxation(c *core, g goal) *relaxation {
	x := &relaxation{core: c, goal: g, sum: make([]float64, len(c.periods)), best: make([]int, len(c.cost)), grad: make([]float64, len(c.rows)+len(c.caps)+1)}
	for _, t := range c.periods {
		share := make([]float64, len(c.grid)+1)
		for j, i := range c.grid {
			share[j+1] = min(1, float64(t)/float64(i))
		}
		x.share = append(x.share, share)
	}
	for k := range c.rows {
		x.weight += c.rows[k].weight
	}
	return x
}

// skip is the cost in the relaxation of leaving row r out.
func (x *relaxation) skip(y *prices, r int) float64 {
	switch {
	case !x.partial:
		return math.Inf(1)
	case x.goal.bytes:
		return y.left * x.rows[r].weight
	}
	return x.rows[r].weight
}

// evaluate returns the bound of prices, and the direction in which it rises.
func (x *relaxation) evaluate(y *prices) float64 {
	value, rows, limits := 0.0, len(x.rows), len(x.caps)
	out := 0.0
	for r := range x.rows {
		skip := x.skip(y, r)
		value += min(y.row[r], skip)
		x.grad[r] = 1
		if y.row[r] > skip {
			x.grad[r] = 0
			out += x.rows[r].weight
		}
	}
	for k := range x.caps {
		value -= y.limit[k] // uses are counted in rooms
		x.grad[rows+k] = -1
	}
	x.grad[rows+limits] = 0
	if x.partial && x.goal.bytes {
		value -= y.left * x.goal.budget
		x.grad[rows+limits] = out - x.goal.budget
	}
	for p := range x.cost {
		j, v := x.bestOption(y, int32(p))
		value += v
		x.best[p] = j
		if j == 0 {
			continue
		}
		for _, r := range x.on[p] {
			x.grad[r] -= x.share[x.rows[r].class][j]
		}
		starts := float64(x.starts(x.option(j)))
		for _, u := range x.uses[p] {
			x.grad[rows+int(u.limit)] += starts * u.bytes / x.caps[u.limit].room
		}
	}
	return value
}

// perStart is the cost of a start of a probe, with the prices of limits.
func (x *relaxation) perStart(y *prices, p int32) float64 {
	cost := 0.0
	if x.goal.bytes {
		cost = float64(x.cost[p])
	}
	for _, u := range x.uses[p] {
		cost += y.limit[u.limit] * u.bytes / x.caps[u.limit].room
	}
	return cost
}

// values sets the value of every option of a probe; infinite if it cannot have it.
func (x *relaxation) values(y *prices, p int32, out []float64) {
	clear(x.sum)
	for _, r := range x.on[p] {
		x.sum[x.rows[r].class] += y.row[r]
	}
	cost := x.perStart(y, p)
	for j := range out {
		if !x.open(p, j) {
			out[j] = math.Inf(1)
			continue
		}
		out[j] = 0
		if j > 0 {
			out[j] = cost * float64(x.starts(x.grid[j-1]))
			for t, s := range x.sum {
				out[j] -= s * x.share[t][j]
			}
		}
	}
}

func (x *relaxation) bestOption(y *prices, p int32) (best int, value float64) {
	var few [32]float64 // no allocation where this is enough
	out := append(few[:0], make([]float64, len(x.grid)+1)...)
	x.values(y, p, out)
	value = math.Inf(1)
	for j, v := range out {
		if v < value {
			best, value = j, v
		}
	}
	return best, value
}

// bound raises the bound by subgradient steps, from the given prices or from a guess. It stops when the bound reaches
// target, which is known to be possible.
func (x *relaxation) bound(y *prices, target float64, steps int, stop func() bool) *prices {
	if y == nil {
		y = x.guess()
	}
	now := &prices{row: append([]float64(nil), y.row...), limit: append([]float64(nil), y.limit...), left: y.left}
	best := &prices{row: append([]float64(nil), y.row...), limit: append([]float64(nil), y.limit...), left: y.left, value: math.Inf(-1)}
	scale, idle := 1.5, 0
	for step := range steps {
		v := x.evaluate(now)
		if v > best.value+1e-7*math.Abs(best.value) {
			idle = 0
		} else {
			idle++
		}
		if v > best.value {
			copy(best.row, now.row)
			copy(best.limit, now.limit)
			best.left, best.value = now.left, v
		}
		if best.value >= target-1e-9*math.Abs(target) || step&7 == 7 && stop() {
			break
		}
		if idle >= 12 {
			scale, idle = scale/2, 0
			copy(now.row, best.row)
			copy(now.limit, best.limit)
			now.left = best.left
			if scale < 1e-4 {
				break
			}
			v = x.evaluate(now)
		}
		if !x.step(now, scale*(target*1.0005+1e-9-v)) {
			break
		}
	}
	x.finish(best)
	return best
}

// step moves prices in the direction of the gradient. It reports false where there is none.
func (x *relaxation) step(y *prices, gain float64) bool {
	rows, limits := len(x.rows), len(x.caps)
	at := func(k int) *float64 {
		switch {
		case k < rows:
			return &y.row[k]
		case k < rows+limits:
			return &y.limit[k-rows]
		}
		return &y.left
	}
	square := 0.0
	for k, g := range x.grad {
		if g > 0 || *at(k) > 0 {
			square += g * g
		} else {
			x.grad[k] = 0
		}
	}
	if square < 1e-18 {
		return false
	}
	for k, g := range x.grad {
		if g != 0 {
			q := at(k)
			*q = max(0, *q+gain/square*g)
		}
	}
	return true
}

// guess divides the bytes of every probe among its rows, and assigns the least share to a row.
func (x *relaxation) guess() *prices {
	y := &prices{row: make([]float64, len(x.rows)), limit: make([]float64, len(x.caps))}
	for r := range x.rows {
		row := &x.rows[r]
		y.row[r] = math.Inf(1)
		for _, p := range row.probes {
			one := 1 / float64(max(1, len(x.on[p])))
			if x.goal.bytes {
				one *= float64(x.cost[p]) * float64(x.n) / float64(row.period)
			} else {
				one = 0
			}
			y.row[r] = min(y.row[r], one)
		}
		if !x.goal.bytes {
			y.row[r] = row.weight
		}
	}
	return y
}

// finish works out what follows from prices.
func (x *relaxation) finish(y *prices) {
	y.value, y.budget = x.evaluate(y), x.goal.budget
	y.extra = make([][]float64, len(x.cost))
	all := make([]float64, len(x.cost)*(len(x.grid)+1))
	for p := range x.cost {
		n := len(x.grid) + 1
		list := all[p*n : (p+1)*n : (p+1)*n]
		x.values(y, int32(p), list)
		least := list[x.best[p]]
		for j := range list {
			list[j] -= least
		}
		y.extra[p] = list
	}
	y.skip, y.see = make([]float64, len(x.rows)), make([]float64, len(x.rows))
	for r := range x.rows {
		skip := x.skip(y, r)
		least := min(y.row[r], skip)
		y.skip[r], y.see[r] = skip-least, y.row[r]-least
	}
}
