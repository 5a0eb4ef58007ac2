package quantile

import (
	"math"
	"math/bits"
)

const (
	mantissa      = 10
	denseMantissa = 5

	// Codes and DenseCodes are the numbers of codes: every code is below.
	Codes      = (65 - mantissa) << mantissa
	DenseCodes = (65 - denseMantissa) << denseMantissa

	// RelativeError and DenseRelativeError bound |Decode(Encode(v)) - v| / v.
	RelativeError      = 1.0 / (2 << mantissa)
	DenseRelativeError = 1.0 / (2 << denseMantissa)
)

// Encode returns the code of v, below [Codes].
func Encode(v uint64) uint16 {
	e := uint(bits.Len64(v|1<<mantissa)) - (mantissa + 1)
	return uint16(e<<mantissa + uint(v>>(e&63)))
}

// Decode returns the middle of the values that have code c. A code that [Encode] never returns stands for the largest.
func Decode(c uint16) uint64 {
	lo, width := cell(min(c, Codes-1), mantissa)
	return lo + (width-1)/2
}

// EncodeDense returns the dense code of v, below [DenseCodes].
func EncodeDense(v uint64) uint16 {
	e := uint(bits.Len64(v|1<<denseMantissa)) - (denseMantissa + 1)
	return uint16(e<<denseMantissa + uint(v>>(e&63)))
}

// DecodeDense returns the middle of the values that have dense code c.
func DecodeDense(c uint16) uint64 {
	lo, width := cell(min(c, DenseCodes-1), denseMantissa)
	return lo + (width-1)/2
}

// EncodeBoth returns Encode(v) and EncodeDense(v) for v below 2⁵³, which a float64 holds exactly. Its exponent and
// mantissa are the codes already, and converting is quicker than finding the highest bit. For a larger v, dense is
// larger than for any v below.
func EncodeBoth(v uint64) (fine, dense uint32) {
	b := math.Float64bits(float64(int64(v)))
	fine, dense = uint32(b>>(52-mantissa))-(1023+mantissa-1)<<mantissa, uint32(b>>(52-denseMantissa))-(1023+denseMantissa-1)<<denseMantissa
	if v < 1<<mantissa {
		fine = uint32(v)
	}
	if v < 1<<denseMantissa {
		dense = uint32(v)
	}
	return fine, dense
}

// Dense turns a code of [Encode] into the code of [EncodeDense] for the same value.
func Dense(c uint16) uint16 {
	const shift = mantissa - denseMantissa
	if c < 1<<mantissa {
		return EncodeDense(uint64(c)) // the octaves that are exact in c, but not all in the dense code
	}
	return uint16((uint32(c) + shift<<mantissa) >> shift)
}

// cell returns the smallest value with code c, and how many values share it.
func cell(c uint16, m uint) (lo, width uint64) {
	e := uint(c) >> m
	if e < 2 {
		return uint64(c), 1
	}
	e--
	return (uint64(c) - uint64(e)<<m) << e, 1 << e
}
