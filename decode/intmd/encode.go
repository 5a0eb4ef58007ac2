package intmd

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// Header is a shim and the INT header behind it, as the source node writes them: INT-MD 0.5, 1.0 and 2.x, INT-MX 2.x.
// The zero Type is INT-MD.
type Header struct {
	Version decode.Version
	Type    uint8 // TypeMD or, in 2.x, TypeMX
	Carrier Carrier

	// DSCP is the original one, for the sink node to restore: in 0.5 (in its tail), in 1.0, and in 2.x with NPT 0.
	DSCP uint8
	// NPT and Original are as in [Place]: the values that 2.x over TCP and UDP replaced. In 0.5 the tail holds the
	// destination port of Original and the protocol of Proto.
	NPT      uint8
	Original uint16
	Proto    uint8
	// Tunnel means that the source node added the GRE or VXLAN-GPE header, too, and the sink node removes it (the bit
	// G). With these two carriers, Original is the protocol behind INT.
	Tunnel bool

	Flags         decode.Flags // HopLimit, MTU, Copy (0.5 and 1.0), Discard (2.x)
	RemainingHops uint8        // in 0.5: nodes that may add to those that have
	Instructions  uint16

	// DomainID, DomainBits and DomainWords are of 2.x: the domain, its instructions, and the words that every hop adds
	// for them behind its block.
	DomainID, DomainBits uint16
	DomainWords          int

	// Layout is the meaning of the bits of Instructions in a dialect. The zero value is that of the version.
	Layout packet.Layout
}

// Len is the size of shim and header.
func (h *Header) Len() int {
	if h.Version == decode.V21 {
		return shimLen + headerLen
	}
	return shimLen + headerLen1
}

const (
	shimLen    = 4
	headerLen1 = 8 // of 0.5 and 1.0
	tailLen    = 4 // of 0.5
)

// layout returns the widths of the metadata.
func (h *Header) layout() packet.Layout {
	switch {
	case h.Layout != packet.INT2:
		return h.Layout
	case h.Version == decode.V05:
		return packet.INT05
	case h.Version == decode.V10:
		return packet.INT10
	}
	return packet.INT2
}

// HopWords is the size of one hop's block in words, with those of the domain.
func (h *Header) HopWords() int { return packet.Words(h.layout(), h.Instructions) + h.DomainWords }

// AppendHeader appends h. Behind it, stack bytes follow, a multiple of 4: the stack, or the source metadata of
// INT-MX.
func AppendHeader(dst []byte, h *Header, stack int) []byte {
	be := binary.BigEndian
	switch h.Version {
	case decode.V05:
		hops := stack / max(4*h.HopWords(), 4)
		dst = be.AppendUint32(dst, TypeMD<<24|uint32(shimLen+headerLen1+stack+tailLen)/4<<8)
		dst = be.AppendUint32(dst, h.flags1()<<24|uint32(bits.OnesCount16(h.Instructions))<<16|uint32(h.RemainingHops+uint8(hops))<<8|uint32(uint8(hops)))
		return be.AppendUint32(dst, uint32(h.Instructions)<<16)
	case decode.V10:
		mtu := uint32(0)
		if h.Flags&decode.MTU != 0 {
			mtu = 0x80
		}
		dst = be.AppendUint32(dst, TypeMD<<24|uint32(shimLen+headerLen1+stack)/4<<8|uint32(h.DSCP)<<2)
		dst = be.AppendUint32(dst, (0x10|h.flags1())<<24|mtu<<16|uint32(h.HopWords()&0x1f)<<8|uint32(h.RemainingHops))
		return be.AppendUint32(dst, uint32(h.Instructions)<<16)
	}
	dst = h.appendShim(dst, uint32(headerLen+stack)/4)
	word := uint32(2<<28) | h.flags2()<<25
	if h.Type != TypeMX {
		word |= uint32(h.HopWords()&0x1f)<<8 | uint32(h.RemainingHops)
	}
	dst = be.AppendUint32(dst, word)
	dst = be.AppendUint32(dst, uint32(h.Instructions)<<16|uint32(h.DomainID))
	return be.AppendUint32(dst, uint32(h.DomainBits)<<16)
}

