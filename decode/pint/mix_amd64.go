//go:build !purego

package pint

// AVX2 hashes eight hops or nodes at once. mix.go holds the same in Go, which tests compare with; the tag purego leaves
// the assembly out.

//go:noescape
func mixBelow8(k1, k2 uint32, limits *[MaxHops]uint32, groups int) (set uint64)

//go:noescape
func mixValues8(dst, values *uint32, k1, k2 uint32, groups, shift int)

//go:noescape
func equal64AVX2(values *[64]uint32, want uint32) (set uint64)

func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

func xgetbv() (eax uint32)

// hasAVX2 is set if the processor has AVX2 and the operating system saves its registers.
var hasAVX2 = func() bool {
	if leaves, _, _, _ := cpuid(0, 0); leaves < 7 {
		return false
	}
	const xsave, avx, avx2, registers = 1 << 27, 1 << 28, 1 << 5, 6
	if _, _, c, _ := cpuid(1, 0); c&xsave == 0 || c&avx == 0 || xgetbv()&registers != registers {
		return false
	}
	_, b, _, _ := cpuid(7, 0)
	return b&avx2 != 0
}()

// mixBelow is the set of the first k hops, up to MaxHops, whose mix is not above their limits.
func mixBelow(k1, k2 uint32, limits *[MaxHops]uint32, k int) uint64 {
	if !hasAVX2 || k < 1 {
		return mixBelowGo(k1, k2, limits, k)
	}
	return mixBelow8(k1, k2, limits, (k+7)/8) & (^uint64(0) >> (MaxHops - k))
}

// mixValues sets dst[n] to the highest bits of the mix of values[n].
func mixValues(dst []uint32, k1, k2 uint32, values []uint32, shift int) {
	n := len(values) &^ 7
	if !hasAVX2 || n == 0 {
		mixValuesGo(dst, k1, k2, values, shift)
		return
	}
	_ = dst[n-1]
	mixValues8(&dst[0], &values[0], k1, k2, n/8, shift)
	mixValuesGo(dst[n:], k1, k2, values[n:], shift)
}

// equal64 is the set of values that are want.
func equal64(values *[64]uint32, want uint32) uint64 {
	if !hasAVX2 {
		return equal64Go(values, want)
	}
	return equal64AVX2(values, want)
}
