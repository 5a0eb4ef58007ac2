package program

import (
	"strings"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
)

// digests is p4/pint.p4: digests by an execution plan in tables. Its state is that of the program's registers.
type digests struct {
	lastID map[uint32]uint32 // by flow: 1<<16 and the identification of its last packet
	looped map[uint16]uint64 // by port: when a loop was reported last
	states map[uint16]*lineState
	// By port: packets whose IPv4 identification is that of the one before, and packets whose digest was kept back.
	stuckIDs, incomplete map[uint16]uint64

	carry string // the action of watch

	ingressPort, watch, egressPort, plan, set, replace *p4.Rows
	path                                               [2]pathTables
	latency, utilization                               codeTables
	loop                                               *p4.Rows
	line                                               lineTables
}

// pathTables are those of an instance of a path query, and codeTables those of a query of rounded values.
type pathTables struct{ slot, layer *p4.Rows }
type codeTables struct{ slot, code, logRnd, expGap *p4.Rows }

// lineTables are those of the load of lines.
type lineTables struct{ lines, logIdle, logAverage, logQueue, logSent, expDecay, expQueue, expSent *p4.Rows }

// lineState is the state of Line for a port.
type lineState struct {
	u, sent uint32
	last    uint64
}

func newPINT() *digests {
	return &digests{carry: "carry", lastID: map[uint32]uint32{}, looped: map[uint16]uint64{}, states: map[uint16]*lineState{}, stuckIDs: map[uint16]uint64{}, incomplete: map[uint16]uint64{}}
}

