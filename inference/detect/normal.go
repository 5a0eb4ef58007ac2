package detect

import "math"

// z99 is the 99th percentile of the normal distribution.
const z99 = 2.3263478740408408

// normalQuantile is the inverse of the normal distribution function.
func normalQuantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }
