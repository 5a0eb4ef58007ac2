package detect

import "math"

// measured false findings: the share of windows in which one begins without a fault, by Config.Strict, on hops of which
// nothing varies but the sample (lognormal, σ .3 to 1, 20 to 5000 values) or whose level wanders (AR(1)), behind their first
// six hours, in 25 million windows (the first in one million). Both statistics of a hop count as one.
var measuredFalse = []struct{ strict, rate float64 }{
	{.65, 1.2e-4}, {.7, 6.2e-5}, {.75, 2.7e-5}, {.8, 1e-5}, {.85, 3.2e-6}, {.9, 1.2e-6},
}

// Below the least share that was measured, limits are extrapolated as if false findings were halved by so much more each time. They
// get fewer faster than that where they were measured, and more slowly on hops that few packets use.
const halved = .05

// LeastMeasured is the least share of windows with a false finding for which limits are measured; limits for less are
// extrapolated.
func LeastMeasured() float64 { return measuredFalse[len(measuredFalse)-1].rate }

// StrictFor gives the Strict at which a false finding begins in a share of the windows of a hop. It is between that of the
// largest share that was measured and twice as much as the limits were tuned for.
func StrictFor(share float64) float64 {
	m := measuredFalse
	share = max(share, 1e-300)
	if last := m[len(m)-1]; share < last.rate {
		return min(last.strict+halved*math.Log2(last.rate/share), 2)
	}
	k := 1
	for k < len(m)-1 && share < m[k].rate {
		k++
	}
	a, b := m[k-1], m[k]
	at := math.Log(a.rate/share) / math.Log(a.rate/b.rate)
	return max(a.strict+at*(b.strict-a.strict), m[0].strict)
}
