package program

import (
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
)

// digests is p4/pint.p4: digests by an execution plan in tables. Its state is that of the program's registers.
type digests struct {
	lastID map[uint32]uint32 // by flow: 1<<16 and the identification of its last packet
	looped map[uint16]uint64 // by port: when a loop was reported last
	lines  map[uint16]*lineState
	// By port: packets whose IPv4 identification is that of the one before, and packets whose digest was kept back.
	stuckIDs, incomplete map[uint16]uint64
}

// lineState is the state of Line for a port.
type lineState struct {
	u, sent uint32
	last    uint64
}

func newPINT() *digests {
	return &digests{lastID: map[uint32]uint32{}, looped: map[uint16]uint64{}, lines: map[uint16]*lineState{}, stuckIDs: map[uint16]uint64{}, incomplete: map[uint16]uint64{}}
}

// Numbers of the program.
const (
	typePINT   = 0x88b5
	pintLength = 16
	pintDomain = 0x5049
	missing    = 255 // hops of a digest that a switch did not write into
)

func (*digests) tables() []p4.Table {
	port := func(name string) []p4.Field { return []p4.Field{field(name, 9, p4.Exact)} }
	epoch, set := field("epoch", 8, p4.Exact), field("set", 8, p4.Exact)
	none := act("NoAction")
	list := append(forwardTables(), collectorTable,
		p4.Table{Name: "ingress.ingress_port", Key: port("ingress"), Actions: []p4.Action{act("host", 6), act("fabric", 6)}, Size: 512},
		p4.Table{Name: "ingress.watch", Key: flowKey(), Actions: []p4.Action{act("carry", 32, 8, 1), none}, Size: 1024},
		p4.Table{Name: "egress.device", Actions: []p4.Action{act("set_device", 32)}, Size: 1},
		p4.Table{Name: "egress.egress_port", Key: port("egress"), Actions: []p4.Action{act("to_fabric", 16, 32, 8, 48), act("to_host", 16, 32, 8)}, Size: 512},
		p4.Table{Name: "egress.plan", Key: []p4.Field{epoch}, Actions: []p4.Action{act("set_plan", 32, 1), none}, Size: 4},
		p4.Table{Name: "egress.pint_set", Key: []p4.Field{epoch, field("lot", 32, p4.Range)}, Actions: []p4.Action{act("carry", 8)}, Size: 64},
		p4.Table{Name: "egress.pint_replace", Key: []p4.Field{field("hop", 32, p4.Exact)}, Actions: []p4.Action{act("at_most", 32), act("nobody")}, Size: 64},
		p4.Table{Name: "egress.line.lines", Key: port("port"), Actions: []p4.Action{act("line", 64, 32, 32, 32, 8), none}, Size: 512},
	)
	slot := func(query string, bits ...int) {
		list = append(list, p4.Table{Name: "egress." + query + ".slot", Key: []p4.Field{epoch, set}, Actions: []p4.Action{act("use", bits...), none}, Size: 64})
	}
	for _, q := range []string{"path0", "path1"} {
		slot(q, 8, 64, 8, 32, 32, 32)
		list = append(list, p4.Table{
			Name: "egress." + q + ".layer", Key: []p4.Field{epoch, field("h", 32, p4.Range)}, Actions: []p4.Action{act("baseline"), act("xor", 32)}, Size: 64,
		})
	}
	slot("latency", 8, 64, 32, 32)
	slot("utilization", 8, 64, 32)
	slot("loop", 8, 64, 8, 8, 32, 32)
	for _, q := range []string{"latency", "utilization"} {
		list = append(list, p4.Table{
			Name: "egress." + q + ".encode.code", Key: []p4.Field{epoch, field("v", 64, p4.Range)},
			Actions: []p4.Action{act("level", 16, 64, 32), act("last", 16)}, Size: 8192,
		})
	}
	for _, name := range logTables() {
		bits := 32
		if strings.HasSuffix(name, ".log") {
			bits = 16
		}
		list = append(list, p4.Table{Name: name, Key: []p4.Field{field("cell", 10, p4.Exact)}, Actions: []p4.Action{act("entry", bits)}, Size: 1024})
	}
	return list
}

// logTables are the tables of logarithms and powers.
func logTables() (names []string) {
	for _, q := range []string{"latency", "utilization"} {
		names = append(names, "egress."+q+".encode.log_rnd.log", "egress."+q+".encode.exp_gap.exp")
	}
	for _, l := range []string{"log_idle", "log_average", "log_queue", "log_sent"} {
		names = append(names, "egress.line."+l+".log")
	}
	for _, e := range []string{"exp_decay", "exp_queue", "exp_sent"} {
		names = append(names, "egress.line."+e+".exp")
	}
	return names
}

