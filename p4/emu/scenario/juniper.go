package scenario

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/sflow"
)

// A router has two exporters: inline monitoring, which reports drops, and inline flow monitoring. Each has a separate
// observation domain and sequence. A sampling rate is that of a domain, so that drops are not multiplied by it.
const (
	exceptions = iota
	flows
)

var domains = [2]uint32{exceptions: 65536, flows: 524288}

const (
	refresh   = 30 // steps between two definitions of a template
	flowRate  = 1000
	firstSNMP = 501 // ifIndex of the first port, and its index of Junos, which is another
	firstPort = 330
)

func cpid(length uint16) decode.Element {
	return decode.Element{PEN: ipfix.Juniper, ID: 137, Length: length}
}

// These are the templates. That of exceptions is as a router sent it. Those of flows have fewer elements than a
// router's.
var (
	exceptionTemplate = decode.Template{Version: ipfix.V10, ID: 384, Fields: []decode.Element{
		cpid(4), cpid(2), cpid(4), cpid(4), cpid(4), cpid(4), {ID: 10, Length: 4}, {ID: 14, Length: 4}, {ID: 61, Length: 1}, {ID: 312, Length: 2},
		{ID: 315, Length: decode.VariableLength},
	}}
	flowTemplate = decode.Template{Version: ipfix.V10, ID: 256, Fields: []decode.Element{
		{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 4, Length: 1}, {ID: 7, Length: 2}, {ID: 11, Length: 2}, {ID: 10, Length: 4}, {ID: 14, Length: 4},
		{ID: 1, Length: 8}, {ID: 2, Length: 8}, {ID: 152, Length: 8}, {ID: 153, Length: 8},
	}}
	rateTemplate = decode.Template{Version: ipfix.V10, ID: 512, Scopes: 1, Fields: []decode.Element{{ID: 144, Length: 4}, {ID: 34, Length: 4}}}
	nameTemplate = decode.Template{Version: ipfix.V10, ID: 513, Scopes: 1, Fields: []decode.Element{{ID: 10, Length: 4}, {ID: 82, Length: decode.VariableLength}}}
)

// messages makes those of IPFIX that a router sends in a step: templates and options from time to time, what it drops, and its flows.
func (n *Gear) messages(d int, send func(payload []byte)) {
	if n.silent(d) {
		return
	}
	if (n.at/Step)%refresh == 1 {
		send(n.message(d, exceptions, 0, func(b []byte) []byte { return define(b, &exceptionTemplate) }))
		send(n.message(d, flows, 0, func(b []byte) []byte { return define(b, &flowTemplate, &rateTemplate, &nameTemplate) }))
		send(n.message(d, flows, 1+gearPorts, n.options))
	}
	if d == busyDevice && n.has(congested) {
		send(n.exceptions(d, busyPort, n.kind.full))
	}
	if d == deniedAt && n.has(denied) {
		send(n.exceptions(d, 2, n.kind.denied))
	}
	send(n.flows(d))
}

// message makes a message of one of a router's exporters, with that many records in its sets.
func (n *Gear) message(d, exporter int, records uint32, sets func([]byte) []byte) []byte {
	seq := &n.devices[d].messages[exporter]
	m := ipfix.Message{Version: ipfix.V10, Time: uint32(n.start.Add(n.at).Unix()), Seq: *seq, Domain: domains[exporter]}
	*seq += records
	return ipfix.AppendMessage(n.buf[:0], &m, sets)
}

// define appends sets with the definitions of templates.
func define(b []byte, templates ...*decode.Template) []byte {
	for _, t := range templates {
		b = ipfix.AppendSet(b, ipfix.TemplateSet(t), 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, t) })
	}
	return b
}

// options appends a router's options: its sampling rate, and the names of its interfaces.
func (n *Gear) options(b []byte) []byte {
	be := binary.BigEndian
	b = ipfix.AppendSet(b, rateTemplate.ID, 0, func(b []byte) []byte { return be.AppendUint32(be.AppendUint32(b, 1), flowRate) })
	return ipfix.AppendSet(b, nameTemplate.ID, 0, func(b []byte) []byte {
		for p := range gearPorts {
			b = ipfix.AppendValue(be.AppendUint32(b, uint32(firstSNMP+p)), []byte(n.Interface(p)))
		}
		return b
	})
}

// exceptions makes a message of packets that came in by a port and were dropped. They have no egress.
func (n *Gear) exceptions(d, p int, code uint32) []byte {
	const packets = 4
	return n.message(d, exceptions, packets, func(b []byte) []byte {
		return ipfix.AppendSet(b, exceptionTemplate.ID, 0, func(b []byte) []byte {
			for i := range packets {
				b = appendException(b, d, p, i, code)
			}
			return b
		})
	})
}

// appendException appends the record of a packet of one of four flows. The upper 6 bits of each element 137 hold the
// meaning of the rest.
func appendException(b []byte, d, p, flow int, code uint32) []byte {
	const noHop = 0xfffff
	be := binary.BigEndian
	b = be.AppendUint32(b, 1<<26)                     // forwarding class and drop priority
	b = be.AppendUint16(b, 2<<10|uint16(code))        // exception code
	b = be.AppendUint32(b, 3<<26|noHop)               // next hop
	b = be.AppendUint32(b, 4<<26)                     // egress interface
	b = be.AppendUint32(b, 5<<26|uint32(firstPort+p)) // underlying ingress interface
	b = be.AppendUint32(b, 6<<26|uint32(firstPort+p)) // ingress interface
	b = be.AppendUint32(be.AppendUint32(b, uint32(firstSNMP+p)), 0)
	var s sflow.Sample
	packetOf(&s, d, p, flow)
	return ipfix.AppendValue(be.AppendUint16(append(b, 0), uint16(s.FrameLen)), s.Header)
}

// flows makes a message of the flows that left by each port in the step.
func (n *Gear) flows(d int) []byte {
	return n.message(d, flows, gearPorts, func(b []byte) []byte {
		return ipfix.AppendSet(b, flowTemplate.ID, 0, func(b []byte) []byte {
			for p := range gearPorts {
				b = n.appendFlow(b, d, p)
			}
			return b
		})
	})
}

func (n *Gear) appendFlow(b []byte, d, p int) []byte {
	var s sflow.Sample
	packetOf(&s, d, p, n.rnd.IntN(4))
	be, h := binary.BigEndian, s.Header
	b = append(append(b, h[26:34]...), h[23]) // addresses, protocol
	b = append(b, h[34:38]...)                // ports
	b = be.AppendUint32(be.AppendUint32(b, uint32(firstSNMP+(p+5)%gearPorts)), uint32(firstSNMP+p))
	packets := 2000 + n.rnd.Uint64N(1000)
	b = be.AppendUint64(be.AppendUint64(b, packets*packetLen), packets)
	now := uint64(n.start.Add(n.at).UnixMilli())
	return be.AppendUint64(be.AppendUint64(b, now-uint64(Step.Milliseconds())), now)
}
