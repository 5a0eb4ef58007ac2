package program

import (
	"bytes"
	"slices"

	"github.com/hopscope/hopscope/p4"
)

// hopscope is p4/hopscope.p4: INT-MD with assignments, counters of interfaces, PINT, source-routed probes, several next
// hops, and a port of the controller. Its parts are those of the other programs.
type hopscope struct {
	intmd
	pint       digests
	interfaces interfaces
	withoutINT bool
	readsINT   bool // and writes none

	probes, other, salt, member, loops, generators, collectors *p4.Rows
	// Packets by ingress port that were dropped as probes of a port that is not trusted, and by reason.
	untrusted, dropped map[uint16]uint64
}

// Forms of packets: what they are if their port is trusted.
const (
	formRoute  = 1 + iota // EtherType 0x0700
	formPath              // UDP to 2222
	formDigest            // EtherType of PINT
)

// cpuPort is the port of the controller.
const cpuPort = 510

func newHopscope(without []Part) *hopscope {
	c := &hopscope{
		intmd: intmd{reported: map[int32]uint64{}, into: true}, pint: *newPINT(), withoutINT: slices.Contains(without, INT),
		readsINT: slices.Contains(without, Blocks), untrusted: map[uint16]uint64{}, dropped: map[uint16]uint64{},
	}
	c.pint.carry = "pint_carry"
	return c
}

// Names of tables that only hopscope.p4 has, and one that it calls otherwise.
const (
	probesName    = "ingress.probes"
	otherName     = "ingress.other"
	saltName      = "ingress.forward.salt"
	memberName    = "ingress.forward.member"
	loopsName     = "egress.loops"
	pintWatchName = "ingress.pint_watch"
)

// ofINT are the tables of the part INT.
var ofINT = []string{"ingress.watch", "ingress.acl", "ingress.drops", "egress.queues", countsName, p4.AssignedName}

func (c *hopscope) tables() []p4.Table {
	list := append(c.intmd.tables(), p4.Table{Name: countsName, Key: []p4.Field{field("egress", 9, p4.Exact)}, Actions: []p4.Action{act("show_counts"), act("NoAction")}, Size: 512})
	if c.withoutINT {
		list = slices.DeleteFunc(list, func(t p4.Table) bool { return slices.Contains(ofINT, t.Name) })
	}
	forward := list[0].Actions
	for i := range list {
		if list[i].Name == forwarding4 || list[i].Name == forwarding6 {
			list[i].Actions = slices.Insert(slices.Clone(forward), 1, act("spread", 16, 16))
		}
	}
	none := act("NoAction")
	port, dst := field("ingress", 9, p4.Ternary), field("eth_dst", 48, p4.Ternary)
	list = append(list,
		p4.Table{Name: probesName, Key: []p4.Field{port, field("kind", 2, p4.Ternary), dst, field("dst", 128, p4.Ternary)},
			Actions: []p4.Action{act("follow"), act("ordinary"), act("discard")}, Size: 1024},
		p4.Table{Name: otherName, Key: []p4.Field{port, dst, field("type", 16, p4.Ternary)}, Actions: []p4.Action{act("pass", 9), act("punt"), act("drop")}, Size: 1024},
		p4.Table{Name: saltName, Actions: []p4.Action{act("set_salt", 32)}, Size: 1},
		p4.Table{Name: memberName, Key: []p4.Field{field("group", 16, p4.Exact), field("chosen", 16, p4.Exact)}, Actions: forward, Size: 4096},
		p4.Table{Name: loopsName, Key: []p4.Field{field("egress", 9, p4.Exact)}, Actions: []p4.Action{act("report_loops", 32, 8, 48), none}, Size: 512},
		p4.Table{Name: p4.GeneratorsName, Key: []p4.Field{field("ingress", 9, p4.Exact), field("id", 32, p4.Exact)}, Actions: []p4.Action{act("generate", 512), none}, Size: 1024},
		p4.Table{Name: p4.CollectorsName, Key: []p4.Field{field("dst", 32, p4.Exact)}, Actions: []p4.Action{act("collect", 9, 48, 48), none}, Size: 1024},
		p4.Table{Name: pintWatchName, Key: flowKey(), Actions: []p4.Action{act("pint_carry", 32, 8, 1), none}, Size: 1024},
	)
	for _, t := range c.pint.tables() {
		if t.Name != "ingress.watch" && !slices.ContainsFunc(list, func(o p4.Table) bool { return o.Name == t.Name }) {
			list = append(list, t)
		}
	}
	return list
}

