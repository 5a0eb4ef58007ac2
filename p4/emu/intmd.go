package emu

import (
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	headers "github.com/hopscope/hopscope/decode/packet"
)

// source is the INT source's ingress: it marks the packet and puts the instructions in. Its own block follows at
// egress, as every node's. A packet that is too long for shim and header goes without telemetry.
func (n *Network) source(p *packet, d *device) {
	if !d.dialect.embeds() {
		return
	}
	asked, most := n.cfg.Instructions, uint8(n.cfg.MaxHops)
	if d.written.watches {
		if asked, most = n.watched(p, d); asked == 0 {
			p.sampled = false
			return
		}
	}
	h := d.dialect.header(asked)
	h.RemainingHops = most
	if d.dialect == mx21 {
		h.Type = intmd.TypeMX
		h.Instructions &^= insComplement
	}
	byPort := n.cfg.Marker == MarkPort && d.dialect != md10
	front := 0 // bytes of the UDP header that NPT 2 puts in front
	if byPort && p.proto == tcp {
		front = udpLen
	}
	k := front + h.Len()
	if p.Size-ethLen+k > n.cfg.MTU {
		p.sampled = false
		return
	}
	if n.cfg.SourceReports && d.dialect.stacks() {
		n.sourceReport(p, d)
	}
	p.cut = p.l4
	switch {
	case front > 0:
	case p.proto == udp:
		p.cut += udpLen
	default:
		p.cut += tcpLen // before the options, where hardware puts it
	}
	dscp, l4 := p.DSCP(), p.l4
	b := p.Insert(p.cut, k)
	p.shim, p.added, p.carries = p.cut+front, k, d.dialect
	p.asked, p.words = h.Instructions, uint8(h.HopWords())
	var out, in uint64
	switch {
	case front > 0:
		headers.AppendUDP(b[:0], 0xc000|uint16(p.hash>>18), markPort, p.Size-l4-k-udpLen) // resized below
		h.NPT, h.Original = 2, uint16(p.proto)
		p.SetProto(udp)
		p.proto = udp
	case byPort:
		port := p.Buf[l4+2 : l4+4]
		h.NPT, h.Original = 1, be.Uint16(port)
		out, in = uint64(h.Original), markPort
		be.PutUint16(port, markPort)
	default:
		h.DSCP = dscp
		p.SetDSCP(markDSCP)
	}
	intmd.AppendHeader(b[:front], &h, 0)
	p.ResizeIP(k)
	c := p.resizeL4(k)
	c.add(out, in+headers.Sum(b[front:]))
	if p.asked&insComplement != 0 {
		p.owed = c // the source's own block makes up for it
		return
	}
	p.settle(c)
}

// change is the words that left and entered a packet, as sums.
type change struct{ out, in uint64 }

func (c *change) add(out, in uint64) { c.out, c.in = c.out+out, c.in+in }

// resizeL4 adds k to the length of the outermost L4 header. The packet must have its new size already. The change for
// the checksum includes the pseudo header.
func (p *packet) resizeL4(k int) (c change) {
	if p.proto == tcp {
		return change{out: uint64(p.Size - p.l4 - k), in: uint64(p.Size - p.l4)}
	}
	length := p.Buf[p.l4+4:]
	old := be.Uint16(length)
	be.PutUint16(length, old+uint16(k))
	return change{out: 2 * uint64(old), in: 2 * uint64(old+uint16(k))} // in the header and in the pseudo header
}

// checksum is the checksum field of the outermost L4 header.
func (p *packet) checksum() []byte {
	if p.proto == tcp {
		return p.Buf[p.l4+16 : p.l4+18]
	}
	return p.Buf[p.l4+6 : p.l4+8]
}

// settle updates the L4 checksum for c. A UDP checksum of 0 means that there is none, and stays.
func (p *packet) settle(c change) {
	b := p.checksum()
	if p.proto == udp && be.Uint16(b) == 0 {
		return
	}
	headers.UpdateChecksum(b, c.out, c.in)
	if p.proto == udp && be.Uint16(b) == 0 {
		be.PutUint16(b, 0xffff)
	}
}

// part is the INT in p.
func (p *packet) part() intmd.Part { return intmd.PartAt(p.Buf[p.shim:], p.carries.intVersion()) }

// room returns whether a switch may add its block to p, and if not why.
func (n *Network) room(p *packet) (words int, why decode.Flags) {
	words = int(p.words)
	switch {
	case p.part().RemainingHops() == 0:
		return 0, decode.HopLimit
	case p.Size-ethLen+4*words > n.cfg.MTU:
		return 0, decode.MTU
	}
	return words, 0
}

