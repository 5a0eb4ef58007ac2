package emu

// Lengths of INT in the packet, in bytes.
const (
	shimLen  = 4
	header21 = 12 // INT v2.1 §5.7
	header10 = 8  // INT v1.0 §4.6
	udpLen   = 8
	tcpLen   = 20
)

// source is the INT source's ingress: it marks the packet and puts the instructions in. Its own block follows at
// egress, as every node's. A packet that is too long for shim and header goes without telemetry.
func (n *Network) source(p *packet, d *device) {
	header := header21
	switch {
	case !d.dialect.embeds():
		return
	case d.dialect == MD10:
		header = header10
	}
	byPort := n.cfg.Marker == MarkPort && d.dialect != MD10
	front := 0 // bytes of the UDP header that NPT 2 puts in front
	if byPort && p.proto == tcp {
		front = udpLen
	}
	k := front + shimLen + header
	if p.size-ethLen+k > n.cfg.MTU {
		p.sampled = false
		return
	}
	p.cut = p.l4
	switch {
	case front > 0:
	case p.proto == udp:
		p.cut += udpLen
	default:
		p.cut += tcpLen // before the options, where hardware puts it
	}
	dscp, l4 := p.dscp(), p.l4
	b := p.insert(p.cut, k)
	p.shim, p.added, p.carries = p.cut+front, k, d.dialect
	shim, h := b[front:front+shimLen], b[front+shimLen:]
	var out, in uint64
	switch {
	case front > 0:
		be.PutUint16(b[0:], 0xc000|uint16(p.hash>>50))
		be.PutUint16(b[2:], markPort)
		be.PutUint16(b[4:], uint16(p.size-l4)-uint16(k)) // resized below
		be.PutUint16(b[6:], 0)
		shim[0], shim[2], shim[3] = 2<<2, 0, p.proto
		p.setProto(udp)
		p.proto = udp
	case byPort:
		port := p.buf[l4+2 : l4+4]
		copy(shim[2:], port)
		out, in = sum(port), markPort
		shim[0] = 1 << 2
		be.PutUint16(port, markPort)
	default:
		shim[0], shim[2], shim[3] = 0, 0, dscp<<2
		p.setDSCP(markDSCP)
	}
	words := n.cfg.hopWords(d.dialect)
	clear(h)
	switch d.dialect {
	case MD10:
		shim[0], shim[1], shim[2] = 1, 0, (shimLen+header10)/4
		h[0], h[2], h[3] = 1<<4, byte(words), byte(n.cfg.MaxHops)
		be.PutUint16(h[4:], n.cfg.Instructions)
	case MX21:
		shim[0], shim[1] = shim[0]|3<<4, header21/4
		h[0] = 2 << 4
		be.PutUint16(h[4:], n.cfg.Instructions&^insComplement)
	default:
		shim[0], shim[1] = shim[0]|1<<4, header21/4
		h[0], h[2], h[3] = 2<<4, byte(words), byte(n.cfg.MaxHops)
		be.PutUint16(h[4:], n.cfg.Instructions)
	}
	p.resizeIP(k)
	c := p.resizeL4(k)
	c.add(out, in+sum(b[front:]))
	if n.cfg.Instructions&insComplement != 0 && d.dialect != MX21 {
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
		return change{out: uint64(p.size - p.l4 - k), in: uint64(p.size - p.l4)}
	}
	length := p.buf[p.l4+4:]
	old := be.Uint16(length)
	be.PutUint16(length, old+uint16(k))
	return change{out: 2 * uint64(old), in: 2 * uint64(old+uint16(k))} // in the header and in the pseudo header
}

// checksum is the checksum field of the outermost L4 header.
func (p *packet) checksum() []byte {
	if p.proto == tcp {
		return p.buf[p.l4+16 : p.l4+18]
	}
	return p.buf[p.l4+6 : p.l4+8]
}

// settle keeps the L4 checksum right for c. A UDP checksum of 0 means that there is none, and stays.
func (p *packet) settle(c change) {
	b := p.checksum()
	if p.proto == udp && be.Uint16(b) == 0 {
		return
	}
	update(b, c.out, c.in)
	if p.proto == udp && be.Uint16(b) == 0 {
		be.PutUint16(b, 0xffff)
	}
}

// layout gives the places of the INT header of p.
func (p *packet) layout() (header []byte, lengthAt, hopCountAt int) {
	if p.carries == MD10 {
		return p.buf[p.shim+shimLen : p.shim+shimLen+header10], p.shim + 2, p.shim + shimLen + 3
	}
	return p.buf[p.shim+shimLen : p.shim+shimLen+header21], p.shim + 1, p.shim + shimLen + 3
}

// room says whether switch d may add its block to p, and if not why.
func (n *Network) room(p *packet, d *device) (words int, limit, mtu bool) {
	words = n.cfg.hopWords(d.dialect)
	h, _, _ := p.layout()
	switch {
	case h[3] == 0:
		return 0, true, false
	case p.size-ethLen+4*words > n.cfg.MTU:
		return 0, false, true
	}
	return words, false, false
}

// growth is the number of bytes by which the egress of switch d will change p.
func (n *Network) growth(p *packet, d *device) int {
	switch {
	case !p.sampled || p.carries == Off:
		return 0
	case n.ifHost[p.out] >= 0:
		return -p.added
	case p.carries != d.dialect || p.carries == MX21:
		return 0
	}
	words, _, _ := n.room(p, d)
	return 4 * words
}

