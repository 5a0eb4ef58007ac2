package program

import "github.com/hopscope/hopscope/p4"

// intmd is p4/intmd.p4: INT-MD 2.1, source, transit and sink node. It keeps when the queue of a port was reported last.
type intmd struct {
	reported map[uint16]uint64
	into     bool // it is p4/into.p4
}

func (c *intmd) tables() []p4.Table {
	port := func(name string) []p4.Field { return []p4.Field{field(name, 9, p4.Exact)} }
	none := act("NoAction")
	list := append(forwardTables(), collectorTable,
		p4.Table{Name: "ingress.ingress_port", Key: port("ingress"), Actions: []p4.Action{act("host", 6, 1), act("fabric", 6)}, Size: 512},
		p4.Table{Name: "ingress.watch", Key: flowKey(), Actions: []p4.Action{act("track", 32, 16, 16, 8, 1), none}, Size: 1024},
		p4.Table{Name: "ingress.acl", Key: flowKey(), Actions: []p4.Action{act("deny"), none}, Size: 1024},
		p4.Table{Name: "ingress.drops", Key: []p4.Field{field("reason", 8, p4.Exact)}, Actions: []p4.Action{act("report_drop", 32, 8), none}, Size: 256},
		p4.Table{Name: "egress.device", Actions: []p4.Action{act("set_device", 32, 64)}, Size: 1},
		p4.Table{Name: "egress.egress_port", Key: port("egress"), Actions: []p4.Action{act("to_fabric", 16), act("to_host", 16, 32, 8)}, Size: 512},
		p4.Table{Name: "egress.queues", Key: port("egress"), Actions: []p4.Action{act("watch_queue", 19, 48, 32, 8, 16), none}, Size: 512},
	)
	if c.into {
		list = append(list, p4.AssignedTable())
	}
	return list
}

func (*intmd) defaults() []p4.Entry {
	return append(forwardDefaults(), fallback("ingress.ingress_port", "fabric", 0), fallback("egress.device", "set_device", 0, 0), fallback("egress.egress_port", "to_fabric", 1500))
}

// These are the purposes of a clone.
const (
	ofSink = 1 + iota
	ofDrop
	ofQueue
)

// cloneMetadata is the metadata that the program preserves for a clone.
type cloneMetadata struct {
	about, collector, hardware, reason uint8
	congested                          bool
	asked, size                        uint16
	ingress, egress                    uint16
	depth                              uint32
	arrived, left                      uint64
}

// inside is a frame with what may be in it.
type inside struct {
	eth     ethernet
	vlan    []byte
	v4      ip4
	options []byte
	v6      ip6
	udp     udp
	tcp     tcp
	shim    shim
	head    intHead
	block   []byte // of this node
	stack   []byte
	payload []byte
	failed  bool // the parser
	bad4    bool // for its IPv4 header

	l4Len            uint16
	proto            uint8
	src, dst         []byte
	srcPort, dstPort uint16
}

// hasINT reports whether all of INT was read.
func (p *inside) hasINT() bool { return p.shim != nil && p.head != nil && p.stack != nil }

func (p *inside) ipLen() uint16 {
	switch {
	case p.v6 != nil:
		return get(p.v6, 4) + 40
	case p.v4 != nil:
		return get(p.v4, 2)
	}
	return 0
}

// isProbe reports whether the packet has the mark of an agent's probe.
func (p *inside) isProbe() bool {
	return p.v4 != nil && p.v4.dscp() == probeDSCP || p.v6 != nil && p.v6.dscp() == probeDSCP
}

func (p *inside) setDSCP(v uint8) {
	if p.v4 != nil {
		p.v4.setDSCP(v)
	} else if p.v6 != nil {
		p.v6.setDSCP(v)
	}
}

func parseINT(b []byte) *inside {
	p, r := &inside{}, &reader{rest: b}
	defer func() { p.payload, p.failed = r.rest, r.err }()
	if !p.parseIP(r, p.parseLink(r)) {
		return p
	}
	dscp := uint8(0)
	if p.v4 != nil {
		dscp = p.v4.dscp()
	} else {
		dscp = p.v6.dscp()
	}
	switch p.proto {
	case protoUDP:
		p.parseUDP(r, dscp)
	case protoTCP:
		if p.tcp = r.bytes(20); r.err {
			return p
		}
		p.srcPort, p.dstPort = get(p.tcp, 0), get(p.tcp, 2)
		if dscp != markDSCP {
			return p
		}
		if p.shim = r.bytes(4); !r.err && r.verify(p.shim.npt() == 0 && p.l4Len >= 24+uint16(p.shim[1])<<2) {
			p.parseHead(r)
		}
	}
	return p
}

// parseLink reads Ethernet and VLAN, and returns the EtherType of what follows, 0 where the frame ends before it.
func (p *inside) parseLink(r *reader) (kind uint16) {
	if p.eth = r.bytes(ethLen); r.err {
		return 0
	}
	if kind = get(p.eth, 12); kind == typeVLAN {
		if p.vlan = r.bytes(4); r.err {
			return 0
		}
		kind = get(p.vlan, 2)
	}
	return kind
}

// parseIP reads the IP header of an EtherType, and reports whether an L4 header follows.
func (p *inside) parseIP(r *reader, kind uint16) bool {
	switch kind {
	case typeIPv4:
		return p.parse4(r)
	case typeIPv6:
		if p.v6 = r.bytes(40); r.err {
			return false
		}
		p.proto, p.l4Len, p.src, p.dst = p.v6[6], get(p.v6, 4), p.v6[8:24], p.v6[24:40]
		return true
	}
	return false
}

