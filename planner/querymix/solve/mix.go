package solve

import (
	"math"
	"slices"
)

// mix is the linear programme over all sets of items that fit into a packet. Only the sets that pricing finds are
// generated. Its variables are the share y of each set and the rate λ, which is maximised, such that
//
//	Σ y/need - λ ≥ 0      for every query that takes part, over the sets with one of its items
//	Σ y          ≥ floor  for every query with a floor, alike
//	Σ y          = 1
//
// λ is the inverse of the worst packets-to-answer. The primal simplex method solves it with the inverse of the basis.
// The entering column comes from a knapsack over the dual prices (column generation, Gilmore and Gomory 1961).
//
// Prices prove a bound whatever their rounding errors. Let a rate of 1 have the price a and a share of 1 the price b. A
// packet then costs at most K, the optimum of the knapsack. So λ·Σa + Σ b·floor ≤ K in every mix.
type mix struct {
	items    []item
	floor    []float64 // by query; 0 is none
	rateRow  []int     // by query: row of its rate, or none
	floorRow []int     // by query: row of its floor, or none
	scale    []float64 // by query: factor of the row of its rate, so that its numbers are about 1
	unit     float64   // of λ, for the same reason
	rows     int       // the last is the sum of shares
	pack     *pack
	profit   []float64
	pool     [][]int16 // sets that a knapsack has given
	center   []float64 // dual values with the best bound so far
	bound    float64
	trial    []float64

	basis   []column
	inverse []float64 // rows × rows
	order   []float64 // rows × rows: the inverse times the basis that an aim began with
	value   []float64
	right   []float64
	dual    []float64
	along   []float64 // the entering column in terms of the basis
	entries []float64
}

type column struct {
	kind  columnKind
	query int     // of slack, surplus or artificial
	set   []int16 // items
}

type columnKind uint8

const (
	set        columnKind = iota // its share
	rate                         // λ
	slack                        // of a query's rate
	surplus                      // of a query's share
	artificial                   // missing share of a query
	spare                        // share of packets that carry nothing
)

const (
	tiny      = 1e-11 // reduced costs below are 0
	pivotSize = 1e-9  // smallest entry to pivot on
)

// newMix begins a programme in which some queries take part in λ.
func newMix(bits int, items []item, floor []float64, part []bool) *mix {
	n := len(floor)
	m := &mix{items: items, floor: floor, rateRow: make([]int, n), floorRow: make([]int, n), scale: make([]float64, n), pack: newPack(bits), profit: make([]float64, len(items))}
	for _, it := range items {
		if s := &m.scale[it.query]; *s == 0 || it.need < *s {
			*s = it.need
		}
		if part[it.query] {
			m.unit = max(m.unit, m.scale[it.query])
		}
	}
	for q := range n {
		m.rateRow[q], m.floorRow[q] = none, none
		if part[q] {
			m.rateRow[q] = m.rows
			m.rows++
			m.basis, m.right = append(m.basis, column{kind: slack, query: q}), append(m.right, 0)
		}
		if floor[q] > 0 {
			m.floorRow[q] = m.rows
			m.rows++
			m.basis, m.right = append(m.basis, column{kind: artificial, query: q}), append(m.right, floor[q])
		}
	}
	m.rows++
	m.basis, m.right = append(m.basis, column{kind: spare}), append(m.right, 1)
	m.inverse, m.order = make([]float64, m.rows*m.rows), make([]float64, m.rows*m.rows)
	m.dual, m.along, m.entries, m.trial = make([]float64, m.rows), make([]float64, m.rows), make([]float64, m.rows), make([]float64, m.rows)
	for r := range m.rows {
		m.inverse[r*m.rows+r] = 1
	}
	m.value = slices.Clone(m.right)
	return m
}

// fill writes a column out.
func (m *mix) fill(c *column) {
	clear(m.entries)
	switch c.kind {
	case set:
		for _, i := range c.set {
			it := &m.items[i]
			if r := m.rateRow[it.query]; r != none {
				m.entries[r] = -m.scale[it.query] / it.need
			}
			if r := m.floorRow[it.query]; r != none {
				m.entries[r] = 1
			}
		}
		m.entries[m.rows-1] = 1
	case rate:
		for q, r := range m.rateRow {
			if r != none {
				m.entries[r] = m.scale[q] / m.unit
			}
		}
	case slack:
		m.entries[m.rateRow[c.query]] = 1
	case surplus:
		m.entries[m.floorRow[c.query]] = -1
	case artificial:
		m.entries[m.floorRow[c.query]] = 1
	case spare:
		m.entries[m.rows-1] = 1
	}
}

