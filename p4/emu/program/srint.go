package program

import "github.com/hopscope/hopscope/p4"

// srint is p4/srint.p4: source-routed probes.
type srint struct{}

func (srint) tables() []p4.Table {
	return []p4.Table{
		{Name: "ingress.forwarding", Key: []p4.Field{field("dst", 32, p4.Longest)}, Actions: []p4.Action{act("forward", 9), act("drop")}, Size: 1024},
		{Name: "egress.device", Actions: []p4.Action{act("set_device", 32, 64)}, Size: 1},
		{Name: "egress.port_mtu", Key: []p4.Field{field("port", 9, p4.Exact)}, Actions: []p4.Action{act("set_mtu", 16)}, Size: 512},
	}
}

func (srint) defaults() []p4.Entry {
	return []p4.Entry{fallback("ingress.forwarding", "drop"), fallback("egress.device", "set_device", 0, 0), fallback("egress.port_mtu", "set_mtu", 1500)}
}

// Numbers of the probes.
const (
	pathPort    = 2222
	typeRoute   = 0x0700
	typeLabels  = 0x0701
	pathFixed   = 76 // UDP header, route and action id
	pathLabel   = 22
	pathLongest = pathFixed + 128*pathLabel
)

// probe is a parsed frame.
type probe struct {
	eth                   ethernet
	route, entry, entries []byte
	type2, labels         []byte
	label                 []byte
	ip                    ip4
	options               []byte
	udp                   udp
	path, pathLabel       []byte
	shim                  shim
	head                  intHead
	block, stack          []byte
	payload               []byte
	parserError           bool
}

func parseProbe(b []byte) *probe {
	p, r := &probe{}, &reader{rest: b}
	defer func() { p.payload, p.parserError = r.rest, r.err }()
	if p.eth = r.bytes(ethLen); r.err {
		return p
	}
	switch get(p.eth, 12) {
	case typeRoute:
		if p.route = r.bytes(2); r.err || !r.verify(p.route[1] >= 4 && p.route[1] <= 34 && p.route[1]&1 == 0) {
			return p
		}
		p.entry = r.bytes(2)
		p.entries = r.bytes(int(p.route[1]) - 4)
		if p.type2 = r.bytes(2); r.err {
			return p
		}
		switch get(p.type2, 0) {
		case typeLabels:
			p.labels = r.bytes(2)
		case typeIPv4:
			p.parseIPv4(r)
		}
	case typeLabels:
		p.labels = r.bytes(2)
	case typeIPv4:
		p.parseIPv4(r)
	}
	return p
}

func (p *probe) parseIPv4(r *reader) {
	if p.ip = r.bytes(20); r.err || !r.verify(p.ip[0]>>4 == 4 && p.ip[0]&15 >= 5) {
		return
	}
	if p.ip[0]&15 > 5 {
		p.options = r.bytes(int(p.ip[0]&15)*4 - 20)
		return
	}
	if get(p.ip, 6)&0x3fff != 0 || p.ip[9] != protoUDP {
		return
	}
	if p.udp = r.bytes(8); r.err {
		return
	}
	length, room := get(p.udp, 4), get(p.ip, 2)
	switch get(p.udp, 2) {
	case pathPort:
		if r.verify(length >= pathFixed && length <= pathLongest && room >= length+20) {
			p.path = r.bytes(64)
		}
	case markPort:
		if p.shim = r.bytes(4); r.err ||
			!r.verify(p.shim.kind() == intMD && p.shim.npt() == 1 && p.shim[1] >= 3) ||
			!r.verify(length >= 12+uint16(p.shim[1])<<2 && room >= length+20) {
			return
		}
		if p.head = r.bytes(12); !r.err && r.verify(p.head.version() == intVer) {
			p.stack = r.bytes(int(p.shim[1])*4 - 12)
		}
	}
}

func (c srint) process(s *Switch, in Frame) error {
	p := parseProbe(in.Bytes)
	out := p.forward(s)
	if out == dropPort {
		return nil
	}
	pass, err := s.next(normal)
	if err != nil {
		return err
	}
	c.egress(s, p, in.Port, out, &pass)
	s.emit(out, p.deparse(), 0)
	return nil
}

