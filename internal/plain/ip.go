package plain

import "net/netip"

// ip is an IPv4 or IPv6 packet whose header is there.
type ip struct {
	b        []byte // the frame up to the end of the packet, or to where its bytes end
	whole    []byte // the frame as far as what encloses the packet has bytes
	at       int    // of the IP header
	version  int
	end      int // by its lengths
	limit    int // of what encloses it, by its lengths
	src, dst string
	proto    uint8
	l4       int // where the transport header begins; -1 without
	fragment int // where the fragment fields are; 0 if it is none
	tos      uint8
	options  bool
}

// parseIP reads the headers of a packet at a place of b; limit is where by its lengths ends what encloses the packet. A
// packet inside of a report may promise more than that, one of the network not. It returns nil without a whole header
// of that version.
func parseIP(b []byte, at, limit, version int, inside bool) *ip {
	p := &ip{at: at, version: version, l4: -1, limit: limit}
	if limit < len(b) {
		b = b[:limit]
	}
	size := 20
	if version == 6 {
		size = 40
	}
	if at+size > len(b) || int(b[at]>>4) != version || version == 4 && b[at]&15 < 5 {
		return nil
	}
	length := int(u16(b, at+2))
	if version == 6 {
		length = int(u16(b, at+4))
		if length != 0 {
			length += 40
		}
	}
	p.end = at + length
	if length == 0 || !inside && p.end > limit {
		p.end = limit
	}
	p.whole = b
	p.b = b[:max(min(len(b), p.end), 0)]
	if version == 4 {
		p.src = netip.AddrFrom4([4]byte(b[at+12 : at+16])).String()
		p.dst = netip.AddrFrom4([4]byte(b[at+16 : at+20])).String()
		p.proto, p.tos = b[at+9], b[at+1]
		header := int(b[at]&0x0f) * 4
		p.options = header > 20
		offset := u16(b, at+6)
		if offset&0x3fff != 0 {
			p.fragment = at + 6
		}
		if offset&0x1fff == 0 {
			p.l4 = at + header
		}
		return p
	}
	p.src = netip.AddrFrom16([16]byte(b[at+8 : at+24])).String()
	p.dst = netip.AddrFrom16([16]byte(b[at+24 : at+40])).String()
	p.tos = uint8(u16(b, at) >> 4)
	p.proto = b[at+6]
	place := at + 40
	for n := 0; ; n++ {
		size := 0
		switch p.proto {
		case 0, 43, 60, 44, 51:
		default:
			p.l4 = place
			return p
		}
		if n == 16 || place+8 > len(p.b) {
			return p
		}
		switch p.proto {
		case 44:
			size = 8
			offset := u16(b, place+2)
			if offset&0xfff9 != 0 {
				p.fragment = place + 2
			}
			if offset&0xfff8 != 0 {
				p.proto = b[place]
				return p
			}
		case 51:
			size = 4 * (int(b[place+1]) + 2)
		default:
			size = 8 * (int(b[place+1]) + 1)
		}
		p.proto = b[place]
		place += size
	}
}

// has reports whether the first n bytes of the transport header are there.
func (p *ip) has(n int) bool { return p.l4 >= 0 && p.l4+n <= len(p.b) }

func (p *ip) udp() bool       { return p.proto == 17 && p.has(4) }
func (p *ip) dstPort() uint16 { return u16(p.b, p.l4+2) }

// udpEnd is where the UDP datagram ends by its length, which must be there.
func (p *ip) udpEnd() int {
	length := int(u16(p.b, p.l4+4))
	if length == 0 {
		return p.end
	}
	return min(p.l4+length, p.end)
}

// addFlow adds the flow and the identification of a packet.
func addFlow(o Object, p *ip) {
	flow := Object{"src": p.src, "dst": p.dst, "proto": uint64(p.proto)}
	if (p.proto == 6 || p.proto == 17) && p.has(4) {
		flow["src_port"] = uint64(u16(p.b, p.l4))
		flow["dst_port"] = uint64(u16(p.b, p.l4+2))
	}
	o["flow"] = flow
	if p.version == 4 {
		o["packet_id"] = uint64(u16(p.whole, p.at+4))
	}
}

