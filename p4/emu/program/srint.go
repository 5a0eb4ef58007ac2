package program

import "github.com/hopscope/hopscope/p4"

// srint is p4/srint.p4: source-routed probes.
type srint struct{ forwarding, mtu *p4.Rows }

func (*srint) tables() []p4.Table {
	return []p4.Table{
		{Name: "ingress.forwarding", Key: []p4.Field{field("dst", 32, p4.Longest)}, Actions: []p4.Action{act("forward", 9), act("drop")}, Size: 1024},
		{Name: "egress.device", Actions: []p4.Action{act("set_device", 32, 64)}, Size: 1},
		{Name: "egress.port_mtu", Key: []p4.Field{field("port", 9, p4.Exact)}, Actions: []p4.Action{act("set_mtu", 16)}, Size: 512},
	}
}

func (*srint) defaults() []p4.Entry {
	return []p4.Entry{fallback("ingress.forwarding", "drop"), fallback("egress.device", "set_device", 0, 0), fallback("egress.port_mtu", "set_mtu", 1500)}
}

// Numbers of the probes.
const (
	pathPort    = 2222
	typeRoute   = 0x0700
	typeLabels  = 0x0701
	pathFixed   = 76 // UDP header, route and action id
	pathEmpty   = 12 // UDP header and action id
	pathPorts   = 64
	pathLabel   = 22
	pathLongest = pathFixed + 128*pathLabel
)

func (c *srint) bind(t *p4.Store) {
	c.forwarding, c.mtu = t.Rows("ingress.forwarding"), t.Rows("egress.port_mtu")
}

// parseProbe reads what srint.p4 reads.
func (p *Packet) parseProbe() {
	if p.eth = p.read(ethLen); p.failed {
		return
	}
	switch get(p.eth, 12) {
	case typeRoute:
		switch p.parseRoute() {
		case typeLabels:
			p.labels = p.read(2)
		case typeIPv4:
			p.parseProbeIPv4()
		}
	case typeLabels:
		p.labels = p.read(2)
	case typeIPv4:
		p.parseProbeIPv4()
	}
}

// parseRoute reads a route, and returns the type of what follows, 0 where the frame ends before it.
func (p *Packet) parseRoute() uint16 {
	if p.route = p.read(2); p.failed || !p.verify(p.route[1] >= 4 && p.route[1] <= 34 && p.route[1]&1 == 0) {
		return 0
	}
	p.entry = p.read(2)
	p.entries = p.read(int(p.route[1]) - 4)
	if p.type2 = p.read(2); p.failed {
		return 0
	}
	return get(p.type2, 0)
}

func (p *Packet) parseProbeIPv4() {
	if p.v4 = p.read(20); p.failed || !p.verify(p.v4[0]>>4 == 4 && p.v4[0]&15 >= 5) {
		return
	}
	if p.v4[0]&15 > 5 {
		p.options = p.read(int(p.v4[0]&15)*4 - 20)
		return
	}
	if get(p.v4, 6)&0x3fff != 0 || p.v4[9] != protoUDP {
		return
	}
	if p.udp = p.read(8); p.failed {
		return
	}
	length, room := get(p.udp, 4), get(p.v4, 2)
	switch get(p.udp, 2) {
	case pathPort:
		if p.verify(length >= pathFixed && length <= pathLongest && room >= length+20) {
			p.path = p.read(64)
		}
	case markPort:
		if p.shim = p.read(4); p.failed ||
			!p.verify(p.shim.kind() == intMD && p.shim.npt() == 1 && p.shim[1] >= 3) ||
			!p.verify(length >= 12+uint16(p.shim[1])<<2 && room >= length+20) {
			return
		}
		if p.head = p.read(12); !p.failed && p.verify(p.head.version() == intVer) {
			p.stack = p.read(int(p.shim[1])*4 - 12)
		}
	}
}

// parsePath reads the route of INT-path.
func (p *Packet) parsePath() {
	p.form = formPath
	if get(p.udp, 4) == pathEmpty {
		if p.verify(pathEmpty <= p.l4Len) {
			p.empty = p.read(4)
		}
		return
	}
	if length := get(p.udp, 4); p.verify(length >= pathFixed && length <= pathLongest && length <= p.l4Len) {
		p.path = p.read(64)
	}
}

func (c *srint) ingress(_ *Switch, p *Packet, _ []byte) bool {
	p.parseProbe()
	p.payload = p.rest
	p.Port = c.routed(p)
	return p.Port != dropPort
}

// routed is the port by which a packet leaves.
func (c *srint) routed(p *Packet) uint16 {
	switch {
	case p.v4 != nil && !checkIPv4(p.v4, p.options), p.failed && p.shim == nil:
		return dropPort
	case p.route != nil || p.path != nil:
		return p.follow()
	case p.v4 != nil:
		if r := c.forwarding.Find(p.v4[16:20]); r.Action == "forward" {
			return uint16(r.Arg(0))
		}
	}
	return dropPort
}