// push adds the switch's block to the stack, or sets the bit that says why not.
func (n *Network) push(p *packet, d *device, h *Hop) {
	words, limit, mtu := n.room(p, d)
	header, lengthAt, hopCountAt := p.layout()
	end := p.shim + shimLen + len(header)
	out := sum(p.buf[p.shim:end])
	if words == 0 {
		switch {
		case limit && p.carries == MD10:
			header[0] |= 0x01
		case limit:
			header[0] |= 0x04
		case mtu && p.carries == MD10:
			header[1] |= 0x80
		case mtu:
			header[0] |= 0x02
		}
		p.owed.add(out, sum(p.buf[p.shim:end]))
		p.settle(p.owed)
		p.owed = change{}
		return
	}
	p.buf[lengthAt] += byte(words)
	p.buf[hopCountAt]--
	in := sum(p.buf[p.shim:end])
	block := p.insert(end, 4*words)
	n.block(block[:0], n.cfg.Instructions, p.carries == MD10, d, h)
	h.Recorded = true
	p.added += 4 * words
	p.resizeIP(4 * words)
	c := p.resizeL4(4 * words)
	c.add(out, in)
	if n.cfg.Instructions&insComplement == 0 {
		c.in += sum(block)
		p.settle(c)
		return
	}
	// The last word of the block makes up for all changes, so that the checksum stays as it is (INT v2.1 §5.9).
	complement := uint32(0xffffffff) // there is no checksum
	if be.Uint16(p.checksum()) != 0 || p.proto == tcp {
		c.add(p.owed.out, p.owed.in+sum(block[:len(block)-4]))
		complement = uint32(^fold(c.in + uint64(^fold(c.out))))
	}
	be.PutUint32(block[len(block)-4:], complement)
	p.owed = change{}
}

// block appends what switch d tells about one packet, in the order of the bitmap. narrow is INT 1.0, where times have 32
// bits. In the reports' bitmaps the same bits stand for the same values.
func (n *Network) block(b []byte, bitmap uint16, narrow bool, d *device, h *Hop) []byte {
	if bitmap&insNodeID != 0 {
		b = be.AppendUint32(b, d.id)
	}
	if bitmap&insLevel1 != 0 {
		b = be.AppendUint32(b, uint32(h.IngressPort)<<16|uint32(h.EgressPort))
	}
	if bitmap&insLatency != 0 {
		b = be.AppendUint32(b, uint32(h.Latency()))
	}
	if bitmap&insQueue != 0 {
		b = be.AppendUint32(b, h.QueueBytes) // queue 0; each interface has one
	}
	if bitmap&insIngress != 0 {
		b = d.appendTime(b, int64(h.Ingress), narrow)
	}
	if bitmap&insEgress != 0 {
		b = d.appendTime(b, int64(h.Egress), narrow)
	}
	if bitmap&insLevel2 != 0 {
		b = be.AppendUint32(b, d.logical(h.IngressPort))
		b = be.AppendUint32(b, d.logical(h.EgressPort))
	}
	if bitmap&insTx != 0 {
		b = be.AppendUint32(b, h.Utilization)
	}
	if bitmap&insBuffer != 0 {
		b = be.AppendUint32(b, min(n.buffer(h.Node), 0xfffffe)) // one buffer, with id 0
	}
	return b
}

func (d *device) appendTime(b []byte, at int64, narrow bool) []byte {
	if narrow {
		return be.AppendUint32(b, uint32(d.clock+at))
	}
	return be.AppendUint64(b, uint64(d.clock+at))
}

// logical numbers the level 2 interface on a port.
func (d *device) logical(port uint16) uint32 { return d.id<<16 | uint32(port) }

// buffer is the number of bytes in all queues of a switch.
func (n *Network) buffer(node int) uint32 {
	lo, hi := n.graph.Interfaces(node)
	total := int64(0)
	for i := lo; i < hi; i++ {
		n.stats.CrossDelivered += uint64(n.queues[i].drain(n.now))
		total += n.queues[i].bytes
	}
	return uint32(total)
}

// strip takes INT out again and restores what the source changed.
func (p *packet) strip() {
	shim := p.buf[p.shim : p.shim+shimLen]
	npt := shim[0] >> 2 & 3
	if p.carries == MD10 {
		npt = 0
	}
	k := p.added
	switch npt {
	case 2: // the whole header was added, and nothing else was touched
		proto := shim[3]
		p.setProto(proto)
		p.remove(p.cut, k)
		p.proto = proto
	case 1:
		port := be.Uint16(shim[2:])
		out := sum(p.buf[p.cut:p.cut+k]) + markPort
		be.PutUint16(p.buf[p.l4+2:], port)
		p.remove(p.cut, k)
		c := p.resizeL4(-k)
		c.add(out, uint64(port))
		p.settle(c)
	default:
		p.setDSCP(shim[3] >> 2)
		out := sum(p.buf[p.cut : p.cut+k])
		p.remove(p.cut, k)
		c := p.resizeL4(-k)
		c.add(out, 0)
		p.settle(c)
	}
	p.resizeIP(-k)
	p.carries, p.added = Off, 0
}