// solve finds the best mix. Without a result in time, the best found is given, with its bound.
func (m *mix) solve(stop func() bool) *solution {
	done := m.improve(artificial, stop)
	lack := 0.0
	for r, c := range m.basis {
		if c.kind == artificial {
			lack += m.value[r]
		}
	}
	if lack > 1e-9 {
		if !done {
			return nil
		}
		s := m.prices(m.dual)
		s.lacks = true
		return s
	}
	m.expel()
	m.center = m.center[:0]
	m.improve(rate, stop)
	m.invert() // corrects rounding errors
	m.price(rate)
	s := m.prices(m.dual)
	if len(m.center) > 0 && m.bound < s.bound*(1-1e-9) {
		s = m.prices(m.center) // stopped early
	}
	m.read(s)
	return s
}

// improve takes steps of the simplex method until there is no better mix: fewer artificial shares, or a higher rate.
func (m *mix) improve(aim columnKind, stop func() bool) bool {
	clear(m.order)
	for r := range m.rows {
		m.order[r*m.rows+r] = 1
	}
	for step := range 2000 + 50*m.rows {
		if step&15 == 15 && stop() {
			return false
		}
		if step&63 == 63 {
			m.invert()
		}
		m.price(aim)
		enter, gain := m.choose(aim)
		if gain <= tiny {
			return true
		}
		if !m.enter(enter) {
			return true // no bound: cannot be, as shares sum to 1
		}
	}
	return false
}

func cost(kind, aim columnKind) float64 {
	switch {
	case kind != aim:
		return 0
	case aim == artificial:
		return -1
	}
	return 1
}

// price computes the dual values of rows for an aim.
func (m *mix) price(aim columnKind) {
	clear(m.dual)
	for r := range m.basis {
		if c := cost(m.basis[r].kind, aim); c != 0 {
			for k, x := range m.inverse[r*m.rows : (r+1)*m.rows] {
				m.dual[k] += c * x
			}
		}
	}
}

// choose finds a column that gains something. A knapsack is solved only where no known column gains. The first one uses
// dual values between the present ones and those of the best bound, as the present ones jump about (P. Wentges,
// "Weighted Dantzig-Wolfe decomposition", 1997). The second one uses the present values. Where neither finds a column,
// the mix is optimal.
func (m *mix) choose(aim columnKind) (enter column, gain float64) {
	offer := func(c column, g float64) {
		if g > gain {
			enter, gain = c, g
		}
	}
	sum := 0.0
	for q := range m.floor {
		if r := m.rateRow[q]; r != none {
			offer(column{kind: slack, query: q}, -m.dual[r])
			sum += m.dual[r] * m.scale[q] / m.unit
		}
		if r := m.floorRow[q]; r != none {
			offer(column{kind: surplus, query: q}, m.dual[r])
		}
	}
	packet := m.dual[m.rows-1]
	offer(column{kind: spare}, -packet)
	if aim == rate {
		offer(column{kind: rate}, 1-sum)
	}
	m.earn(m.dual)
	earns := func(set []int16) (sum float64) {
		for _, i := range set {
			sum += m.profit[i]
		}
		return sum - packet
	}
	for _, s := range m.pool {
		offer(column{kind: set, set: s}, earns(s))
	}
	if gain > tiny {
		return enter, gain
	}
	if aim == rate && len(m.center) > 0 {
		for r := range m.trial {
			m.trial[r] = 0.5*m.center[r] + 0.5*m.dual[r]
		}
		s := m.ask(m.trial)
		m.earn(m.dual)
		if g := earns(s); g > tiny {
			m.pool = append(m.pool, s)
			return column{kind: set, set: s}, g
		}
	}
	s := m.ask(m.dual)
	if g := earns(s); g > tiny {
		m.pool = append(m.pool, s)
		return column{kind: set, set: s}, g
	}
	return column{}, 0
}

// earn computes what items earn at dual values.
func (m *mix) earn(dual []float64) {
	for i, it := range m.items {
		m.profit[i] = 0
		if r := m.floorRow[it.query]; r != none {
			m.profit[i] -= dual[r]
		}
		if r := m.rateRow[it.query]; r != none {
			m.profit[i] += dual[r] * m.scale[it.query] / it.need
		}
	}
}

