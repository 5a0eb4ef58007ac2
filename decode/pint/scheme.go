package pint

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// MaxHops is the longest path that sets of writers can hold.
const MaxHops = 64

// Config describes a coding scheme: who writes into which packet, and what. Encoders and decoders that have the same
// Config understand each other.
type Config struct {
	Hash Hash   // how switches hash
	Seed uint32 // chooses other functions of the same family

	Bits      int // b, of one instance; 1 to 32
	Instances int // independent repetitions in one digest; Bits·Instances ≤ 64

	// Tau is the probability of the Baseline layer, in which hop i replaces the digest with probability 1/i. The rest
	// is shared evenly by the XOR layers; in layer ℓ every hop folds its value in with probability P[ℓ].
	Tau float64
	P   []float64

	// ValueBits is q, the width of raw values when digests carry fragments of them, ⌈q/b⌉ in all, instead of hashes. 0
	// means hashes of values that are known.
	ValueBits int

	// Vectors takes the choice of writers from pseudo-random vectors with a bit for each hop, so that the set of writers
	// costs a decoder O(log k) steps instead of O(k).
	Vectors bool
}

// Role says how a writer's value is in the digest.
type Role uint8

// The roles of writers.
const (
	Replaced   Role = iota // the value is the digest: Baseline
	Folded                 // one of several XORed values, and others were folded in after it
	FoldedLast             // the XORed value of the last writer; only the Mininet dialect tells it from Folded
)

// Scheme is a Config made ready, or one of the published dialects. It is immutable and safe for concurrent use.
type Scheme struct {
	config  Config
	dialect dialect
	tau     uint64 // layer hash below: Baseline; 32-bit fixed point, as all probabilities here
	layers  []uint64
	replace [MaxHops + 1]uint64 // 2³²/i
	mask    uint32
	parts   uint32 // fragments of a value; 1 for hashes
}

type dialect uint8

const (
	own dialect = iota
	mininet
	tofino
)

// New checks a Config and makes it ready.
func New(c Config) (*Scheme, error) {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("pint: "+format, args...)) }
	if c.Hash > HashCRC {
		bad("hash %d: unknown", c.Hash)
	}
	if c.Bits < 1 || c.Bits > 32 {
		bad("bits %d: want 1 to 32", c.Bits)
	}
	if c.Instances < 1 || c.Instances > 8 || c.Bits*c.Instances > 64 {
		bad("instances %d of %d bits: want 1 to 8, and 64 bits at most", c.Instances, c.Bits)
	}
	if !(c.Tau >= 0 && c.Tau <= 1) || c.Tau < 1 && len(c.P) == 0 {
		bad("tau %v with %d XOR layers: want 0 to 1, and a layer if it is below 1", c.Tau, len(c.P))
	}
	if len(c.P) > 8 {
		bad("%d XOR layers: want 8 at most", len(c.P))
	}
	for _, p := range c.P {
		if !(p > 0 && p <= 1) {
			bad("probability %v of an XOR layer: want above 0, up to 1", p)
		}
	}
	if c.ValueBits < 0 || c.ValueBits > 32 {
		bad("value bits %d: want 0 to 32", c.ValueBits)
	}
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	s := &Scheme{config: c, tau: fixed(c.Tau), mask: uint32(1<<c.Bits - 1), parts: 1}
	for _, p := range c.P {
		s.layers = append(s.layers, fixed(p))
	}
	for i := 1; i <= MaxHops; i++ {
		s.replace[i] = 1 << 32 / uint64(i)
	}
	if c.ValueBits > 0 {
		s.parts = uint32((c.ValueBits + c.Bits - 1) / c.Bits)
	}
	return s, nil
}

// fixed is a probability as a threshold for a uniform 32-bit number: below it means yes.
func fixed(p float64) uint64 { return uint64(math.Round(p * (1 << 32))) }

// Config gives what the scheme was made of.
func (s *Scheme) Config() Config { return s.config }

// Width is the number of bits of one instance's digest.
func (s *Scheme) Width() int { return s.config.Bits }

// Instances is the number of independent digests in a packet.
func (s *Scheme) Instances() int { return s.config.Instances }

// Part is one instance's digest out of a packet's, the first instance in the lowest bits.
func (s *Scheme) Part(digest uint64, instance int) uint32 {
	w := s.config.Bits
	return uint32(digest >> (w * instance) & (1<<w - 1))
}

