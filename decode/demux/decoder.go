package demux

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Decoder decodes the telemetry of exporters of one profile. It is for one goroutine, and allocates nothing once the
// batch has grown to the size of the traffic.
type Decoder struct {
	profile   Profile
	table     table
	special   bool // datagrams are no plain reports, or their hops have fields that are wrong
	lies      lies // to be left out; none where reports are wanted as they are
	reader    telemetry.Reader
	intmd     *intmd.Decoder
	outer     packet.Packet // of the frame
	inner     packet.Packet // of the packet inside a report
	in        telemetry.Inner
	place     intmd.Place
	shapes    shapes
	innermost bool          // packets that are carried in others take their place in reports
	carried   packet.Packet // one in another
	scratch   decode.Report // of INT that nothing announces
	own       []decode.Hop  // of the reporting node, while the hops of the packet are read
	sflow     *sflowState   // nil where the profile does not read it
	ipfix     *ipfixState   // as well
	gre       uint16        // protocol number of a GRE header in which no INT was looked for
	port      uint16        // source port of the datagram at hand, 0 where it is not known
}

// New makes a decoder for p.
func New(p Profile) *Decoder {
	d := &Decoder{profile: p, table: resolve(&p), intmd: intmd.New(p.INT)}
	d.special = d.table.payload != nil || p.Wrong != 0
	if p.SFlow {
		d.sflow = &sflowState{sources: map[sflowSource]*sflowLast{}, whys: map[sflowReason][]string{}}
	}
	if p.IPFIX {
		d.ipfix = newIPFIX(nil)
	}
	return d
}

// newCorrecting makes a decoder whose reports have no lies in them.
func newCorrecting(p Profile) *Decoder {
	d := New(p)
	d.innermost = !p.OuterFlow
	d.lies = resolveLies(p.Lies)
	d.special = d.special || d.lies != (lies{})
	return d
}

// Frame decodes one captured frame of the given link type (LINKTYPE numbers of pcap) and appends its reports to b. A
// frame has none if it holds no telemetry, or several. Length is the frame's length on the wire, time the receive
// time. The reports alias data; offsets of errors count from data[0].
func (d *Decoder) Frame(b *decode.Batch, link uint16, data []byte, length int, time int64) (n int) {
	d.outer.Frame(link, data, length)
	n = d.packet(b, &d.outer, data, time)
	if d.special {
		d.forget(b, n)
	}
	return n
}

// Datagram decodes the payload of one UDP datagram that was sent to a report port, and appends its reports to b: at
// least one. The reports alias payload; offsets of errors count from payload[0].
//
// If the profile has a format whose packets end at a host's socket, as reports do, the payload is read as one of
// them.
func (d *Decoder) Datagram(b *decode.Batch, src decode.Addr, payload []byte, time int64) (n int) {
	return d.DatagramCut(b, src, payload, len(payload), time)
}

// DatagramCut is Datagram for a datagram of length bytes, of which the buffer held only payload. Reports that end
// behind payload are truncated, not malformed.
func (d *Decoder) DatagramCut(b *decode.Batch, src decode.Addr, payload []byte, length int, time int64) (n int) {
	if d.special {
		return d.datagram(b, &src, payload, length, time)
	}
	return d.reports(b, &src, payload, 0, length, time)
}

// datagram is DatagramCut for profiles that ask for more than reports.
func (d *Decoder) datagram(b *decode.Batch, src *decode.Addr, payload []byte, length int, time int64) (n int) {
	if d.table.payload == nil {
		n = d.reports(b, src, payload, 0, length, time)
		d.forget(b, n)
		return n
	}
	if n = d.known(b, src, payload, 0, length, time, false); n > 0 {
		return n
	}
	d.table.payload.ReadPayload(b, payload, length)
	d.stamp(b, 1, time)
	r := b.Reports[len(b.Reports)-1]
	r.Exporter = *src
	r.Has |= decode.HasExporter
	d.forget(b, 1)
	return 1
}

// forget removes the profile's lies from the last n reports of b.
func (d *Decoder) forget(b *decode.Batch, n int) {
	if d.lies != (lies{}) {
		for _, r := range b.Reports[len(b.Reports)-n:] {
			d.lies.correct(r)
		}
	}
	if d.profile.Wrong == 0 {
		return
	}
	for _, r := range b.Reports[len(b.Reports)-n:] {
		for i := range r.Hops {
			r.Hops[i].Drop(d.profile.Wrong)
		}
	}
}

