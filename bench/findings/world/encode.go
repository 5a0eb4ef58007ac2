package world

import (
	"encoding/binary"
	"net/netip"
)

// The encoder writes report datagrams as the pages of the formats describe them: telemetry reports 0.5, 1.0 and 2.0
// with INT 1.0 and 2.1 inside. It uses no type of the decoders.

// record is the metadata of one node about one packet, with times of its clock in ns.
type record struct {
	node, in, out  uint32
	latency, queue uint32
	class          uint8
	ingress        uint64
	egress         uint64
	load           uint32 // hundredths of a percent
}

// header is the packet's own headers.
type header struct {
	src, dst         netip.Addr
	proto            uint8
	srcPort, dstPort uint16
	id               uint16
	ttl              uint8
}

var be = binary.BigEndian

const intPort = 17768

// ipv4 writes the two headers and the bytes behind them. tos is the whole byte.
func (h *header) ipv4(b []byte, tos uint8, dstPort uint16, inside []byte) []byte {
	const payload = 8
	l4 := 8
	if h.proto == 6 {
		l4 = 20
	}
	total := 20 + l4 + len(inside) + payload
	at := len(b)
	b = append(b, 0x45, tos)
	b = be.AppendUint16(b, uint16(total))
	b = be.AppendUint16(b, h.id)
	b = append(b, 0x40, 0, h.ttl, h.proto, 0, 0)
	b = append(b, h.src.AsSlice()...)
	b = append(b, h.dst.AsSlice()...)
	sum := uint32(0)
	for i := at; i < len(b); i += 2 {
		sum += uint32(be.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	be.PutUint16(b[at+10:], ^uint16(sum))
	b = be.AppendUint16(b, h.srcPort)
	b = be.AppendUint16(b, dstPort)
	if h.proto == 6 {
		b = append(b, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0)
	} else {
		b = be.AppendUint16(b, uint16(l4+len(inside)+payload))
		b = append(b, 0, 0)
	}
	b = append(b, inside...)
	return append(b, "payload."...)
}

// bare is the packet without INT.
func (h *header) bare(b []byte) []byte { return h.ipv4(b, 0, h.dstPort, nil) }

// stack21 is the packet with a shim, an INT-MD 2.1 header and the records, the newest first. UDP marks it by its port
// and TCP by DSCP.
func (h *header) stack21(b []byte, path []record, cut bool) []byte {
	const bits, words = 0xfd00, 9 // id, interfaces, latency, queue, both times (8 bytes each), utilisation
	length := 3 + words*len(path)
	inside := make([]byte, 0, 4+4*length)
	tos := uint8(0)
	port := uint16(intPort)
	if h.proto == 17 {
		inside = be.AppendUint16(append(inside, 0x14, byte(length)), h.dstPort) // type 1, NPT 1
	} else {
		inside = append(inside, 0x10, byte(length), 0, 0)
		tos, port = 0x17<<2, h.dstPort
	}
	flags := byte(0)
	if cut {
		flags = 0x04 // E
	}
	left := maxStack - len(path)
	inside = append(inside, 0x20|flags, 0, words, byte(left))
	inside = be.AppendUint16(inside, bits)
	inside = append(inside, 0, 0, 0, 0, 0, 0)
	for i := len(path) - 1; i >= 0; i-- {
		r := &path[i]
		inside = be.AppendUint32(inside, r.node)
		inside = be.AppendUint32(inside, r.in<<16|r.out)
		inside = be.AppendUint32(inside, r.latency)
		inside = be.AppendUint32(inside, uint32(r.class)<<24|min(r.queue, 0xfffffe))
		inside = be.AppendUint64(inside, r.ingress)
		inside = be.AppendUint64(inside, r.egress)
		inside = be.AppendUint32(inside, r.load)
	}
	return h.ipv4(b, tos, port, inside)
}

// stack10 is the packet with INT 1.0, which DSCP marks. Times have 32 bits.
func (h *header) stack10(b []byte, path []record, cut bool) []byte {
	const bits, words = 0xfd00, 7
	inside := []byte{1, 0, byte(3 + words*len(path)), 0}
	flags := byte(0)
	if cut {
		flags = 0x01
	}
	inside = append(inside, 0x10|flags, 0, words, byte(maxStack-len(path)))
	inside = be.AppendUint16(inside, bits)
	inside = append(inside, 0, 0)
	for i := len(path) - 1; i >= 0; i-- {
		r := &path[i]
		inside = be.AppendUint32(inside, r.node)
		inside = be.AppendUint32(inside, r.in<<16|r.out)
		inside = be.AppendUint32(inside, r.latency)
		inside = be.AppendUint32(inside, uint32(r.class)<<24|min(r.queue, 0xfffffe))
		inside = be.AppendUint32(inside, uint32(r.ingress))
		inside = be.AppendUint32(inside, uint32(r.egress))
		inside = be.AppendUint32(inside, r.load)
	}
	return h.ipv4(b, 0x17<<2, h.dstPort, inside)
}

// maxStack is the hop limit that sources set.
const maxStack = 12

// group20 begins a datagram of reports 2.0.
func group20(b []byte, hardware, node, seq uint32) []byte {
	b = be.AppendUint32(b, 2<<28|hardware<<22|seq&0x3fffff)
	return be.AppendUint32(b, node)
}

// Flags of a report 2.0.
const (
	dropped20 = 0x80
	tracked20 = 0x20
	transit20 = 0x10
)

// inner20 adds a report of the packet alone.
func inner20(b []byte, flags byte, packet []byte) []byte {
	packet = padded(packet)
	b = append(b, 0x04, byte(len(packet)/4), 0, flags) // RepType 0, InType IPv4
	return append(b, packet...)
}

func padded(p []byte) []byte {
	for len(p)%4 != 0 {
		p = append(p, 0)
	}
	return p
}

// report20 adds a node's report about a packet, of its own hop or as a drop with a reason.
func report20(b []byte, flags byte, r *record, reason int, packet []byte) []byte {
	packet = padded(packet)
	var md []byte
	bits := uint16(0x4000)
	md = be.AppendUint32(md, r.in<<16|r.out)
	if reason < 0 {
		bits |= 0x2000 | 0x1000 | 0x0800 | 0x0400 | 0x0100
		md = be.AppendUint32(md, r.latency)
		md = be.AppendUint32(md, uint32(r.class)<<24|min(r.queue, 0xfffffe))
		md = be.AppendUint64(md, r.ingress)
		md = be.AppendUint64(md, r.egress)
		md = be.AppendUint32(md, r.load)
	} else {
		bits |= 0x0001
		md = append(md, r.class, byte(reason), 0, 0)
	}
	b = append(b, 0x14, byte(2+len(md)/4+len(packet)/4), byte(len(md)/4), flags) // RepType 1, InType IPv4
	b = be.AppendUint16(b, bits)
	b = append(b, 0, 0, 0, 0, 0, 0)
	return append(append(b, md...), packet...)
}

// report10 is a report 1.0 with the sink's own record in its header, around a packet with INT.
func report10(b []byte, r *record, seq uint32, packet []byte) []byte {
	const bits = 0x20 | 0x10 | 0x08 | 0x04 | 0x01
	b = be.AppendUint32(b, 1<<28|9<<24|1<<21|bits<<15|1<<6|1) // Length 9 words, IPv4, F, hardware 1
	b = be.AppendUint32(b, r.node)
	b = be.AppendUint32(b, seq)
	b = be.AppendUint32(b, uint32(r.ingress))
	b = be.AppendUint32(b, r.in<<16|r.out)
	b = be.AppendUint32(b, r.latency)
	b = be.AppendUint32(b, uint32(r.class)<<24|min(r.queue, 0xfffffe))
	b = be.AppendUint32(b, uint32(r.egress))
	b = be.AppendUint32(b, r.load)
	return append(b, packet...)
}

// drop10 is a report 1.0 of a drop.
func drop10(b []byte, r *record, seq uint32, reason int, packet []byte) []byte {
	const bits = 0x20 | 0x02
	b = be.AppendUint32(b, 1<<28|6<<24|1<<21|bits<<15|1<<8|1)
	b = be.AppendUint32(b, r.node)
	b = be.AppendUint32(b, seq)
	b = be.AppendUint32(b, uint32(r.ingress))
	b = be.AppendUint32(b, r.in<<16|r.out)
	b = append(b, r.class, byte(reason), 0, 0)
	return append(b, packet...)
}

// fixed05 is the header of reports 0.5. next is 1 for a drop and 2 for a local report.
func fixed05(b []byte, next, flags byte, seq uint32, ingress uint64) []byte {
	b = append(b, next, flags, 0, 1)
	b = be.AppendUint32(b, seq)
	return be.AppendUint32(b, uint32(ingress))
}

var ethernet = []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}

func local05(b []byte, r *record, seq uint32, packet []byte) []byte {
	b = fixed05(b, 2, 0x20, seq, r.ingress)
	b = be.AppendUint32(b, r.node)
	b = be.AppendUint32(b, r.in<<16|r.out)
	b = be.AppendUint32(b, uint32(r.class)<<24|min(r.queue, 0xfffffe))
	b = be.AppendUint32(b, uint32(r.egress))
	return append(append(b, ethernet...), packet...)
}

func drop05(b []byte, r *record, seq uint32, reason int, packet []byte) []byte {
	b = fixed05(b, 1, 0x80, seq, r.ingress)
	b = be.AppendUint32(b, r.node)
	b = be.AppendUint32(b, r.in<<16|r.out)
	b = append(b, r.class, byte(reason), 0, 0)
	return append(append(b, ethernet...), packet...)
}
