package emu

import (
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4/emu/sim"
)

// packetEvent happens when a packet reaches the egress queue of the next switch, or the host. It first completes the
// egress of the switch behind: what is written there became certain only when the packet had left.
func (n *Network) packetEvent(i int32, p *packet) {
	if p.waiting {
		n.probeLeaves(i, p)
		return
	}
	entering := p.out < 0
	if !entering {
		last := p.peer < 0
		n.egress(p, last)
		if n.lines != nil && n.lines[p.out].loss > 0 && n.losing.Float64() < n.lines[p.out].loss {
			n.vanish(i, p)
			return
		}
		if last {
			n.deliver(i, p)
			return
		}
		p.in, p.node, p.out = p.peer, p.then, -1
	}
	p.arrived = p.next
	n.ingress(i, p, entering)
}

// ingress decides the fate of a packet, and queues it. The argument entering is set if it comes from a host.
func (n *Network) ingress(i int32, p *packet, entering bool) {
	d := &n.switches[p.node]
	if p.kind == sourceRouted {
		n.queueProbe(i, p, d, entering)
		return
	}
	if entering {
		n.enter(p, d)
	}
	p.segment = false
	switch {
	case p.labels > 0:
		p.out = n.popLabel(p)
	case entering && d.written.policies:
		p.out = n.steer(p, d)
	}
	why := Delivered
	switch {
	case !p.segment:
		why = n.route(p, d, entering)
	case d.denies(p):
		why = Denied
	case !p.DecrementTTL():
		why = Expired
	case p.out < 0 || n.strays(p):
		why = NoRoute
	}
	if why == Denied {
		p.out = -1
	}
	switch {
	case why != Delivered:
		n.drop(i, p, why)
	case d.faulty && slices.Contains(d.swallowed, p.flow):
		n.vanish(i, p)
	default:
		n.enqueue(i, p, d)
	}
}

const aclSalt = 0x61636c

// denies reports whether the access list of a fault has the flow of p.
func (d *device) denies(p *packet) bool {
	return d.acl != 0 && sim.Mix(uint64(p.hash^d.salt)^aclSalt) < d.acl
}

// enter is the work of the first switch on a packet that comes from a host.
func (n *Network) enter(p *packet, d *device) {
	if p.pint {
		n.stampEpoch(p, d)
	}
	switch {
	case !p.pint && d.ours && !d.written.policies:
		p.sampled = false // until hopscope.p4 chooses it
	case !p.sampled:
	case !p.pint:
		n.source(p, d)
	case n.cfg.SourceReports && d.dialect != Off && p.stamped:
		n.sourceReport(p, d)
	}
}

// enqueue puts a packet into the queue of p.out.
func (n *Network) enqueue(i int32, p *packet, d *device) {
	q := &n.queues[p.out]
	if !q.Up {
		n.countDropped(p.out, p.Size)
		n.drop(i, p, linkFailed)
		return
	}
	n.drain(q)
	p.found = q.Bytes
	bytes := p.Size + n.growth(p, d)
	start, done, ok := q.Accept(n.now, int64(bytes), i, p.kind == sourceRouted)
	if !ok {
		n.countDropped(p.out, p.Size)
		n.drop(i, p, QueueFull)
		return
	}
	p.queued, p.start, p.onLine = n.now, start, uint16(bytes)
	p.delay = 0
	if p.peer = n.ports[p.out].peer; p.peer >= 0 {
		p.then = n.ports[p.peer].node
		p.delay = n.pipeline(p.then)
	}
	if p.kind == sourceRouted && !p.wide {
		p.depth, p.waiting = uint32(q.Size-1), true
	}
	n.schedule(i, p, q, done)
}

