package program

import (
	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4"
)

// leaving is a packet's way through the egress.
type leaving struct {
	*intmd
	s     *Switch
	p     *Packet
	m     *metadata
	drop  bool
	probe bool

	// Of the port: the largest IP packet, whether the switch is the sink node, and the session of its reports.
	room           uint16
	sink           bool
	session        uint32
	removed, added uint64 // sums of words that leave the packet, and of those that come
	grown          uint16
	hadINT         bool
	mine           bool // the interface is assigned to the flow
	inserts        bool
	source         Track
	words          uint8             // of the node's block
	pushes         bool              // the block
	refuses        byte              // flag in place of it, 0 for none
	complement     bool              // the block has one
	counts         *decode.HopCounts // of the port; nil for none
}

// words16 is the sum of the 16-bit words of b.
func words16(b []byte) (s uint64) {
	const lanes = 0xffff_0000_ffff
	for ; len(b) >= 8; b = b[8:] {
		x := be.Uint64(b)
		x = x&lanes + x>>16&lanes
		s += x&0xffffffff + x>>32
	}
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(be.Uint16(b))
	}
	return s
}

// hopOf is the node's report about the packet.
func (s *Switch) hopOf(m *metadata) hop {
	node, clock := s.self()
	return s.newHop(node, clock, m.ingress, m.egress, m.arrived, m.left, m.depth)
}

func (c *intmd) egress(s *Switch, p *Packet, pass *Pass) bool {
	if p.Instance != normal {
		if p.Instance == ingressClone {
			p.meta.arrived = pass.IngressTime
		}
		return c.clone(s, p, nil)
	}
	p.meta.arrived = pass.IngressTime
	e := leaving{intmd: c, s: s, p: p, m: &p.meta}
	to := c.egressPort.At(uint64(p.Port))
	if e.room = uint16(to.Arg(0)); to.Action == "to_host" {
		e.sink, e.session, e.m.collector = true, uint32(to.Arg(1)), uint8(to.Arg(2))
	}
	e.m.size = uint16(pass.PacketLength)
	e.run(pass)
	p.deparse(0)
	return !e.drop
}

func (e *leaving) run(pass *Pass) {
	p, m := e.p, e.m
	m.egress, m.depth, m.left = p.Port, pass.EnqueueDepth, pass.EgressTime
	e.probe = p.followed || p.isProbe() // as it came
	if e.plan(); e.hadINT {
		e.removed = p.sumINT()
	}
	if e.inserts {
		e.insert(&e.source)
	}
	switch {
	case e.pushes:
		e.push(pass.Shown)
	case e.refuses != 0:
		p.head[0] |= e.refuses
	}
	m.size += e.grown
	q := e.queues.At(e.s.entry(p.Port))
	m.congested = q.Action == "watch_queue" && uint64(m.depth) >= q.Arg(0)
	switch {
	case p.hasINT() && e.sink:
		if e.session != 0 {
			m.about = ofSink
		}
		if e.mine || !e.orchestrated(p) {
			m.asked = get(p.head, 4) & 0x7f80
		}
		p.cloned, p.session = e.session != 0, e.session
		e.removeINT()
	case m.congested && !e.probe && e.due(p.Port, m.left, q.Arg(1)):
		m.about, m.collector, m.asked = ofQueue, uint8(q.Arg(3)), uint16(q.Arg(4))&0x7f80
		if p.hasINT() {
			m.asked = get(p.head, 4) & 0x7f80
		}
		p.cloned, p.session = true, uint32(q.Arg(2))
	}
	if p.hasINT() {
		e.added += p.sumINT()
	}
	p.settle(e.removed, e.added, e.grown, e.complement)
}

