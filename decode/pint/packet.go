package pint

import "math/bits"

// Packet holds the hashes of one instance of one packet, which are independent of its path.
type Packet struct {
	hops     uint64 // key of the hash g, which decides for each hop
	values   uint64 // key of the hash h, which maps values
	id       uint32
	fragment uint32
	layer    uint8
	Baseline bool
}

// Fragment is the part of a value that the packet carries, 0 being the lowest bits; 0 for hashes.
func (p *Packet) Fragment() int { return int(p.fragment) }

// Packet hashes a packet id for an instance, below Instances.
func (s *Scheme) Packet(id uint32, instance int) Packet {
	switch s.dialect {
	case mininet:
		return mininetPacket(id)
	case tofino:
		return s.tofinoPacket(id)
	}
	h, salt := s.config.Hash, &s.salts[instance]
	var hops, values uint64
	if h == HashMix { // in line
		hops, values = finish(salt.hops^uint64(id)), finish(salt.values^uint64(id))
	} else {
		hops, values = h.key(salt.hops, id), h.key(salt.values, id)
	}
	layer, fragment := uint64(0), uint64(0)
	if n := len(s.layers) - 1; n > 0 {
		g := uint64(h.global(salt.layer, id))
		for i := range n { // processors cannot guess the layer: no branch
			layer += (s.layers[i].upTo - 1 - g) >> 63
		}
	}
	if s.parts > 1 {
		fragment = uint64(h.global(salt.fragment, id)) * uint64(s.parts) >> 32
	}
	// The result is put together here and stays in registers.
	return Packet{hops: hops, values: values, id: id, fragment: uint32(fragment), layer: uint8(layer), Baseline: layer == 0}
}

// Role is the form of a writer's value in the digest.
type Role uint8

// The roles of writers.
const (
	Replaced   Role = iota // the value is the digest: Baseline
	Folded                 // one of several XORed values, and others were folded in after it
	FoldedLast             // the XORed value of the last writer; only the Mininet dialect distinguishes it from Folded
)

// Role of the writer at hop i, one of the set that Writers gave.
func (p *Packet) Role(writers uint64, i int) Role {
	switch {
	case p.Baseline:
		return Replaced
	case bits.Len64(writers) == i:
		return FoldedLast
	}
	return Folded
}
