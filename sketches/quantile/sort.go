package quantile

// sort16 sorts by Batcher's odd-even merge network (Knuth, TAOCP 3, §5.3.4): 63 exchanges without a branch. On random
// 16-bit values that is four times as fast as sorting by insertion, where the processor has to guess at every step.
func sort16(a *[tinyChunk]uint16) {
	order(a, 0, 1)
	order(a, 2, 3)
	order(a, 4, 5)
	order(a, 6, 7)
	order(a, 8, 9)
	order(a, 10, 11)
	order(a, 12, 13)
	order(a, 14, 15)
	order(a, 0, 2)
	order(a, 1, 3)
	order(a, 4, 6)
	order(a, 5, 7)
	order(a, 8, 10)
	order(a, 9, 11)
	order(a, 12, 14)
	order(a, 13, 15)
	order(a, 1, 2)
	order(a, 5, 6)
	order(a, 9, 10)
	order(a, 13, 14)
	order(a, 0, 4)
	order(a, 1, 5)
	order(a, 2, 6)
	order(a, 3, 7)
	order(a, 8, 12)
	order(a, 9, 13)
	order(a, 10, 14)
	order(a, 11, 15)
	order(a, 2, 4)
	order(a, 3, 5)
	order(a, 10, 12)
	order(a, 11, 13)
	order(a, 1, 2)
	order(a, 3, 4)
	order(a, 5, 6)
	order(a, 9, 10)
	order(a, 11, 12)
	order(a, 13, 14)
	order(a, 0, 8)
	order(a, 1, 9)
	order(a, 2, 10)
	order(a, 3, 11)
	order(a, 4, 12)
	order(a, 5, 13)
	order(a, 6, 14)
	order(a, 7, 15)
	order(a, 4, 8)
	order(a, 5, 9)
	order(a, 6, 10)
	order(a, 7, 11)
	order(a, 2, 4)
	order(a, 3, 5)
	order(a, 6, 8)
	order(a, 7, 9)
	order(a, 10, 12)
	order(a, 11, 13)
	order(a, 1, 2)
	order(a, 3, 4)
	order(a, 5, 6)
	order(a, 7, 8)
	order(a, 9, 10)
	order(a, 11, 12)
	order(a, 13, 14)
}

func order(a *[tinyChunk]uint16, i, j int) {
	x, y := a[i&15], a[j&15]
	a[i&15], a[j&15] = min(x, y), max(x, y)
}

// sortSmall sorts by insertion, which is faster for two or three values.
func sortSmall(a []uint16) {
	for i := 1; i < len(a); i++ {
		v, j := a[i], i
		for ; j > 0 && v < a[j-1]; j-- {
			a[j] = a[j-1]
		}
		a[j] = v
	}
}