// plan decides what the switch does about INT, and returns the number of bytes by which the packet grows.
func (e *leaving) plan() (grown int) {
	p, m := e.p, e.m
	e.hadINT, e.inserts, e.source = p.hasINT(), m.inserts, m.source
	if e.into && !m.inserts && !e.assigned.Empty() {
		r := e.assignment()
		if e.mine = r != nil; e.mine && !e.hadINT {
			e.inserts, e.source = true, Track{Bitmap: uint16(r.Arg(0)), Domain: p4.AssignedDomain, Hops: 255}
		}
		if e.mine && r.Action == p4.ExtractAction {
			e.sink, e.session, m.collector = true, uint32(r.Arg(1)), uint8(r.Arg(2))
		}
	}
	length := p.ipLen()
	e.inserts = e.inserts && length+16 <= e.room
	bitmap, domain, hops, inside, declared := e.source.Bitmap, e.source.Domain, e.source.Hops, 3, uint8(0)
	switch {
	case e.inserts:
		length, grown = length+16, 16
	case e.hadINT:
		bitmap, domain, hops, inside, declared = get(p.head, 4), get(p.head, 6), p.head[3], int(p.shim[1]), p.head.words()
	default:
		return 0
	}
	layout := headers.INT2
	if domain == fantID {
		layout = headers.INT2FANT
	}
	if e.words = uint8(headers.Words(layout, bitmap) & 31); e.inserts {
		declared = e.words
	}
	switch bytes := uint16(e.words) << 2; {
	case e.sink: // the report's header has it
		grown -= 4 + inside<<2
	case e.words == 0 || e.words != declared || domain != 0 && domain != fantID && !(e.mine && domain == p4.AssignedDomain): // no sink node could divide the stack
	case hops == 0:
		e.refuses = exceeded
	case length+bytes > e.room || inside+int(e.words) > 255:
		e.refuses = tooLong
	default:
		e.pushes = true
		grown += int(bytes)
	}
	return grown
}

// assignment returns the row of p4/into.p4's table assigned for a packet at its port, nil for none. A packet with INT of
// another kind has none, nor one whose INT was not read whole.
func (e *leaving) assignment() *p4.Row {
	p := e.p
	if p.followed || p.udp == nil && p.tcp == nil || p.shim != nil && !e.orchestrated(p) {
		return nil
	}
	p.key()
	put(p.flow[:], flowBytes, p.Port)
	if r := e.assigned.Find(p.flow[:]); r.Action == p4.CarryAction || r.Action == p4.ExtractAction {
		return r
	}
	return nil
}

// orchestrated reports whether a packet carries INT of p4/into.p4.
func (c *intmd) orchestrated(p *Packet) bool {
	return c.into && p.hasINT() && get(p.head, 6) == p4.AssignedDomain
}

// due reports whether the queue of a port is due for a report.
func (e *leaving) due(port uint16, now, gap uint64) bool {
	c, at := e.intmd, int32(port)
	if e.s.place != nil {
		at = e.s.place.Register(port)
	}
	last := c.reported[at]
	due := last == 0 || (now-last)&(1<<48-1) >= gap
	if due {
		c.reported[at] = now
	}
	return due
}

// insert is the source: shim and header by its instructions.
func (e *leaving) insert(track *Track) {
	p := e.p
	p.shim = append(p.put(4)[:0], intMD<<4, 3, 0, 0)
	p.head = append(p.put(12)[:0], intVer<<4, 0, e.words, track.Hops, 0, 0, 0, 0, 0, 0, 0, 0)
	put(p.head, 4, track.Bitmap)
	put(p.head, 6, track.Domain)
	p.stack = p.put(0)
	e.grown = 16
	if track.ByPort && p.udp != nil {
		p.shim[0] |= 1 << 2
		put(p.shim, 2, get(p.udp, 2))
		e.removed, e.added = uint64(get(p.udp, 2)), markPort
		put(p.udp, 2, markPort)
		return
	}
	switch {
	case p.v4 != nil:
		p.shim[3] = p.v4.dscp() << 2
	case p.v6 != nil:
		p.shim[3] = p.v6.dscp() << 2
	}
	p.setDSCP(markDSCP)
}

// push adds the node's block.
func (e *leaving) push(shown *Shown) {
	p, h := e.p, e.s.hopOf(e.m)
	h.shown, h.counts = shown, e.counts
	p.block, e.complement = h.block(p.put(longestBlock)[:0], get(p.head, 4), true, get(p.head, 6) == fantID)
	p.head[3]--
	p.shim[1] += e.words
	e.grown += uint16(len(p.block))
	e.added += words16(p.block)
}

