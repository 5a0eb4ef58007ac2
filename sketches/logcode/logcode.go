// Package logcode compresses 64-bit values to small codes that keep their order.
//
// A code is log-linear, like a floating-point number without a sign. Values below a threshold are exact. Above it,
// every octave [2ⁱ, 2ⁱ⁺¹) is cut into equal cells, as many as a fixed number of mantissa bits can distinguish. Decoding
// ([Decode]) gives the middle of a cell. There are two resolutions, and both cover all of uint64:
//
//	            mantissa bits   codes   exact below   relative error
//	Encode      10              56320   2048          ≤ 1/2048 (0.049 %)
//	EncodeDense 5                1920     64          ≤ 1/64   (1.56 %)
//
// The first is the finest that fits into 16 bits, and feeds the quantile sketches. The second is coarse enough that
// every code can be counted, which a [Histogram] does. It takes 96 bytes and 128 for each octave that was seen, 7.8 KB
// at most, and every quantile is within 1/64 of its value. Encoding uses only shifts and a count of leading zeros and
// no floating point. So codes are the same on every machine and can be stored.
//
// Order is kept: a ≤ b implies Encode(a) ≤ Encode(b). So ranks and quantiles of codes are those of the values, up to the
// relative error.
//
// Values are divided as in HdrHistogram (Gil Tene), over the whole range of uint64.
package logcode

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
