package solve

import "math"

// solution is a mix of sets.
type solution struct {
	sets   [][]int16
	shares []float64
	rate   float64
	bound  float64   // no mix has a higher rate
	rates  []float64 // prices, by query
	floors []float64 // prices, by query
	lacks  bool      // floors cannot be held; the prices of floors prove it
}

// prices reads dual values as prices, with what they prove.
func (m *mix) prices(dual []float64) *solution {
	n := len(m.floor)
	s := &solution{rates: make([]float64, n), floors: make([]float64, n), bound: math.Inf(1)}
	sum, held := 0.0, 0.0
	for q := range n {
		if r := m.rateRow[q]; r != none {
			s.rates[q] = clip(dual[r]) * m.scale[q]
			sum += s.rates[q]
		}
		if r := m.floorRow[q]; r != none {
			s.floors[q] = clip(-dual[r])
			held += s.floors[q] * m.floor[q]
		}
	}
	for i, it := range m.items {
		m.profit[i] = s.floors[it.query] + s.rates[it.query]/it.need
	}
	earned, _ := m.pack.solve(m.items, m.profit)
	if sum > 0 { // so that prices of rates sum to 1
		s.bound = (earned - held) / sum
		for q := range n {
			s.rates[q] /= sum
			s.floors[q] /= sum
		}
	}
	return s
}

func clip(x float64) float64 {
	if x < 1e-12 {
		return 0
	}
	return x
}

// read adds the mix to its prices.
func (m *mix) read(s *solution) {
	sum := 0.0
	for r, c := range m.basis {
		if c.kind == set && m.value[r] > 1e-12 {
			s.sets, s.shares = append(s.sets, c.set), append(s.shares, m.value[r])
			sum += m.value[r]
		}
	}
	for k := range s.shares {
		s.shares[k] /= sum
	}
	s.rate = math.Inf(1)
	for q, x := range s.progress(m.items, len(m.floor)) {
		if m.rateRow[q] != none {
			s.rate = min(s.rate, x)
		}
	}
}

// progress is the rate at which each query nears its answer.
func (s *solution) progress(items []item, queries int) []float64 {
	x := make([]float64, queries)
	for k, y := range s.shares {
		for _, i := range s.sets[k] {
			x[items[i].query] += y / items[i].need
		}
	}
	return x
}

// carried is the share of packets of each query.
func (s *solution) carried(items []item, queries int) []float64 {
	x := make([]float64, queries)
	for k, y := range s.shares {
		for _, i := range s.sets[k] {
			x[items[i].query] += y
		}
	}
	return x
}
