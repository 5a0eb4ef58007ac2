package harness

import "slices"

// Median is the value in the middle of a list, or the mean of the two there; 0 of none.
func Median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// MedianInterval is the narrowest interval between two values of the list that has the median of their distribution with 95 %,
// whatever the distribution. Of fewer than six values it is from the least to the greatest, with less.
func MedianInterval(list []float64) (low, high float64) {
	if len(list) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	p, tail := 1.0, 0.0 // of exactly k values below the median, and of at most k
	for range n {
		p /= 2
	}
	k := 0
	for ; k < n/2; k++ {
		if tail+p > 0.025 {
			break
		}
		tail += p
		p *= float64(n-k) / float64(k+1)
	}
	k = max(k-1, 0)
	return sorted[k], sorted[n-1-k]
}
