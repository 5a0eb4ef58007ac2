package program

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4"
)

// ReportLargest is how much of a packet a report holds at most.
const ReportLargest = 900

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

// envelope begins the frame that leaves with a report's headers, and returns where it is cut. It is false if there is no receiver.
func (s *Switch) envelope(p *Packet, r *report) (limit int, ok bool) {
	to := s.collector.At(uint64(r.receiver))
	if to.Action != "send" {
		return 0, false
	}
	words := len(r.metadata) / 4
	inner := r.size & 0xfffc
	if most := uint16(to.Arg(6)); inner > most {
		inner = most & 0xfffc
	}
	inner = min(inner, ReportLargest)
	behind := 20 + uint16(words)<<2 + inner
	index := uint32(r.receiver)<<6 | uint32(r.hardware)
	number := s.sequence[index]
	s.sequence[index]++

	b := append48(append48(p.Head[:0], to.Arg(0)), to.Arg(1))
	b = be.AppendUint16(b, typeIPv4)
	at := len(b)
	b = append(b, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protoUDP, 0, 0)
	b = be.AppendUint32(be.AppendUint32(b, uint32(to.Arg(2))), uint32(to.Arg(3)))
	put(b, at+2, 28+behind)
	put(b, at+10, csum16(b[at:], nil))
	b = be.AppendUint16(be.AppendUint16(b, uint16(to.Arg(4))), uint16(to.Arg(5)))
	b = be.AppendUint16(be.AppendUint16(b, 8+behind), 0)
	b = be.AppendUint32(b, 2<<28|uint32(r.hardware)<<22|number&(1<<22-1))
	b = be.AppendUint32(b, r.node)
	b = append(b, 0x13, byte(2+words)+byte(inner>>2), byte(words), r.flags)
	b = be.AppendUint16(be.AppendUint16(b, r.bitmap), r.domain)
	b = be.AppendUint16(be.AppendUint16(b, r.dsBits), 0)
	p.Head = append(b, r.metadata...)
	return 42 + int(behind), true
}

// append48 appends a number of six bytes.
func append48(b []byte, v uint64) []byte {
	return be.AppendUint32(be.AppendUint16(b, uint16(v>>32)), uint32(v))
}

// Names of the tables of the control Forward.
const (
	forwarding4 = "ingress.forward.forwarding4"
	forwarding6 = "ingress.forward.forwarding6"
)

// forwardTables are those of the control Forward.
func forwardTables() []p4.Table {
	actions := []p4.Action{act("forward", 9, 48, 48), act("no_route")}
	return []p4.Table{
		{Name: forwarding4, Key: []p4.Field{field("dst", 32, p4.Longest)}, Actions: actions, Size: 1024},
		{Name: forwarding6, Key: []p4.Field{field("dst", 128, p4.Longest)}, Actions: actions, Size: 1024},
	}
}

func forwardDefaults() []p4.Entry {
	return []p4.Entry{fallback(forwarding4, "no_route"), fallback(forwarding6, "no_route")}
}

// forward sets the port of a packet and its new addresses, or returns why it has none.
func (s *Switch) forward(p *Packet) (reason uint8) {
	table, dst, reason := s.hop(p)
	if reason != 0 {
		return reason
	}
	return p.sendBy(table.Find(dst))
}

// hop counts the time to live down and returns the table of a packet's route, with the address to look up.
func (s *Switch) hop(p *Packet) (_ *p4.Rows, dst []byte, reason uint8) {
	table, ttl, from := s.forwarding4, 8, 16
	h, end := []byte(p.v4), 20
	if p.v4 == nil {
		table, ttl, from = s.forwarding6, 7, 24
		h, end = p.v6, 40
	}
	if h[ttl] <= 1 {
		return nil, nil, reasonTTL
	}
	h[ttl]--
	return table, h[from:end], 0
}

// sendBy applies the row of a next hop.
func (p *Packet) sendBy(r *p4.Row) (reason uint8) {
	if r.Action != "forward" {
		return noRoute
	}
	append48(append48(p.eth[:0], r.Arg(1)), r.Arg(2))
	p.Port = uint16(r.Arg(0))
	return 0
}

// flowBytes is the length of a key of tables of flows.
const flowBytes = 16 + 16 + 1 + 2 + 2

// key is the packet's key of tables of flows.
func (p *Packet) key() []byte {
	if !p.keyed {
		p.keyed = true
		k := p.flow[:flowBytes]
		copy(k[16-len(p.src):], p.src)
		copy(k[32-len(p.dst):], p.dst)
		k[32] = p.proto
		put(k, 33, p.srcPort)
		put(k, 35, p.dstPort)
	}
	return p.flow[:flowBytes]
}

// FlowHash is the hash of a flow by which switches choose among next hops: CRC-32 over the key of tables of flows.
func FlowHash(k decode.FlowKey) uint32 {
	p := Packet{src: k.Src[:], dst: k.Dst[:], proto: k.Proto, srcPort: k.SrcPort, dstPort: k.DstPort}
	if k.IPVersion == 4 {
		p.src, p.dst = k.Src[12:], k.Dst[12:]
	}
	return crcOf(p.key())
}

// Spread returns which of some next hops, 1 at least, the hash of a flow and the salt of a switch choose.
func Spread(salt, flow, members uint32) uint32 { return crcWord(salt+flow) % members }

// flowKey is the key of tables of flows.
func flowKey() []p4.Field {
	return []p4.Field{
		field("src", 128, p4.Ternary), field("dst", 128, p4.Ternary), field("proto", 8, p4.Ternary),
		field("src_port", 16, p4.Ternary), field("dst_port", 16, p4.Ternary),
	}
}