// Known reports whether the hashes for a packet on a path of that many hops are known. They always are, except in the
// Tofino dialect, whose tables end, and for paths that are longer than MaxHops.
func (s *Scheme) Known(id uint32, hops int) bool {
	if s.dialect == tofino && (id >= tofinoIDs || hops > tofinoHops) {
		return false
	}
	return hops >= 1 && hops <= MaxHops
}

// Packet is what the hashes say about one instance of one packet, whatever its path.
type Packet struct {
	hops     uint64 // key of the hash g, which decides for each hop
	values   uint64 // key of the hash h, which maps values
	limit    uint64 // XOR: a hop writes when g is below
	id       uint32
	fragment uint32
	Baseline bool
}

// Fragment is the part of a value that the packet carries, 0 being the lowest bits; 0 for hashes.
func (p *Packet) Fragment() int { return int(p.fragment) }

// Packet hashes a packet id for an instance.
func (s *Scheme) Packet(id uint32, instance int) Packet {
	switch s.dialect {
	case mininet:
		return mininetPacket(id)
	case tofino:
		return s.tofinoPacket(id)
	}
	seed := s.config.Seed + uint32(instance)*0x9e3779b9
	p := Packet{id: id, hops: s.key(seed, id, 1), values: s.key(seed, id, 2)}
	h := uint64(s.hash(s.key(seed, id, 3), 0))
	if h < s.tau || len(s.layers) == 0 {
		p.Baseline = true
	} else {
		p.limit = s.layers[(h-s.tau)*uint64(len(s.layers))/(1<<32-s.tau)]
	}
	if s.parts > 1 {
		p.fragment = uint32(uint64(s.hash(s.key(seed, id, 4), 0)) * uint64(s.parts) >> 32)
	}
	return p
}

// Writes reports whether the switch at hop i, counted from 1, writes into the packet.
func (s *Scheme) Writes(p *Packet, i int) bool {
	switch s.dialect {
	case mininet:
		return mininetWrites(p, i)
	case tofino:
		return tofinoWrites(p, i)
	}
	g := uint64(s.hash(p.hops, uint32(i)))
	if p.Baseline {
		return g < s.replace[i]
	}
	return g < p.limit
}

// Writers is the set of hops whose values are in the digest after k hops, bit i-1 for hop i: for Baseline the last one
// that wrote, otherwise all.
func (s *Scheme) Writers(p *Packet, k int) uint64 {
	if p.Baseline {
		for i := k; i > 1; i-- {
			if s.Writes(p, i) {
				return 1 << (i - 1)
			}
		}
		return 1
	}
	var set uint64
	for i := 1; i <= k; i++ {
		if s.Writes(p, i) {
			set |= 1 << (i - 1)
		}
	}
	return set
}

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

// Value is what a switch with that value (for path tracing, its node id) contributes to the digest. The digest is the
// XOR of the contributions of all writers.
func (s *Scheme) Value(p *Packet, role Role, value uint32) uint32 {
	switch s.dialect {
	case mininet:
		return mininetValue(p, role, value)
	case tofino:
		return tofinoValue(p, value)
	}
	if s.config.ValueBits > 0 {
		return value >> (p.fragment * uint32(s.config.Bits)) & s.mask
	}
	return s.hash(p.values, value) >> (32 - s.config.Bits)
}

// Digest is what arrives after a path, all instances. It is the decoder's view; [Scheme.Write] is the switch's.
func (s *Scheme) Digest(id uint32, path []uint32) uint64 {
	var digest uint64
	for n := range s.Instances() {
		p := s.Packet(id, n)
		writers := s.Writers(&p, len(path))
		var d uint32
		for w := writers; w != 0; w &= w - 1 {
			i := bits.TrailingZeros64(w) + 1
			d ^= s.Value(&p, p.Role(writers, i), path[i-1])
		}
		digest |= uint64(d) << (s.Width() * n)
	}
	return digest
}

// Write is what the switch at hop i does to the digest of a packet.
func (s *Scheme) Write(digest uint64, id uint32, i int, value uint32) uint64 {
	w := s.Width()
	for n := range s.Instances() {
		p := s.Packet(id, n)
		if !s.Writes(&p, i) {
			continue
		}
		d := s.Part(digest, n)
		switch {
		case p.Baseline:
			d = s.Value(&p, Replaced, value)
		case s.dialect == mininet:
			d = mininetFold(d, value)
		default:
			d ^= s.Value(&p, FoldedLast, value)
		}
		digest = digest&^((1<<w-1)<<(w*n)) | uint64(d)<<(w*n)
	}
	return digest
}