// follow takes the next step of a route, and returns its port. With the last entry of a route in front of other headers, the
// route goes, too.
func (p *Packet) follow() uint16 {
	if p.route != nil {
		port := uint16(p.entry[1])
		p.entry = nil
		if p.route[1] == 4 {
			copy(p.etherType(), p.type2)
			p.route, p.type2 = nil, nil
		} else {
			p.route[1] -= 2
		}
		return port
	}
	port, carry := uint16(p.path[63]&15)+1, uint64(0)
	for i := 0; i < 64; i += 8 {
		v := be.Uint64(p.path[i:])
		be.PutUint64(p.path[i:], v>>4|carry<<60)
		carry = v & 15
	}
	return port
}

func (c *srint) egress(s *Switch, p *Packet, m *Pass) bool {
	device := s.device.Find(nil)
	node, clock := uint32(device.Arg(0)), device.Arg(1)
	room := uint16(c.mtu.At(uint64(p.Port)).Arg(0))
	p.writeLabel(s, node, room, m)
	if p.stack != nil {
		h := s.newHop(node, clock, p.in, p.Port, m.IngressTime, m.EgressTime, m.EnqueueDepth)
		h.shown = m.Shown
		p.pushBlock(&h, room)
	}
	p.deparse(0)
	return true
}

// writeLabel writes what the switch measured into a probe of INT-Probe or INT-path, as far as there is room for it.
func (p *Packet) writeLabel(s *Switch, node uint32, room uint16, m *Pass) {
	switch {
	case p.labels != nil:
		p.pushLabel(s, node, m)
	case p.path != nil && p.udp != nil && p.v4 != nil:
		p.pushPathLabel(s, node, room, m)
	}
}

func (p *Packet) pushLabel(s *Switch, node uint32, m *Pass) {
	if p.labels[1] == 255 {
		return
	}
	b := append(p.put(32)[:0], byte(node), byte(p.in), byte(p.Port), 0)
	b = append48(append48(b, s.microseconds(m.IngressTime)), s.microseconds(m.EgressTime))
	b = be.AppendUint32(be.AppendUint32(b, m.EnqueueTime), m.EnqueueDepth&0xffffff)
	p.label = be.AppendUint32(be.AppendUint32(b, m.QueueDelay), m.DequeueDepth&0xffffff)
	p.labels[1]++
}

func (p *Packet) pushPathLabel(s *Switch, node uint32, room uint16, m *Pass) {
	if get(p.udp, 4)+pathLabel > pathLongest || get(p.v4, 2)+pathLabel > room {
		return
	}
	// Fields of 8, 9, 9, 48, 32, 19, 32 and 19 bits.
	arrived, delay := s.microseconds(m.IngressTime)&(1<<48-1), uint64(m.QueueDelay)
	b := p.put(pathLabel)
	be.PutUint64(b, uint64(byte(node))<<56|uint64(p.in&0x1ff)<<47|uint64(p.Port&0x1ff)<<38|arrived>>10)
	be.PutUint64(b[8:], arrived<<54|uint64(m.EnqueueTime)<<22|uint64(m.EnqueueDepth&(1<<19-1))<<3|delay>>29)
	v := delay<<19&(1<<48-1) | uint64(m.DequeueDepth&(1<<19-1))
	p.pathLabel = append48(b[:16], v)
	put(p.v4, 2, get(p.v4, 2)+pathLabel)
	put(p.udp, 4, get(p.udp, 4)+pathLabel)
	put(p.udp, 6, 0)
}

// pushBlock is the transit node of the wide variant.
func (p *Packet) pushBlock(h *hop, room uint16) {
	gone := p.sumINT() + uint64(get(p.udp, 4))<<1
	domain, come := get(p.head, 6), uint64(0)
	block, complement := h.block(p.put(longestBlock)[:0], get(p.head, 4), true, domain == fantID)
	words := uint8(len(block) / 4 & 31)
	bytes := uint16(words) << 2
	switch {
	case words == 0 || words != p.head.words() || domain != 0 && domain != fantID:
		complement = false
	case p.head[3] == 0:
		p.head[0] |= exceeded
		complement = false
	case get(p.v4, 2)+bytes > room || int(p.shim[1])+int(words) > 255:
		p.head[0] |= tooLong
		complement = false
	default:
		p.head[3]--
		p.shim[1] += words
		put(p.v4, 2, get(p.v4, 2)+bytes)
		put(p.udp, 4, get(p.udp, 4)+bytes)
		come, p.block = sum(block), block
	}
	come += p.sumINT() + uint64(get(p.udp, 4))<<1
	checksum := get(p.udp, 6)
	switch {
	case complement:
		v := uint32(0xffffffff)
		if checksum != 0 {
			v = uint32(changed(0xffff, gone, come))
		}
		be.PutUint32(p.block[len(p.block)-4:], v)
	case checksum != 0:
		if checksum = changed(checksum, gone, come); checksum == 0 {
			checksum = 0xffff
		}
		put(p.udp, 6, checksum)
	}
}
