package inference

import "math"

const (
	// valueError is the relative error of each value of a summary: sketches/doc.go.
	valueError = 1. / 64
	// sureBounds are how many standard deviations of a rank hold it with 95 %.
	sureBounds = 1.96
	// mostError is the relative error beyond which a quantile has no meaning.
	mostError = 9.99
)

// P50Error and P99Error return how far the median and the 99th percentile of the sampled values may be from those of
// the summary. The errors to either side are shares of them, with 95 % confidence. Few values are little evidence about
// a tail: of twenty none is known to be of the highest percent.
func (s *Summary) P50Error() float64 { return s.quantileError(.5, s.P50) }

// P99Error is that of the 99th percentile.
func (s *Summary) P99Error() float64 { return s.quantileError(.99, s.P99) }

func (s *Summary) quantileError(q float64, v uint64) float64 {
	if s.Count == 0 || v == 0 {
		return 0
	}
	n := float64(s.Count)
	if n*(1-q) < 1 { // none of the values is known to be beyond it
		return mostError
	}
	d := sureBounds * math.Sqrt(q*(1-q)/n)
	level, low, high := s.level(q), s.level(max(q-d, .5/n)), s.level(min(q+d, 1-.075/n))
	share := math.Max(math.Exp(high-level)-1, 1-math.Exp(low-level)) + valueError
	switch {
	case s.Beyond(q):
		return mostError
	case s.Bounds != nil:
		share += float64(s.Bounds.width(q, v)) / float64(v)
	}
	return min(share, mostError)
}

// level is the logarithm of a quantile, between those that are known along normal quantiles, and beyond them as they go
// on.
func (s *Summary) level(q float64) float64 {
	z := func(q float64) float64 { return math.Sqrt2 * math.Erfinv(2*q-1) }
	at := z(q)
	values := [...]float64{float64(s.P50), float64(s.P90), float64(s.P99), float64(s.Max)}
	places := [...]float64{0, z(.9), z(.99), z(max(1-.5/float64(s.Count), .995))}
	k := 1
	for k < len(values)-1 && at > places[k] {
		k++
	}
	from, to := math.Log(max(values[k-1], 1)), math.Log(max(values[k], values[k-1], 1))
	return from + (at-places[k-1])/(places[k]-places[k-1])*(to-from)
}

// NanosecondsWithin writes a time with its relative error, and no more digits than hold: "163µs ± 2 %", "160µs ± 28 %".
func NanosecondsWithin(ns, share float64) string {
	switch {
	case share <= 0:
		return Nanoseconds(ns)
	case share >= 1:
		return "about " + nanoseconds(ns, 1)
	case share >= .05:
		return nanoseconds(ns, 2) + " ± " + Percent(share, 2)
	}
	return Nanoseconds(ns) + " ± " + Percent(share, 1)
}
