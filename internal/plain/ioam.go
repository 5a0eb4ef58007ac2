package plain

import (
	"fmt"
	"slices"
)

// ioam reads the IOAM options in the hop-by-hop and destination headers of an IPv6 packet, an object each.
func ioam(p *ip) (list []Object) {
	kind, at := p.b[p.at+6], p.at+40
	for n := 0; n < 16 && at+8 <= len(p.b); n++ {
		next, size := p.b[at], 8*(int(p.b[at+1])+1)
		switch kind {
		case 0, 60:
			list = append(list, ioamHeader(p, at+2, at+size)...)
		case 43:
		case 44:
			if u16(p.b, at+2)>>3 != 0 {
				return list
			}
			size = 8
		case 51:
			size = 4 * (int(p.b[at+1]) + 2)
		default:
			return list
		}
		kind = next
		at += size
	}
	return list
}

// traceOption is the key by which the object of a trace is found, also where it is rejected. It is not printed.
const traceOption = ""

// ioamHeader reads the options between two places.
func ioamHeader(p *ip, at, end int) (list []Object) {
	there := func(n int) bool { return at+n <= end && at+n <= len(p.b) }
	for there(1) {
		kind := p.b[at]
		if kind == 0 {
			at++
			continue
		}
		if kind == 0x31 || kind == 0x11 {
			o := Object{"format": "ioam"}
			addFlow(o, p)
			list = append(list, o)
			switch {
			case end > p.end:
				fail(o, "ioam", "opt_data_len", at+1, "bad-length")
				return list
			case at+2 > end:
				fail(o, "ioam", "opt_data_len", at+1, "short")
			case !there(2):
				flag(o, "truncated")
			case at+2+int(p.b[at+1]) > end:
				fail(o, "ioam", "opt_data_len", at+1, "bad-length")
			case p.b[at+1] < 2:
				fail(o, "ioam", "opt_data_len", at+1, "short")
			case !there(4):
				flag(o, "truncated")
			default:
				ioamOption(o, p.b, at, at+2+int(p.b[at+1]))
			}
			if end <= p.end && there(4) && p.b[at+3] < 2 {
				o[traceOption] = true
			}
		}
		if !there(2) {
			return list
		}
		at += 2 + int(p.b[at+1])
	}
	return list
}

// ioamOption reads an option from its type to its end, of which b may lack some.
func ioamOption(o Object, b []byte, at, end int) {
	kind, body := b[at+3], at+4
	reject := func(field string, offset int, reason string) { fail(o, "ioam", field, offset, reason) }
	if kind > 4 {
		reject("ioam_type", at+3, "unsupported")
		return
	}
	fixed := map[byte]int{0: 8, 1: 8, 2: 4, 3: 4, 4: 8}[kind]
	if end-body < fixed {
		reject("opt_data_len", at+1, "short")
		return
	}
	if kind < 2 && (end-body)%4 != 0 {
		reject("opt_data_len", at+1, "bad-length")
		return
	}
	there := func(n int) bool { return body+n <= len(b) }
	values := Object{} // they count if nothing is wrong
	var flags []string
	if there(2) {
		values["namespace"] = uint64(u16(b, body))
	}
	// next reads an item of n bytes.
	place := body + fixed
	next := func(n int) (item int, ok bool) {
		item = place
		place += n
		return item, place <= len(b)
	}
	switch kind {
	case 0, 1:
		if !ioamTrace(o, values, &flags, b, at, end, kind == 0) {
			return
		}
	case 2:
		if there(3) && b[body+2] == 0 && end-body < 20 {
			reject("opt_data_len", at+1, "short")
			return
		}
		if there(4) && b[body+2] == 0 {
			for _, key := range []string{"proof_packet", "proof_cumulative"} {
				if item, ok := next(8); ok {
					values[key] = fmt.Sprintf("0x%x", b[item:item+8])
				}
			}
		}
		o["kind"] = "proof"
	case 3:
		if !there(4) {
			break
		}
		bits := u16(b, body+2)
		values["instructions"] = fmt.Sprintf("0x%04x", bits)
		need := 4
		for i, n := range []int{8, 4, 4, 4} {
			if bits>>(15-i)&1 == 1 {
				need += n
			}
		}
		if bits>>14 == 3 {
			reject("e2e_type", body+2, "bad-type")
			return
		}
		if end-body < need {
			reject("opt_data_len", at+1, "bad-length")
			return
		}
		for i, key := range []string{"seq", "seq", "seconds", "fraction"} {
			n := 4
			if i == 0 {
				n = 8
			}
			if bits>>(15-i)&1 == 0 {
				continue
			}
			item, ok := next(n)
			switch {
			case !ok:
			case i < 2:
				values[key] = number(b, item, n)
			default:
				valid(values, key, b, item, 4)
			}
		}
		o["kind"] = "edge"
	case 4:
		if there(4) {
			need := 8
			for i := range 8 {
				need += 4 * int(b[body+3]>>i&1)
			}
			if end-body < need {
				reject("opt_data_len", at+1, "bad-length")
				return
			}
		}
		if there(7) {
			values["instructions"] = fmt.Sprintf("0x%x", b[body+4:body+7])
		}
		if there(8) {
			for mask, key := range map[byte]string{0x80: "flow_id", 0x40: "seq"} {
				if b[body+3]&mask == 0 {
					continue
				}
				item := body + 8
				if mask == 0x40 && b[body+3]&0x80 != 0 {
					item += 4
				}
				if item+4 <= len(b) {
					values[key] = uint64(u32(b, item))
				}
			}
		}
		o["kind"] = "export"
	}
	if !there(fixed) {
		delete(o, "kind")
	}
	for key, v := range values {
		o[key] = v
	}
	flag(o, flags...)
	if end > len(b) {
		flag(o, "truncated")
	}
}

