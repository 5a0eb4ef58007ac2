package decode

import (
	"encoding/binary"
	"math/bits"
)

// HashKey is the secret of a keyed hash: 64 well-mixed bits of a flow, a place or an exporter, for all tables of a
// collector. The zero value is a key without a secret; [NewHashKey] makes one of a seed.
//
// The hash is NH with words of 64 bits (Black, Halevi, Krawczyk, Krovetz and Rogaway, "UMAC: Fast and Secure Message
// Authentication", CRYPTO 1999). Each word of the input is added to a word of the key. The products of pairs of such
// sums are added in 128 bits. Any two inputs that a sender chooses without the key collide with a probability of at
// most 2⁻⁶⁴. A multiplication in which one factor is the sender's alone has no such bound: a sender that makes it
// zero decides the result. One more multiplication, keyed as well, mixes the 128 bits to 64.
type HashKey struct{ k [8]uint64 }

// NewHashKey makes a key of a seed: the same seed gives the same key, in every process of a fleet and in every
// replay. With a secret seed, senders cannot choose flows that collide.
func NewHashKey(seed uint64) HashKey {
	var h HashKey
	for i := range h.k { // splitmix64
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		h.k[i] = z ^ z>>31
	}
	return h
}

// Flow hashes a flow.
func (h *HashKey) Flow(f *FlowKey) uint64 {
	le := binary.LittleEndian
	return h.words(le.Uint64(f.Src[:]), le.Uint64(f.Src[8:]), le.Uint64(f.Dst[:]), le.Uint64(f.Dst[8:]),
		uint64(f.SrcPort)<<48|uint64(f.DstPort)<<32|uint64(f.Proto)<<8|uint64(f.IPVersion))
}

// Words hashes four words, such as the address of an exporter and the key of a sequence of it.
func (h *HashKey) Words(a, b, c, d uint64) uint64 {
	k := &h.k
	hi, lo := bits.Mul64(a+k[0], b+k[1])
	hi2, lo2 := bits.Mul64(c+k[2], d+k[3])
	lo, carry := bits.Add64(lo, lo2, 0)
	hi, _ = bits.Add64(hi, hi2, carry)
	return h.finish(hi, lo)
}

// Word hashes a single word, such as a place in the network.
func (h *HashKey) Word(x uint64) uint64 {
	hi, lo := bits.Mul64(x>>32+h.k[0], x&(1<<32-1)+h.k[1])
	return h.finish(hi, lo)
}

func (h *HashKey) words(a, b, c, d, e uint64) uint64 {
	k := &h.k
	hi, lo := bits.Mul64(a+k[0], b+k[1])
	hi2, lo2 := bits.Mul64(c+k[2], d+k[3])
	hi3, lo3 := bits.Mul64(e+k[4], k[5])
	var carry uint64
	lo, carry = bits.Add64(lo, lo2, 0)
	hi, _ = bits.Add64(hi, hi2, carry)
	lo, carry = bits.Add64(lo, lo3, 0)
	hi, _ = bits.Add64(hi, hi3, carry)
	return h.finish(hi, lo)
}

func (h *HashKey) finish(hi, lo uint64) uint64 {
	hi, lo = bits.Mul64(hi+h.k[6], lo+h.k[7])
	return hi ^ lo
}

// Sum digests the bytes of a datagram, to distinguish the copy of a report from another one with its number. It holds
// against chance and not against a sender that chooses the bytes: a sender that makes two datagrams alike makes two
// reports one. It takes two additions a word.
func Sum(b []byte) uint32 {
	const block = 32
	size := uint64(len(b))
	if len(b) < block {
		var short [block]byte
		copy(short[:], b)
		b = short[:]
	}
	last := (*[block]byte)(b[len(b)-block:]) // may begin in the block before
	s := sumBlocks(b[:(len(b)-1)/block*block])
	s.add(last)
	x := (s.a^size)*0x9e3779b97f4a7c15 + s.sumA*0xbf58476d1ce4e5b9
	x = (x^x>>32)*0xd6e8feb86659fd93 + s.c*0x94d049bb133111eb + s.sumC*0xe7037ed1a0b428db
	x ^= x >> 32
	return uint32(x * 0x9e3779b97f4a7c15 >> 32)
}

// sums are of words at even and at odd places. Of each, how often a word is in the second sum depends on its place.
type sums struct{ a, c, sumA, sumC uint64 }

func (s *sums) add(block *[32]byte) {
	le := binary.LittleEndian
	s.a += le.Uint64(block[:])
	s.c += le.Uint64(block[8:])
	s.sumA += s.a
	s.sumC += s.c
	s.a += le.Uint64(block[16:])
	s.c += le.Uint64(block[24:])
	s.sumA += s.a
	s.sumC += s.c
}

// sumBlocksGo adds blocks of 32 bytes.
func sumBlocksGo(b []byte) (s sums) {
	for ; len(b) >= 32; b = b[32:] {
		s.add((*[32]byte)(b))
	}
	return s
}
