package packet

import "encoding/binary"

// MaxTunnels is the depth to which packets inside of each other are parsed.
const MaxTunnels = 8

// UDP destination ports, protocols and EtherTypes of tunnels.
const (
	portGTPU      uint16 = 2152
	portVXLAN     uint16 = 4789
	portVXLANGPE  uint16 = 4790
	portGeneve    uint16 = 6081
	portMPLS      uint16 = 6635
	portVXLANUsed uint16 = 8472 // by Linux, before the port was assigned

	protoIPv4 uint8 = 4
	protoIPv6 uint8 = 41
	protoMPLS uint8 = 137

	etherBridged    uint16 = 0x6558 // Ethernet in GRE and Geneve
	etherMPLS       uint16 = 0x8847
	etherMPLSToMany uint16 = 0x8848
	etherPPPoE      uint16 = 0x8864
	etherERSPAN     uint16 = 0x88be // mirrored frames in GRE, types I and II
	etherERSPAN3    uint16 = 0x22eb // type III

	maxLabels = 16

	leastBehindUDP = 8 // bytes of the shortest header that a tunnel has behind UDP
)

// Wrapped reports whether p has labels of MPLS or a session of PPPoE instead of an IP header.
func (p *Packet) Wrapped() bool {
	return p.EtherType == etherMPLS || p.EtherType == etherMPLSToMany || p.EtherType == etherPPPoE
}

// TunnelPort reports whether a UDP header with this destination port may carry another packet.
func TunnelPort(port uint16) bool {
	switch port {
	case portGTPU, portVXLAN, portVXLANGPE, portGeneve, portMPLS, portVXLANUsed:
		return true
	}
	return false
}

// CarriesUDP reports whether another packet is at data[at], behind a UDP header with a destination port.
func CarriesUDP(data []byte, port uint16, at int) bool {
	return TunnelPort(port) && carriesUDP(data, port, at)
}

// carriesUDP is separate so that the test of the port, which fails for nearly all packets, is inlined.
//
//go:noinline
func carriesUDP(data []byte, port uint16, at int) bool {
	if len(data)-at < leastBehindUDP { // before p is made
		return false
	}
	p := Packet{End: len(data)}
	return p.InsideUDP(data, port, at)
}

// Last reports whether p certainly carries no other packet, so that [Packet.Inside] returns false. This holds for
// most packets, and is a faster test.
func (p *Packet) Last() bool {
	return p.IP != 0 && (p.Proto == ProtoTCP || p.Proto == ProtoUDP && !(p.HasPorts && TunnelPort(p.DstPort())))
}

// Inside moves p to the IP packet that it carries in IP, GRE, ERSPAN, VXLAN, Geneve, GTP-U, MPLS or PPPoE. The last
// two can also stand behind a frame's header. Without such a packet p stays, and Inside returns false.
func (p *Packet) Inside(data []byte) bool {
	if p.IP == 0 {
		return p.Wrapped() && p.enter(data[:min(len(data), p.End)], p.EtherType, p.L3)
	}
	if p.Fragment || p.L4 == 0 {
		return false
	}
	data = data[:min(len(data), p.End)]
	switch p.Proto {
	case protoIPv4:
		return p.enter(data, EtherIPv4, p.L4)
	case protoIPv6:
		return p.enter(data, EtherIPv6, p.L4)
	case protoMPLS:
		return p.enter(data, etherMPLS, p.L4)
	case ProtoGRE:
		return p.insideGRE(data)
	case ProtoUDP:
		return p.HasPorts && p.InsideUDP(data[:min(len(data), p.UDPEnd(data))], p.DstPort(), p.L4+UDPLen)
	}
	return false
}

// insideGRE reads the header of RFC 2784 and RFC 2890.
func (p *Packet) insideGRE(data []byte) bool {
	at := p.L4
	if len(data)-at < 4 || data[at]&0x40 != 0 || data[at+1]&7 != 0 { // routing, or another version
		return false
	}
	flags, ether := data[at], binary.BigEndian.Uint16(data[at+2:])
	at += 4
	for _, bit := range [...]byte{0x80, 0x20, 0x10} { // checksum, key, sequence number
		if flags&bit != 0 {
			at += 4
		}
	}
	switch ether {
	case etherERSPAN:
		ether = etherBridged
		if flags&0x10 != 0 { // type II, which has a header
			if len(data) <= at || data[at]>>4 != 1 {
				return false
			}
			at += 8
		}
	case etherERSPAN3:
		if len(data)-at < 12 || data[at]>>4 != 2 || data[at+10]&0x7c != 0 { // the kind of frame: 0 is Ethernet
			return false
		}
		ether, at = etherBridged, at+12
		if data[at-1]&1 != 0 { // a header of the platform
			at += 8
		}
	}
	return p.enter(data, ether, at)
}