// forward is the ingress.
func (p *probe) forward(s *Switch) uint16 {
	switch {
	case p.ip != nil && !checkIPv4(p.ip, p.options), p.parserError && p.shim == nil:
		return dropPort
	case p.route != nil:
		port := uint16(p.entry[1])
		p.entry = nil
		if p.route[1] == 4 {
			put(p.eth, 12, get(p.type2, 0))
			p.route, p.type2 = nil, nil
		} else {
			p.route[1] -= 2
		}
		return port
	case p.path != nil:
		port := uint16(p.path[63]&15) + 1
		for i := 63; i > 0; i-- {
			p.path[i] = p.path[i]>>4 | p.path[i-1]<<4
		}
		p.path[0] >>= 4
		return port
	case p.ip != nil:
		if action, params := s.find("ingress.forwarding", p4.Bytes(p.ip[16:20])); action == "forward" {
			return uint16(params[0].Uint64())
		}
	}
	return dropPort
}

func (srint) egress(s *Switch, p *probe, in, out uint16, m *Pass) {
	_, device := s.find("egress.device")
	node, clock := uint32(device[0].Uint64()), device[1].Uint64()
	_, mtu := s.find("egress.port_mtu", num(uint64(out)))
	room := uint16(mtu[0].Uint64())
	switch {
	case p.labels != nil:
		if p.labels[1] == 255 {
			return
		}
		b := []byte{byte(node), byte(in), byte(out), 0}
		b = append(append(b, us48(m.IngressTime)...), us48(m.EgressTime)...)
		b = be.AppendUint32(be.AppendUint32(b, m.EnqueueTime), m.EnqueueDepth&0xffffff)
		p.label = be.AppendUint32(be.AppendUint32(b, m.QueueDelay), m.DequeueDepth&0xffffff)
		p.labels[1]++
	case p.path != nil && p.udp != nil && p.ip != nil:
		if get(p.udp, 4)+pathLabel > pathLongest || get(p.ip, 2)+pathLabel > room {
			return
		}
		var w bitWriter
		w.add(uint64(byte(node)), 8)
		w.add(uint64(in), 9)
		w.add(uint64(out), 9)
		w.add(m.IngressTime, 48)
		w.add(uint64(m.EnqueueTime), 32)
		w.add(uint64(m.EnqueueDepth), 19)
		w.add(uint64(m.QueueDelay), 32)
		w.add(uint64(m.DequeueDepth), 19)
		p.pathLabel = w.b
		put(p.ip, 2, get(p.ip, 2)+pathLabel)
		put(p.udp, 4, get(p.udp, 4)+pathLabel)
		put(p.udp, 6, 0)
	case p.stack != nil:
		h := newHop(node, clock, in, out, m.IngressTime, m.EgressTime, m.EnqueueDepth)
		p.pushBlock(&h, room)
	}
}

// pushBlock is the transit node of the wide variant.
func (p *probe) pushBlock(h *hop, room uint16) {
	gone := sum(p.shim, p.head) + uint64(get(p.udp, 4))<<1
	domain, come := get(p.head, 6), uint64(0)
	block, complement := h.block(nil, get(p.head, 4), true, domain == fantID)
	words := uint8(len(block) / 4 & 31)
	bytes := uint16(words) << 2
	switch {
	case words == 0 || words != p.head.words() || domain != 0 && domain != fantID:
		complement = false
	case p.head[3] == 0:
		p.head[0] |= exceeded
		complement = false
	case get(p.ip, 2)+bytes > room || int(p.shim[1])+int(words) > 255:
		p.head[0] |= tooLong
		complement = false
	default:
		p.head[3]--
		p.shim[1] += words
		put(p.ip, 2, get(p.ip, 2)+bytes)
		put(p.udp, 4, get(p.udp, 4)+bytes)
		come, p.block = sum(block), block
	}
	come += sum(p.shim, p.head) + uint64(get(p.udp, 4))<<1
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

func (p *probe) deparse() (b []byte) {
	if p.ip != nil {
		put(p.ip, 10, csum16(p.ip, p.options))
	}
	for _, h := range [][]byte{p.eth, p.route, p.entry, p.entries, p.type2, p.labels, p.label, p.ip, p.options, p.udp, p.path, p.pathLabel, p.shim, p.head, p.block, p.stack, p.payload} {
		b = append(b, h...)
	}
	return b
}

// us48 is a time in six bytes.
func us48(t uint64) []byte {
	var b [8]byte
	be.PutUint64(b[:], t)
	return b[2:]
}

// bitWriter puts numbers of any width one after the other.
type bitWriter struct {
	b    []byte
	bits int
}

func (w *bitWriter) add(v uint64, bits int) {
	for i := bits - 1; i >= 0; i-- {
		if w.bits%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.bits/8] |= byte(v>>i&1) << (7 - w.bits%8)
		w.bits++
	}
}