func (c *hopscope) defaults() []p4.Entry {
	list := append(c.intmd.defaults(), fallback(probesName, "ordinary"), fallback(otherName, "drop"), fallback(saltName, "set_salt", 0), fallback(memberName, "no_route"))
	for _, e := range c.pint.defaults() {
		if !slices.ContainsFunc(list, func(o p4.Entry) bool { return o.Table == e.Table }) {
			list = append(list, e)
		}
	}
	return list
}

func (c *hopscope) bind(t *p4.Store) {
	c.intmd.bind(t)
	c.pint.bind(t)
	c.interfaces.bind(t)
	c.generators, c.collectors = t.Rows(p4.GeneratorsName), t.Rows(p4.CollectorsName)
	c.pint.watch = t.Rows(pintWatchName)
	c.probes, c.other, c.salt, c.member, c.loops = t.Rows(probesName), t.Rows(otherName), t.Rows(saltName), t.Rows(memberName), t.Rows(loopsName)
}

// parse reads what hopscope.p4 reads. It returns the port that the controller wrote in front of the frame.
func (c *hopscope) parse(p *Packet) (packetOut []byte) {
	if p.in == cpuPort {
		packetOut = p.read(2)
	}
	kind := p.parseLink()
	switch kind {
	case typeRoute:
		p.form = formRoute
		if kind = p.parseRoute(); kind == typeLabels {
			p.labels = p.read(2)
			return packetOut
		}
	case typePINT:
		p.form = formDigest
		if p.pint = p.read(pintLength); p.failed {
			return packetOut
		}
		kind = get(p.pint, 2)
	}
	if p.parseIP(kind) {
		p.segment = !c.withoutINT && p.segmentRouted()
		p.parseL4(p.form == 0, !c.withoutINT)
	}
	return packetOut
}

func (c *hopscope) ingress(s *Switch, p *Packet, head []byte) bool {
	leaves := c.decide(s, p, head)
	if leaves && p.Instance == normal && !c.withoutINT {
		c.interfaces.offer(p)
	}
	return leaves
}

// decide is the ingress up to the port of a packet, or of its clone.
func (c *hopscope) decide(s *Switch, p *Packet, head []byte) bool {
	packetOut := c.parse(p)
	p.payload = p.rest
	m := &p.meta
	m.ingress = p.in
	at := c.ingressPort.At(s.entry(p.in))
	m.hardware = uint8(at.Arg(0))
	discarded := false
	if p.form != 0 {
		action := c.probes.Find(c.probeKey(s, p)).Action
		discarded = action == "discard"
		p.followed = action == "follow" && p.form != formDigest
		p.plain = action != "follow" && p.form != formPath
	}
	if p.v4 == nil && p.v6 == nil {
		p.plain = !p.followed
	}
	switch {
	case packetOut != nil:
		p.plain, p.followed = true, false
		p.Port = get(packetOut, 0) >> 7
	case discarded:
		c.untrusted[p.in]++
		return false
	case p.followed: // a route that was not read whole leads nowhere; INT that was not read is payload
		if p.v4 != nil && !checkIPv4(p.v4, p.options) || p.failed && p.shim == nil {
			return false
		}
		if !c.ends(p) {
			p.Port = p.follow()
		}
	case p.plain:
		return c.pass(p)
	case p.bad4 || p.v4 != nil && !checkIPv4(p.v4, p.options):
		return false
	default:
		if c.routed(s, p, at); m.reason != 0 {
			return c.refuse(s, p, head)
		}
	}
	return p.Port != dropPort
}

