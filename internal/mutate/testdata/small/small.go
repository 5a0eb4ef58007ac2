// Package small has one function whose test is sharp, and one whose test is not.
package small

// Clamp gives n within lo and hi.
func Clamp(n, lo, hi int) int {
	if n < lo {
		return lo
	}
	if n > hi {
		return hi
	}
	return n
}

// Sum adds up what is positive.
func Sum(list []int) (sum int) {
	for _, n := range list {
		if n < 0 {
			continue
		}
		sum += n
	}
	return sum
}
