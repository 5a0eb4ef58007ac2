//go:build !purego

package shard

import "golang.org/x/sys/cpu"

var hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL

// stackCodes is stackCodesGo for a stack of n blocks of 16 bytes, all at once in AVX-512. Tests compare the two; the tag
// purego leaves the assembly out.
//
//go:noescape
func stackCodes(stack *byte, refs, codes *uint16, counters *uint32, n int, latencyNS, queueBytes, queueLimit, id uint64) bool
