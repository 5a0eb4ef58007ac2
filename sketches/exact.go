package sketches

import (
	"cmp"
	"math"
	"slices"
)

// Exact keeps all values of a stream, and answers without an error. It is the oracle of the tests of sketches, and the
// right choice where the number of values is small: its memory grows with it. It is not safe for concurrent use, not
// even for two readers, because questions sort the values. The zero value is empty and ready to use. Ranks and
// quantiles are defined as for all sketches here. A rank counts the values that are not larger, and a quantile is
// always one of the values.
type Exact[T cmp.Ordered] struct {
	v      []T
	sorted bool
}

// Update adds values.
func (s *Exact[T]) Update(v ...T) {
	s.v = append(s.v, v...)
	s.sorted = false
}

// Merge adds the values of o.
func (s *Exact[T]) Merge(o *Exact[T]) { s.Update(o.v...) }

// Count is the number of values.
func (s *Exact[T]) Count() int { return len(s.v) }

// Sorted returns the values in ascending order. The slice belongs to s and is valid until the next Update.
func (s *Exact[T]) Sorted() []T {
	if !s.sorted {
		slices.Sort(s.v)
		s.sorted = true
	}
	return s.v
}

// Quantile returns the smallest value whose rank is at least q: 0 for the smallest, 1 for the largest. It is zero if
// there is no value.
func (s *Exact[T]) Quantile(q float64) (v T) {
	if len(s.v) == 0 {
		return v
	}
	a := s.Sorted()
	switch {
	case !(q > 0):
		return a[0]
	case q >= 1:
		return a[len(a)-1]
	}
	return a[min(max(int(math.Ceil(q*float64(len(a))))-1, 0), len(a)-1)]
}

// Rank returns the share of values that are not larger than v.
func (s *Exact[T]) Rank(v T) float64 {
	if len(s.v) == 0 {
		return 0
	}
	_, n := s.Ranks(v)
	return float64(n) / float64(len(s.v))
}

// Ranks returns how many values are smaller than v, and how many are not larger. With equal values in the stream, any
// rank between the two is a right answer for v.
func (s *Exact[T]) Ranks(v T) (less, notMore int) {
	a := s.Sorted()
	less, _ = slices.BinarySearch(a, v)
	notMore, _ = slices.BinarySearchFunc(a, v, func(e, t T) int {
		if e <= t {
			return -1
		}
		return 1
	})
	return less, notMore
}

// ExactCounts counts each key exactly.
type ExactCounts[K comparable] map[K]uint64

// Add counts key n times.
func (c ExactCounts[K]) Add(key K, n uint64) { c[key] += n }

// Total is the sum of all counts.
func (c ExactCounts[K]) Total() (n uint64) {
	for _, k := range c {
		n += k
	}
	return n
}
