package pint

// mix is a keyed finaliser of 32 bits, so that processors and NICs do many at once. It has the three rounds of C.
// Wellons' triple32. The second key enters behind the first round. Otherwise two nodes would differ by the same
// amount in every packet: one key alone gives pairs of nodes only 2³² ways to meet. Two rounds are too few: ids that
// differ in their highest bits alone had the same 8 bits too often.
func mix(k1, k2, x uint32) uint32 {
	x += k1
	x ^= x >> 17
	x *= 0xed5ad4bb
	x += k2
	x ^= x >> 11
	x *= 0xac4c1b51
	x ^= x >> 15
	x *= 0x31848bab
	return x ^ x>>14
}

// finish is the finaliser of SplitMix64.
func finish(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// mixVector is the j-th of a sequence of pseudo-random vectors, that of SplitMix64.
func mixVector(key uint64, j int) uint64 { return finish(key + uint64(j+1)*0x9e3779b97f4a7c15) }

// mixBelowGo is mixBelow without assembly.
func mixBelowGo(k1, k2 uint32, limits *[MaxHops]uint32, k int) (set uint64) {
	for i, limit := range limits[:k] {
		set |= notAbove(mix(k1, k2, uint32(i+1)), limit) << i
	}
	return set
}

// mixValuesGo is mixValues without assembly.
func mixValuesGo(dst []uint32, k1, k2 uint32, values []uint32, shift int) {
	dst = dst[:len(values)]
	for n, v := range values {
		dst[n] = mix(k1, k2, v) >> (shift & 31)
	}
}

// equal64Go is equal64 without assembly.
func equal64Go(values *[64]uint32, want uint32) (set uint64) {
	for i, v := range values {
		set |= (uint64(v^want) - 1) >> 63 << i
	}
	return set
}