// growth is the number of bytes by which the egress of switch d will change p.
func (n *Network) growth(p *packet, d *device) int {
	switch {
	case p.wide:
		return n.growthWide(p, d)
	case !p.sampled || p.carries == Off:
		return 0
	case n.ports[p.out].host >= 0:
		return -p.added
	case p.carries != d.dialect || p.carries == mx21:
		return 0
	}
	words, _ := n.room(p)
	return 4 * words
}

// push adds the switch's block to the stack, or sets the bit for the reason why not.
func (n *Network) push(p *packet, d *device, h *Hop) {
	words, why := n.room(p)
	part := p.part()
	end := p.shim + len(part.Header())
	out := headers.Sum(part.Header())
	if words == 0 {
		if why != 0 {
			part.Refuse(why)
		}
		p.owed.add(out, headers.Sum(part.Header()))
		p.settle(p.owed)
		p.owed = change{}
		return
	}
	part.Grow(words)
	in := headers.Sum(part.Header())
	block := p.Insert(end, 4*words)
	header := p.carries.header(p.asked)
	metadata := n.metadataOf(p.asked, d, h)
	intmd.AppendCounted(block[:0], &header, &metadata, n.read(p))
	h.recorded = true
	p.added += 4 * words
	p.ResizeIP(4 * words)
	c := p.resizeL4(4 * words)
	c.add(out, in)
	if p.asked&insComplement == 0 {
		c.in += headers.Sum(block)
		p.settle(c)
		return
	}
	// The last word of the block makes up for all changes, so that the checksum stays as it is (INT v2.1 §5.9).
	complement := uint32(0xffffffff) // there is no checksum
	if be.Uint16(p.checksum()) != 0 || p.proto == tcp {
		c.add(p.owed.out, p.owed.in+headers.Sum(block[:len(block)-4]))
		complement = uint32(^headers.Fold(c.in + uint64(^headers.Fold(c.out))))
	}
	be.PutUint32(block[len(block)-4:], complement)
	p.owed = change{}
}

// metadataOf is the report of switch d about one packet. Its fields are those of a bitmap. Only the buffer, which has
// to be counted, depends on this bitmap. Times are the switch's own, in nanoseconds.
func (n *Network) metadataOf(bitmap uint16, d *device, h *Hop) decode.Hop {
	t := decode.Hop{
		Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy |
			decode.HopIngressTime | decode.HopEgressTime | decode.HopL2IngressIf | decode.HopL2EgressIf | decode.HopTxUtilization,
		NodeID: d.id, IngressIf: h.ingressPort, EgressIf: h.EgressPort, Latency: uint32(h.Latency()),
		QueueID: uint8(h.QueueBytes >> 24), QueueOccupancy: h.QueueBytes & 0xffffff, // queue 0; each interface has one
		IngressTime: d.time(h.Ingress), EgressTime: d.time(h.Egress),
		L2IngressIf: d.logical(h.ingressPort), L2EgressIf: d.logical(h.EgressPort), TxUtilization: h.Utilization,
	}
	if bitmap&insBuffer != 0 { // one buffer, with id 0
		t.Has |= decode.HopBufferID | decode.HopBufferOccupancy
		t.BufferOccupancy = min(n.buffer(h.Node), 0xfffffe)
	}
	return t
}

// time is the time on the clock of d.
func (d *device) time(at time.Duration) uint64 { return uint64(d.clock + int64(at)) }

// logical numbers the level 2 interface on a port.
func (d *device) logical(port uint16) uint32 { return d.id<<16 | uint32(port) }

// buffer is the number of bytes in all queues of a switch.
func (n *Network) buffer(node int) uint32 {
	lo, hi := n.graph.Interfaces(node)
	total := int64(0)
	for i := lo; i < hi; i++ {
		n.drain(&n.queues[i])
		total += n.queues[i].Bytes
	}
	return uint32(total)
}

// strip takes INT out again and restores what the source changed.
func (p *packet) strip() {
	npt, original, dscp := p.part().Restore()
	k := p.added
	switch npt {
	case 2: // the whole header was added, and nothing else was touched
		p.SetProto(uint8(original))
		p.Remove(p.cut, k)
		p.proto = uint8(original)
	case 1:
		out := headers.Sum(p.Buf[p.cut:p.cut+k]) + markPort
		be.PutUint16(p.Buf[p.l4+2:], original)
		p.Remove(p.cut, k)
		c := p.resizeL4(-k)
		c.add(out, uint64(original))
		p.settle(c)
	default:
		p.SetDSCP(dscp)
		out := headers.Sum(p.Buf[p.cut : p.cut+k])
		p.Remove(p.cut, k)
		c := p.resizeL4(-k)
		c.add(out, 0)
		p.settle(c)
	}
	p.ResizeIP(-k)
	p.carries, p.added = Off, 0
}
