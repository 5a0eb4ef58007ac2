package pint

import "math/bits"

// layer is the choice of the hops that write into packets of one layer.
type layer struct {
	upTo uint64 // packets with a layer hash that is not below are in a layer further on

	// Hop i writes when its hash is at most limits[i-1].
	limits [MaxHops]uint32

	// The same bit by bit, for vectors. Hops in always write. planes holds the bits of the others' thresholds, the
	// highest first, a bit for each hop. Planes of zeros at the end are left out, up to a multiple of four.
	always uint64
	planes []uint64
}

// newLayer makes a layer in which the threshold of hop i is below(i) of 2³², and at least 1.
func newLayer(upTo uint64, below func(i int) uint64) layer {
	l := layer{upTo: upTo, planes: make([]uint64, 32)}
	n := 0
	for i := range MaxHops {
		t := below(i + 1)
		l.limits[i] = uint32(t - 1)
		if t == 1<<32 {
			l.always |= 1 << i
			continue
		}
		for j := range l.planes {
			l.planes[j] |= t >> (31 - j) & 1 << i
		}
		n = max(n, 32-bits.TrailingZeros64(t))
	}
	l.planes = l.planes[:(n+3)&^3]
	return l
}

// Writes reports whether the switch at hop i, counted from 1, writes into the packet.
func (s *Scheme) Writes(p *Packet, i int) bool {
	if i < 1 || i > MaxHops {
		return false
	}
	switch s.dialect {
	case mininet:
		return mininetWrites(p, i)
	case tofino:
		return tofinoWrites(p, i)
	}
	l := &s.layers[p.layer]
	if !s.config.Vectors {
		return s.config.Hash.hash(p.hops, uint32(i)) <= l.limits[i-1]
	}
	if l.always>>(i-1)&1 != 0 {
		return true
	}
	for j, t := range l.planes {
		r := s.config.Hash.vector(p.hops, j, i)
		if d := (r ^ t) >> (i - 1) & 1; d != 0 {
			return t>>(i-1)&1 != 0
		}
	}
	return false
}

// Writers is the set of hops whose values are in the digest after k hops, bit i-1 for hop i. For Baseline it is the
// last writer, otherwise all. For k above MaxHops it is that of MaxHops.
func (s *Scheme) Writers(p *Packet, k int) uint64 {
	if k < 1 {
		return 0
	}
	k = min(k, MaxHops)
	switch {
	case s.dialect != own:
		return s.writersOneByOne(p, k)
	case s.config.Vectors:
		return s.writersByVectors(p, k)
	}
	return p.keep(s.config.Hash.below(p.hops, &s.layers[p.layer].limits, k))
}

// keep is the set of writers whose values are left in the digest. A branch predictor cannot guess whether a packet is
// Baseline, so there is no branch.
func (p *Packet) keep(set uint64) uint64 {
	last := uint64(1) << 63 >> bits.LeadingZeros64(set)
	if p.Baseline {
		set = last
	}
	return set
}

func (s *Scheme) writersOneByOne(p *Packet, k int) (set uint64) {
	for i := k; i >= 1; i-- {
		if s.Writes(p, i) {
			set |= 1 << (i - 1)
			if p.Baseline {
				break
			}
		}
	}
	return set
}

// writersByVectors compares the hashes of all hops with their thresholds at once, bit by bit from the highest. After
// j bits a hop is undecided with probability 2⁻ʲ, so that log₂k + 2 steps are enough on average. An XOR layer with p
// = 2⁻ᵐ takes m, and is the AND of m vectors, or of their complements, as in the paper. For Baseline, only the last
// hop counts: it is enough that no hop above it is undecided.
func (s *Scheme) writersByVectors(p *Packet, k int) uint64 {
	l := &s.layers[p.layer]
	path := ^uint64(0) >> (MaxHops - k)
	set, undecided := l.always&path, ^l.always&path
	settles := uint64(0) // Baseline: all ones
	if p.Baseline {
		settles = ^uint64(0)
	}
	if s.config.Hash == HashCRC {
		return p.keep(l.compareCRC(uint32(p.hops), k, set, undecided, settles))
	}
	return p.keep(l.compareMix(p.hops, set, undecided, settles))
}

// compareMix makes four vectors at a time: it is cheaper to make some in vain than to guess when to stop.
func (l *layer) compareMix(key, set, undecided, settles uint64) uint64 {
	for j := 0; j < len(l.planes) && undecided > set&settles; j += 4 {
		t := (*[4]uint64)(l.planes[j:])
		a, b, c, d := mixVector(key, j), mixVector(key, j+1), mixVector(key, j+2), mixVector(key, j+3)
		set |= undecided & t[0] &^ a
		undecided &^= t[0] ^ a
		set |= undecided & t[1] &^ b
		undecided &^= t[1] ^ b
		set |= undecided & t[2] &^ c
		undecided &^= t[2] ^ c
		set |= undecided & t[3] &^ d
		undecided &^= t[3] ^ d
	}
	return set
}

// compareCRC makes eight at a time if that takes as long as one, else one.
func (l *layer) compareCRC(key uint32, k int, set, undecided, settles uint64) uint64 {
	if !hasGFNI {
		for j, t := range l.planes {
			if undecided <= set&settles {
				break
			}
			r := crcVector(key, j, k)
			set |= undecided & t &^ r
			undecided &^= t ^ r
		}
		return set
	}
	var halves [16]uint32
	for j := 0; j < len(l.planes) && undecided > set&settles; j += 8 {
		crcValues(halves[:], key, numbers[2*j:2*j+16], 0)
		for n, t := range l.planes[j:min(j+8, len(l.planes))] {
			r := uint64(halves[2*n]) | uint64(halves[2*n+1])<<32
			set |= undecided & t &^ r
			undecided &^= t ^ r
		}
	}
	return set
}

// numbers are 0, 1, 2, …: which half of which vector.
var numbers = func() (t [64]uint32) {
	for i := range t {
		t[i] = uint32(i)
	}
	return t
}()
