package program

import "github.com/hopscope/hopscope/p4"

// intmd is p4/intmd.p4: INT-MD 2.1, source, transit and sink node. It keeps when the queue of a port was reported last.
type intmd struct {
	reported map[int32]uint64
	into     bool        // it is p4/into.p4
	rft      *deliveries // of p4/rft.p4; nil in others

	ingressPort, watch, acl, drops, egressPort, queues, assigned *p4.Rows
}

func (c *intmd) bind(t *p4.Store) {
	c.ingressPort, c.watch, c.acl, c.drops = t.Rows("ingress.ingress_port"), t.Rows("ingress.watch"), t.Rows("ingress.acl"), t.Rows("ingress.drops")
	c.egressPort, c.queues, c.assigned = t.Rows("egress.egress_port"), t.Rows("egress.queues"), t.Rows(p4.AssignedName)
	if c.rft != nil {
		c.rft.bind(t)
	}
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
	if c.rft != nil {
		list = append(list, p4.DeliveryTables()...)
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
	ofDigest
)

// hasINT reports whether all of INT was read.
func (p *Packet) hasINT() bool { return p.shim != nil && p.head != nil && p.stack != nil }

func (p *Packet) ipLen() uint16 {
	switch {
	case p.v6 != nil:
		return get(p.v6, 4) + 40
	case p.v4 != nil:
		return get(p.v4, 2)
	}
	return 0
}

// isProbe reports whether the packet has the mark of an agent's probe.
func (p *Packet) isProbe() bool {
	return p.v4 != nil && p.v4.dscp() == probeDSCP || p.v6 != nil && p.v6.dscp() == probeDSCP
}

func (p *Packet) setDSCP(v uint8) {
	if p.v4 != nil {
		p.v4.setDSCP(v)
	} else if p.v6 != nil {
		p.v6.setDSCP(v)
	}
}

// parseINT reads what intmd.p4 reads.
func (p *Packet) parseINT() {
	if p.parseIP(p.parseLink()) {
		p.parseL4(false, true)
	}
}

// parseL4 reads TCP or UDP, and a route of INT-path behind it, or INT, where the program looks for these.
func (p *Packet) parseL4(paths, withINT bool) {
	dscp := uint8(0)
	if p.v4 != nil {
		dscp = p.v4.dscp()
	} else {
		dscp = p.v6.dscp()
	}
	switch p.proto {
	case protoUDP:
		p.parseUDP(dscp, paths, withINT)
	case protoTCP:
		if p.tcp = p.read(20); p.failed {
			return
		}
		p.srcPort, p.dstPort = get(p.tcp, 0), get(p.tcp, 2)
		if dscp != markDSCP || !withINT {
			return
		}
		if p.shim = p.read(4); !p.failed && p.verify(p.shim.npt() == 0 && p.l4Len >= 24+uint16(p.shim[1])<<2) {
			p.parseHead()
		}
	}
}

// parseLink reads Ethernet and VLAN, and returns the EtherType of what follows, 0 where the frame ends before it.
func (p *Packet) parseLink() (kind uint16) {
	if p.eth = p.read(ethLen); p.failed {
		return 0
	}
	if kind = get(p.eth, 12); kind == typeVLAN {
		if p.vlan = p.read(4); p.failed {
			return 0
		}
		kind = get(p.vlan, 2)
	}
	return kind
}

// parseIP reads the IP header of an EtherType, and reports whether an L4 header follows.
func (p *Packet) parseIP(kind uint16) bool {
	switch kind {
	case typeIPv4:
		return p.parse4()
	case typeIPv6:
		if p.v6 = p.read(40); p.failed {
			return false
		}
		p.proto, p.l4Len, p.src, p.dst = p.v6[6], get(p.v6, 4), p.v6[8:24], p.v6[24:40]
		return true
	}
	return false
}

// parse4 reports whether an L4 header follows.
func (p *Packet) parse4() bool {
	if p.v4 = p.read(20); p.failed {
		return false
	}
	if !p.verify(p.v4[0]>>4 == 4 && p.v4[0]&15 >= 5) {
		p.bad4 = true
		return false
	}
	p.proto, p.src, p.dst = p.v4[9], p.v4[12:16], p.v4[16:20]
	p.l4Len = get(p.v4, 2) - uint16(p.v4[0]&15)<<2
	if p.v4[0]&15 > 5 {
		if p.options = p.read(int(p.v4[0]&15)*4 - 20); p.failed {
			return false
		}
	}
	return get(p.v4, 6)&0x3fff == 0
}

func (p *Packet) parseUDP(dscp uint8, paths, withINT bool) {
	if p.udp = p.read(8); p.failed {
		return
	}
	p.srcPort, p.dstPort = get(p.udp, 0), get(p.udp, 2)
	npt := uint8(0)
	switch {
	case withINT && p.dstPort == markPort:
		npt = 1
	case withINT && dscp == markDSCP:
	case paths && p.dstPort == pathPort && p.v4 != nil && p.options == nil:
		p.parsePath()
		return
	default:
		return
	}
	length := get(p.udp, 4)
	if p.shim = p.read(4); !p.failed && p.verify(p.shim.npt() == npt && length >= 12+uint16(p.shim[1])<<2 && length <= p.l4Len) {
		p.parseHead()
	}
}

func (p *Packet) parseHead() {
	if !p.verify(p.shim.kind() == intMD && p.shim[1] >= 3) {
		return
	}
	if p.head = p.read(12); !p.failed && p.verify(p.head.version() == intVer) {
		p.stack = p.read(int(p.shim[1])*4 - 12)
	}
}

// noID stands for the identification that IPv6 lacks.
var noID [2]byte

// lot is the hash that samples packets: of IPv4's identification, 0 for IPv6, and the L4 header.
func (p *Packet) lot() uint32 {
	id := noID[:]
	if p.v4 != nil {
		id = p.v4[4:6]
	}
	return crcOf(id, p.l4())
}

// Track is the action track of the source: what INT it puts into packets whose hash is not above Below.
type Track struct {
	Below          uint32
	Bitmap, Domain uint16
	Hops           uint8
	ByPort         bool
}

func (c *intmd) ingress(s *Switch, p *Packet, head []byte) bool {
	p.parseINT()
	p.payload = p.rest
	if c.decide(s, p) {
		return p.Port != dropPort
	}
	if p.meta.reason == 0 || !c.reportDrop(s, p) {
		return false
	}
	p.restart(head)
	p.parseINT()
	p.payload = p.rest
	return true
}

// reportDrop makes p its clone for the report of a dropped packet, if there is one.
func (c *intmd) reportDrop(s *Switch, p *Packet) bool {
	m := &p.meta
	r := c.drops.At(uint64(m.reason))
	if r.Action != "report_drop" {
		return false
	}
	m.about, m.collector, m.asked, m.egress, m.size = ofDrop, uint8(r.Arg(1)), 0x4801, 0x1ff, uint16(p.length)
	to, ok := s.mirrors[uint32(r.Arg(0))]
	p.Instance, p.Port = ingressClone, to
	return ok
}

// decide is the ingress up to the port of a packet. It is false for a packet that is dropped, for a reason or without one.
func (c *intmd) decide(s *Switch, p *Packet) bool {
	m := &p.meta
	m.ingress = p.in
	edge, trusted := false, false
	if !m.own {
		at := c.ingressPort.At(uint64(p.in))
		edge = at.Action == "host"
		m.hardware = uint8(at.Arg(0))
		trusted = edge && at.Arg(1) == 1
	}
	if p.v4 == nil && p.v6 == nil || p.bad4 || p.v4 != nil && !checkIPv4(p.v4, p.options) {
		return false
	}
	if edge && p.shim != nil && !trusted || c.acl.Find(p.key()).Action == "deny" {
		m.reason = denied
		return false
	}
	if edge && p.shim == nil && (p.udp != nil || p.tcp != nil) {
		c.mark(s, p)
	}
	if c.rft != nil && !edge && p.v4 != nil && p.udp != nil && p.shim == nil && c.rft.deliver(s, p) {
		return true
	}
	m.reason = s.forward(p)
	return m.reason == 0
}

// mark is the source's choice of packets that INT goes into.
func (c *intmd) mark(s *Switch, p *Packet) {
	r := c.watch.Find(p.key())
	t := Track{uint32(r.Arg(0)), uint16(r.Arg(1)), uint16(r.Arg(2)), uint8(r.Arg(3)), r.Arg(4) == 1}
	tracked := r.Action == "track"
	if s.place != nil {
		t, tracked = s.place.Track()
	}
	if tracked && p.lot() <= t.Below {
		p.meta.inserts, p.meta.source = true, t
	}
}
