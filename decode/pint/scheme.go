package pint

import (
	"errors"
	"fmt"
	"math"
)

// MaxHops is the longest path that sets of writers can hold.
const MaxHops = 64

// MaxLayers is the largest number of XOR layers.
const MaxLayers = 8

const maxInstances = 8

// Config describes a coding scheme: which hop writes into which packet, and what. Encoders and decoders that have the
// same Config understand each other.
type Config struct {
	Hash Hash   // how switches hash
	Seed uint32 // chooses other functions of the same family

	Bits      int // b, of one instance; 1 to 32
	Instances int // independent repetitions in one digest, up to 8; Bits·Instances ≤ 64

	// Tau is the probability of the Baseline layer, in which hop i replaces the digest with probability 1/i. The rest
	// is shared evenly by the XOR layers; in layer ℓ every hop folds its value in with probability P[ℓ]. All
	// probabilities are rounded to multiples of 2⁻³², those above 0 not to 0.
	Tau float64
	P   []float64

	// ValueBits is q, the width of raw values, if digests carry fragments of them instead of hashes, F = ⌈q/b⌉ in
	// all. It is 0 for hashes of known values. The packet id chooses the fragment, all with the same probability.
	ValueBits int

	// Vectors chooses the writers by pseudo-random vectors with a bit for each hop. The set of writers then costs a
	// decoder O(log k) steps instead of O(k).
	Vectors bool
}

// Scheme is a Config made ready, or one of the published dialects. It is immutable and safe for concurrent use.
type Scheme struct {
	config  Config
	dialect dialect
	parts   uint32 // F, fragments of a value; 1 for hashes
	layers  []layer
	salts   [maxInstances]struct{ hops, values, layer, fragment uint64 }
}

type dialect uint8

const (
	own dialect = iota
	mininet
	tofino
)

// New checks a Config and makes it ready.
func New(c Config) (*Scheme, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Scheme{config: c, parts: 1}
	for n := range s.salts {
		seed, x := c.Seed+uint32(n)*0x9e3779b9, &s.salts[n]
		x.hops, x.values = c.Hash.salt(seed, ofHops), c.Hash.salt(seed, ofValues)
		x.layer, x.fragment = c.Hash.salt(seed, ofLayer), c.Hash.salt(seed, ofFragment)
	}
	tau := fixed(c.Tau)
	if len(c.P) == 0 {
		tau = 1 << 32
	}
	s.layers = append(s.layers, newLayer(tau, func(i int) uint64 { return 1 << 32 / uint64(i) }))
	for l, p := range c.P {
		upTo := tau + uint64(l+1)*(1<<32-tau)/uint64(len(c.P))
		s.layers = append(s.layers, newLayer(upTo, func(int) uint64 { return fixed(p) }))
	}
	if c.ValueBits > 0 {
		s.parts = uint32((c.ValueBits + c.Bits - 1) / c.Bits)
	}
	return s, nil
}

func (c *Config) check() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("pint: "+format, args...)) }
	if c.Hash > HashCRC {
		bad("hash %d: unknown", c.Hash)
	}
	if c.Bits < 1 || c.Bits > 32 {
		bad("bits %d: want 1 to 32", c.Bits)
	}
	if c.Instances < 1 || c.Instances > maxInstances || c.Bits*c.Instances > 64 {
		bad("instances %d of %d bits: want 1 to %d, and 64 bits at most", c.Instances, c.Bits, maxInstances)
	}
	if !(c.Tau >= 0 && c.Tau <= 1) || c.Tau < 1 && len(c.P) == 0 {
		bad("tau %v with %d XOR layers: want 0 to 1, and a layer if it is below 1", c.Tau, len(c.P))
	}
	if len(c.P) > MaxLayers {
		bad("%d XOR layers: want %d at most", len(c.P), MaxLayers)
	}
	for _, p := range c.P {
		if !(p > 0 && p <= 1) {
			bad("probability %v of an XOR layer: want above 0, up to 1", p)
		}
	}
	if c.ValueBits < 0 || c.ValueBits > 32 {
		bad("value bits %d: want 0 to 32", c.ValueBits)
	}
	return errors.Join(problems...)
}

// fixed is a probability as a threshold for a uniform 32-bit number: below it means yes.
func fixed(p float64) uint64 {
	if p <= 0 {
		return 0
	}
	return max(1, uint64(math.Round(p*(1<<32))))
}

// Config returns the configuration of the scheme.
func (s *Scheme) Config() Config { return s.config }

// Width is the number of bits of one instance's digest.
func (s *Scheme) Width() int { return s.config.Bits }

// Instances is the number of independent digests in a packet.
func (s *Scheme) Instances() int { return s.config.Instances }

// Fragments is F, the number of parts in which values travel; 1 for hashes.
func (s *Scheme) Fragments() int { return int(max(s.parts, 1)) }

// Part is one instance's digest out of a packet's, the first instance in the lowest bits.
func (s *Scheme) Part(digest uint64, instance int) uint32 {
	w := s.config.Bits
	return uint32(digest >> (w * instance) & mask64(w))
}

// Digest returns the digest after a path, all instances. It is the decoder's view; [Scheme.Write] is the switch's.
// Hops beyond MaxHops do not write.
func (s *Scheme) Digest(id uint32, path []uint32) uint64 {
	var digest uint64
	for n := range s.Instances() {
		p := s.Packet(id, n)
		d := s.Sum(&p, s.Writers(&p, len(path)), path)
		digest |= uint64(d) << (s.Width() * n)
	}
	return digest
}

// Write returns the digest of a packet after the switch at hop i.
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
		digest = digest&^(mask64(w)<<(w*n)) | uint64(d)<<(w*n)
	}
	return digest
}