func (*digests) defaults() []p4.Entry {
	list := append(forwardDefaults(), fallback("ingress.ingress_port", "fabric", 0), fallback("egress.device", "set_device", 0),
		fallback("egress.egress_port", "to_fabric", 1500, 0, 0, 0), fallback("egress.pint_replace", "nobody"), fallback("egress.pint_set", "carry", 255))
	for _, q := range []string{"path0", "path1"} {
		list = append(list, fallback("egress."+q+".layer", "baseline"))
	}
	for _, q := range []string{"latency", "utilization"} {
		list = append(list, fallback("egress."+q+".encode.code", "last", 0))
	}
	return list
}

// Logarithms fills tables of logarithms (names that end with .log) and of powers (.exp).
func (s *Switch) Logarithms(names ...string) error {
	for _, name := range names {
		for cell := range 1024 {
			v := uint64(pint.ExpEntry(cell))
			if len(name) > 4 && name[len(name)-4:] == ".log" {
				v = uint64(pint.LogEntry(cell))
			}
			e := p4.Entry{Table: name, Match: []p4.Match{p4.Number(uint64(cell))}, Action: "entry", Params: []p4.Value{num(v)}}
			if err := s.Put(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// digest is the header that carries a digest: epoch, hops, type, id and the digest itself.
type digest []byte

// carrier is a frame with what may be in it.
type carrier struct {
	inside
	pint digest

	source bool
	epoch  uint8
	id     uint32
}

// echo is the metadata that the program preserves for a clone.
type echo struct {
	collector, hardware uint8
	size                uint16
	header              digest // as it was configured
	wide                bool
	rewrite             uint8
}

func parsePINT(b []byte) *carrier {
	p, r := &carrier{}, &reader{rest: b}
	defer func() { p.payload, p.failed = r.rest, r.err }()
	kind := p.parseLink(r)
	if kind == typePINT {
		if p.pint = r.bytes(pintLength); r.err {
			return p
		}
		kind = get(p.pint, 2)
	}
	if !p.parseIP(r, kind) {
		return p
	}
	switch p.proto {
	case protoUDP:
		if p.udp = r.bytes(8); !r.err {
			p.srcPort, p.dstPort = get(p.udp, 0), get(p.udp, 2)
		}
	case protoTCP:
		if p.tcp = r.bytes(20); !r.err {
			p.srcPort, p.dstPort = get(p.tcp, 0), get(p.tcp, 2)
		}
	}
	return p
}

func (c *digests) process(s *Switch, in Frame) error {
	p := parsePINT(in.Bytes)
	var m echo
	port := c.ingress(s, p, in.Port, &m)
	if port == dropPort {
		return nil
	}
	pass, err := s.next(normal)
	if err != nil {
		return err
	}
	cloned, session := c.egress(s, p, port, &m, &pass)
	s.emit(port, p.deparse(), 0)
	to, ok := s.mirrors[session]
	if !cloned || !ok {
		return nil
	}
	if _, err := s.next(egressClone); err != nil {
		return err
	}
	p.removeDigest()
	c.report(s, p, to, &m)
	return nil
}

func (c *digests) ingress(s *Switch, p *carrier, in uint16, m *echo) (port uint16) {
	action, params := s.find("ingress.ingress_port", num(uint64(in)))
	edge := action == "host"
	m.hardware = uint8(params[0].Uint64())
	if p.v4 == nil && p.v6 == nil || p.bad4 || p.v4 != nil && !checkIPv4(p.v4, p.options) || edge && p.pint != nil {
		return dropPort
	}
	if edge && (p.udp != nil || p.tcp != nil) {
		if action, a := s.find("ingress.watch", p.key()...); action == "carry" {
			p.source, p.epoch = true, uint8(a[1].Uint64())
			c.choose(p, in, a[2].Uint64() == 1)
			var word []byte
			if crcOf(be.AppendUint32(word, p.id)) > uint32(a[0].Uint64()) {
				p.source = false
			}
		}
	}
	port, reason := s.route(p.eth, p.v4, p.v6)
	if reason != 0 {
		return dropPort
	}
	return port
}

// choose sets the id of a packet. It is IPv4's identification if that is requested and changes, and else a hash of its
// L4 header.
func (c *digests) choose(p *carrier, in uint16, byIP bool) {
	p.id = crcOf(l4(p.udp, p.tcp))
	if !byIP || p.v4 == nil {
		return
	}
	var src, dst [16]byte
	copy(src[16-len(p.src):], p.src)
	copy(dst[16-len(p.dst):], p.dst)
	flow := crcOf(src[:], dst[:], []byte{p.proto}, be.AppendUint16(be.AppendUint16(nil, p.srcPort), p.dstPort)) % 4096
	id := get(p.v4, 4)
	now := 1<<16 | uint32(id)
	last := c.lastID[flow]
	c.lastID[flow] = now
	if p.v4[6]&0x40 != 0 && last == now {
		c.stuckIDs[in]++
		return
	}
	p.id = uint32(id)
}

func (c *digests) egress(s *Switch, p *carrier, port uint16, m *echo, pass *Pass) (cloned bool, session uint32) {
	_, device := s.find("egress.device")
	action, to := s.find("egress.egress_port", num(uint64(port)))
	room, sink := uint16(to[0].Uint64()), action == "to_host"
	session, m.collector = uint32(to[1].Uint64()), uint8(to[2].Uint64())
	load := c.line(s, port, nanoseconds(pass.EgressTime), pass.PacketLength, pass.EnqueueDepth, p.isProbe())
	m.size = uint16(pass.PacketLength)
	if p.pint != nil {
		m.size -= pintLength
	} else if p.source && p.ipLen()+pintLength <= room {
		p.insert()
	}
	if p.pint == nil {
		return false, session
	}
	if p.pint[1] != missing {
		p.pint[1]++
	}
	w := writing{s: s, p: p.pint, node: uint32(device[0].Uint64()), latency: elapsed(pass.IngressTime, pass.EgressTime), load: load}
	written := w.run()
	if !written {
		p.pint[1] = missing
		if sink {
			c.incomplete[port]++
		}
	}
	m.header, m.wide, m.rewrite = digest(slices.Clone(p.pint)), w.wide, w.rewrite
	due := false
	if w.rewrite != 0 {
		last := c.looped[port]
		if due = last == 0 || sink || (pass.EgressTime-last)&(1<<48-1) >= to[3].Uint64(); due {
			c.looped[port] = pass.EgressTime
		}
	}
	if sink {
		p.removeDigest()
	}
	return written && session != 0 && (sink || due), session
}

func (p *carrier) insert() {
	p.pint = be.AppendUint32(digest{p.epoch, 0, 0, 0}, p.id)
	p.pint = append(p.pint, 0, 0, 0, 0, 0, 0, 0, 0)
	at := p.kind()
	copy(p.pint[2:4], at)
	put(at, 0, typePINT)
}

// kind is the EtherType in front of the digest.
func (p *carrier) kind() []byte {
	if p.vlan != nil {
		return p.vlan[2:4]
	}
	return p.eth[12:14]
}

// removeDigest is the work of the last switch, and is applied to every clone.
func (p *carrier) removeDigest() {
	if p.pint != nil {
		copy(p.kind(), p.pint[2:4])
		p.pint = nil
	}
}

func (c *digests) report(s *Switch, p *carrier, to uint16, m *echo) {
	_, device := s.find("egress.device")
	r := report{
		flags: flagTracked, domain: pintDomain, dsBits: 0xe000, node: uint32(device[0].Uint64()), hardware: m.hardware,
		receiver: m.collector, size: m.size,
	}
	h := m.header
	r.metadata = append([]byte{h[0], h[1], 0, 0}, h[4:8]...)
	r.metadata = append(r.metadata, h[12:16]...)
	if m.wide {
		r.dsBits |= 0x1000
		r.metadata = append(r.metadata, h[8:12]...)
	}
	if m.rewrite != 0 {
		r.dsBits |= 0x0800
		r.metadata = append(r.metadata, m.rewrite, 0, 0, 0)
	}
	if front, limit := s.envelope(&r); front != nil {
		s.emit(to, append(front, p.deparse()...), limit)
	}
}

func (p *carrier) deparse() (b []byte) {
	if p.v4 != nil {
		put(p.v4, 10, csum16(p.v4, p.options))
	}
	for _, h := range [][]byte{p.eth, p.vlan, p.pint, p.v4, p.options, p.v6, p.udp, p.tcp, p.payload} {
		b = append(b, h...)
	}
	return b
}
