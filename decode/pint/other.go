//go:build !amd64 || purego

package pint

const hasGFNI = false

func mixBelow(k1, k2 uint32, limits *[MaxHops]uint32, k int) uint64 {
	return mixBelowGo(k1, k2, limits, k)
}

func mixValues(dst []uint32, k1, k2 uint32, values []uint32, shift int) {
	mixValuesGo(dst, k1, k2, values, shift)
}

func crcBelow(key uint32, limits *[MaxHops]uint32, k int) uint64 { return crcBelowGo(key, limits, k) }

func crcValues(dst []uint32, key uint32, values []uint32, shift int) {
	crcValuesGo(dst, key, values, shift)
}

func equal64(values *[64]uint32, want uint32) uint64 { return equal64Go(values, want) }
