package packet

import (
	"encoding/binary"
)

// The encoders append one header each, front to back, and allocate nothing when dst has room. A header that is appended
// to b[:at] with room behind it is written in place.

// MAC is a hardware address.
type MAC [6]byte

// Sizes of the headers that the encoders write, without options.
const (
	EthernetLen = 14
	IPv4Len     = 20
	IPv6Len     = 40
	UDPLen      = 8
	TCPLen      = 20
)

// AppendEthernet appends an Ethernet header without tags.
func AppendEthernet(dst []byte, to, from MAC, etherType uint16) []byte {
	dst = append(append(dst, to[:]...), from[:]...)
	return binary.BigEndian.AppendUint16(dst, etherType)
}

// IPv4 is an IPv4 header without options, of a packet that is no fragment.
type IPv4 struct {
	TOS, TTL, Proto uint8
	ID              uint16
	DontFragment    bool
	Src, Dst        [4]byte
}

// AppendIPv4 appends h with its checksum, for a packet with payload bytes behind it.
func AppendIPv4(dst []byte, h *IPv4, payload int) []byte {
	be := binary.BigEndian
	first := 0x45<<24 | uint32(h.TOS)<<16 | uint32(uint16(IPv4Len+payload))
	second := uint32(h.ID) << 16
	if h.DontFragment {
		second |= 0x4000
	}
	third := uint32(h.TTL)<<24 | uint32(h.Proto)<<16
	src, to := be.Uint32(h.Src[:]), be.Uint32(h.Dst[:])
	third |= uint32(^Fold(uint64(first) + uint64(second) + uint64(third) + uint64(src) + uint64(to)))
	dst = be.AppendUint64(dst, uint64(first)<<32|uint64(second))
	dst = be.AppendUint64(dst, uint64(third)<<32|uint64(src))
	return be.AppendUint32(dst, to)
}

// IPv6 is an IPv6 header with flow label 0, and no extension headers behind it.
type IPv6 struct {
	TrafficClass, HopLimit, Proto uint8
	Src, Dst                      [16]byte
}

// AppendIPv6 appends h, for a packet with payload bytes behind it.
func AppendIPv6(dst []byte, h *IPv6, payload int) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, 6<<28|uint32(h.TrafficClass)<<20)
	dst = be.AppendUint32(dst, uint32(uint16(payload))<<16|uint32(h.Proto)<<8|uint32(h.HopLimit))
	return append(append(dst, h.Src[:]...), h.Dst[:]...)
}

// AppendUDP appends a UDP header for payload bytes behind it. Its checksum is 0, which means none. [ChecksumUDP] sets
// it.
func AppendUDP(dst []byte, srcPort, dstPort uint16, payload int) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(srcPort)<<48|uint64(dstPort)<<32|uint64(uint16(UDPLen+payload))<<16)
}

// TCP is a TCP header.
type TCP struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Window           uint16
	Options          []byte // a multiple of 4 bytes, at most 40
}

// AppendTCP appends h with a checksum of 0, which the caller fills in at byte 16.
func AppendTCP(dst []byte, h *TCP) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(h.SrcPort)<<16|uint32(h.DstPort))
	dst = be.AppendUint32(dst, h.Seq)
	dst = be.AppendUint32(dst, h.Ack)
	words := uint32(TCPLen+len(h.Options)) / 4
	dst = be.AppendUint32(dst, words<<28|uint32(h.Flags)<<16|uint32(h.Window))
	dst = append(dst, 0, 0, 0, 0)
	return append(dst, h.Options...)
}

// Sum adds the 16-bit words of b as the Internet checksum does (RFC 1071). A last odd byte is the upper half of a
// word. It adds 32 bits at a time, which [Fold] reduces to the same result, as 2^16 is 1 modulo 2^16-1.
func Sum(b []byte) (s uint64) {
	be := binary.BigEndian
	for len(b) >= 4 {
		s += uint64(be.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		s += uint64(be.Uint16(b))
		b = b[2:]
	}
	if len(b) > 0 {
		s += uint64(b[0]) << 8
	}
	return s
}

// Fold brings a sum down to 16 bits. The checksum is its complement.
func Fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}

// UpdateChecksum changes the checksum in field after words were removed from the packet and others inserted. Each
// argument is the sum of such words (RFC 1624, equation 3).
func UpdateChecksum(field []byte, out, in uint64) {
	be := binary.BigEndian
	be.PutUint16(field, ^Fold(uint64(^be.Uint16(field))+uint64(^Fold(out))+in))
}

// PseudoHeader is the sum of the pseudo header that the checksums of UDP and TCP cover. It has the two addresses as
// in the IP header, the protocol, and the length behind the IP header.
func PseudoHeader(addresses []byte, proto uint8, length int) uint64 {
	return Sum(addresses) + uint64(proto) + uint64(length)
}

// ChecksumUDP fills in the checksum of a UDP datagram that begins with its header and whose checksum is 0 so far. A
// checksum that would be 0 becomes all ones, because 0 means that there is none (RFC 768).
func ChecksumUDP(datagram []byte, pseudo uint64) {
	c := ^Fold(pseudo + Sum(datagram))
	if c == 0 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(datagram[6:], c)
}
