package inference

import (
	"math"
	"strconv"
)

// Figures for people. Quantiles are within 1.6 % of the reported values, so that a fourth digit would have no meaning.
// All digits are in the series and JSON.

// Round keeps the three first digits of v.
func Round(v float64) float64 { return RoundTo(v, 3) }

// RoundTo keeps the first digits of v.
func RoundTo(v float64, digits int) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	// The text of so many digits, read back, is the number that people would write.
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil { // beyond the largest number
		return v
	}
	return r
}

// Nanoseconds writes a time with three digits: "999ns", "1.23ms", "45.6s", "123000s".
func Nanoseconds(ns float64) string { return nanoseconds(ns, 3) }

// RoughNanoseconds writes a time that is within 10 %, as quantiles of a whole flow are, with two digits: "1.2ms".
func RoughNanoseconds(ns float64) string { return nanoseconds(ns, 2) }

func nanoseconds(ns float64, digits int) string {
	v, unit := RoundTo(ns, digits), "ns"
	for _, larger := range [...]string{"µs", "ms", "s"} {
		if math.Abs(v) < 1000 {
			break
		}
		v, unit = RoundTo(v/1000, digits), larger
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + unit
}

// Percent writes a share with so many digits, never with an exponent: "0.012 %", "27 %", "100 %".
func Percent(share float64, digits int) string {
	return strconv.FormatFloat(RoundTo(100*share, digits), 'f', -1, 64) + " %"
}

// PercentAtLeast is Percent for a share that is a lower bound, and is rounded down.
func PercentAtLeast(share float64, digits int) string {
	v := 100 * share
	r := RoundTo(v, digits)
	if r > v*(1+1e-12) && v > 0 { // more than what binary fractions lose
		step := math.Pow(10, math.Floor(math.Log10(r))-float64(digits-1))
		if r-step < math.Pow(10, math.Floor(math.Log10(r))) { // the step below a power of ten is smaller
			step /= 10
		}
		r = RoundTo(r-step, digits)
	}
	return strconv.FormatFloat(r, 'f', -1, 64) + " %"
}