// parse4 reports whether an L4 header follows.
func (p *inside) parse4(r *reader) bool {
	if p.v4 = r.bytes(20); r.err {
		return false
	}
	if !r.verify(p.v4[0]>>4 == 4 && p.v4[0]&15 >= 5) {
		p.bad4 = true
		return false
	}
	p.proto, p.src, p.dst = p.v4[9], p.v4[12:16], p.v4[16:20]
	p.l4Len = get(p.v4, 2) - uint16(p.v4[0]&15)<<2
	if p.v4[0]&15 > 5 {
		if p.options = r.bytes(int(p.v4[0]&15)*4 - 20); r.err {
			return false
		}
	}
	return get(p.v4, 6)&0x3fff == 0
}

func (p *inside) parseUDP(r *reader, dscp uint8) {
	if p.udp = r.bytes(8); r.err {
		return
	}
	p.srcPort, p.dstPort = get(p.udp, 0), get(p.udp, 2)
	npt := uint8(0)
	switch {
	case p.dstPort == markPort:
		npt = 1
	case dscp != markDSCP:
		return
	}
	length := get(p.udp, 4)
	if p.shim = r.bytes(4); !r.err && r.verify(p.shim.npt() == npt && length >= 12+uint16(p.shim[1])<<2 && length <= p.l4Len) {
		p.parseHead(r)
	}
}

func (p *inside) parseHead(r *reader) {
	if !r.verify(p.shim.kind() == intMD && p.shim[1] >= 3) {
		return
	}
	if p.head = r.bytes(12); !r.err && r.verify(p.head.version() == intVer) {
		p.stack = r.bytes(int(p.shim[1])*4 - 12)
	}
}

func (p *inside) key() []p4.Value {
	return []p4.Value{p4.Bytes(p.src), p4.Bytes(p.dst), num(uint64(p.proto)), num(uint64(p.srcPort)), num(uint64(p.dstPort))}
}

// lot is the hash that samples packets: of IPv4's identification, 0 for IPv6, and the L4 header.
func (p *inside) lot() uint32 {
	id := make([]byte, 2)
	if p.v4 != nil {
		copy(id, p.v4[4:])
	}
	return crcOf(id, l4(p.udp, p.tcp))
}

// instructions are the settings of the source.
type instructions struct {
	bitmap, domain uint16
	hops           uint8
	byPort         bool
}

func (c *intmd) process(s *Switch, in Frame) error {
	p := parseINT(in.Bytes)
	m := cloneMetadata{ingress: in.Port}
	port, track, session := c.ingress(s, p, in, &m)
	if m.about == ofDrop {
		if to, ok := s.mirrors[session]; ok {
			parsed := parseINT(in.Bytes)
			pass, err := s.next(ingressClone)
			if err != nil {
				return err
			}
			m.arrived = pass.IngressTime
			c.clone(s, parsed, false, to, &m)
		}
		return nil
	}
	if port == dropPort {
		return nil
	}
	pass, err := s.next(normal)
	if err != nil {
		return err
	}
	m.arrived = pass.IngressTime
	e := leaving{intmd: c, s: s, p: p, m: &m, pass: &pass}
	e.run(port, track)
	if !e.drop {
		s.emit(port, p.deparse(), 0)
	}
	if to, ok := s.mirrors[e.session]; ok && e.cloned {
		if _, err := s.next(egressClone); err != nil {
			return err
		}
		if e.kept != nil {
			p.shim, p.head, p.stack = e.kept.shim, e.kept.head, e.kept.stack
		}
		p.l4Len = 0 // not preserved
		c.clone(s, p, e.kept != nil, to, &m)
	}
	return nil
}

func (c *intmd) ingress(s *Switch, p *inside, in Frame, m *cloneMetadata) (port uint16, track *instructions, session uint32) {
	action, params := s.find("ingress.ingress_port", num(uint64(in.Port)))
	edge, trusted := action == "host", false
	m.hardware = uint8(params[0].Uint64())
	if edge {
		trusted = params[1].Uint64() == 1
	}
	if p.v4 == nil && p.v6 == nil || p.bad4 || p.v4 != nil && !checkIPv4(p.v4, p.options) {
		return dropPort, nil, 0
	}
	if edge && p.shim != nil && !trusted {
		m.reason = denied
	} else if action, _ := s.find("ingress.acl", p.key()...); action == "deny" {
		m.reason = denied
	}
	if edge && p.shim == nil && (p.udp != nil || p.tcp != nil) {
		share := uint32(0)
		if action, a := s.find("ingress.watch", p.key()...); action == "track" {
			share = uint32(a[0].Uint64())
			track = &instructions{uint16(a[1].Uint64()), uint16(a[2].Uint64()), uint8(a[3].Uint64()), a[4].Uint64() == 1}
		}
		if p.lot() > share {
			track = nil
		}
	}
	if m.reason == 0 {
		port, m.reason = s.route(p.eth, p.v4, p.v6)
	}
	if m.reason == 0 {
		return port, track, 0
	}
	action, params = s.find("ingress.drops", num(uint64(m.reason)))
	if action != "report_drop" {
		return dropPort, nil, 0
	}
	m.about, m.collector, m.asked, m.egress, m.size = ofDrop, uint8(params[1].Uint64()), 0x4801, 0x1ff, uint16(len(in.Bytes))
	return dropPort, nil, uint32(params[0].Uint64())
}