// ask finds the set that earns most at dual values, and keeps these if they prove a better bound than all before.
func (m *mix) ask(dual []float64) []int16 {
	m.earn(dual)
	earned, chosen := m.pack.solve(m.items, m.profit)
	sum, held := 0.0, 0.0
	for q, f := range m.floor {
		if r := m.rateRow[q]; r != none {
			sum += max(dual[r], 0) * m.scale[q]
		}
		if r := m.floorRow[q]; r != none {
			held -= min(dual[r], 0) * f
		}
	}
	if sum > 0 {
		if b := (earned - held) / sum; len(m.center) == 0 || b < m.bound {
			m.bound = b
			m.center = append(m.center[:0], dual...)
		}
	}
	return slices.Clone(chosen)
}

// enter exchanges a column for one of the basis. Ties of the leaving column are broken as if powers of an infinitely
// small number disturbed the shares, row by row (Dantzig, Orden, Wolfe 1955). Most rows end at 0, and this prevents
// cycles.
func (m *mix) enter(c column) bool {
	m.fill(&c)
	for r := range m.rows {
		x := 0.0
		for k, y := range m.inverse[r*m.rows : (r+1)*m.rows] {
			x += y * m.entries[k]
		}
		m.along[r] = x
	}
	leave, least := none, math.Inf(1)
	for r, d := range m.along {
		if d <= pivotSize {
			continue
		}
		ratio := max(m.value[r], 0) / d
		if tie := 1e-12*least + 1e-14; leave == none || ratio < least-tie || ratio <= least+tie && m.before(r, leave) {
			leave, least = r, ratio
		}
	}
	if leave == none {
		return false
	}
	m.exchange(leave, c)
	return true
}

// before compares rows in the order of leaving, with what is entering.
func (m *mix) before(r, s int) bool {
	a, b := m.order[r*m.rows:(r+1)*m.rows], m.order[s*m.rows:(s+1)*m.rows]
	for k, x := range a {
		if x, y := x/m.along[r], b[k]/m.along[s]; math.Abs(x-y) > 1e-11*(1+math.Abs(x)) {
			return x < y
		}
	}
	return false
}

// exchange puts a column, which along describes, in place of that of a row.
func (m *mix) exchange(leave int, c column) {
	p := m.along[leave]
	step := max(m.value[leave], 0) / p
	for _, t := range [][]float64{m.inverse, m.order} {
		row := t[leave*m.rows : (leave+1)*m.rows]
		for k := range row {
			row[k] /= p
		}
		for r, d := range m.along {
			if r == leave || d == 0 {
				continue
			}
			other := t[r*m.rows : (r+1)*m.rows]
			for k, x := range row {
				other[k] -= d * x
			}
		}
	}
	for r, d := range m.along {
		m.value[r] -= d * step
	}
	m.value[leave] = step
	m.basis[leave] = c
}

// expel exchanges artificial shares, which are 0 now and must stay so, for surplus of the same row.
func (m *mix) expel() {
	for r := range m.basis {
		if c := m.basis[r]; c.kind == artificial {
			// A surplus is the artificial's opposite: its row of the inverse times that column is -1.
			in := column{kind: surplus, query: c.query}
			m.fill(&in)
			for k := range m.rows {
				m.along[k] = 0
			}
			m.along[r] = -1
			m.value[r] = 0
			m.exchange(r, in)
		}
	}
}

// invert computes the inverse of the basis, and the values, anew.
func (m *mix) invert() {
	n := m.rows
	b := make([]float64, n*n)
	for r := range m.basis {
		m.fill(&m.basis[r])
		for k, x := range m.entries {
			b[k*n+r] = x
		}
	}
	inv := make([]float64, n*n)
	for r := range n {
		inv[r*n+r] = 1
	}
	for c := range n {
		p := c
		for r := c + 1; r < n; r++ {
			if math.Abs(b[r*n+c]) > math.Abs(b[p*n+c]) {
				p = r
			}
		}
		if math.Abs(b[p*n+c]) < 1e-12 {
			return // the known columns are better
		}
		for k := range n {
			b[p*n+k], b[c*n+k] = b[c*n+k], b[p*n+k]
			inv[p*n+k], inv[c*n+k] = inv[c*n+k], inv[p*n+k]
		}
		d := 1 / b[c*n+c]
		for k := range n {
			b[c*n+k] *= d
			inv[c*n+k] *= d
		}
		for r := range n {
			if f := b[r*n+c]; r != c && f != 0 {
				for k := range n {
					b[r*n+k] -= f * b[c*n+k]
					inv[r*n+k] -= f * inv[c*n+k]
				}
			}
		}
	}
	m.inverse = inv
	for r := range n {
		x := 0.0
		for k, y := range inv[r*n : (r+1)*n] {
			x += y * m.right[k]
		}
		m.value[r] = x
	}
}