// packet decodes the frame that p was read from: it hands p to the reader in the table.
func (d *Decoder) packet(b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	if p.Proto == packet.ProtoUDP && p.HasPorts {
		port := p.DstPort()
		d.port = p.SrcPort()
		if contains(d.table.reports, port) {
			if p.Fragment {
				return d.fragment(b, p, data, time)
			}
			src, dst := p.Src(data), p.Dst(data)
			n = d.reports(b, &src, data, p.L4+packet.UDPLen, p.UDPEnd(data), time)
			to := decode.Destination(&dst, port)
			for _, r := range b.Reports[len(b.Reports)-n:] {
				r.To = to
			}
			return n
		}
		if !p.Fragment && p.L4+packet.UDPLen < len(data) && data[p.L4+packet.UDPLen] == 0 {
			src := p.Src(data)
			if n = d.known(b, &src, data, p.L4+packet.UDPLen, p.UDPEnd(data), time, false); n > 0 {
				return n
			}
		}
	}
	return d.embedded(b, p, data, time)
}

// embedded decodes the telemetry that p carries itself: p is no report.
func (d *Decoder) embedded(b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	if p.IP == 0 {
		return d.offer(d.table.types, p.EtherType, b, p, data, time)
	}
	if p.Proto == packet.ProtoUDP && p.HasPorts {
		if n = d.offer(d.table.ports, p.DstPort(), b, p, data, time); n > 0 {
			d.carry(b, n, p, data)
			return n
		}
	}
	if n = d.offer(d.table.anywhere, 0, b, p, data, time); n > 0 || d.table.alone {
		d.carry(b, n, p, data)
		return n
	}
	if n = d.network(b, p, data, time); n > 0 || len(d.table.anywhere) == 0 {
		return n
	}
	// Options of a packet in a tunnel are read as those of one without.
	d.carried = *p
	for range packet.MaxTunnels {
		if !d.carried.Inside(data) {
			return 0
		}
		if n = d.offer(d.table.anywhere, 0, b, &d.carried, data, time); n > 0 {
			d.carry(b, n, &d.carried, data)
			return n
		}
	}
	return 0
}

// carry completes the last n reports of b, which are about p, by the innermost packet that p carries.
func (d *Decoder) carry(b *decode.Batch, n int, p *packet.Packet, data []byte) {
	if n == 0 || p.Last() {
		return
	}
	q := *p
	if !q.Inside(data) {
		return
	}
	for _, r := range b.Reports[len(b.Reports)-n:] {
		if r.Has&decode.HasFlow != 0 {
			d.innermostOf(r, q, data)
		}
	}
}

// innermostOf sets the inner flow of r to that of the innermost packet in q, which the packet of r's flow carries.
func (d *Decoder) innermostOf(r *decode.Report, q packet.Packet, data []byte) {
	for n := 1; n < packet.MaxTunnels && q.Inside(data); n++ {
	}
	if !d.innermost {
		q.Flow(&r.AddRare().Inner, data)
		r.Has |= decode.HasInner
		if q.HasPorts {
			r.Has |= decode.HasInnerPorts
		}
		return
	}
	q.Flow(&r.Flow, data)
	r.Has |= decode.HasFlow
	if q.HasPorts {
		r.Has |= decode.HasPorts
	} else {
		r.Has &^= decode.HasPorts
	}
}

// carriedBehind completes r by the packet that p carries behind the INT at d.place, or right behind its headers if
// there is none.
func (d *Decoder) carriedBehind(r *decode.Report, p *packet.Packet, data []byte, v decode.Version) {
	if p.Proto != packet.ProtoTCP && p.Proto != packet.ProtoUDP || v == 0 || d.place.Carrier == intmd.Geneve {
		if p.Last() {
			return
		}
		if q := *p; q.Inside(data) {
			d.innermostOf(r, q, data)
		}
		return
	}
	place := &d.place
	tunnel := r.Flow.Proto == packet.ProtoUDP && p.Proto == packet.ProtoUDP && packet.TunnelPort(r.Flow.DstPort) && place.NPT != 2
	if place.Carrier != intmd.VXLANGPE && !tunnel && place.NPT != 2 {
		return // of most packets, and before the copy of p
	}
	q := *p
	switch {
	case place.Carrier == intmd.VXLANGPE:
		if place.At+4 > len(data) || !q.InsideNext(data, data[place.At+3], place.Next) {
			return
		}
	case tunnel:
		if !q.InsideUDP(data[:min(len(data), p.End)], r.Flow.DstPort, place.Next) {
			return
		}
	default:
		if q.Proto, q.L4, q.HasPorts = r.Flow.Proto, place.Next, false; !q.Inside(data) {
			return
		}
	}
	d.innermostOf(r, q, data)
}

// fragment refuses a part of a packet to a report port.
func (d *Decoder) fragment(b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	r := d.next(b, time)
	r.Format, r.Exporter = decode.TelemetryReport, p.Src(data)
	r.Has |= decode.HasExporter
	r.Fail(decode.TelemetryReport, "fragment", p.FragAt, decode.Unsupported)
	return 1
}

