package program

import "github.com/hopscope/hopscope/p4"

// reportLargest is how much of a packet a report holds at most.
const reportLargest = 900

var collectorTable = p4.Table{
	Name: "egress.envelope.collector", Key: []p4.Field{field("to", 8, p4.Exact)}, Size: 256,
	Actions: []p4.Action{act("send", 48, 48, 32, 32, 16, 16, 16), act("NoAction")},
}

// report holds a program's fields of a report's header.
type report struct {
	flags              byte // D, Q, F and I in its upper half
	bitmap             uint16
	domain, dsBits     uint16
	metadata           []byte // behind these
	node               uint32
	hardware, receiver uint8
	size               uint16 // of the packet
}

// Flags of a report.
const (
	flagDropped   = 0x80
	flagCongested = 0x40
	flagTracked   = 0x20
	flagTransit   = 0x10
)

// envelope puts a report's headers in front of a packet, and returns where it is cut. It returns nothing if there is no
// receiver.
func (s *Switch) envelope(r *report) (front []byte, limit int) {
	action, to := s.find(collectorTable.Name, num(uint64(r.receiver)))
	if action != "send" {
		return nil, 0
	}
	words := len(r.metadata) / 4
	inner := r.size & 0xfffc
	if most := uint16(to[6].Uint64()); inner > most {
		inner = most & 0xfffc
	}
	inner = min(inner, reportLargest)
	behind := 20 + uint16(words)<<2 + inner
	index := uint32(r.receiver)<<6 | uint32(r.hardware)
	number := s.sequence[index]
	s.sequence[index]++

	b := to[0].Append(nil, 6)
	b = be.AppendUint16(to[1].Append(b, 6), typeIPv4)
	ip := ip4{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protoUDP, 0, 0}
	put(ip, 2, 28+behind)
	ip = to[3].Append(to[2].Append(ip, 4), 4)
	put(ip, 10, csum16(ip, nil))
	b = append(b, ip...)
	b = be.AppendUint16(to[5].Append(to[4].Append(b, 2), 2), 8+behind)
	b = be.AppendUint16(b, 0)
	b = be.AppendUint32(b, 2<<28|uint32(r.hardware)<<22|number&(1<<22-1))
	b = be.AppendUint32(b, r.node)
	b = append(b, 0x13, byte(2+words)+byte(inner>>2), byte(words), r.flags)
	b = be.AppendUint16(be.AppendUint16(b, r.bitmap), r.domain)
	b = be.AppendUint16(be.AppendUint16(b, r.dsBits), 0)
	return append(b, r.metadata...), 42 + int(behind)
}

// forwardTables are those of the control Forward.
func forwardTables() []p4.Table {
	actions := []p4.Action{act("forward", 9, 48, 48), act("no_route")}
	return []p4.Table{
		{Name: "ingress.forward.forwarding4", Key: []p4.Field{field("dst", 32, p4.Longest)}, Actions: actions, Size: 1024},
		{Name: "ingress.forward.forwarding6", Key: []p4.Field{field("dst", 128, p4.Longest)}, Actions: actions, Size: 1024},
	}
}

func forwardDefaults() []p4.Entry {
	return []p4.Entry{fallback("ingress.forward.forwarding4", "no_route"), fallback("ingress.forward.forwarding6", "no_route")}
}

// route returns the port of a packet and its new addresses, or why it has none.
func (s *Switch) route(eth ethernet, v4 ip4, v6 ip6) (port uint16, reason uint8) {
	name, ttl, dst := "ingress.forward.forwarding4", []byte(nil), []byte(nil)
	if v4 != nil {
		ttl, dst = v4[8:9], v4[16:20]
	} else {
		name, ttl, dst = "ingress.forward.forwarding6", v6[7:8], v6[24:40]
	}
	if ttl[0] <= 1 {
		return 0, reasonTTL
	}
	ttl[0]--
	action, p := s.find(name, p4.Bytes(dst))
	if action != "forward" {
		return 0, noRoute
	}
	p[1].Append(eth[:0], 6)
	p[2].Append(eth[:6], 6)
	return uint16(p[0].Uint64()), 0
}

// flowKey is the key of tables of flows.
func flowKey() []p4.Field {
	return []p4.Field{
		field("src", 128, p4.Ternary), field("dst", 128, p4.Ternary), field("proto", 8, p4.Ternary),
		field("src_port", 16, p4.Ternary), field("dst_port", 16, p4.Ternary),
	}
}
