package quantile

// halve compacts a level. items holds the lighter levels, then from lo on the n items of the level, then the level above.
// Of each two items of the level one merges with the level above: the first if from is 0, the second if it is 1. If n is
// odd, the last item stays on its level. The first n/2 places of items become free.
func halve(items []uint16, lo, n, from int) {
	half := n / 2
	level := items[lo : lo+n]
	for i := range half {
		level[i] = level[2*i+from]
	}
	copy(level[half:], level[2*half:]) // the odd one
	// The kept items lie in front of the place into which they merge, so nothing is overwritten before it is read.
	merge(items[lo+n-half:], level[:half])
	copy(items[half:], items[:lo])
}

// place adds a run to a level. items holds len(run) free places, then the lighter levels, which have that many items
// together, then the level.
func place(items []uint16, lighter int, run []uint16) {
	copy(items, items[len(run):len(run)+lighter])
	merge(items[lighter:], run)
}

// merge merges a into dst, whose first len(a) places are free and whose other items are in order, as those of a are.
// Which of the two gives the next item cannot be predicted, so there is no branch on it.
func merge(dst, a []uint16) {
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
