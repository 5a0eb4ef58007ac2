// Package packet is the common part of formats in packets: the layers below them, and the blocks of metadata that
// nodes write.
//
// # Layers
//
// A [Packet] has the layers up to the offset of the transport header. Ethernet may have any number of tags (VLAN,
// VN-tag, E-tag), a provider's header (802.1ah) or LLC/SNAP. Linux cooked captures, IPv4 with options and IPv6 with
// extension headers are read, too.
//
// It copies nothing and allocates nothing: a [Packet] holds offsets into the bytes it was read from. The lengths by
// its fields and the bytes of the capture are kept apart. A packet that was cut by the capture is read as far as it
// goes. Every offset may lie beyond the captured bytes, so a reader there checks first.
//
// # Blocks
//
// A bitmap of instructions defines the content of one node's block of metadata. A [Plan], made by [Compile], holds
// the content and its offsets. Blocks are written by [AppendBlock].
//
// A bitmap does not change within a stack and rarely between packets of one domain. So its bits are walked once, and
// the result is kept in a [Cache]. The widths are those of the INT specifications 0.5, 1.0 and 2.x; telemetry report
// 2.0 uses the table of INT 2.x for its own metadata.
package packet

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// Link types, as numbered by the registry of pcap (LINKTYPE_ values).
const (
	LinkNull      uint16 = 0 // BSD loopback: the address family in the byte order of the machine that captured
	LinkEthernet  uint16 = 1
	LinkPPP       uint16 = 9   // the protocol field, with or without HDLC framing before it, RFC 1661 and RFC 1662
	LinkRaw       uint16 = 101 // IPv4 or IPv6, distinguished by the version nibble
	LinkLoop      uint16 = 108 // OpenBSD loopback: the address family in network byte order
	LinkLinuxSLL  uint16 = 113
	LinkIPv4      uint16 = 228
	LinkIPv6      uint16 = 229
	LinkLinuxSLL2 uint16 = 276
)

// EtherTypes.
const (
	EtherIPv4 uint16 = 0x0800
	EtherIPv6 uint16 = 0x86dd

	etherVLAN   uint16 = 0x8100 // IEEE 802.1Q
	etherQinQ   uint16 = 0x88a8 // IEEE 802.1ad
	etherQinQ91 uint16 = 0x9100 // the same before it was standardised
	etherPBB    uint16 = 0x88e7 // IEEE 802.1ah
	etherVNTag  uint16 = 0x8926 // between fabric extenders, hosts and the switch that they belong to
	etherETag   uint16 = 0x893f // IEEE 802.1BR

	leastEther uint16 = 0x0600 // smaller values are lengths of frames of IEEE 802.3
)

// IP protocol numbers of the headers that are walked over, and of those that have ports.
const (
	ProtoTCP uint8 = 6
	ProtoUDP uint8 = 17
	ProtoGRE uint8 = 47

	protoHopByHop    uint8 = 0
	protoRouting     uint8 = 43
	protoFragment    uint8 = 44
	protoAH          uint8 = 51
	protoDestination uint8 = 60
)

// Limits on the parser's steps in a hostile packet.
const (
	maxTags       = 8
	maxExtensions = 16
)

// Packet holds the places of the layers of one packet. Offsets count from the first byte of the data that was read.
type Packet struct {
	L3        int    // the IP header, or what stands in its place
	L4        int    // the header above IP; 0 if there is none: a later fragment, or no whole IP header
	End       int    // where the packet ends by the IP header's own length and the frame; can be beyond the data
	EtherType uint16 // of the layer at L3; 0 if the link has none
	ID        uint16 // IPv4 identification
	Link      uint16 // link type of the frame that was read
	FragAt    int    // where the fragment fields are, when Fragment is set
	Ports     uint32 // source and destination port of TCP or UDP, when HasPorts is set
	IP        uint8  // 4 or 6; 0 if no whole fixed IP header was captured
	Proto     uint8  // of the header at L4; for IPv6 that of the upper layer
	TOS       uint8  // IPv4 type of service, IPv6 traffic class
	TTL       uint8  // IPv6: hop limit
	Fragment  bool   // part of a fragmented packet, the first part included
	HasPorts  bool   // the header at L4 starts with two ports, and they were captured
}

// DSCP is the upper six bits of the traffic class.
func (p *Packet) DSCP() uint8 { return p.TOS >> 2 }

// SrcPort and DstPort are those of TCP or UDP, 0 without.
func (p *Packet) SrcPort() uint16 { return uint16(p.Ports >> 16) }

// DstPort is SrcPort for the destination.
func (p *Packet) DstPort() uint16 { return uint16(p.Ports) }

