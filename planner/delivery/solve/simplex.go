package solve

import (
	"math"
	"slices"
)

// program is a linear programme with bounded variables. The dual simplex method solves it on a dense tableau that holds
// only the columns of nonbasic variables. Bounds can be tightened and rows added between solutions; each solution
// starts from the last one. It suits some hundreds of variables and rows.
//
// The first n variables are those of the caller, the others are slacks, one a row. Minimised.
type program struct {
	n      int
	lo, hi []float64   // by variable
	cost   []float64   // of the caller's variables
	at     []int32     // by variable: its row if basic, else the complement of its column
	basis  []int32     // by row
	column []int32     // nonbasic variable by column
	upper  []bool      // by column: is at its upper bound
	value  []float64   // of basic variables, by row
	price  []float64   // reduced costs, by column
	t      []float64   // row by row: a basic variable falls by this much as that of the column grows by 1
	stop   func() bool // ends solving as stalled; nil for never
}

type term struct {
	v int32
	a float64
}

const (
	feasibility = 1e-8 // bounds are kept within
	pivotSize   = 1e-8 // smallest coefficient to pivot on
)

// newProgram begins a programme without rows. Variables of negative cost need a finite upper bound. A tiny further cost,
// different for every variable, keeps the method from going round in circles.
func newProgram(lo, hi, cost []float64) *program {
	n := len(lo)
	l := &program{n: n, lo: slices.Clone(lo), hi: slices.Clone(hi), cost: cost, at: make([]int32, n), column: make([]int32, n), upper: make([]bool, n), price: make([]float64, n)}
	x := uint32(2463534242)
	for v := range n {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		l.at[v], l.column[v] = ^int32(v), int32(v)
		if cost[v] < 0 {
			l.upper[v] = true
			l.price[v] = cost[v] - 1e-7*(1+float64(x)/math.MaxUint32)
		} else {
			l.price[v] = cost[v] + 1e-7*(1+float64(x)/math.MaxUint32)
		}
	}
	return l
}

// grow makes room for rows.
func (l *program) grow(rows int) {
	l.lo, l.hi, l.at = slices.Grow(l.lo, rows), slices.Grow(l.hi, rows), slices.Grow(l.at, rows)
	l.basis, l.value, l.t = slices.Grow(l.basis, rows), slices.Grow(l.value, rows), slices.Grow(l.t, rows*l.n)
}

// clone copies what solving changes.
func (l *program) clone() *program {
	c := *l
	c.lo, c.hi, c.at = slices.Clone(l.lo), slices.Clone(l.hi), slices.Clone(l.at)
	c.basis, c.column, c.upper = slices.Clone(l.basis), slices.Clone(l.column), slices.Clone(l.upper)
	c.value, c.price, c.t = slices.Clone(l.value), slices.Clone(l.price), slices.Clone(l.t)
	return &c
}

// bound is the value of the nonbasic variable of a column.
func (l *program) bound(j int) float64 {
	if l.upper[j] {
		return l.hi[l.column[j]]
	}
	return l.lo[l.column[j]]
}

// x is the value of a variable.
func (l *program) x(v int32) float64 {
	if at := l.at[v]; at >= 0 {
		return l.value[at]
	}
	return l.bound(int(^l.at[v]))
}

// objective is the cost of the present values.
func (l *program) objective() (sum float64) {
	for v, c := range l.cost {
		if c != 0 {
			sum += c * l.x(int32(v))
		}
	}
	return sum
}

// addRow demands lo <= Σ a x <= hi.
func (l *program) addRow(terms []term, lo, hi float64) {
	// The slack is -Σ a x, between -hi and -lo.
	row := len(l.basis)
	v := int32(len(l.lo))
	l.lo, l.hi = append(l.lo, -hi), append(l.hi, -lo)
	l.at = append(l.at, int32(row))
	l.basis = append(l.basis, v)
	l.t = slices.Grow(l.t, l.n)[:len(l.t)+l.n]
	t := l.t[row*l.n:]
	clear(t)
	value := 0.0
	for _, m := range terms {
		value -= m.a * l.x(m.v)
		if at := l.at[m.v]; at < 0 {
			t[^at] += m.a
		} else {
			for j, c := range l.t[int(at)*l.n : (int(at)+1)*l.n] {
				t[j] -= m.a * c
			}
		}
	}
	l.value = append(l.value, value)
}

// fix fixes a variable to a value.
func (l *program) fix(v int32, x float64) {
	if at := l.at[v]; at < 0 {
		j := int(^at)
		if d := x - l.bound(j); d != 0 {
			for i := range l.value {
				l.value[i] -= l.t[i*l.n+j] * d
			}
		}
	}
	l.lo[v], l.hi[v] = x, x
}

// fixed reports whether a variable has only one value.
func (l *program) fixed(v int32) bool { return l.lo[v] == l.hi[v] }

// status is how solving ended.
type status uint8

const (
	optimal status = iota
	infeasible
	stalled // too many steps, or stopped
)

// solve finds the least cost (C. E. Lemke, 1954, with bounds): rows out of bounds leave, the column that keeps the
// reduced costs right enters.
func (l *program) solve() status {
	for step := range 200 + 20*(len(l.basis)+l.n) {
		if step&63 == 63 && l.stop != nil && l.stop() {
			return stalled
		}
		r, worst := -1, feasibility
		for i, x := range l.value {
			v := l.basis[i]
			if d := max(l.lo[v]-x, x-l.hi[v]); d > worst {
				r, worst = i, d
			}
		}
		if r < 0 {
			return optimal
		}
		v := l.basis[r]
		below := l.value[r] < l.lo[v]
		t := l.t[r*l.n : (r+1)*l.n]
		best, enter := math.Inf(1), -1
		for j, a := range t {
			if math.Abs(a) < pivotSize {
				continue
			}
			if u := l.column[j]; l.lo[u] == l.hi[u] || (a < 0) != (below != l.upper[j]) {
				continue
			}
			ratio := math.Abs(l.price[j] / a)
			if ratio < best-1e-12 || ratio <= best+1e-12 && math.Abs(a) > math.Abs(t[enter]) {
				best, enter = ratio, j
			}
		}
		if enter < 0 {
			return infeasible
		}
		l.pivot(r, enter, below)
	}
	return stalled
}

// pivot exchanges the variable of row r, which goes to its lower or upper bound, for that of column j.
func (l *program) pivot(r, j int, toLower bool) {
	n := l.n
	row := l.t[r*n : (r+1)*n]
	leave, enter := l.basis[r], l.column[j]
	target := l.hi[leave]
	if toLower {
		target = l.lo[leave]
	}
	p := row[j]
	d := (l.value[r] - target) / p
	x := l.bound(j) + d
	inv := 1 / p
	for k := range row {
		row[k] *= inv
	}
	row[j] = inv
	for i := range l.value {
		if i == r {
			continue
		}
		other := l.t[i*n : (i+1)*n]
		f := other[j]
		if f == 0 {
			continue
		}
		l.value[i] -= f * d
		other[j] = 0
		for k, c := range row {
			other[k] -= f * c
		}
	}
	if f := l.price[j]; f != 0 {
		l.price[j] = 0
		for k, c := range row {
			l.price[k] -= f * c
		}
	}
	l.value[r] = x
	l.basis[r], l.column[j] = enter, leave
	l.upper[j] = !toLower
	l.at[enter], l.at[leave] = int32(r), ^int32(j)
}
