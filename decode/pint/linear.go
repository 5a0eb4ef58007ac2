package pint

import "math/bits"

// Eliminator solves the linear equations over GF(2) of digests of raw values. For every packet with the same
// fragment, the digest is the XOR of the values at the hops that wrote. Baseline digests are equations with one
// unknown. Digests of hashed values are no such equations: the same value is another number in every packet.
//
// The independent equations stay fully reduced, so that a hop is known as soon as it follows from them. A digest
// costs as many steps as it has writers. An independent one, of which there are as many as hops, costs as many steps
// as there are equations. The zero value is ready for use.
type Eliminator struct {
	// The equation rows[i] has its pivot at bit i, and no other equation has that bit.
	rows   [MaxHops]uint64
	values [MaxHops]uint32
	pivots uint64
	known  uint64
}

// Add adds the digest of a packet with these writers. It reports whether the digest is independent of earlier ones,
// and whether it agrees with them. If not, it is left out.
func (e *Eliminator) Add(writers uint64, digest uint32) (fresh, agrees bool) {
	for w := writers & e.pivots; w != 0; w &= w - 1 {
		i := bits.TrailingZeros64(w)
		writers ^= e.rows[i]
		digest ^= e.values[i]
	}
	if writers == 0 {
		return false, digest == 0
	}
	pivot := bits.TrailingZeros64(writers)
	for w := e.pivots &^ e.known; w != 0; w &= w - 1 {
		i := bits.TrailingZeros64(w)
		has := -(e.rows[i] >> pivot & 1) // all ones or none: a branch would be a coin flip
		e.rows[i] ^= writers & has
		e.values[i] ^= digest & uint32(has)
		e.learn(i)
	}
	e.rows[pivot], e.values[pivot] = writers, digest
	e.pivots |= 1 << pivot
	e.learn(pivot)
	return true, true
}

// learn notes that the equation with pivot i is about no other hop.
func (e *Eliminator) learn(i int) {
	rest := e.rows[i] & (e.rows[i] - 1)
	alone := (rest|-rest)>>63 ^ 1 // without a branch, for any highest bit of rest
	e.known |= alone << i
}

// Known is the set of hops whose values follow from the digests, bit i-1 for hop i.
func (e *Eliminator) Known() uint64 { return e.known }

// Value returns the contribution of a known hop, counted from 1.
func (e *Eliminator) Value(hop int) uint32 { return e.values[hop-1] }

// Rank is the number of independent digests. A path is known when it is the number of its hops.
func (e *Eliminator) Rank() int { return bits.OnesCount64(e.pivots) }

// Reset forgets everything.
func (e *Eliminator) Reset() { e.pivots, e.known = 0, 0 }
