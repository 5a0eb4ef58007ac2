//go:build !purego

package shard

var hasAVX512 = avx512()

// avx512 reports whether processor and system have the parts F, DQ, BW and VL.
func avx512() bool

// stackCodes is stackCodesGo for a stack of n blocks of 16 bytes, all at once in AVX-512. Tests compare the two; the tag
// purego leaves the assembly out.
//
//go:noescape
func stackCodes(stack *byte, refs, codes *uint16, counters *uint32, n int, latencyNS, queueBytes, queueLimit, id uint64) bool