// UDPEnd returns where the UDP datagram at L4 ends by its own length, as far as the IP packet has room. A length of 0
// (RFC 2675), or one that was not captured, is ignored.
func (p *Packet) UDPEnd(data []byte) int {
	if len(data) < p.L4+6 {
		return p.End
	}
	n := int(binary.BigEndian.Uint16(data[p.L4+4:]))
	if n == 0 {
		return p.End
	}
	return min(p.L4+n, p.End)
}

// Frame reads a captured frame, to the packet behind any labels of MPLS or session of PPPoE. Length is that on the
// wire, and no packet ends behind it, also if its IP header has a larger length. A packet inside a report has no such
// bound, because the node that reports may have cut it.
func (p *Packet) Frame(link uint16, data []byte, length int) {
	length = max(length, len(data))
	switch link {
	case LinkEthernet:
		p.Ethernet(data, 0, length)
	case LinkLinuxSLL:
		p.cooked(data, 14, 16, length)
	case LinkLinuxSLL2:
		p.cooked(data, 0, 20, length)
	case LinkPPP:
		p.ppp(data, length)
	case LinkNull, LinkLoop:
		p.loopback(link, data, length)
	case LinkRaw, LinkIPv4, LinkIPv6:
		*p = Packet{}
		if len(data) == 0 {
			break
		}
		switch v := data[0] >> 4; {
		case v == 4 && link != LinkIPv6:
			p.EtherType = EtherIPv4
			p.ipv4(data, 0, length)
		case v == 6 && link != LinkIPv4:
			p.EtherType = EtherIPv6
			p.ipv6(data, 0, length)
		}
	default:
		*p = Packet{}
	}
	if p.IP == 0 && p.Wrapped() {
		p.Inside(data)
	}
	p.Link = link
	p.End = min(p.End, length)
}

// Ethernet reads a frame that starts at data[at]. By the enclosing layer it ends at end.
func (p *Packet) Ethernet(data []byte, at, end int) {
	*p = Packet{}
	if len(data)-at < 14 {
		return
	}
	p.network(data, binary.BigEndian.Uint16(data[at+12:]), at+14, end)
}

// ppp reads a packet behind a PPP protocol field, which has one byte where it is compressed. Before it can be the address
// and control bytes of HDLC-like framing.
func (p *Packet) ppp(data []byte, end int) {
	const framing, ipv4, ipv6 = 0xff03, 0x21, 0x57
	*p = Packet{}
	at := 0
	if len(data) >= 2 && binary.BigEndian.Uint16(data) == framing {
		at = 2
	}
	if len(data)-at >= 2 && data[at] == 0 { // the first byte of an uncompressed number is even
		at++
	}
	if len(data) <= at {
		return
	}
	switch data[at] {
	case ipv4:
		p.network(data, EtherIPv4, at+1, end)
	case ipv6:
		p.network(data, EtherIPv6, at+1, end)
	}
}

// loopback reads a packet behind an address family of 4 bytes. Systems number IPv6 differently, and the byte order of
// the capturing machine is only known for [LinkLoop].
func (p *Packet) loopback(link uint16, data []byte, end int) {
	*p = Packet{}
	if len(data) < 4 {
		return
	}
	family := binary.BigEndian.Uint32(data)
	if link == LinkNull && family > 0xffff {
		family = bits.ReverseBytes32(family)
	}
	switch family {
	case 2:
		p.network(data, EtherIPv4, 4, end)
	case 10, 23, 24, 28, 30: // Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin
		p.network(data, EtherIPv6, 4, end)
	}
}

// cooked reads a Linux cooked header of size bytes with its protocol at typeAt.
func (p *Packet) cooked(data []byte, typeAt, size, end int) {
	*p = Packet{}
	if len(data) < size {
		return
	}
	p.network(data, binary.BigEndian.Uint16(data[typeAt:]), size, end)
}

// Announced reports whether an EtherType is one that frames of switched networks have: IP, ARP, tags, MPLS, LLDP,
// 802.1X, slow protocols, PPPoE and PTP.
func Announced(ether uint16) bool {
	return ether == EtherIPv4 || ether == EtherIPv6 || tagLen(ether) > 0 || BesideIP(ether)
}

// BesideIP is Announced for EtherTypes other than IP and tags.
func BesideIP(ether uint16) bool {
	switch ether {
	case 0x0806, etherMPLS, etherMPLSToMany, 0x8863, etherPPPoE, 0x8809, 0x88cc, 0x888e, 0x88f7:
		return true
	}
	return false
}