// carried is the IP packet that p carries in IP, GRE, VXLAN, VXLAN-GPE, Geneve, GTP-U, MPLS or PPPoE; nil without one.
func (p *ip) carried() *ip {
	if p.fragment != 0 || p.l4 < 0 {
		return nil
	}
	b, at := p.b, p.l4
	switch p.proto {
	case 4:
		return p.payload(b, at, 0x0800)
	case 41:
		return p.payload(b, at, 0x86dd)
	case 137:
		return p.payload(b, at, 0x8847)
	case 47:
		if !p.has(4) || b[at]&0x40 != 0 || b[at+1]&7 != 0 {
			return nil
		}
		next := at + 4 + 4*(int(b[at]>>7)+int(b[at]>>5&1)+int(b[at]>>4&1)) // checksum, key, number
		kind := u16(b, at+2)
		if kind == 0x88be || kind == 0x22eb {
			if next = mirrored(b, next, kind, b[at]&16 != 0); next < 0 {
				return nil
			}
			kind = 0x6558
		}
		return p.payload(b, next, kind)
	case 17:
		if !p.udp() {
			return nil
		}
		if p.has(6) {
			b = b[:max(min(len(b), p.udpEnd()), 0)]
		}
		return p.overUDP(b, at+8, p.dstPort())
	}
	return nil
}

// mirrored is where the frame begins behind a header of ERSPAN, -1 for no such header. Type I has none, and no number
// in GRE.
func mirrored(b []byte, at int, kind uint16, numbered bool) int {
	switch {
	case kind == 0x88be && !numbered:
		return at
	case kind == 0x88be && at < len(b) && b[at]>>4 == 1:
		return at + 8
	case kind == 0x22eb && at+12 <= len(b) && b[at]>>4 == 2 && b[at+10]>>2&31 == 0:
		return at + 12 + 8*int(b[at+11]&1)
	}
	return -1
}

// overUDP is carried for what stands behind a UDP header.
func (p *ip) overUDP(b []byte, at int, port uint16) *ip {
	if at+8 > len(b) {
		return nil
	}
	switch port {
	case 4789, 8472:
		if b[at]&8 != 0 {
			return p.payload(b, at+8, 0x6558)
		}
	case 4790:
		if next := b[at+3]; b[at]&12 == 12 && next >= 1 && next <= 3 {
			return p.payload(b, at+8, [...]uint16{0x0800, 0x86dd, 0x6558}[next-1])
		}
	case 6081:
		if b[at]>>6 == 0 {
			return p.payload(b, at+8+4*int(b[at]&0x3f), u16(b, at+2))
		}
	case 6635:
		return p.payload(b, at, 0x8847)
	case 2152:
		if b[at]>>4 != 3 || b[at+1] != 255 {
			return nil
		}
		next := at + 8
		if b[at]&7 != 0 {
			next += 4
		}
		for more := b[at]&4 != 0; more && next <= len(b) && b[next-1] != 0; { // extension headers, each with its length in words
			if next >= len(b) || b[next] == 0 {
				return nil
			}
			next += 4 * int(b[next])
		}
		if next < len(b) && (b[next]>>4 == 4 || b[next]>>4 == 6) {
			return p.payload(b, next, map[byte]uint16{4: 0x0800, 6: 0x86dd}[b[next]>>4])
		}
	}
	return nil
}

// payload is the IP packet at a place, of the given EtherType, behind frames, tags, labels and sessions.
func (p *ip) payload(b []byte, at int, kind uint16) *ip {
	switch at, kind = unwrap(b, at, kind); kind {
	case 0x0800:
		return parseIP(b, at, p.end, 4, false)
	case 0x86dd:
		return parseIP(b, at, p.end, 6, false)
	}
	return nil
}

// unwrap returns the place and the EtherType of the IP packet behind frames, tags, labels and sessions; 0 without one.
func unwrap(b []byte, at int, kind uint16) (int, uint16) {
	for range 8 {
		if at >= len(b) {
			return 0, 0
		}
		switch kind {
		case 0x0800, 0x86dd:
			return at, kind
		case 0x6558:
			if at+14 > len(b) {
				return 0, 0
			}
			at, kind = at+14, u16(b, at+12)
		case 0x8847, 0x8848:
			bottom := false
			for n := 0; n < 16 && !bottom && at+4 < len(b); n++ {
				bottom = b[at+2]&1 != 0
				at += 4
			}
			if !bottom {
				return 0, 0
			}
			switch b[at] >> 4 {
			case 4:
				kind = 0x0800
			case 6:
				kind = 0x86dd
			case 0: // the control word of a pseudowire
				at, kind = at+4, 0x6558
			default:
				return 0, 0
			}
		case 0x8864:
			if at+8 > len(b) || b[at] != 0x11 || b[at+1] != 0 {
				return 0, 0
			}
			switch u16(b, at+6) {
			case 0x21:
				kind = 0x0800
			case 0x57:
				kind = 0x86dd
			default:
				return 0, 0
			}
			at += 8
		default:
			n := tag(b, at, kind)
			if n == 0 || at+n > len(b) {
				return 0, 0
			}
			at, kind = at+n, u16(b, at+n-2)
		}
	}
	return 0, 0
}
