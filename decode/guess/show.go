package guess

import (
	"encoding/binary"
	"slices"

	"github.com/hopscope/hopscope/decode/packet"
)

// shown is the number of bytes of a frame that are shown at most.
const shown = 96

// show returns a copy of s up to the start of users' data. These start behind the headers of the innermost packet,
// and behind INT that has the shape of its shim. A datagram of an exporter without a packet in it is shown unchanged.
func (g *Guesser) show(s *Sample) []byte {
	b, from := s.Data[:min(len(s.Data), shown)], 0
	end := len(b)
	if s.Link != Datagram {
		var p packet.Packet
		p.Frame(s.Link, s.Data, s.Length)
		if p.IP == 0 || p.L4 == 0 {
			return slices.Clone(b)
		}
		if from = p.L4; p.HasPorts && p.Proto == packet.ProtoUDP && g.known[p.DstPort()] {
			from += packet.UDPLen
		} else {
			end = behind(b, &p)
		}
	}
	for at := from; at < len(b); at++ {
		var p packet.Packet
		if packetAt(&p, b, at) {
			end = behind(b, &p)
		}
	}
	return slices.Clone(b[:end])
}

// packetAt reads an IP packet at b[at] into p: behind an EtherType, or IPv4 with the right checksum.
func packetAt(p *packet.Packet, b []byte, at int) bool {
	ether := uint16(0)
	if at >= 2 {
		ether = binary.BigEndian.Uint16(b[at-2:])
	}
	switch size := 4 * int(b[at]&15); {
	case b[at]>>4 == 4 && size >= 20 && len(b)-at >= size && (ether == packet.EtherIPv4 || checksum(b[at:at+size]) == 0xffff):
		p.IPv4(b, at, len(b))
	case b[at]>>4 == 6 && ether == packet.EtherIPv6:
		p.IPv6(b, at, len(b))
	}
	return p.IP != 0 && p.L4 != 0 && packet.Upper(p.IP, p.Proto)
}

// behind is the place in b where the user data of p begin.
func behind(b []byte, p *packet.Packet) int {
	at := p.L4
	switch p.Proto {
	case packet.ProtoTCP:
		at += packet.TCPLen
	case packet.ProtoUDP:
		at += packet.UDPLen
	case 253: // IFA
		return len(b)
	default:
		return min(at+8, len(b))
	}
	if at+8 > len(b) {
		return min(at, len(b))
	}
	h := b[at : at+8]
	switch typ := h[0] >> 4; {
	case typ >= 1 && typ <= 3 && h[1] >= 3 && (h[2] == 0 || h[4]>>4 == 2 && h[6]&0xe0 == 0): // 2.x
		at += 4 + 4*int(h[1])
	case h[0] >= 1 && h[0] <= 3 && h[1] == 0 && h[2] >= 3: // 0.5 and 1.0
		at += 4 * int(h[2])
	}
	return min(at, len(b))
}
