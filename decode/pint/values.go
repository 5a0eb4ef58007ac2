package pint

import "math/bits"

// Value returns the contribution to the digest of a switch with that value (for path tracing, its node id). The
// digest is the XOR of the contributions of all writers.
func (s *Scheme) Value(p *Packet, role Role, value uint32) uint32 {
	switch s.dialect {
	case mininet:
		return mininetValue(p, role, value)
	case tofino:
		return tofinoValue(p, value)
	}
	if s.config.ValueBits > 0 {
		return s.fragment(p, value)
	}
	return s.config.Hash.hash(p.values, value) >> (32 - s.config.Bits)
}

// fragment is the packet's part of a raw value.
func (s *Scheme) fragment(p *Packet, value uint32) uint32 {
	return uint32(uint64(value) & mask64(s.config.ValueBits) >> (p.fragment * uint32(s.config.Bits)) & mask64(s.config.Bits))
}

// Values sets dst[n] to Value of values[n] for all of them. dst must be as long as values.
func (s *Scheme) Values(dst []uint32, p *Packet, role Role, values []uint32) {
	dst = dst[:len(values)]
	switch {
	case s.dialect != own || s.config.ValueBits > 0:
		for n, v := range values {
			dst[n] = s.Value(p, role, v)
		}
	case s.config.Hash == HashCRC:
		crcValues(dst, uint32(p.values), values, 32-s.config.Bits)
	default:
		mixValues(dst, uint32(p.values), uint32(p.values>>32), values, 32-s.config.Bits)
	}
}

// Match removes from a set the candidates for a hop that cannot have written a digest: those whose Value is not want.
// The set has a bit for each of values, in words of 64. It spends little time where the set is empty.
func (s *Scheme) Match(set []uint64, p *Packet, role Role, values []uint32, want uint32) {
	const words = 4 // at a time
	var buf [64 * words]uint32
	for len(set) > 0 && len(values) > 0 {
		block, part := set[:min(words, len(set))], values[:min(len(buf), len(values))]
		set, values = set[len(block):], values[len(part):]
		some := uint64(0)
		for _, w := range block {
			some |= w
		}
		if some == 0 {
			continue
		}
		s.Values(buf[:], p, role, part)
		for n := range block {
			block[n] &= equal64((*[64]uint32)(buf[64*n:]), want)
		}
		if n := len(part); n < 64*len(block) { // the rest behind the last value
			block[n/64] &= 1<<(n%64) - 1
			clear(block[n/64+1:])
		}
	}
	clear(set)
}

// Sum is the digest of an instance of a packet after a path: the XOR of the contributions of writers, which Writers
// returned. Writers beyond the path are left out.
func (s *Scheme) Sum(p *Packet, writers uint64, path []uint32) (digest uint32) {
	if len(path) < MaxHops {
		writers &= 1<<len(path) - 1
	}
	if s.dialect != own || s.config.ValueBits > 0 || s.config.Hash != HashMix {
		for w := writers; w != 0; w &= w - 1 {
			i := bits.TrailingZeros64(w)
			digest ^= s.Value(p, p.Role(writers, i+1), path[i])
		}
		return digest
	}
	k1, k2 := uint32(p.values), uint32(p.values>>32)
	for w := writers; w != 0; w &= w - 1 {
		digest ^= mix(k1, k2, path[bits.TrailingZeros64(w)])
	}
	return digest >> (32 - s.config.Bits)
}