// network decodes the INT in a packet of the network, if it has any.
func (d *Decoder) network(b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	place := &d.place
	if !d.find(place, p, data) {
		if p = d.findInside(p, data); p == nil {
			return 0
		}
	}
	r := d.next(b, time)
	p.Report(r, data)
	r.Format, r.Kind = decode.INTMD, decode.KindStack
	r.Version = d.intmd.Decode(r, data, place)
	if place.Type == intmd.TypeMX {
		r.Format, r.Kind = decode.INTMX, decode.KindInstruction
	}
	d.restoreFlow(r, data, r.Version)
	d.carriedBehind(r, p, data, r.Version)
	return 1
}

// sampled sets the flow of r, which is a sample of the packet p, and decodes the telemetry in the sampled bytes data.
// It returns the number of reports that it appends. These count no packet, and r gets their flow, so that packets and
// hops belong to one flow. Devices sample all traffic, in which a mark proves nothing: a packet that breaks a rule
// counts as no telemetry.
func (d *Decoder) sampled(b *decode.Batch, r *decode.Report, p *packet.Packet, data []byte) (n int) {
	if p.IP != 0 {
		p.Report(r, data)
	}
	if q := *p; q.Inside(data) { // the packet that users sent, in VXLAN and the like
		d.innermostOf(r, q, data)
	}
	if p.IP == 0 {
		p.Inside(data)
	}
	n = d.embedded(b, p, data, r.Time)
	added := b.Reports[len(b.Reports)-n:]
	for _, x := range added {
		if x.Err.Reason != 0 {
			for range added {
				b.Cancel()
			}
			return 0
		}
	}
	const (
		source = decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq
		flow   = decode.HasFlow | decode.HasPorts | decode.HasInner | decode.HasInnerPorts
	)
	for _, x := range added {
		x.Exporter, x.NodeID, x.HWID, x.Seq, x.SeqBits, x.To = r.Exporter, r.NodeID, r.HWID, r.Seq, r.SeqBits, r.To
		x.Has |= r.Has & source
		x.Flags |= decode.Sampled
		if r.Kind == decode.KindDrop {
			x.Flags |= decode.Dropped
		}
		if x.Has&decode.HasFlow != 0 {
			r.Flow, r.Has = x.Flow, r.Has&^flow|x.Has&flow
			switch {
			case x.Has&decode.HasInner != 0:
				r.AddRare().Inner = x.Rare.Inner
			case r.Rare != nil:
				r.Rare.Inner = decode.FlowKey{}
			}
		}
	}
	return n
}

// findInside looks for the mark of INT in the packets that p carries. It returns the outermost one that has it, which
// is valid until the next call, or nil.
func (d *Decoder) findInside(p *packet.Packet, data []byte) *packet.Packet {
	if p.Last() {
		return nil
	}
	d.carried = *p
	for range packet.MaxTunnels {
		if !d.carried.Inside(data) {
			return nil
		}
		if d.find(&d.place, &d.carried, data) {
			return &d.carried
		}
	}
	return nil
}

// next appends an empty report to b.
func (d *Decoder) next(b *decode.Batch, time int64) *decode.Report {
	r := b.Next()
	r.Time, r.Units = time, &d.profile.Units
	return r
}

// reports decodes the telemetry reports in data[at:end], of which data may hold less.
func (d *Decoder) reports(b *decode.Batch, src *decode.Addr, data []byte, at, end int, time int64) (n int) {
	if at < end && end <= len(data) && isSingle(data[at:]) {
		if d.single(d.next(b, time), src, data[at:end]) {
			return 1
		}
		b.Cancel()
	}
	if n = d.known(b, src, data, at, end, time, true); n > 0 {
		return n
	}
	return d.group(b, src, data, at, end, time)
}

// group does the same as reports, layer by layer, for any content.
func (d *Decoder) group(b *decode.Batch, src *decode.Addr, data []byte, at, end int, time int64) (n int) {
	d.reader.Start(&d.profile.Report, data, at, end)
	first := uint32(0)
	if len(data)-at >= 4 {
		first = binary.BigEndian.Uint32(data[at:])
	}
	failed := false
	for more := true; more; n++ {
		r := d.next(b, time)
		r.Exporter = *src
		r.Has |= decode.HasExporter
		more = d.reader.Next(r, &d.in)
		if d.in.Type != telemetry.InnerNone {
			d.inside(r, data[:min(d.in.End, len(data))])
		}
		d.prove(r, data, first)
		if r.Err.Reason != 0 {
			failed = true
			d.reader.Doubt()
			d.doubt(b.Reports[len(b.Reports)-n-1:len(b.Reports)-1], at)
		} else if failed && r.Has&decode.HasDigest == 0 && r.Flags&decode.Truncated == 0 {
			d.doubt(b.Reports[len(b.Reports)-1:], at)
		}
	}
	return n
}

