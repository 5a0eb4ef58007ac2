package packet

import (
	"bytes"
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// Holds reports whether the header of the IP packet p is more than bytes that begin like one. The enclosing packet
// ends at end. Random bytes that were read as a packet hold once in a hundred times or less, and a packet of a
// network always does. Its protocol number is one of [Upper], and
//
//   - a packet of IPv4 has no fragment offset, or has the actual length, or a checksum that is right or was left out;
//   - a packet of IPv6 has the actual length, or both addresses are of kinds that networks use, and a TCP or UDP header
//     that begins behind it is possible.
func (p *Packet) Holds(data []byte, end int) bool {
	const padding = 3 // reports are whole words
	cut := len(data) < end
	data = data[:min(len(data), end)]
	switch over := end - p.End; {
	case p.IP == 0 || !Upper(p.IP, p.Proto):
		return false
	case over >= 0 && over <= padding:
		return true
	case p.IP == 4:
		h := data[p.L3:]
		return binary.BigEndian.Uint16(h[6:])&0x1fff == 0 || binary.BigEndian.Uint16(h[10:]) == 0 || sumHolds(h, cut)
	}
	switch p.Proto {
	case 1, 2, 59, 131: // of IPv4 alone, or with nothing behind
		return false
	}
	h := data[p.L3:]
	return h[8] != 0xff && used([16]byte(h[8:])) && used([16]byte(h[24:])) && p.transportHolds(data)
}

// sumHolds reports whether the checksum of the IPv4 header at the start of h is right. If the header is incomplete,
// it returns cut, whether the capture was cut.
func sumHolds(h []byte, cut bool) bool {
	size := int(h[0]&0x0f) * 4
	if size > len(h) {
		return cut
	}
	sum := uint32(0)
	for i := 0; i < size; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return sum == 0xffff
}

// used reports whether networks use the kind of an IPv6 address: allocated global unicast, SRv6, local, multicast or
// mapped. An address with zeros in it is assumed to be written by hand.
func used(a decode.Addr) bool {
	switch b := a[0]; {
	case b>>4 == 2, b == 0x3f, b == 0x5f, b&0xfe == 0xfc, b == 0xfe && a[1]&0x80 != 0, b == 0xff, b == 0:
		return true
	}
	return bytes.Contains(a[:], make([]byte, 4))
}

// transportHolds reports whether the captured bytes of TCP or UDP can be the beginning of its header.
func (p *Packet) transportHolds(data []byte) bool {
	if p.L4 == 0 || p.Fragment {
		return true
	}
	h := data[min(p.L4, len(data)):]
	switch {
	case p.Proto == ProtoTCP && len(h) > 12: // the length of its header, and bits that are 0
		return h[12]>>4 >= 5 && h[12]&0x0e == 0
	case p.Proto == ProtoUDP && len(h) >= 6:
		n := int(binary.BigEndian.Uint16(h[4:]))
		return n == 0 || n >= UDPLen && n <= p.End-p.L4
	}
	return true
}