// Begins reports whether the bytes at p.L3 can be the beginning of a packet of p.EtherType.
func (p *Packet) Begins(data []byte) bool {
	if p.L3 >= len(data) {
		return true
	}
	b := data[p.L3:]
	switch p.EtherType {
	case EtherIPv4:
		return b[0]>>4 == 4
	case EtherIPv6:
		return b[0]>>4 == 6
	case 0x0806: // ARP: of Ethernet, for IPv4
		return bytes.HasPrefix([]byte{0, 1, 8, 0, 6, 4}, b[:min(len(b), 6)])
	case etherMPLS, etherMPLSToMany:
		for at := 0; ; at += 4 {
			if len(b) < at+3 {
				return true
			} else if b[at+2]&1 != 0 {
				return behindLabels(b[min(at+4, len(b)):])
			} else if at == 4*(maxLabels-1) {
				return false
			}
		}
	case 0x8863, etherPPPoE: // version and type
		return b[0] == 0x11
	case 0x8809: // slow protocols: LACP, markers, OAM, ESMC
		return b[0] >= 1 && b[0] <= 3 || b[0] == 10
	case 0x88cc: // LLDP: first the chassis
		return b[0] == 2
	case 0x888e: // 802.1X: a version
		return b[0] >= 1 && b[0] <= 3
	case 0x88f7: // PTP: version 2
		return len(b) < 2 || b[1]&0x0f == 2
	}
	return true
}

// behindLabels reports whether b can be the beginning of the payload of MPLS labels: IP, a control word, or a frame.
func behindLabels(b []byte) bool {
	switch {
	case len(b) == 0, b[0]>>4 <= 1:
		return true
	case etherOf(b[0]) != 0 && (b[0]>>4 == 6 || b[0]&0x0f >= 5):
		return true
	case len(b) < EthernetLen:
		return false
	}
	ether := binary.BigEndian.Uint16(b[12:])
	return Announced(ether) || ether < leastEther
}

// Upper reports whether packets of an IP version carry a protocol number. Such are headers of IPv6, tunnels,
// transports and routing, and the experimental numbers, under which telemetry is found, too. Some numbers count for
// IPv4 alone. No network carries them over IPv6, and they are ASCII characters.
func Upper(version, proto uint8) bool {
	switch proto {
	case protoHopByHop, 1, 2, 4, ProtoTCP, ProtoUDP, 33, 41, protoRouting, protoFragment, 46, ProtoGRE, 50, protoAH, 58, 59, protoDestination, 88, 89, 131, 132, 135, 137, 143, 253, 254:
		return true
	case 94, 103, 112, 115:
		return version == 4
	}
	return false
}

// IPv4 reads a packet whose IP header is at data[at]. By the enclosing layer it ends at end.
func (p *Packet) IPv4(data []byte, at, end int) {
	p.EtherType = EtherIPv4
	p.ipv4(data, at, end)
}

// IPv6 is IPv4 for version 6.
func (p *Packet) IPv6(data []byte, at, end int) {
	*p = Packet{}
	p.EtherType = EtherIPv6
	p.ipv6(data, at, end)
}

func (p *Packet) network(data []byte, ether uint16, at, end int) {
	for range maxTags {
		size := ahead(data, ether, at)
		if size == 0 || len(data)-at < size {
			break
		}
		at += size
		ether = binary.BigEndian.Uint16(data[at-2:])
	}
	p.EtherType, p.L3, p.End = ether, at, end
	switch ether {
	case EtherIPv4:
		p.ipv4(data, at, end)
	case EtherIPv6:
		p.ipv6(data, at, end)
	}
}

// tagLen is the distance to the end of the next EtherType behind one that announces a tag, or a customer's frame in a
// provider's. It is 0 for others.
func tagLen(ether uint16) int {
	switch ether {
	case etherVLAN, etherQinQ, etherQinQ91:
		return 4
	case etherVNTag:
		return 6
	case etherETag:
		return 8
	case etherPBB: // a tag of the service, and two addresses
		return 18
	}
	return 0
}

// snap is LLC with a header of SNAP that holds an EtherType, RFC 1042.
var snap = [6]byte{0xaa, 0xaa, 3}

// ahead is tagLen for the bytes at data[at], where a length may be in the place of the EtherType.
func ahead(data []byte, ether uint16, at int) int {
	if ether < leastEther && len(data)-at >= len(snap) && [6]byte(data[at:at+6]) == snap {
		return len(snap) + 2
	}
	return tagLen(ether)
}

