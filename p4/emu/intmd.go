package emu

import (
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

// source is the INT source's ingress: it marks the packet and puts the instructions in. Its own block follows at
// egress, as every node's. A packet that is too long for shim and header goes without telemetry.
func (n *Network) source(p *packet, d *device) {
	if !d.dialect.Embeds() {
		return
	}
	asked, most := n.cfg.Instructions, uint8(n.cfg.MaxHops)
	if d.written.watches {
		if asked, most = n.watched(p, d); asked == 0 {
			p.sampled = false
			return
		}
	}
	h := d.dialect.Header(asked)
	h.RemainingHops = most
	if d.dialect == mx21 {
		h.Type = intmd.TypeMX
		h.Instructions &^= insComplement
	}
	byPort := n.cfg.Marker == MarkPort && d.dialect != md10 && (p.Proto == udp || !d.ours)
	front := 0 // bytes of the UDP header that NPT 2 puts in front
	if byPort && p.Proto == tcp {
		front = udpLen
	}
	k := front + h.Len()
	if p.Size-ethLen+k > n.cfg.MTU {
		p.sampled = false
		return
	}
	if n.cfg.SourceReports && d.dialect.Stacks() {
		n.sourceReport(p, d)
	}
	p.cut = p.L4
	switch {
	case front > 0:
	case p.Proto == udp:
		p.cut += udpLen
	default:
		p.cut += tcpLen // before the options, where hardware puts it
	}
	dscp, l4 := p.DSCP(), p.L4
	b := p.Insert(p.cut, k)
	p.shim, p.added, p.carries = p.cut+front, k, d.dialect
	p.asked, p.words = h.Instructions, uint8(h.HopWords())
	var out, in uint64
	switch {
	case front > 0:
		headers.AppendUDP(b[:0], 0xc000|uint16(p.hash>>18), markPort, p.Size-l4-k-udpLen) // resized below
		h.NPT, h.Original = 2, uint16(p.Proto)
		p.SetProto(udp)
		p.Proto = udp
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
	c := p.ResizeL4(k)
	c.Add(out, in+headers.Sum(b[front:]))
	if p.asked&insComplement != 0 {
		p.owed = c // the source's own block makes up for it
		return
	}
	p.Settle(c)
}

// part is the INT in p.
func (p *packet) part() intmd.Part { return intmd.PartAt(p.Buf[p.shim:], p.carries.INTVersion()) }

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
	case p.kind == sourceRouted:
		return n.program(d).Leaves(p.pass) - p.Size
	case p.pass != nil:
		return n.routers[2].Leaves(p.pass) - p.Size
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
		p.owed.Add(out, headers.Sum(part.Header()))
		p.Settle(p.owed)
		p.owed = sim.Change{}
		return
	}
	part.Grow(words)
	in := headers.Sum(part.Header())
	block := p.Insert(end, 4*words)
	header := p.carries.Header(p.asked)
	metadata := n.metadataOf(p.asked, d, h)
	intmd.AppendCounted(block[:0], &header, &metadata, n.read(p, p.carries, p.asked))
	h.recorded = true
	p.added += 4 * words
	p.ResizeIP(4 * words)
	c := p.ResizeL4(4 * words)
	c.Add(out, in)
	if p.asked&insComplement == 0 {
		c.In += headers.Sum(block)
		p.Settle(c)
		return
	}
	// The last word of the block makes up for all changes, so that the checksum stays as it is (INT v2.1 §5.9).
	complement := uint32(0xffffffff) // there is no checksum
	if be.Uint16(p.Checksum()) != 0 || p.Proto == tcp {
		c.Add(p.owed.Out, p.owed.In+headers.Sum(block[:len(block)-4]))
		complement = uint32(^headers.Fold(c.In + uint64(^headers.Fold(c.Out))))
	}
	be.PutUint32(block[len(block)-4:], complement)
	p.owed = sim.Change{}
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
	p.Strip(p.part(), p.cut, p.added, markPort)
	p.carries, p.added = Off, 0
}
