package pint

// mixBelow is the set of the first k hops whose mix is not above their limits.
func mixBelow(k1, k2 uint32, limits *[MaxHops]uint32, k int) (set uint64) {
	for i, limit := range limits[:k] {
		set |= notAbove(mix(k1, k2, uint32(i+1)), limit) << i
	}
	return set
}

// mixValues sets dst[n] to the highest bits of the mix of values[n].
func mixValues(dst []uint32, k1, k2 uint32, values []uint32, shift int) {
	dst = dst[:len(values)]
	for n, v := range values {
		dst[n] = mix(k1, k2, v) >> (shift & 31)
	}
}
