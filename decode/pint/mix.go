package pint

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