// InsideUDP is [Packet.Inside] for the bytes at data[at], behind a UDP header to a port.
func (p *Packet) InsideUDP(data []byte, port uint16, at int) bool {
	if at < 0 || len(data)-at < leastBehindUDP {
		return false
	}
	h, be := data[at:at+leastBehindUDP:at+leastBehindUDP], binary.BigEndian
	switch port {
	case portVXLAN, portVXLANUsed:
		return h[0]&0x08 != 0 && p.enter(data, etherBridged, at+8)
	case portVXLANGPE:
		return h[0]&0x0c == 0x0c && p.InsideNext(data, h[3], at+8)
	case portGeneve:
		return h[0]>>6 == 0 && p.enter(data, be.Uint16(h[2:]), at+8+4*int(h[0]&0x3f))
	case portMPLS:
		return p.enter(data, etherMPLS, at)
	case portGTPU:
		return p.insideGTPU(data, at)
	}
	return false
}

// InsideNext is [Packet.Inside] for the bytes at data[at], by a next protocol of VXLAN-GPE.
func (p *Packet) InsideNext(data []byte, next uint8, at int) bool {
	switch next {
	case 1:
		return p.enter(data, EtherIPv4, at)
	case 2:
		return p.enter(data, EtherIPv6, at)
	case 3:
		return p.enter(data, etherBridged, at)
	}
	return false
}

// insideGTPU reads the header of 3GPP TS 29.281: version 1, of user data.
func (p *Packet) insideGTPU(data []byte, at int) bool {
	flags := data[at]
	if flags>>4 != 3 || data[at+1] != 255 {
		return false
	}
	at += 8
	if flags&7 != 0 { // extension headers, sequence number, N-PDU number
		at += 4
		for next := byte(1); flags&4 != 0 && next != 0; {
			if len(data) < at {
				return false
			}
			if next = data[at-1]; next == 0 {
				break
			}
			if len(data) <= at || data[at] == 0 {
				return false
			}
			at += 4 * int(data[at])
		}
	}
	if len(data) <= at {
		return false
	}
	return p.enter(data, etherOf(data[at]), at)
}

// etherOf distinguishes IPv4 from IPv6 by the first byte; 0 is neither.
func etherOf(first byte) uint16 {
	switch first >> 4 {
	case 4:
		return EtherIPv4
	case 6:
		return EtherIPv6
	}
	return 0
}

// enter moves p to the IP packet at data[at], which an EtherType announces, behind frames, labels and sessions.
func (p *Packet) enter(data []byte, ether uint16, at int) bool {
	be := binary.BigEndian
	for range MaxTunnels {
		if at < 0 || len(data) <= at {
			return false
		}
		switch ether {
		case etherBridged:
			if len(data)-at < EthernetLen {
				return false
			}
			ether, at = be.Uint16(data[at+12:]), at+EthernetLen
		case etherMPLS, etherMPLSToMany:
			bottom := false
			for n := 0; !bottom && n < maxLabels && len(data)-at > 4; n++ {
				bottom = data[at+2]&1 != 0
				at += 4
			}
			if !bottom {
				return false
			}
			if ether = etherOf(data[at]); ether == 0 { // a pseudowire, with its control word
				if data[at]>>4 != 0 {
					return false
				}
				ether, at = etherBridged, at+4
			}
		case etherPPPoE:
			if len(data)-at < 8 || data[at] != 0x11 || data[at+1] != 0 {
				return false
			}
			switch be.Uint16(data[at+6:]) {
			case 0x21:
				ether = EtherIPv4
			case 0x57:
				ether = EtherIPv6
			default:
				return false
			}
			at += 8
		case EtherIPv4, EtherIPv6:
			q := Packet{Link: p.Link}
			q.network(data, ether, at, p.End)
			if q.IP == 0 {
				return false
			}
			if p.IP != 0 { // otherwise p ends with its frame, or with the part of one in a report
				q.End = min(q.End, p.End)
			}
			*p = q
			return true
		default:
			size := ahead(data, ether, at)
			if size == 0 || len(data)-at < size {
				return false
			}
			at += size
			ether = be.Uint16(data[at-2:])
		}
	}
	return false
}
