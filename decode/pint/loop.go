package pint

// Loops is Algorithm 2 of the paper, the detection of routing loops by the switches themselves. A packet carries the
// hash of a switch that it passed, chosen as in Baseline, and how often that hash was met again.
type Loops struct {
	Hash Hash
	Seed uint32
	Bits int // b, of the hash
	T    int // matches that pass before one more is reported; 0 to 15
}

// Width is the number of bits in a packet: the hash and, above it, a counter up to T.
func (l *Loops) Width() int { return l.Bits + bitsFor(l.T) }

// bitsFor is the number of bits that hold 0 to n.
func bitsFor(n int) int {
	b := 0
	for ; n > 0; n >>= 1 {
		b++
	}
	return b
}

// Step is what the switch with that node id does to the packet's digest at a hop, counted from 1. It returns the new
// digest, and true when the switch reports a loop.
//
// The comparison comes first, as in the paper, and a hop that both matches and replaces starts to count anew. The first
// hop does not compare: there is nothing in the packet yet.
func (l *Loops) Step(digest uint64, id uint32, hop int, node uint32) (uint64, bool) {
	own := uint64(l.Hash.hash(l.Hash.key(l.Seed, id, ofValues), node)) >> (32 - l.Bits)
	mask := mask64(l.Bits)
	stored, count := digest&mask, digest>>l.Bits
	report := false
	if hop > 1 && stored == own {
		if count >= uint64(l.T) {
			report = true
		} else {
			count++
		}
	}
	if uint64(l.Hash.hash(l.Hash.key(l.Seed, id, ofHops), uint32(hop))) < 1<<32/uint64(max(hop, 1)) {
		stored, count = own, 0
	}
	return count<<l.Bits | stored, report
}
