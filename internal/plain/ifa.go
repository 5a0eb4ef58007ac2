package plain

import (
	"fmt"
	"strings"
)

// beginsIFA reports whether the bytes of a packet begin with a header of the in-band flow analyser. It has version 2, a
// protocol that can follow, and its first three flags unset. The length of a UDP header, if that is there, is at least
// 8.
func beginsIFA(p *ip) bool {
	end := min(p.end, len(p.b))
	if p.l4 < 0 || p.l4+4 > end {
		return false
	}
	b := p.b[p.l4:end]
	if b[0]>>4 != 2 || b[2]>>5 != 0 {
		return false
	}
	if b[1] == 17 && len(b) >= 10 {
		return u16(b, 8) >= 8
	}
	return b[1] == 17 || strings.IndexByte("\x06\x2f\x04\x29\x2b\x2c\x32\x33\x3c", b[1]) >= 0
}

// ifa reads the in-band flow analyser of a packet with its protocol. It returns nil if the protocol is another one.
func ifa(p *ip) Object {
	if p.proto != 253 || p.l4 < 0 || p.fragment != 0 {
		return nil
	}
	o := Object{"format": "ifa"}
	addFlow(o, p)
	at := p.l4
	there := func(place int) bool { return place < len(p.b) }
	wrong := func(field string, place int, reason string) Object { return fail(o, "ifa", field, place, reason) }
	if at+4 > p.end {
		return wrong("version", at, "short")
	}
	if there(at) && p.b[at]>>4 != 2 {
		return wrong("version", at, "bad-version")
	}
	least := map[byte]int{6: 20, 17: 8, 47: 4}
	if there(at+1) && least[p.b[at+1]] == 0 {
		return wrong("next_header", at+1, "unsupported")
	}
	if there(at+2) && p.b[at+2]&0x19 != 0 {
		return wrong("flags", at+2, "unsupported")
	}
	if !there(at + 3) {
		flag(o, "truncated")
		return o
	}
	head := p.b[at : at+4]
	transport := at + 4
	size, known := least[head[1]], true
	switch head[1] {
	case 47:
		if there(transport+1) && p.b[transport+1]&7 != 0 {
			return wrong("gre_version", transport+1, "unsupported")
		}
		if known = there(transport); known {
			bits := p.b[transport]
			size += 4 * int(bits>>7+bits>>5&1+bits>>4&1)
		}
	case 6:
		if known = there(transport + 12); known {
			if size = 4 * int(p.b[transport+12]>>4); size < 20 || transport+size > p.end {
				return wrong("data_offset", transport+12, "bad-length")
			}
		}
	}
	meta := transport + size
	if meta+4 > p.end {
		return wrong("current_length", meta+3, "short")
	}
	words := -1
	if known && there(meta+3) {
		words = int(p.b[meta+3])
		if meta+4+4*words > p.end || words > int(head[3]) {
			return wrong("current_length", meta+3, "bad-length")
		}
		if words%8 != 0 {
			return wrong("current_length", meta+3, "bad-stack")
		}
		for k := 0; k < words/8; k++ {
			if place := meta + 4 + 32*k; head[0]&15 == 15 && there(place) && p.b[place]>>4 == 2 {
				return wrong("lns", place, "unsupported")
			}
		}
		for k := 0; k < words/8; k++ {
			if place := meta + 4 + 32*k + 12; there(place+3) && u32(p.b, place) > 999999999 {
				return wrong("ingress_fraction", place, "bad-value")
			}
		}
	}
	o["kind"], o["version"] = "trace", "2"
	flow := Object{"src": p.src, "dst": p.dst, "proto": uint64(head[1])}
	if head[1] != 47 && there(transport+3) {
		flow["src_port"], flow["dst_port"] = uint64(u16(p.b, transport)), uint64(u16(p.b, transport+2))
	}
	o["flow"] = flow
	if head[2]&4 != 0 {
		flag(o, "inband")
	}
	if head[2]&2 != 0 {
		flag(o, "turn-around")
	}
	if words < 0 {
		flag(o, "truncated")
		return o
	}
	o["instructions"] = fmt.Sprintf("0x%02x", p.b[meta])
	if p.b[meta+2] != 255 {
		o["remaining_hops"] = uint64(p.b[meta+2])
	}
	var hops []Object
	for k := words/8 - 1; k >= 0; k-- {
		place := meta + 4 + 32*k
		if !there(place + 2) {
			continue
		}
		hops = append(hops, ifaHop(p.b[place:min(place+32, len(p.b))]))
	}
	if len(hops) > 0 {
		o["hops"] = hops
	}
	if !there(meta + 3 + 4*words) {
		flag(o, "truncated")
	}
	return o
}

// ifaHop reads the items of a block that are whole.
func ifaHop(b []byte) Object {
	o := Object{}
	for _, x := range []struct {
		name     string
		bit, len int
	}{
		{"node_id", 4, 20}, {"hop_limit", 24, 8}, {"port_speed", 32, 4}, {"queue_congestion", 36, 2}, {"queue_id", 38, 6}, {"ingress_seconds", 44, 20},
		{"egress_if", 64, 16}, {"ingress_if", 80, 16}, {"ingress_fraction", 96, 32}, {"latency", 128, 32}, {"queue_occupancy", 160, 32},
		{"queue_cells", 208, 16},
	} {
		if x.bit+x.len > 8*len(b) {
			continue
		}
		v := uint64(0)
		for i := x.bit; i < x.bit+x.len; i++ {
			v = v<<1 | uint64(b[i/8]>>(7-i%8)&1)
		}
		o[x.name] = v
	}
	return o
}