// ipv4 reads the header of RFC 791, and sets all fields but EtherType. A total length of 0 (segmentation offload,
// stand-in headers) leaves the end to the enclosing layer.
func (p *Packet) ipv4(data []byte, at, end int) {
	p.L3, p.L4, p.End, p.FragAt, p.Ports = at, 0, end, 0, 0
	p.Fragment, p.HasPorts = false, false
	p.IP, p.TOS, p.TTL, p.Proto, p.ID = 0, 0, 0, 0, 0
	if at < 0 || len(data)-at < 20 {
		return
	}
	h := data[at : at+20 : at+20]
	size := int(h[0]&0x0f) * 4
	if h[0]>>4 != 4 || size < 20 {
		return
	}
	p.IP, p.TOS, p.TTL, p.Proto = 4, h[1], h[8], h[9]
	p.ID = binary.BigEndian.Uint16(h[4:])
	if n := int(binary.BigEndian.Uint16(h[2:])); n != 0 {
		p.End = at + n
	}
	if f := binary.BigEndian.Uint16(h[6:]) & 0x3fff; f != 0 { // more fragments, or an offset
		p.Fragment, p.FragAt = true, at+6
		if f&0x1fff != 0 {
			return
		}
	}
	p.transport(data, at+size)
}

// transport notes that the header above IP is at data[at]. Bytes behind the end of the packet are no ports.
func (p *Packet) transport(data []byte, at int) {
	p.L4 = at
	if (p.Proto == ProtoUDP || p.Proto == ProtoTCP) && min(len(data), p.End) >= at+4 {
		p.Ports, p.HasPorts = binary.BigEndian.Uint32(data[at:]), true
	}
}

// ipv6 reads the header of RFC 8200 and the extension headers behind it.
func (p *Packet) ipv6(data []byte, at, end int) {
	p.L3, p.End = at, end
	if at < 0 || len(data)-at < 40 || data[at]>>4 != 6 {
		return
	}
	h := data[at : at+40 : at+40]
	p.IP, p.TTL, p.Proto = 6, h[7], h[6]
	p.TOS = h[0]<<4 | h[1]>>4
	if n := int(binary.BigEndian.Uint16(h[4:])); n != 0 { // 0: jumbogram
		p.End = at + 40 + n
	}
	at += 40
	for n := 0; ; n++ {
		switch p.Proto {
		case protoHopByHop, protoRouting, protoDestination, protoFragment, protoAH:
		default:
			p.transport(data, at)
			return
		}
		if n == maxExtensions || min(len(data), p.End)-at < 8 {
			return
		}
		x := data[at : at+8 : at+8]
		size := (int(x[1]) + 1) * 8
		switch p.Proto {
		case protoFragment:
			size = 8
			f := binary.BigEndian.Uint16(x[2:])
			if f&0xfff9 != 0 { // an offset, or more fragments; an atomic fragment (RFC 6946) has neither
				p.Fragment, p.FragAt = true, at+2
			}
			if f&0xfff8 != 0 {
				p.Proto = x[0]
				return
			}
		case protoAH:
			size = (int(x[1]) + 2) * 4
		}
		p.Proto = x[0]
		at += size
	}
}

// Flow writes the packet's flow key to k. It must not be called when p.IP is 0. p was read from data.
func (p *Packet) Flow(k *decode.FlowKey, data []byte) {
	if p.IP == 4 {
		FlowIPv4(k, data[p.L3:], p.Ports)
		return
	}
	h := data[p.L3 : p.L3+40 : p.L3+40]
	copy(k.Src[:], h[8:24])
	copy(k.Dst[:], h[24:40])
	k.IPVersion, k.Proto = p.IP, p.Proto
	k.SrcPort, k.DstPort = uint16(p.Ports>>16), uint16(p.Ports)
}

// FlowIPv4 writes the flow key of a packet to k. It begins with the IPv4 header h; ports are as in [Packet].
func FlowIPv4(k *decode.FlowKey, h []byte, ports uint32) {
	le := binary.LittleEndian
	h = h[:20:20]
	// ::ffff:a.b.c.d, written as two words
	le.PutUint64(k.Src[:], 0)
	le.PutUint64(k.Src[8:], uint64(le.Uint32(h[12:]))<<32|0xffff0000)
	le.PutUint64(k.Dst[:], 0)
	le.PutUint64(k.Dst[8:], uint64(le.Uint32(h[16:]))<<32|0xffff0000)
	k.IPVersion, k.Proto = 4, h[9]
	k.SrcPort, k.DstPort = uint16(ports>>16), uint16(ports)
}

// Src is the source address. It must not be called when p.IP is 0.
func (p *Packet) Src(data []byte) (a decode.Addr) {
	if p.IP == 4 {
		return decode.AddrFrom4(data[p.L3+12:])
	}
	copy(a[:], data[p.L3+8:p.L3+24])
	return a
}

// Dst is Src for the destination.
func (p *Packet) Dst(data []byte) (a decode.Addr) {
	if p.IP == 4 {
		return decode.AddrFrom4(data[p.L3+16:])
	}
	copy(a[:], data[p.L3+24:p.L3+40])
	return a
}