// ends reports whether a probe of INT-path is where its route ends. A generator writes a route into an empty one before; without a
// route it goes nowhere.
func (c *hopscope) ends(p *Packet) bool {
	if p.empty != nil {
		if c.generate(p); p.path == nil {
			p.Port = dropPort
			return true
		}
	}
	if p.path == nil || bytes.Count(p.path, zero[:1]) < len(p.path) {
		return false
	}
	r := c.collectors.Find(p.v4[16:20])
	if r.Action != "collect" {
		return false
	}
	p.Port = uint16(r.Arg(0))
	append48(append48(p.eth[:0], r.Arg(1)), r.Arg(2))
	return true
}

var zero [1]byte

// generate writes the route of a table into an empty probe.
func (c *hopscope) generate(p *Packet) {
	k := p.put(2 + 4)
	put(k, 0, p.in)
	copy(k[2:], p.empty)
	r := c.generators.Find(k)
	if r.Action != "generate" {
		return
	}
	p.path = r.Params[0].Append(p.put(pathPorts)[:0], pathPorts)
	put(p.v4, 2, get(p.v4, 2)+pathPorts)
	put(p.udp, 4, get(p.udp, 4)+pathPorts)
	put(p.udp, 6, 0)
}

// probeKey is the key of the table of probes.
func (c *hopscope) probeKey(s *Switch, p *Packet) []byte {
	k := p.put(2 + 1 + 6 + 16)
	put(k, 0, uint16(s.entry(p.in)))
	k[2] = p.form
	if p.eth != nil {
		copy(k[3:9], p.eth)
	}
	copy(k[25-len(p.dst):], p.dst)
	return k
}

// pass is the way of a frame that is not IP.
func (c *hopscope) pass(p *Packet) bool {
	k := p.put(2 + 6 + 2)
	put(k, 0, p.in)
	if p.eth != nil {
		copy(k[2:8], p.eth)
		copy(k[8:], p.etherType())
	}
	switch r := c.other.Find(k); r.Action {
	case "pass":
		p.Port = uint16(r.Arg(0))
	case "punt":
		p.Port = cpuPort
	default:
		return false
	}
	return p.Port != dropPort
}

// routed decides about a packet of IP like others, and sets the reason why it has no way.
func (c *hopscope) routed(s *Switch, p *Packet, at *p4.Row) {
	m, edge := &p.meta, at.Action == "host"
	trusted := edge && at.Arg(1) == 1
	switch {
	case c.withoutINT:
	case edge && p.shim != nil && !trusted, c.acl.Find(p.key()).Action == "deny":
		m.reason = denied
	}
	if edge && (p.udp != nil || p.tcp != nil) {
		if p.shim == nil && !c.withoutINT {
			c.mark(s, p)
		}
		if p.pint == nil {
			m.carries = c.pint.source(p)
		}
	}
	if m.reason == 0 {
		m.reason = c.choose(s, p)
	}
}

// choose sets the port of a packet and its new addresses, or returns why it has none. A route may have several next hops:
// the flow and the switch's salt choose one.
func (c *hopscope) choose(s *Switch, p *Packet) (reason uint8) {
	if s.place != nil {
		return c.compute(s, p)
	}
	table, dst, reason := s.hop(p)
	if reason != 0 {
		return reason
	}
	r := table.Find(dst)
	if r.Action == "spread" {
		count := uint32(r.Arg(1))
		if count == 0 {
			return noRoute
		}
		chosen := c.spread(p, uint32(c.salt.Find(nil).Arg(0)), count)
		group := uint16(r.Arg(0))
		r = c.member.Find([]byte{byte(group >> 8), byte(group), byte(chosen >> 8), byte(chosen)})
	}
	return p.sendBy(r)
}

// refuse counts a packet that is dropped for a reason, and makes p its clone for a report, if there is one.
func (c *hopscope) refuse(s *Switch, p *Packet, head []byte) bool {
	c.dropped[uint16(p.meta.reason)]++
	withDigest := p.pint != nil
	if c.withoutINT || !c.reportDrop(s, p) {
		return false
	}
	if withDigest {
		p.meta.size -= pintLength // no report has the digest
	}
	p.restart(head)
	c.parse(p)
	p.payload = p.rest
	return true
}

