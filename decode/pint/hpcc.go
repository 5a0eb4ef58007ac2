package pint

import (
	"fmt"
	"math"
)

// HPCC is the dialect of HPCC-PINT, a program for the ns-3 simulator. The digest is the largest utilisation along the
// path as its logarithm to a base a little above 1, a floating-point number without mantissa. It has no hops, no
// packet ids and no hashes. It is a [Code] of utilisations in parts of [UtilizationUnit].
//
// A utilisation u is first rounded up to a positive multiple of 1/512, which is a bias of the program's of up to
// 1/512. The number n of these units becomes one of the two nearest powers of the base, at random so that n is kept
// on average. A switch overwrites the digest when its own is larger. So the digest is the largest of independently
// rounded numbers, on average more than the utilisation of the bottleneck.
//
// The program computes with logarithms in floating point, and this package compares with a table of powers. They
// differ where a logarithm is an integer up to an error of the last bits.
type HPCC struct {
	bits   int
	powers []float64 // of the base, by digest
}

const hpccUnits = 512 // steps of the utilisation up to 1

// NewHPCC makes the dialect for a base, in the program's experiments 1.05 or 1.01. The smallest base is 1.0005, for
// digests of 15 bits, the largest 512².
func NewHPCC(base float64) (*HPCC, error) {
	if !(base >= 1.0005 && base <= hpccUnits*hpccUnits) {
		return nil, fmt.Errorf("pint: base %v of HPCC-PINT: want 1.0005 to %d", base, hpccUnits*hpccUnits)
	}
	// The formula of the program, for utilisations up to 512.
	h := &HPCC{bits: max(1, int(math.Ceil(math.Log2(math.Log(hpccUnits*hpccUnits)/math.Log(base)))))}
	for p := range 1 << h.bits {
		h.powers = append(h.powers, math.Pow(base, float64(p)))
	}
	return h, nil
}

// Bits is the width of the digest.
func (h *HPCC) Bits() int { return h.bits }

// Bytes is the length of the digest in packets, 1 or 2, the lowest byte first.
func (h *HPCC) Bytes() int { return (h.bits + 7) / 8 }

// Encode returns the digest that a switch makes of a utilisation in parts of UtilizationUnit. Those above the last
// power have the last digest.
func (h *HPCC) Encode(v uint64, rnd uint32) uint32 {
	const step = UtilizationUnit / hpccUnits
	n := float64(max(1, v/step+min(1, v%step)))
	lo, hi := 0, len(h.powers)
	for hi-lo > 1 { // powers[lo] ≤ n < powers[hi]
		if mid := (lo + hi) / 2; h.powers[mid] <= n {
			lo = mid
		} else {
			hi = mid
		}
	}
	if hi < len(h.powers) && float64(rnd)*(h.powers[hi]-h.powers[lo]) < (n-h.powers[lo])*(1<<32) {
		return uint32(hi)
	}
	return uint32(lo)
}

// Write returns the digest of a packet after a switch with a utilisation.
func (h *HPCC) Write(digest uint32, v uint64, rnd uint32) uint32 {
	return max(digest, h.Encode(v, rnd))
}

// Decode returns the utilisation, in parts of UtilizationUnit, of a digest. Digests wider than Bits decode like the
// last one.
func (h *HPCC) Decode(digest uint32) float64 {
	return h.powers[min(uint64(digest), uint64(len(h.powers)-1))] * (UtilizationUnit / hpccUnits)
}

// AppendDigest appends the digest as packets hold it.
func (h *HPCC) AppendDigest(b []byte, digest uint32) []byte {
	b = append(b, byte(digest))
	if h.Bytes() == 2 {
		b = append(b, byte(digest>>8))
	}
	return b
}

// Digest reads the digest from the first bytes of b. It is not ok if there are too few, or if they hold more than
// Bits.
func (h *HPCC) Digest(b []byte) (digest uint32, ok bool) {
	if len(b) < h.Bytes() {
		return 0, false
	}
	digest = uint32(b[0])
	if h.Bytes() == 2 {
		digest |= uint32(b[1]) << 8
	}
	return digest, digest>>h.bits == 0
}