func (c *digests) bind(t *p4.Store) {
	c.ingressPort, c.watch, c.egressPort = t.Rows("ingress.ingress_port"), t.Rows("ingress.watch"), t.Rows("egress.egress_port")
	c.plan, c.set, c.replace, c.loop = t.Rows("egress.plan"), t.Rows("egress.pint_set"), t.Rows("egress.pint_replace"), t.Rows("egress.loop.slot")
	for i, q := range []string{"egress.path0", "egress.path1"} {
		c.path[i] = pathTables{t.Rows(q + ".slot"), t.Rows(q + ".layer")}
	}
	codes := func(q string) codeTables {
		return codeTables{t.Rows(q + ".slot"), t.Rows(q + ".encode.code"), t.Rows(q + ".encode.log_rnd.log"), t.Rows(q + ".encode.exp_gap.exp")}
	}
	c.latency, c.utilization = codes("egress.latency"), codes("egress.utilization")
	line := func(name string) *p4.Rows { return t.Rows("egress.line." + name) }
	c.line = lineTables{line("lines"), line("log_idle.log"), line("log_average.log"), line("log_queue.log"), line("log_sent.log"),
		line("exp_decay.exp"), line("exp_queue.exp"), line("exp_sent.exp")}
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

// parsePINT reads what pint.p4 reads.
func (p *Packet) parsePINT() {
	kind := p.parseLink()
	if kind == typePINT {
		if p.pint = p.read(pintLength); p.failed {
			return
		}
		kind = get(p.pint, 2)
	}
	if !p.parseIP(kind) {
		return
	}
	switch p.proto {
	case protoUDP:
		if p.udp = p.read(8); !p.failed {
			p.srcPort, p.dstPort = get(p.udp, 0), get(p.udp, 2)
		}
	case protoTCP:
		if p.tcp = p.read(20); !p.failed {
			p.srcPort, p.dstPort = get(p.tcp, 0), get(p.tcp, 2)
		}
	}
}

func (c *digests) ingress(s *Switch, p *Packet, _ []byte) bool {
	p.parsePINT()
	p.payload = p.rest
	m := &p.meta
	at := c.ingressPort.At(uint64(p.in))
	edge := at.Action == "host"
	m.hardware = uint8(at.Arg(0))
	if p.v4 == nil && p.v6 == nil || p.bad4 || p.v4 != nil && !checkIPv4(p.v4, p.options) || edge && p.pint != nil {
		return false
	}
	if edge && (p.udp != nil || p.tcp != nil) {
		m.carries = c.source(p)
	}
	return s.forward(p) == 0 && p.Port != dropPort
}

// source reports whether a packet carries a digest from here on, and sets its epoch and its id.
func (c *digests) source(p *Packet) bool {
	r, m := c.watch.Find(p.key()), &p.meta
	if r.Action != c.carry {
		return false
	}
	m.epoch = uint8(r.Arg(1))
	c.choose(p, r.Arg(2) == 1)
	return crcWord(m.id) <= uint32(r.Arg(0))
}

// choose sets the id of a packet. It is IPv4's identification if that is requested and changes, and else a hash of its
// L4 header.
func (c *digests) choose(p *Packet, byIP bool) {
	p.meta.id = crcOf(p.l4())
	if !byIP || p.v4 == nil {
		return
	}
	flow := crcOf(p.key()) % 4096
	id := get(p.v4, 4)
	now := 1<<16 | uint32(id)
	last := c.lastID[flow]
	c.lastID[flow] = now
	if p.v4[6]&0x40 != 0 && last == now {
		c.stuckIDs[p.in]++
		return
	}
	p.meta.id = uint32(id)
}

func (c *digests) egress(s *Switch, p *Packet, pass *Pass) bool {
	if p.Instance != normal {
		return c.report(s, p)
	}
	m := &p.meta
	to := c.egressPort.At(uint64(p.Port))
	room, sink, session := uint16(to.Arg(0)), to.Action == "to_host", uint32(to.Arg(1))
	m.collector, m.size = uint8(to.Arg(2)), uint16(pass.PacketLength)
	load := c.load(p.Port, s.nanoseconds(pass.EgressTime), pass.PacketLength, pass.EnqueueDepth, p.isProbe())
	if p.pint != nil {
		m.size -= pintLength
	}
	if c.write(s, p, pass, load, room, sink, to.Arg(3)) && session != 0 {
		p.cloned, p.session = true, session
	}
	if sink {
		p.removeDigest()
	}
	p.deparse(0)
	return true
}

// write writes into the digest of a packet, which a packet that has to carry one gets here. It reports whether the digest
// is reported: behind the last switch, and where a loop was found, not more often than once in gap us.
func (c *digests) write(s *Switch, p *Packet, pass *Pass, load uint64, room uint16, sink bool, gap uint64) bool {
	m := &p.meta
	if p.pint == nil && m.carries && p.ipLen()+pintLength <= room {
		p.insertDigest()
	}
	if p.pint == nil {
		return false
	}
	if p.pint[1] != missing {
		p.pint[1]++
	}
	w := writing{c: c, p: p.pint, node: uint32(s.device.Find(nil).Arg(0)), latency: s.elapsed(pass.IngressTime, pass.EgressTime), load: load}
	written, due := w.run(), false
	if !written {
		p.pint[1] = missing
		if sink {
			c.incomplete[p.Port]++
		}
	}
	m.written, m.wide, m.rewrite = append(p.put(pintLength)[:0], p.pint...), w.wide, w.rewrite
	if w.rewrite != 0 {
		last := c.looped[p.Port]
		if due = last == 0 || (pass.EgressTime-last)&(1<<48-1) >= gap; due {
			c.looped[p.Port] = pass.EgressTime
		}
	}
	return written && (sink || due)
}

func (p *Packet) insertDigest() {
	p.pint = p.put(pintLength)
	p.pint[0] = p.meta.epoch
	be.PutUint32(p.pint[4:], p.meta.id)
	at := p.etherType()
	copy(p.pint[2:4], at)
	put(at, 0, typePINT)
}

// etherType is that of the last header of the link.
func (p *Packet) etherType() []byte {
	if p.vlan != nil {
		return p.vlan[2:4]
	}
	return p.eth[12:14]
}

// removeDigest is the work of the last switch, and is applied to every clone.
func (p *Packet) removeDigest() {
	if p.pint != nil {
		copy(p.etherType(), p.pint[2:4])
		p.pint = nil
	}
}

func (c *digests) report(s *Switch, p *Packet) bool {
	p.removeDigest()
	m := &p.meta
	r := report{
		flags: flagTracked, domain: pintDomain, dsBits: 0xe000, node: uint32(s.device.Find(nil).Arg(0)), hardware: m.hardware,
		receiver: m.collector, size: m.size,
	}
	h := m.written
	b := append(append(p.put(24)[:0], h[0], h[1], 0, 0), h[4:8]...)
	b = append(b, h[12:16]...)
	if m.wide {
		r.dsBits |= 0x1000
		b = append(b, h[8:12]...)
	}
	if m.rewrite != 0 {
		r.dsBits |= 0x0800
		b = append(b, m.rewrite, 0, 0, 0)
	}
	r.metadata = b
	limit, ok := s.envelope(p, &r)
	if ok {
		p.deparse(limit)
	}
	return ok
}
