package quantile

import "math/bits"

// Rand is a source of random bits: the wyrand generator, which takes one multiplication a draw. Any value is a good seed.
// It is meant for coin flips inside sketches and not for secrets.
type Rand uint64

// Next returns the next 64 random bits.
func (r *Rand) Next() uint64 {
	*r += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(uint64(*r), uint64(*r)^0xe7037ed1a0b428db)
	return hi ^ lo
}