// schedule sets when a packet whose sending ends at done reaches the queue of the next switch. Packets of one line do
// not pass each other. A probe that waits in its queue has a separate event before that.
func (n *Network) schedule(i int32, p *packet, q *sim.Queue, done int64) {
	p.next = done + int64(n.cfg.LinkDelay)
	if n.lines != nil && p.out >= 0 {
		p.next += n.lines[p.out].delay
	}
	p.due = max(p.next+p.delay, q.LastDue)
	q.LastDue = p.due
	at := p.due
	if p.waiting {
		at = p.start
	}
	p.live = n.events.Add(at, i)
}

// egress is the work of the switch on a packet that leaves its queue. The argument last is set if a host comes next.
func (n *Network) egress(p *packet, last bool) {
	d := &n.switches[p.node]
	q := &n.queues[p.out]
	n.hops++
	n.countSent(p)
	if q.Meter != nil {
		q.Measure(n.now, n.line, n.found)
	}
	if p.segment { // hopscope.p4 knows no labels
		next, self := n.nextMAC(p.out), mac(macSwitch, int(p.node))
		copy(p.Buf[copy(p.Buf, next[:]):], self[:])
	}
	if n.cfg.Observe == nil {
		if p.kind == data && p.pass == nil && !p.pint && (!p.sampled || d.dialect == Off && p.carries == Off) {
			return // it is not reported
		}
		p.hops = p.hops[:0] // and those before are not needed
	}
	p.hops = append(p.hops, Hop{
		Node: int(p.node), NodeID: d.id, ingressPort: uint16(n.ports[p.in].number), EgressPort: uint16(n.ports[p.out].number),
		Ingress: time.Duration(p.arrived), Queued: time.Duration(p.queued), Egress: time.Duration(p.start),
		QueueBytes: uint32(p.found), Utilization: q.Utilization, Load: p.load,
	})
	h := &p.hops[len(p.hops)-1]
	switch {
	case p.kind == sourceRouted:
		n.stamp(p, d, h)
	case p.pass != nil:
		n.writeINT(p, d, h, last)
	case p.pint:
		n.writeDigest(p, d, h, last)
	case p.sampled:
		n.telemetry(p, d, h, last)
	}
}

func (n *Network) deliver(i int32, p *packet) {
	why := Delivered
	switch {
	case p.kind != sourceRouted:
		n.stats.Delivered++
	case p.wide && !n.receiveWide(p):
		n.stats.probesDropped++
		why = Spoilt
	default:
		n.stats.ProbesDelivered++
		if !p.wide {
			n.receiveProbe(p)
		}
	}
	n.observe(p, why)
	n.free(i)
}

// vanish ends a packet's journey without a report.
func (n *Network) vanish(i int32, p *packet) {
	if p.kind == sourceRouted {
		n.stats.probesDropped++
	} else {
		n.stats.Dropped[Vanished]++
	}
	n.observe(p, Vanished)
	n.free(i)
}

// drop ends a packet's journey in the switch that it is in.
func (n *Network) drop(i int32, p *packet, why Outcome) {
	if p.kind == sourceRouted {
		n.stats.probesDropped++
		n.observe(p, why)
		n.free(i)
		return
	}
	n.stats.Dropped[why]++
	if n.cfg.DropReports {
		n.reportDrop(p, &n.switches[p.node], why)
	}
	n.observe(p, why)
	n.free(i)
}

func (n *Network) observe(p *packet, why Outcome) {
	if n.cfg.Observe == nil {
		return
	}
	n.journey = Journey{
		Flow: int(p.flow), Probe: p.kind == sourceRouted, Key: p.key, PacketID: p.id, Sampled: p.sampled, Outcome: why,
		At: time.Duration(n.now), Node: int(p.node), Hops: p.hops, Frame: p.Buf, length: p.Size,
		PINT: p.pint, DigestID: p.digestID, Digest: p.digest,
	}
	n.cfg.Observe(&n.journey)
}

// drain takes out of a queue what has been sent by now.
func (n *Network) drain(q *sim.Queue) {
	n.stats.crossDelivered += uint64(q.Drain(n.now, n.line, n.found))
}
