package plain

import (
	"fmt"
	"slices"
)

// path reads an INT-path probe: UDP to port 2222.
func path(p *ip) Object {
	o := Object{"format": "int-path", "kind": "probe"}
	addFlow(o, p)
	reject := func(field string, offset int, reason string) Object {
		return fail(o, "int-path", field, offset, reason)
	}
	if p.fragment != 0 {
		return reject("fragment", p.fragment, "unsupported")
	}
	if p.options {
		return reject("options", p.at+20, "unsupported")
	}
	lengthAt := p.l4 + 4
	if p.l4+6 > p.end {
		return reject("udp_length", lengthAt, "short")
	}
	if !p.has(6) {
		flag(o, "truncated")
		return o
	}
	length := int(u16(p.b, lengthAt))
	if length == 0 {
		length = p.end - p.l4
	}
	labels := (length - 76) / 22
	switch {
	case p.l4+length > p.end:
		return reject("udp_length", lengthAt, "bad-length")
	case length < 76:
		return reject("udp_length", lengthAt, "short")
	case (length-76)%22 != 0:
		return reject("udp_length", lengthAt, "bad-stack")
	case labels > 128:
		return reject("udp_length", lengthAt, "bad-count")
	}
	b := p.b
	list := p.l4 + 8
	if list+64 <= len(b) && slices.Max(b[list:list+64]) > 0 {
		o["sr_list"] = fmt.Sprintf("0x%x", b[list:list+64])
	}
	var hops []Object
	at := list + 64
	for range labels {
		hop := Object{}
		found := false
		first := 0
		for _, field := range []struct {
			name string
			bits int
		}{
			{"node_id", 8}, {"ingress_if", 9}, {"egress_if", 9}, {"ingress_time", 48}, {"enq_time", 32},
			{"queue_occupancy", 19}, {"queue_delay", 32}, {"deq_occupancy", 19},
		} {
			if at+(first+field.bits+7)/8 > len(b) {
				break
			}
			hop[field.name] = bitField(b[at:], first, field.bits)
			found = true
			first += field.bits
		}
		if found {
			hops = append(hops, hop)
		}
		at += 22
	}
	slices.Reverse(hops)
	o["hops"] = hops
	if at+4 <= len(b) {
		o["action_id"] = uint64(u32(b, at))
	} else {
		flag(o, "truncated")
	}
	return o
}

// probe reads an INT-Probe behind EtherType 0x0700 or 0x0701. It returns nil for a source route in front of IPv4.
func probe(b []byte, at, wire int, kind uint16) Object {
	o := Object{"format": "int-probe", "kind": "probe"}
	reject := func(field string, offset int, reason string) Object {
		return fail(o, "int-probe", field, offset, reason)
	}
	cut := func() Object {
		flag(o, "truncated")
		return o
	}
	if kind == 0x0700 {
		if at+4 > wire {
			return reject("sr_length", at+1, "short")
		}
		if at+2 > len(b) {
			return cut()
		}
		length := int(b[at+1])
		if length < 2 || length%2 != 0 || length > 34 || at+length+2 > wire {
			return reject("sr_length", at+1, "bad-length")
		}
		var ports []uint64
		for place := at + 2; place < at+length && place+2 <= len(b); place += 2 {
			ports = append(ports, uint64(b[place+1]))
		}
		if len(ports) > 0 {
			o["sr_ports"] = ports
		}
		at += length
		if at+2 > len(b) {
			return cut()
		}
		switch u16(b, at) {
		case 0x0800:
			return nil
		case 0x0701:
		default:
			return reject("type2", at, "bad-type")
		}
		at += 2
	}
	if at+2 > wire {
		return reject("int_num", at+1, "short")
	}
	if at+2 > len(b) {
		return cut()
	}
	labels := int(b[at+1])
	if at+2+32*labels > wire {
		return reject("int_num", at+1, "bad-count")
	}
	at += 2
	var hops []Object
	for range labels {
		hop := Object{}
		for _, field := range []struct {
			name  string
			at, n int
		}{
			{"node_id", 0, 1}, {"ingress_if", 1, 1}, {"egress_if", 2, 1}, {"ingress_time", 4, 6}, {"egress_time", 10, 6},
			{"enq_time", 16, 4}, {"queue_occupancy", 21, 3}, {"queue_delay", 24, 4}, {"deq_occupancy", 29, 3},
		} {
			if at+field.at+field.n > len(b) {
				flag(o, "truncated")
				break
			}
			hop[field.name] = number(b, at+field.at, field.n)
		}
		if len(hop) > 0 {
			hops = append(hops, hop)
		}
		at += 32
	}
	slices.Reverse(hops)
	o["hops"] = hops
	return o
}

// digest reads a PINT digest in the MAC addresses of an IPv4 packet.
func digest(b []byte, p *ip) Object {
	o := Object{"format": "pint", "kind": "digest"}
	addFlow(o, p)
	if b[p.at+8] == 255 {
		return fail(o, "pint", "ttl", p.at+8, "bad-digest")
	}
	if b[0] != 0 || u16(b, 2) > 0x0f || u16(b, 4) > 1 {
		return fail(o, "pint", "digest", 0, "bad-digest")
	}
	o["digest"] = fmt.Sprintf("0x%x", b[:6])
	o["ams_digest"] = fmt.Sprintf("0x%x", b[10:12])
	o["ttl"] = uint64(b[p.at+8])
	o["last_writer"] = uint64(u16(b, p.at+10))
	return o
}
