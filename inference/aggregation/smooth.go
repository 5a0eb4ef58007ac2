package aggregation

import "math"

const (
	// gridPoints is how many values the grid has between neighbouring levels at most, and gridStep is the smallest
	// relative distance between two of them.
	gridPoints = 16
	gridStep   = 0.01
	// gridRounds ends the iteration long before the result follows the noise of the counts.
	gridRounds = 60
)

// spread is the distribution of values that a hop's codes came from, as [Hop.Smooth] sees it.
type spread struct {
	points []point
	counts []float64 // by code, from the one below the first
	ratios []float64
	total  float64
}

// point is a value between two levels.
type point struct {
	value  float64
	code   int32   // counts from the one below the first
	up     float64 // probability of code+1
	weight float64
}

// Smooth returns the quantile of the values that the switches measured, where [Hop.Quantile] gives that of the codes
// which they wrote. A switch rounds a value between two levels at random, and the more often up the closer the value is
// to the upper level. Smooth finds the distribution of values that makes the codes most likely. It uses expectation
// maximisation on a grid, which takes some tens of microseconds a call. Where codes share bins, Smooth returns the same
// as Quantile. Where the levels have no other values between them, the two agree.
func (h *Hop) Smooth(q float64) float64 {
	if !(q > 0) || q >= 1 || h.total == 0 || h.shared || h.pool.config.Kind == Frequent {
		return h.Quantile(q)
	}
	s := &h.pool.spread
	s.lay(h)
	for range gridRounds {
		s.improve()
	}
	want := math.Ceil(q*s.total) - 0.5 // the weights are no integers, and their sum may be off by rounding
	var below float64
	for _, p := range s.points {
		if below += p.weight; below >= want {
			return p.value
		}
	}
	return h.Max
}

// lay makes the grid. It has the levels whose codes were seen, and values between these and the levels next to them. At
// first all of them are equally likely.
func (s *spread) lay(h *Hop) {
	code := h.pool.code
	first := int(h.entries[0].code) - 1
	last := int(h.entries[len(h.entries)-1].code) + 1
	s.points = s.points[:0]
	s.counts = append(s.counts[:0], make([]float64, last-first+2)...)
	s.ratios = append(s.ratios[:0], s.counts...)
	s.total = float64(h.total)
	for _, e := range h.entries {
		s.counts[int(e.code)-first] = float64(e.weight)
	}
	for c := max(first, 0); c <= last; c++ {
		seen, next := s.counts[c-first] != 0, s.counts[c-first+1] != 0
		if !seen && !next || c>>code.Bits() != 0 {
			continue
		}
		lo := code.Decode(uint32(c))
		hi := lo
		if (c+1)>>code.Bits() == 0 {
			hi = code.Decode(uint32(c + 1))
		}
		n := 1
		if hi > lo+1 {
			n = min(max(int(math.Ceil((hi-lo)/(hi*gridStep))), 1), gridPoints)
		}
		for j := range n {
			if up := float64(j) / float64(n); seen || up > 0 {
				s.points = append(s.points, point{lo + (hi-lo)*up, int32(c - first), up, (s.counts[c-first] + s.counts[c-first+1]) / float64(2*n)})
			}
		}
	}
}

// improve is one round of expectation maximisation.
func (s *spread) improve() {
	clear(s.ratios)
	for i := range s.points {
		p := &s.points[i]
		s.ratios[p.code] += p.weight * (1 - p.up)
		s.ratios[p.code+1] += p.weight * p.up
	}
	for c, n := range s.counts {
		if s.ratios[c] != 0 {
			s.ratios[c] = n / s.ratios[c]
		}
	}
	for i := range s.points {
		p := &s.points[i]
		p.weight *= (1-p.up)*s.ratios[p.code] + p.up*s.ratios[p.code+1]
	}
}
