package emu

import (
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

// Datagram is one UDP datagram to the collector.
type Datagram struct {
	At      time.Duration  // virtual time of sending
	From    netip.AddrPort // the switch, or for probes the host that sent them
	Port    uint16         // destination: that of reports or that of probes
	Payload []byte         // valid during the call of emit

	Probe bool
}

// sourcePort is the port that datagrams come from, unless real sockets choose.
const sourcePort = 49152

// exporter is the part of a switch that sends reports.
type exporter struct {
	addr   netip.AddrPort
	seq    []uint32 // of the next datagram, by hardware id
	groups []group  // by hardware id
	truth  Exporter

	silent                   bool
	loss, duplicate, reorder float64
	held                     []byte // a datagram that the next one passes; empty if none
}

// group is a datagram that is being filled with reports 2.0, behind room for the group header.
type group struct {
	buf      []byte
	count    int
	deadline int64
	timer    int32
	armed    bool
}

// largestDatagram is where a group ends for being full.
const largestDatagram = 1400

// Exporter is the truth about the reports of one switch.
type Exporter struct {
	Addr   netip.AddrPort
	Node   int
	NodeID uint32
	ReportStats
	BySubsystem []Subsystem // by hardware id
}

// Subsystem counts datagrams of one hardware id.
type Subsystem struct {
	datagrams, lost uint64
	Sequence        uint32 // the next one
}

func (x *exporter) init(cfg *Config, node int) {
	x.addr = netip.AddrPortFrom(sim.OffsetAddr(cfg.Exporters, node), sourcePort)
	x.seq = make([]uint32, cfg.HardwareIDs)
	x.groups = make([]group, cfg.HardwareIDs)
	x.truth = Exporter{Addr: x.addr, Node: node, NodeID: cfg.FirstNode + uint32(node), BySubsystem: make([]Subsystem, cfg.HardwareIDs)}
	for i := range x.seq {
		x.seq[i] = cfg.FirstSequence
	}
}

// Exporter returns the truth about the reports of switch i of the graph.
func (n *Network) Exporter(i int) Exporter {
	x := &n.switches[i].exporter
	t := x.truth
	t.BySubsystem = append([]Subsystem(nil), t.BySubsystem...)
	for hw := range t.BySubsystem {
		t.BySubsystem[hw].Sequence = x.seq[hw]
	}
	return t
}

// subject is the subject of a report.
type subject struct {
	hop     Hop
	local   bool // the report header holds the hop's values
	drop    bool
	reason  uint8
	full    bool // dropped at a queue: egress and occupancy are known
	transit bool // not sent by the last node, for a packet that carries INT-MD or a digest
	source  bool // sent by the first one, for a packet that it begins to track
	digest  bool // the packet's PINT digest
	looped  uint8
	made    []byte // by hopscope.p4: the beginning of the report, which is length bytes long
	length  int
}

// telemetry is the work of a switch's egress on a sampled packet, after everything else.
func (n *Network) telemetry(p *packet, d *device, h *Hop, last bool) {
	stack := p.carries.Stacks()
	pushed := false
	if stack && p.carries == d.dialect && !(last && n.cfg.SinkInHeader) {
		n.push(p, d, h)
		pushed = true
	} else if p.owed != (sim.Change{}) { // the source is the sink node, and adds no block that could make up for it
		p.Settle(p.owed)
		p.owed = sim.Change{}
	}
	switch {
	case d.dialect == XD20 || d.dialect == local05, d.dialect == mx21 && p.carries == mx21:
		n.report(p, d, &subject{hop: *h, local: true})
	case d.dialect == Off || !stack:
	case last:
		n.report(p, d, &subject{hop: *h, local: !pushed})
	case n.congested(h.QueueBytes):
		if q := &n.queues[p.out]; n.now >= q.Reported+int64(n.cfg.QueueReportGap) {
			q.Reported = n.now
			n.report(p, d, &subject{hop: *h, local: true, transit: true})
		}
	}
	if last && p.carries != Off {
		p.strip()
	}
}

func (n *Network) congested(occupancy uint32) bool {
	return n.cfg.QueueReportBytes > 0 && int(occupancy) >= n.cfg.QueueReportBytes
}

// writeINT lets hopscope.p4 write what was measured into a packet, and report it. Its reports are clones.
func (n *Network) writeINT(p *packet, d *device, h *Hop, last bool) {
	s, x, before := n.routers[2], p.pass, p.Size
	spare := x.Head
	asked, _ := x.Instructions()
	n.fabric.p = p
	n.measure(p, h, d.dialect, asked)
	x.Head = p.Buf // the program has a copy of the frame
	if s.Egress(x, &n.measured) {
		h.recorded = x.Grew()
		p.Buf, p.Size, x.Head = x.Head, x.Length, n.mirrored
	}
	if p.sampled && p.carries == Off {
		if p.cut = p.L4 + tcpLen; p.Proto == udp {
			p.cut = p.L4 + udpLen
		}
		p.carries, p.shim, p.asked, p.added = d.dialect, p.cut, asked, shimLen
		head := d.dialect.Header(asked)
		p.words = uint8(head.HopWords())
		before += shimLen
	}
	if !last {
		p.added += p.Size - before
	}
	for s.Clone(x) {
		if s.Egress(x, &n.measured) {
			n.mirrored = x.Head
			n.report(p, d, &subject{hop: *h, made: x.Head[madeAt:], length: x.Length - madeAt})
		}
	}
	if last {
		p.carries, p.added = Off, 0
	}
	x.Head = spare
	n.release(p)
}

const (
	shimLen = 16                                    // of shim and INT header
	madeAt  = ethLen + headers.IPv4Len + udpLen + 8 // where a report is behind its group header, which the exporter numbers
)

// sample is what the source node does beside hopscope.p4, which inserts INT into a packet or not.
func (n *Network) sample(p *packet, d *device, inserts bool) {
	if p.sampled = inserts; inserts && n.cfg.SourceReports {
		n.sourceReport(p, d)
	}
}

// sourceReport reports a packet that enters the network, before anything is put into it. The flag I marks that it is not the report
// of the last switch.
func (n *Network) sourceReport(p *packet, d *device) {
	hop := Hop{Node: int(p.node), NodeID: d.id, ingressPort: uint16(n.ports[p.in].number), Ingress: time.Duration(p.arrived), Egress: time.Duration(n.now)}
	n.report(p, d, &subject{hop: hop, source: true, transit: true})
}

// reportDrop reports a packet that is dropped in switch d before it left.
func (n *Network) reportDrop(p *packet, d *device, why Outcome) {
	if d.dialect == Off {
		return
	}
	s := subject{local: true, drop: true, reason: why.Reason(), full: p.out >= 0}
	s.hop = Hop{Node: int(p.node), NodeID: d.id, ingressPort: uint16(n.ports[p.in].number), Ingress: time.Duration(p.arrived), Egress: time.Duration(n.now)}
	if s.full {
		s.hop.EgressPort = uint16(n.ports[p.out].number)
		s.hop.QueueBytes = uint32(p.found)
	}
	n.report(p, d, &s)
}

// report writes one report about packet p as it is now.
func (n *Network) report(p *packet, d *device, s *subject) {
	if d.silent {
		n.stats.Reports.Suppressed++
		d.truth.Suppressed++
		return
	}
	n.stats.Reports.Written++
	d.truth.Written++
	switch {
	case s.drop:
		n.stats.Reports.drops++
		d.truth.drops++
	case s.looped > 0:
		n.stats.Reports.loops++
		d.truth.loops++
	case s.digest:
		n.stats.Reports.digests++
		d.truth.digests++
	}
	hw := (int(s.hop.ingressPort) - 1) % len(d.seq)
	switch d.dialect {
	case md10:
		n.report10(p, d, s, hw)
	case local05:
		n.report05(p, d, s, hw)
	default:
		n.report20(p, d, s, hw)
	}
}

// flags returns D, Q, F and I.
func (n *Network) flags(s *subject) decode.Flags {
	f := decode.Tracked
	switch {
	case s.drop:
		f |= decode.Dropped
	case !s.digest && n.congested(s.hop.QueueBytes): // a digest is not about this queue
		f |= decode.Congested
	}
	if s.transit {
		f |= decode.Transit
	}
	return f
}

// header is the header of switch d before packet p in a report.
func (n *Network) header(p *packet, d *device, s *subject, hw int) telemetry.Header {
	h := telemetry.Header{
		HWID: uint8(hw), NodeID: d.id, Time: uint32(d.time(s.hop.Ingress)), Flags: n.flags(s), Inner: telemetry.InnerEthernet,
		DropReason: s.reason, Looped: s.looped,
	}
	switch {
	case s.digest, s.source:
	case s.drop:
		h.Metadata = telemetry.MDInterfaces | telemetry.MDIngressTime | telemetry.MDDrop
		if s.full {
			h.Metadata |= telemetry.MDQueue
		}
	case s.local:
		asked := n.cfg.Instructions
		if p.carries != Off {
			asked = p.asked
		}
		h.Metadata = asked &^ (insNodeID | insReserved | insComplement) // the others have the same places
	}
	switch {
	case !n.cfg.IPReports:
	case p.V6:
		h.Inner = telemetry.InnerIPv6
	default:
		h.Inner = telemetry.InnerIPv4
	}
	return h
}

// inner returns the offset and the length of the embedded packet. It has headers, telemetry, and the configured part of
// the payload, as far as a packet of that size reaches.
func (n *Network) inner(p *packet, ethernet bool, size int) (from, length int) {
	if !ethernet {
		from = p.L3
	}
	end := p.L4 + p.added
	switch {
	case p.added > 0 && p.cut == p.L4: // NPT 2: the TCP header stands behind the stack
		end += int(p.Buf[end+12] >> 4 * 4)
	case p.Proto == tcp:
		end += int(p.Buf[p.L4+12] >> 4 * 4)
	default:
		end += udpLen
	}
	return from, min(end+n.cfg.InnerBytes, size) - from
}

// appendInner appends length bytes of a packet from the given offset. Bytes behind those kept are zeros, be they payload or
// padding.
func appendInner(b, packet []byte, from, length int) []byte {
	have := min(length, len(packet)-from)
	b = append(b, packet[from:from+have]...)
	return append(b, make([]byte, length-have)...)
}

// report20 adds to the group of the subsystem (telemetry report v2.0 §3).
func (n *Network) report20(p *packet, d *device, s *subject, hw int) {
	g, head := &d.groups[hw], n.header(p, d, s, hw)
	if s.digest {
		digest := p.reportedDigest()
		head.Digest, head.DigestBits = &digest, d.plans.Plan(p.epoch).Bits
	}
	from, length := n.inner(p, head.Inner == telemetry.InnerEthernet, max(p.Size, s.length))
	length = (length + 3) &^ 3
	words, about := head.Words(length), p.Buf
	if s.made != nil { // the exporter keeps as much of the packet as reports are to have
		k := 12 + 4*int(s.made[2])
		length = min(length, s.length-k-from) &^ 3
		words, about = k/4-1+length/4, s.made[k:]
		s.made = s.made[:k]
		s.made[0], s.made[1] = 1<<4|3+byte(head.Inner-telemetry.InnerEthernet), byte(words)
	}
	if g.count > 0 && len(g.buf)+4+4*words > largestDatagram {
		n.flush(d, hw)
	}
	if g.count == 0 {
		g.buf = telemetry.AppendGroup(g.buf[:0], 0, 0, 0) // filled in when it is full
		g.deadline = n.now + int64(n.cfg.ReportHold)
	}
	b := append(g.buf, s.made...)
	if s.made == nil {
		head.Hop = n.metadataOf(head.Metadata, d, &s.hop)
		b = telemetry.Append20(b, &head, length)
	}
	g.buf = appendInner(b, about, from, length)
	g.count++
	switch {
	case g.count >= n.cfg.ReportsPerDatagram || words >= telemetry.ToEnd:
		n.flush(d, hw)
	case !g.armed:
		if g.timer == 0 {
			g.timer = n.timer(timerReports, int(s.hop.Node)<<6|hw)
		}
		g.armed = true
		n.events.Add(g.deadline, g.timer)
	}
}

// holdEnds sends a group whose time is up.
func (n *Network) holdEnds(node, hw int) {
	d := &n.switches[node]
	g := &d.groups[hw]
	g.armed = false
	switch {
	case g.count == 0:
	case n.now < g.deadline: // the timer was set for an earlier group
		g.armed = true
		n.events.Add(g.deadline, g.timer)
	default:
		n.flush(d, hw)
	}
}

// flush numbers a group and sends it.
func (n *Network) flush(d *device, hw int) {
	g := &d.groups[hw]
	if g.count == 0 {
		return
	}
	telemetry.AppendGroup(g.buf[:0], uint8(hw), n.number(d, hw), d.id)
	n.deliverReport(d, hw, g.buf, g.count)
	g.count = 0
}

// number takes the next sequence number of a subsystem.
func (n *Network) number(d *device, hw int) uint32 {
	v := d.seq[hw]
	d.seq[hw]++
	return v
}

// report10 writes and sends one report 1.0 (telemetry report v1.0 §3). It has no queue for a drop.
func (n *Network) report10(p *packet, d *device, s *subject, hw int) {
	g, head := &d.groups[hw], n.header(p, d, s, hw)
	if s.drop {
		head.Metadata &^= telemetry.MDQueue
	}
	head.Seq, head.Hop = n.number(d, hw), n.metadataOf(0, d, &s.hop)
	from, length := n.inner(p, head.Inner == telemetry.InnerEthernet, p.Size)
	g.buf = appendInner(telemetry.Append10(g.buf[:0], &head), p.Buf, from, length)
	n.deliverReport(d, hw, g.buf, 1)
}

// report05 writes and sends one report 0.5 with a drop header or a local header (telemetry report v0.5 §3).
func (n *Network) report05(p *packet, d *device, s *subject, hw int) {
	g, head := &d.groups[hw], n.header(p, d, s, hw)
	head.Seq, head.Hop = n.number(d, hw), n.metadataOf(0, d, &s.hop)
	from, length := n.inner(p, true, p.Size)
	g.buf = appendInner(telemetry.Append05(g.buf[:0], &head), p.Buf, from, length)
	n.deliverReport(d, hw, g.buf, 1)
}

// deliverReport passes a numbered datagram to the collector, or applies the script's fault to it.
func (n *Network) deliverReport(d *device, hw int, b []byte, inside int) {
	st := &n.stats.Reports
	st.Datagrams++
	d.truth.Datagrams++
	d.truth.BySubsystem[hw].datagrams++
	if d.loss > 0 && n.delivery.Float64() < d.loss {
		st.Lost++
		st.lostInside += uint64(inside)
		d.truth.Lost++
		d.truth.lostInside += uint64(inside)
		d.truth.BySubsystem[hw].lost++
		return
	}
	st.delivered++
	d.truth.delivered++
	if len(d.held) == 0 && d.reorder > 0 && n.delivery.Float64() < d.reorder {
		d.held = append(d.held, b...)
		st.Reordered++
		d.truth.Reordered++
		return
	}
	out := Datagram{At: time.Duration(n.now), From: d.addr, Port: n.cfg.ReportPort, Payload: b}
	n.emit(out)
	if d.duplicate > 0 && n.delivery.Float64() < d.duplicate {
		st.Duplicated++
		d.truth.Duplicated++
		n.emit(out)
	}
	n.letGo(d)
}

// letGo hands over a datagram that was held back.
func (n *Network) letGo(d *device) {
	if len(d.held) > 0 {
		n.emit(Datagram{At: time.Duration(n.now), From: d.addr, Port: n.cfg.ReportPort, Payload: d.held})
		d.held = d.held[:0]
	}
}