// removeINT is the sink node: INT out, and what the source changed as it was.
func (e *leaving) removeINT() {
	p := e.p
	p.keptShim, p.keptHead, p.keptStack = p.shim, p.head, p.stack
	if e.hadINT {
		e.removed += sum(p.stack)
	}
	e.grown -= 4 + uint16(p.shim[1])<<2
	if p.shim.npt() == 1 && p.udp != nil {
		original := get(p.shim, 2)
		e.removed += markPort
		e.added += uint64(original)
		put(p.udp, 2, original)
	} else {
		p.setDSCP(p.shim[3] >> 2)
	}
	e.drop = p.head[0]&discard != 0
	p.shim, p.head, p.stack = nil, nil, nil
}

// settle corrects lengths and the checksum of TCP or UDP. Unchanged fields stay, whatever they are.
func (p *Packet) settle(gone, come uint64, grown uint16, complement bool) {
	switch {
	case p.v4 != nil:
		put(p.v4, 2, get(p.v4, 2)+grown)
	case p.v6 != nil:
		put(p.v6, 4, get(p.v6, 4)+grown)
	}
	value, used := uint32(0xffffffff), false
	switch {
	case p.tcp != nil:
		gone, come = gone+uint64(p.l4Len), come+uint64(p.l4Len+grown)
		if used = complement; !used && gone != come {
			put(p.tcp, 16, changed(get(p.tcp, 16), gone, come))
		}
	case p.udp != nil:
		gone += uint64(get(p.udp, 4)) << 1
		put(p.udp, 4, get(p.udp, 4)+grown)
		come += uint64(get(p.udp, 4)) << 1
		checksum := get(p.udp, 6)
		if used = complement && checksum != 0; !used && checksum != 0 && gone != come {
			if checksum = changed(checksum, gone, come); checksum == 0 {
				checksum = 0xffff
			}
			put(p.udp, 6, checksum)
		}
	}
	if used {
		value = uint32(changed(0xffff, gone, come))
	}
	if complement {
		be.PutUint32(p.block[len(p.block)-4:], value)
	}
}

// clone makes a report of a clone. INT stands in it again as it came to the sink node.
func (c *intmd) clone(s *Switch, p *Packet, shown *Shown) bool {
	m := &p.meta
	h := s.hopOf(m)
	h.shown = shown
	var gone, come uint64
	var grown uint16
	if p.keptShim != nil {
		p.shim, p.head, p.stack = p.keptShim, p.keptHead, p.keptStack
		grown = 4 + uint16(p.shim[1])<<2
		come = p.sumINT() + sum(p.stack)
		if p.shim.npt() == 1 && p.udp != nil {
			gone = uint64(get(p.udp, 2))
			come += markPort
			put(p.udp, 2, markPort)
		} else {
			p.setDSCP(markDSCP)
		}
	}
	if p.Instance == egressClone {
		p.l4Len = 0 // not preserved
	}
	p.removeDigest()
	p.settle(gone, come, grown, false)
	r := report{bitmap: m.asked, node: h.node, hardware: m.hardware, receiver: m.collector, size: m.size}
	if m.congested {
		r.flags |= flagCongested
	}
	if p.hasINT() {
		r.flags |= flagTracked
	}
	if c.orchestrated(p) {
		r.flags |= flagTransit // it has some interfaces of the way, and is no path
	}
	switch m.about {
	case ofDrop:
		r.flags |= flagDropped
		h.egress = 0xffff
	case ofQueue:
		if p.hasINT() {
			r.flags |= flagTransit
		}
	}
	r.metadata, _ = h.block(p.put(longestBlock)[:0], m.asked, false, false)
	if m.about == ofDrop {
		r.metadata = append(r.metadata, 0xff, m.reason, 0, 0)
	}
	tag := uint16(0)
	if c.rft != nil {
		var ok bool
		if r.receiver, tag, ok = c.rft.spread(r.receiver); !ok {
			return false
		}
	}
	limit, ok := s.envelope(p, &r)
	if ok && tag != 0 {
		put(p.Head, ethLen+20, tag)
	}
	if ok {
		p.deparse(limit)
	}
	p.returned = ok && tag != 0
	return ok && tag == 0
}
