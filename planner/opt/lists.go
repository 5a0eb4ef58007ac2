package opt

import "slices"

// Group lists by key, from 0 to n-1, the places that have it in keys: those of key k are place[start[k]:start[k+1]],
// ascending. This is counting sort, O(n + len(keys)).
func Group(keys []int32, n int) (start, place []int32) {
	start, next := count(keys, n)
	place = make([]int32, len(keys))
	for p, k := range keys {
		place[next[k]] = int32(p)
		next[k]++
	}
	return start, place
}

// Transpose inverts lists. The list of row r is item[start[r]:start[r+1]], of numbers from 0 to n-1. The result has the
// same form: for each number the rows that contain it, ascending. O(n + len(item)).
func Transpose(start, item []int32, n int) (by, row []int32) {
	by, next := count(item, n)
	row = make([]int32, len(item))
	for r := range len(start) - 1 {
		for _, k := range item[start[r]:start[r+1]] {
			row[next[k]] = int32(r)
			next[k]++
		}
	}
	return by, row
}

// count returns the start of every key's places, and a copy of that.
func count(keys []int32, n int) (start, next []int32) {
	start = make([]int32, n+1)
	for _, k := range keys {
		start[k+1]++
	}
	for k := range n {
		start[k+1] += start[k]
	}
	return start, slices.Clone(start)
}

// Passing returns, by item from 0 to n-1, the lists that have it, each once and ascending. The function item returns
// the item of an entry.
func Passing(lists [][]int32, n int, item func(entry int32) int32) (start, list []int32) {
	var keys, of []int32
	last := make([]int, n) // list that had the item last, plus one
	for k, entries := range lists {
		for _, e := range entries {
			if i := item(e); last[i] != k+1 {
				last[i] = k + 1
				keys, of = append(keys, i), append(of, int32(k))
			}
		}
	}
	start, list = Group(keys, n)
	for p, at := range list {
		list[p] = of[at]
	}
	return start, list
}

// Without removes the first x from a list, and does not keep the order.
func Without(list []int32, x int32) []int32 {
	if k := slices.Index(list, x); k >= 0 {
		list[k] = list[len(list)-1]
		list = list[:len(list)-1]
	}
	return list
}