// appendShim appends the shim of 2.x.
func (h *Header) appendShim(dst []byte, words uint32) []byte {
	be, typ, g := binary.BigEndian, uint32(max(h.Type, TypeMD)), uint32(0)
	if h.Tunnel {
		g = 1
	}
	switch h.Carrier {
	case Geneve:
		return be.AppendUint32(dst, classINT<<16|typ<<8|words&0x1f)
	case GRE:
		return be.AppendUint32(dst, typ<<28|g<<27|words&0xff<<16|uint32(h.Original))
	case VXLANGPE:
		return be.AppendUint32(dst, typ<<28|words&0xff<<16|g<<15|uint32(h.Original&0xff))
	}
	shim := typ<<28 | uint32(h.NPT&3)<<26 | words&0xff<<16
	switch h.NPT {
	case 0:
		shim |= uint32(h.DSCP&0x3f) << 2
	case 1:
		shim |= uint32(h.Original)
	case 2:
		shim |= uint32(uint8(h.Original))
	}
	return be.AppendUint32(dst, shim)
}

// flags1 returns C and E of 0.5 and 1.0 in their place in the first byte.
func (h *Header) flags1() (f uint32) {
	if h.Flags&decode.Copy != 0 {
		f |= 2
	}
	if h.Flags&decode.HopLimit != 0 {
		f |= 1
	}
	return f
}

// flags2 returns D, E and M of 2.x in the lowest bits.
func (h *Header) flags2() (f uint32) {
	if h.Flags&decode.Discard != 0 {
		f |= 4
	}
	if h.Type == TypeMX {
		return f
	}
	if h.Flags&decode.HopLimit != 0 {
		f |= 2
	}
	if h.Flags&decode.MTU != 0 {
		f |= 1
	}
	return f
}

// AppendHop appends one block of the stack: the values of hop that the instructions of h request, without words of a
// domain. The newest hop comes first on the wire.
func AppendHop(dst []byte, h *Header, hop *decode.Hop) []byte {
	return packet.AppendBlock(dst, h.layout(), h.Instructions, hop)
}

// AppendCounted is AppendHop with counts, in dialects that have them.
func AppendCounted(dst []byte, h *Header, hop *decode.Hop, counts *decode.HopCounts) []byte {
	return packet.AppendCounted(dst, h.layout(), h.Instructions, hop, counts)
}

// AppendStack appends the blocks of all hops, of which the first hop of the path is the first.
func AppendStack(dst []byte, h *Header, hops []decode.Hop) []byte {
	return packet.AppendStack(dst, h.layout(), h.Instructions, hops)
}

// Append appends a whole INT part: h, a stack of hops, and for 0.5 the tail. The domain has no words of its own.
func Append(dst []byte, h *Header, hops []decode.Hop) []byte {
	dst = AppendStack(AppendHeader(dst, h, 4*h.HopWords()*len(hops)), h, hops)
	if h.Version == decode.V05 {
		dst = append(dst, h.Proto, byte(h.Original>>8), byte(h.Original), h.DSCP<<2)
	}
	return dst
}

// Part is an INT-MD part in a packet, from its shim on, for a node that adds to it in place. TCP or UDP carries it.
type Part struct {
	b   []byte
	v10 bool
}

// PartAt returns b as the INT part of a packet of the given version, 1.0 or 2.x. B must hold shim and header.
func PartAt(b []byte, v decode.Version) Part { return Part{b, v == decode.V10} }

// Header is the bytes of shim and header.
func (p Part) Header() []byte {
	if p.v10 {
		return p.b[:shimLen+headerLen1]
	}
	return p.b[:shimLen+headerLen]
}

// RemainingHops returns how many nodes may still add a block.
func (p Part) RemainingHops() int { return int(p.b[shimLen+3]) }

// Grow adds a block to the lengths, of that many words, which the caller inserts behind the header.
func (p Part) Grow(words int) {
	at := 1
	if p.v10 {
		at = 2
	}
	p.b[at] += byte(words)
	p.b[shimLen+3]--
}

// Refuse notes why a node added nothing: HopLimit or MTU.
func (p Part) Refuse(why decode.Flags) {
	switch {
	case why == decode.HopLimit && p.v10:
		p.b[shimLen] |= 0x01
	case why == decode.HopLimit:
		p.b[shimLen] |= 0x04
	case p.v10:
		p.b[shimLen+1] |= 0x80
	default:
		p.b[shimLen] |= 0x02
	}
}

// Restore returns the values that the source node replaced, which the sink node restores: NPT with the original port
// or protocol, or with NPT 0 the original DSCP.
func (p Part) Restore() (npt uint8, original uint16, dscp uint8) {
	if !p.v10 {
		npt = p.b[0] >> 2 & 3
	}
	switch npt {
	case 1:
		original = binary.BigEndian.Uint16(p.b[2:])
	case 2:
		original = uint16(p.b[3])
	default:
		dscp = p.b[3] >> 2
	}
	return npt, original, dscp
}