// ioamItem is the meaning of a bit of a trace type: parts of so many bits, with the keys that are printed.
type ioamItem []struct {
	key  string
	bits int
}

var ioamItems = []ioamItem{
	{{"hop_limit", 8}, {"node_id", 24}}, {{"ingress_if", 16}, {"egress_if", 16}}, {{"ingress_seconds", 32}}, {{"ingress_fraction", 32}},
	{{"latency", 32}}, {{"namespace_data", 32}}, {{"queue_occupancy", 32}}, {{"", 32}},
	{{"hop_limit", 8}, {"node_id_wide", 56}}, {{"ingress_if_wide", 32}, {"egress_if_wide", 32}}, {{"namespace_data_wide", 64}},
	{{"buffer_occupancy", 32}},
	{{"", 32}}, {{"", 32}}, {{"", 32}}, {{"", 32}}, {{"", 32}}, {{"", 32}}, {{"", 32}}, {{"", 32}}, {{"", 32}}, {{"", 32}},
}

// ioamTrace reads a trace option; false means that it is rejected.
func ioamTrace(o, values Object, flags *[]string, b []byte, at, end int, allocated bool) bool {
	body := at + 4
	there := func(n int) bool { return body+n <= len(b) }
	reject := func(field string, offset int, reason string) bool {
		fail(o, "ioam", field, offset, reason)
		return false
	}
	if !there(4) {
		return true
	}
	nodeLen, remaining := int(b[body+2]>>3), int(b[body+3]&0x7f)
	start := body + 8
	if allocated {
		start += 4 * remaining
	}
	if start > end {
		return reject("remaining_len", body+3, "bad-length")
	}
	values["remaining_len"] = uint64(remaining)
	for i, name := range []string{"active", "loopback", "overflow"} {
		if b[body+2]>>i&1 == 1 {
			*flags = append(*flags, name)
		}
	}
	if !there(7) {
		return true
	}
	values["instructions"] = fmt.Sprintf("0x%x", b[body+4:body+7])
	words := 0
	var items []ioamItem
	for i, item := range ioamItems {
		if bitField(b[body+4:], i, 1) == 0 {
			continue
		}
		items = append(items, item)
		for _, part := range item {
			words += part.bits
		}
	}
	words /= 32
	snapshots := bitField(b[body+4:], 22, 1) == 1
	if nodeLen != words || words == 0 && !snapshots && start < end {
		return reject("node_len", body+2, "bad-width")
	}
	if !there(8) {
		return true
	}
	o["kind"] = "trace"
	if !snapshots && words > 0 && (end-start)%(4*words) != 0 {
		return reject("remaining_len", body+3, "bad-stack")
	}
	var hops []Object
	for place := start; place < end; {
		if snapshots && place+4*words+4 > end && (place+4*words < len(b) || end <= len(b)) {
			return reject("snapshot_length", min(place+4*words, end), "bad-length")
		}
		size, known := 4*words, true
		if length := place + 4*words; snapshots && length < len(b) {
			size += 4 + 4*int(b[length])
			if place+size > end {
				return reject("snapshot_length", length, "bad-length")
			}
		} else if snapshots {
			known = false
		}
		if hop := ioamNode(b, place, size, items, snapshots && known); hop != nil {
			hops = append(hops, hop)
		}
		if !known {
			break
		}
		place += size
	}
	slices.Reverse(hops)
	o["hops"] = hops
	return true
}

// ioamNode reads a node of size bytes, of which b may lack some: nil if nothing of it that could be printed is there.
func ioamNode(b []byte, at, size int, items []ioamItem, snapshot bool) Object {
	hop, end, found := Object{}, at+size, at+size <= len(b)
	for _, item := range items {
		n := 0
		for _, part := range item {
			n += part.bits / 8
		}
		if at+n > len(b) {
			break
		}
		for _, part := range item {
			found = found || part.key != ""
			one := Object{}
			valid(one, part.key, b, at, part.bits/8)
			v, ok := one[part.key]
			if _, twice := hop[part.key]; ok && !twice && part.key != "" {
				hop[part.key] = v
				if part.key == "namespace_data" || part.key == "namespace_data_wide" {
					hop[part.key] = fmt.Sprintf("0x%x", b[at:at+part.bits/8])
				}
			}
			at += part.bits / 8
		}
	}
	if snapshot && end <= len(b) {
		valid(hop, "schema_id", b, at+1, 3)
		if at+4 < end {
			hop["opaque"] = fmt.Sprintf("0x%x", b[at+4:end])
		}
	}
	if !found {
		return nil
	}
	return hop
}
