package program

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
)

var be = binary.BigEndian

// Headers are their bytes; nil is one that is not valid.
type (
	ethernet []byte
	ip4      []byte
	ip6      []byte
	udp      []byte
	tcp      []byte
	shim     []byte
	intHead  []byte
)

func get(b []byte, at int) uint16    { return be.Uint16(b[at:]) }
func put(b []byte, at int, v uint16) { be.PutUint16(b[at:], v) }

// DSCPs.
func (h ip4) dscp() uint8     { return h[1] >> 2 }
func (h ip4) setDSCP(v uint8) { h[1] = v<<2 | h[1]&3 }
func (h ip6) dscp() uint8     { return h[0]&15<<2 | h[1]>>6 }
func (h ip6) setDSCP(v uint8) { h[0], h[1] = h[0]&0xf0|v>>2, h[1]&0x3f|v<<6 }

func (h shim) kind() uint8 { return h[0] >> 4 }
func (h shim) npt() uint8  { return h[0] >> 2 & 3 }

func (h intHead) version() uint8 { return h[0] >> 4 }
func (h intHead) words() uint8   { return h[2] & 31 }

// Flags of the INT header, in its first byte.
const (
	discard  = 0x08
	exceeded = 0x04
	tooLong  = 0x02
)

// These are constants of frames.
const (
	typeIPv4  = headers.EtherIPv4
	typeIPv6  = headers.EtherIPv6
	typeVLAN  = 0x8100
	protoTCP  = headers.ProtoTCP
	protoUDP  = headers.ProtoUDP
	markDSCP  = 0x17
	probeDSCP = 0x1b
	markPort  = 17768
	intMD     = 1
	intVer    = 2
	fantID    = 0xfa17
	ethLen    = headers.EthernetLen
	reasonTTL = 26
	noRoute   = 29
	denied    = 80
)

// changed is a checksum after words of a packet were removed and others were added (RFC 1624, equation 3).
func changed(checksum uint16, removed, added uint64) uint16 {
	return ^fold(uint64(^checksum) + uint64(^fold(removed)) + added)
}

// fold is that of the programs: of sums below 2^32, two carries.
func fold(v uint64) uint16 {
	s := uint32(v)
	s = s&0xffff + s>>16
	return uint16(s&0xffff + s>>16)
}

// checkIPv4 reports whether the checksum of an IPv4 header is right.
func checkIPv4(h ip4, options []byte) bool {
	return csum16(h, options) == get(h, 10)
}

// csum16 is the checksum of an IPv4 header.
func csum16(h ip4, options []byte) uint16 {
	return ^headers.Fold(headers.Sum(h[:10]) + headers.Sum(h[12:]) + headers.Sum(options))
}

// crcOf is CRC-32 over what follows each other.
func crcOf(parts ...[]byte) uint32 {
	c := uint32(0)
	for _, p := range parts {
		c = crc32.Update(c, crc32.IEEETable, p)
	}
	return c
}

// crcWord is CRC-32 over a number of 32 bits.
func crcWord(v uint32) uint32 {
	c := ^bits.ReverseBytes32(v)
	for range 4 {
		c = crc32.IEEETable[byte(c)] ^ c>>8
	}
	return ^c
}

// l4 is the L4 header that is there, without TCP's options. UDP and TCP are never both valid.
func (p *Packet) l4() []byte {
	switch {
	case p.udp != nil:
		return p.udp[:8]
	case p.tcp != nil:
		return p.tcp[:20]
	}
	return nil
}

// nanoseconds turns a time of the switch into nanoseconds.
func (s *Switch) nanoseconds(t uint64) uint64 { return t & s.wrap * s.tick }

// elapsed is a difference of two of its times.
func (s *Switch) elapsed(from, to uint64) uint64 { return s.nanoseconds(to - from) }

// microseconds turns a time of the switch into that of a label.
func (s *Switch) microseconds(t uint64) uint64 { return t * s.tick / 1000 }

// longestBlock is the length of a node's values for all bits of FANT.
const longestBlock = 88

// sum is the one's complement sum of the 16-bit words of headers.
func sum(b []byte) uint64 { return uint64(headers.Fold(headers.Sum(b))) }

// sumINT is that of shim and INT header.
func (p *Packet) sumINT() uint64 {
	return uint64(headers.Fold(headers.Sum(p.shim) + headers.Sum(p.head)))
}

// block appends the output of FILL_BLOCK and FILL_RESERVED: a node's values for a bitmap. The last word, if the bitmap
// asks for the complement, is 0; complement is set if there is one.
func (h *hop) block(b []byte, bitmap uint16, reserved, fant bool) (_ []byte, complement bool) {
	bit := func(n int) bool { return bitmap>>(15-n)&1 == 1 }
	ones := func(words int) {
		for range words {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
		}
	}
	if bit(0) {
		b = be.AppendUint32(b, h.node)
	}
	if bit(1) {
		b = be.AppendUint16(be.AppendUint16(b, h.ingress), h.egress)
	}
	if bit(2) {
		b = be.AppendUint32(b, h.latency)
	}
	if bit(3) {
		b = be.AppendUint32(b, h.occupancy&0xffffff)
	}
	if bit(4) {
		b = be.AppendUint64(b, h.ingressTime)
	}
	if bit(5) {
		b = be.AppendUint64(b, h.egressTime)
	}
	if bit(6) {
		b = be.AppendUint32(be.AppendUint32(b, h.logicalIn), h.logicalOut)
	}
	shown := h.shown
	if shown == nil {
		shown = &hidden
	}
	if bit(7) {
		b = be.AppendUint32(b, shown.Utilization)
	}
	if bit(8) {
		b = be.AppendUint32(b, shown.Buffer)
	}
	if !reserved {
		return b, false
	}
	counts := h.counts
	if shown.Counts != nil { // of a network around the switch
		counts = shown.Counts
	}
	if fant && counts != nil {
		b = headers.AppendCounted(b, headers.INT2FANT, bitmap&reservedBits, &decode.Hop{}, counts)
		bitmap &^= reservedBits
	}
	for n := 9; n < 15; n++ {
		switch {
		case !bit(n):
		case n >= 12 && fant:
			ones(2)
		default:
			ones(1)
		}
	}
	if bit(15) {
		b = append(b, 0, 0, 0, 0)
	}
	return b, bit(15)
}

// hop holds a node's measurements of one packet.
type hop struct {
	node                    uint32
	ingress, egress         uint16
	latency                 uint32 // ns, modulo 2^32
	occupancy               uint32 // packets
	ingressTime, egressTime uint64 // ns
	logicalIn, logicalOut   uint32
	shown                   *Shown
	counts                  *decode.HopCounts // of the egress port; nil for none
}

// hidden stands for what is not shown.
var hidden = Shown{Utilization: math.MaxUint32, Buffer: math.MaxUint32}

// reservedBits are those that INT 2.1 does not define.
const reservedBits = 0x007e

// newHop is the hop that all programs make of the switch's measurements.
func (s *Switch) newHop(node uint32, clock uint64, in, out uint16, arrived, left uint64, depth uint32) hop {
	return hop{
		node: node, ingress: in, egress: out, latency: uint32(s.elapsed(arrived, left)), occupancy: depth,
		ingressTime: clock + s.nanoseconds(arrived), egressTime: clock + s.nanoseconds(left),
		logicalIn: node<<16 | uint32(in), logicalOut: node<<16 | uint32(out),
	}
}
