package kll

// halve compacts a level. items holds the lighter levels, then at lo the n items of the level, then the level above.
// Every other item of the level, the first or the second of each two by from, merges with the level above; if n is
// odd, the last item stays on its level. The first n/2 places of items become free.
func halve[T Number](items []T, lo, n, from int) {
	half := n / 2
	level := items[lo : lo+n]
	for i := range half {
		level[i] = level[2*i+from]
	}
	copy(level[half:], level[2*half:]) // the odd one
	// What is kept now lies in front of the place into which it merges, so nothing is overwritten before it is read.
	merge(items[lo+n-half:], level[:half])
	copy(items[half:], items[:lo])
}

// place adds a run to a level. items holds len(run) free places, then lighter levels of so many items, then the level.
func place[T Number](items []T, lighter int, run []T) {
	copy(items, items[len(run):len(run)+lighter])
	merge(items[lighter:], run)
}

// merge merges a into dst, whose last len(dst)-len(a) items are in order and whose first len(a) are free. Which one comes
// next cannot be predicted, so there is no branch on it.
func merge[T Number](dst, a []T) {
	i, j, w := 0, len(a), 0
	for i < len(a) && j < len(dst) {
		x, y := a[i], dst[j]
		dst[w] = min(x, y)
		w++
		less := 0
		if y < x {
			less = 1
		}
		j += less
		i += 1 - less
	}
	copy(dst[w:], a[i:])
}