// inside reads the packet that r is about, which d.in describes, and the INT in it.
func (d *Decoder) inside(r *decode.Report, data []byte) {
	p, in, place := &d.inner, &d.in, &d.place
	switch in.Type {
	case telemetry.InnerEthernet:
		p.Ethernet(data, in.At, in.End)
	case telemetry.InnerIPv4:
		p.IPv4(data, in.At, in.End)
	case telemetry.InnerIPv6:
		p.IPv6(data, in.At, in.End)
	}
	switch {
	case p.IP != 0:
		p.Report(r, data)
	case !p.Wrapped():
		return
	}
	if in.StandIn {
		r.TTL, r.PacketID = 0, 0
		r.Has &^= decode.HasTTL | decode.HasPacketID
		return
	}
	announced := r.Flags&decode.Tracked != 0 || d.profile.Report.Unflagged
	if announced && p.IP != 0 && len(d.table.inside) > 0 && d.option(r, p, data) {
		d.carriedBehind(r, p, data, 0)
		return
	}
	if in.INT && !always(place, p, in.End) {
		d.carriedBehind(r, p, data, 0)
		return
	}
	carrier := p // of INT: p, or what p carries
	if !in.INT && !d.find(place, p, data) {
		if carrier = d.findInside(p, data); carrier == nil {
			d.carriedBehind(r, p, data, 0)
			return
		}
	}
	if !announced && !in.INT {
		d.scratch.Reset()
		if d.intmd.Decode(&d.scratch, data, place) != 0 && d.scratch.Err.Reason == 0 && len(d.scratch.Hops) > 0 {
			r.Remarks |= decode.RemarkUnflagged
		}
		d.carriedBehind(r, p, data, 0)
		return
	}
	if carrier != p {
		p = carrier
		r.Has &^= decode.HasPorts | decode.HasPacketID // of the packet around it
		r.PacketID = 0
		p.Report(r, data)
	}
	local := len(r.Hops)
	r.INT = d.intmd.Decode(r, data, place)
	if r.Kind == decode.KindPostcard && place.Type == intmd.TypeMD {
		r.Kind = decode.KindStack
	}
	d.restoreFlow(r, data, r.INT)
	d.carriedBehind(r, p, data, r.INT)
	if r.INT != 0 {
		mergeOwn(r, local)
	}
}

// option reads the telemetry that the packet p of a report has in formats other than INT, if it has some. The reporting
// node's own hop stays the last one. A report of a drop or of a queue stays one.
func (d *Decoder) option(r *decode.Report, p *packet.Packet, data []byte) bool {
	format, kind := r.Format, r.Kind
	own := append(d.own[:0], r.Hops...)
	d.own, r.Hops = own, r.Hops[:0]
	for _, x := range d.table.inside {
		if !x.ReadReport(r, p, data) {
			continue
		}
		r.Format = format
		if kind != decode.KindPostcard {
			r.Kind = kind
		}
		if r.Flags&decode.Truncated != 0 && r.Announced > 0 { // as in mergeOwn
			r.Announced = uint8(min(int(r.Announced)+len(own), 255))
		}
		r.Hops = append(r.Hops, own...)
		return true
	}
	r.Hops = append(r.Hops, own...)
	return false
}

// mergeOwn merges the reporting node's own hops with the stack. There were local ones before the stack was read, and
// they are behind it. If the stack has a block of that node already, as its newest, the two are one visit.
func mergeOwn(r *decode.Report, local int) {
	if n := len(r.Hops); local == 1 && n > 1 {
		newest, own := &r.Hops[n-2], &r.Hops[n-1]
		if newest.Has&decode.HopNodeID != 0 && newest.NodeID == own.NodeID {
			newest.Merge(own)
			r.Hops = r.Hops[:n-1]
			return
		}
	}
	if r.Flags&decode.Truncated != 0 && r.Announced > 0 { // a hop of its own does not stand for a block that was cut off
		r.Announced = uint8(min(int(r.Announced)+local, 255))
	}
}

// restoreFlow undoes the changes of the INT at d.place to the flow key. The version v is 0 if its header was
// rejected, or cut behind the shim.
func (d *Decoder) restoreFlow(r *decode.Report, data []byte, v decode.Version) {
	place := &d.place
	data = data[:min(len(data), place.IPEnd)]
	switch {
	case place.NPT == 1:
		r.Flow.DstPort = place.Original
	case place.NPT == 2:
		r.Flow.Proto = uint8(place.Original)
		packet.ReportPorts(r, data, place.Next)
	case v == decode.V05 && place.ByPort && r.Flow.DstPort == d.profile.INT.TailPort:
		if tail := place.Next - 4; tail < len(data) && !place.SinkReport {
			r.Flow.Proto = data[tail]
			packet.ReportPorts(r, data, place.Next)
		}
	}
}