func (c *hopscope) egress(s *Switch, p *Packet, pass *Pass) bool {
	if p.Instance != normal {
		return c.clone(s, p, pass)
	}
	m := &p.meta
	m.arrived, m.egress, m.depth, m.left, m.size = pass.IngressTime, p.Port, pass.EnqueueDepth, pass.EgressTime, uint16(pass.PacketLength)
	e, to := c.leave(s, p)
	room, sink := uint16(to.Arg(0)), to.Action == "to_host"
	probe := p.followed || !p.plain && p.isProbe()
	load := c.pint.load(p.Port, s.nanoseconds(pass.EgressTime), pass.PacketLength, pass.EnqueueDepth, probe)
	if p.Port == cpuPort {
		p.packetIn = p.put(2)
		put(p.packetIn, 0, p.in<<7)
	}
	if !c.withoutINT && !p.discards(sink && !p.followed) {
		e.counts = c.interfaces.leave(p)
	}
	if p.plain {
		p.deparse(0)
		return true
	}
	if sink {
		m.collector = uint8(to.Arg(2))
	}
	if p.followed {
		sink = false // what a probe has gathered is its receiver's
		node, _ := s.self()
		p.writeLabel(s, node, room, pass)
	}
	session, collector, gap := uint32(0), uint8(0), uint64(0)
	if p.pint != nil {
		m.size -= pintLength
	}
	if sink {
		session, collector = e.session, m.collector
	} else if r := c.loops.At(uint64(p.Port)); r.Action == "report_loops" {
		session, collector, gap = uint32(r.Arg(0)), uint8(r.Arg(1)), r.Arg(2)
	}
	if !c.withoutINT && !c.readsINT && (p.v4 != nil || p.v6 != nil) {
		e.run(pass)
	}
	if c.pint.write(s, p, pass, load, room, sink, gap) && session != 0 {
		if p.cloned {
			m.nextAbout, m.nextCollector, m.nextSize, m.nextSession = m.about, m.collector, m.size, p.session
		}
		if p.keptShim != nil {
			m.size -= 4 + uint16(p.keptShim[1])<<2 // without INT, which the other report has
		}
		m.about, m.collector = ofDigest, collector
		p.cloned, p.session = true, session
	}
	if sink {
		p.removeDigest()
	}
	p.deparse(0)
	return !e.drop
}

// leave begins a packet's way through the egress, with the entry of its port.
func (c *hopscope) leave(s *Switch, p *Packet) (e leaving, to *p4.Row) {
	to = c.egressPort.At(s.entry(p.Port))
	e = leaving{intmd: &c.intmd, s: s, p: p, m: &p.meta, room: uint16(to.Arg(0))}
	if to.Action == "to_host" {
		e.session = uint32(to.Arg(1))
		e.sink = !p.followed
	}
	if p.pint != nil && !e.sink { // else it is removed
		e.room -= pintLength
	}
	return e, to
}

// grows is the number of bytes by which the egress will change a packet, but for labels and digests that it adds.
func (c *hopscope) grows(s *Switch, p *Packet) int {
	if p.plain || c.withoutINT || c.readsINT || p.v4 == nil && p.v6 == nil {
		return 0
	}
	e, _ := c.leave(s, p)
	return e.plan()
}

// clone makes a report of a clone. That of INT follows the one of a digest, as a clone of its clone.
func (c *hopscope) clone(s *Switch, p *Packet, pass *Pass) (leaves bool) {
	m := &p.meta
	p.packetIn = nil
	if m.about != ofDigest {
		if p.Instance == ingressClone {
			m.arrived = pass.IngressTime
		}
		if leaves = c.intmd.clone(s, p, pass.Shown); leaves {
			c.interfaces.leaveReport(p)
		}
		return leaves
	}
	if leaves = c.pint.report(s, p); leaves && !c.withoutINT {
		c.interfaces.leaveReport(p)
	}
	if m.nextAbout != 0 {
		m.about, m.collector, m.size = m.nextAbout, m.nextCollector, m.nextSize
		m.nextAbout, p.cloned, p.session = 0, true, m.nextSession
	}
	return leaves
}
