package opt

import "slices"

// GCD is the greatest common divisor of two numbers that are not negative, of which either may be 0.
func GCD[N int | int32 | int64](a, b N) N {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Ascending is the numbers from 0 to n-1.
func Ascending[N int | int32](n int) []N {
	list := make([]N, n)
	for i := range list {
		list[i] = N(i)
	}
	return list
}

// Index numbers the elements of a list by their names. Of equal names the last one counts.
func Index[T any, N int | int32](list []T, name func(x *T) string) map[string]N {
	m := make(map[string]N, len(list))
	for i := range list {
		m[name(&list[i])] = N(i)
	}
	return m
}

// Subset reports whether all of a are in b, both ascending: O(len(a) log len(b)).
func Subset(a, b []int32) bool {
	for _, x := range a {
		k, ok := slices.BinarySearch(b, x)
		if !ok {
			return false
		}
		b = b[k:]
	}
	return true
}
