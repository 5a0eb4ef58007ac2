// Package demux picks: it finds the telemetry in a frame or a datagram by an exporter's [Profile], has the packages of
// the formats read it, and puts together what belongs to one report.
//
// Nothing is guessed. A dialect is read if the profile says so, and a packet that the profile knows no mark for is no
// telemetry.
package demux

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Decoder reads what the exporters of one profile send. It is for one goroutine, and allocates nothing once the batch
// has grown to the size of the traffic.
type Decoder struct {
	profile Profile
	reader  telemetry.Reader
	intmd   *intmd.Decoder
	outer   packet.Packet // of the frame
	inner   packet.Packet // of the packet inside a report
	in      telemetry.Inner
	place   intmd.Place
}

// New makes a decoder for p.
func New(p Profile) *Decoder {
	return &Decoder{profile: p, intmd: intmd.New(p.INT)}
}

// Frame decodes one captured frame of the given link type (LINKTYPE numbers of pcap) and appends its reports to b: none
// if there is no telemetry in it, or several. Length is the frame's length on the wire, time the receive time. The
// reports alias data; offsets of errors count from data[0].
func (d *Decoder) Frame(b *decode.Batch, link uint16, data []byte, length int, time int64) (n int) {
	d.outer.Frame(link, data, length)
	return d.packet(b, &d.outer, link, data, time)
}

// Datagram decodes the payload of one UDP datagram that was sent to a report port, and appends its reports to b: at
// least one. The reports alias payload; offsets of errors count from payload[0].
//
// A profile that reads INT-path takes the payload for a probe: probes end at a host's socket just as reports do.
func (d *Decoder) Datagram(b *decode.Batch, src decode.Addr, payload []byte, time int64) (n int) {
	if d.profile.INTPath {
		r := d.next(b, time)
		r.Format, r.Kind = decode.INTPath, decode.KindProbe
		r.Exporter = src
		r.Has |= decode.HasExporter
		srint.DecodePathPayload(r, payload, d.profile.LenientPath)
		return 1
	}
	return d.reports(b, &src, payload, 0, len(payload), time)
}

// packet decodes the frame that p was read from.
func (d *Decoder) packet(b *decode.Batch, p *packet.Packet, link uint16, data []byte, time int64) (n int) {
	if d.profile.PINT != decode.CodingPlan {
		return d.digest(b, p, link, data, time)
	}
	if p.IP == 0 {
		return d.probe(b, p, data, time)
	}
	if p.Proto == packet.ProtoUDP && p.HasPorts {
		switch port := p.DstPort(); {
		case contains(d.profile.ReportPorts, port):
			if p.Fragment {
				r := d.next(b, time)
				r.Format, r.Exporter = decode.TelemetryReport, p.Src(data)
				r.Has |= decode.HasExporter
				r.Fail(decode.TelemetryReport, "fragment", p.FragAt, decode.Unsupported)
				return 1
			}
			src := p.Src(data)
			return d.reports(b, &src, data, p.L4+8, p.UDPEnd(data), time)
		case d.profile.INTPath && port == srint.PathPort && p.IP == 4:
			return d.path(b, p, data, time)
		}
	}
	place := &d.place
	if !d.find(place, p, data) {
		return 0
	}
	r := d.next(b, time)
	setFlow(r, p, data)
	r.Format, r.Kind = decode.INTMD, decode.KindStack
	r.Version = d.intmd.Decode(r, data, place)
	if place.Type == intmd.TypeMX {
		r.Format, r.Kind = decode.INTMX, decode.KindInstruction
	}
	if r.Version != 0 {
		d.restoreFlow(r, data, r.Version)
	}
	return 1
}

// next appends an empty report to b.
func (d *Decoder) next(b *decode.Batch, time int64) *decode.Report {
	r := b.Next()
	r.Time, r.Units = time, &d.profile.Units
	return r
}

// reports decodes the telemetry reports in data[at:end], of which data may hold less.
func (d *Decoder) reports(b *decode.Batch, src *decode.Addr, data []byte, at, end int, time int64) (n int) {
	if at < end && end <= len(data) && data[at]>>4 == 2 {
		if d.single(d.next(b, time), src, data[at:end]) {
			return 1
		}
		b.Cancel()
	}
	return d.group(b, src, data, at, end, time)
}

// group does what reports does, layer by layer, for whatever is there.
func (d *Decoder) group(b *decode.Batch, src *decode.Addr, data []byte, at, end int, time int64) (n int) {
	d.reader.Start(&d.profile.Report, data, at, end)
	for more := true; more; n++ {
		r := d.next(b, time)
		r.Exporter = *src
		r.Has |= decode.HasExporter
		more = d.reader.Next(r, &d.in)
		if d.in.Type != telemetry.InnerNone {
			d.inside(r, data[:min(d.in.End, len(data))])
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
	if p.IP == 0 {
		return
	}
	if in.StandIn {
		setFlow(r, p, data)
		r.TTL, r.PacketID = 0, 0
		r.Has &^= decode.HasTTL | decode.HasPacketID
		return
	}
	setFlow(r, p, data)
	if r.Flags&decode.Tracked == 0 && !in.INT {
		return
	}
	if in.INT && !always(place, p, in.End) || !in.INT && !d.find(place, p, data) {
		return
	}
	local := len(r.Hops)
	r.INT = d.intmd.Decode(r, data, place)
	if r.Kind == decode.KindPostcard && place.Type == intmd.TypeMD {
		r.Kind = decode.KindStack
	}
	if r.INT == 0 {
		return
	}
	d.restoreFlow(r, data, r.INT)
	mergeOwn(r, local)
}

// mergeOwn looks at the reporting node's own hops, of which there were local ones before the stack was read and which
// stand behind it. If the stack has a block of that node already, as its newest, the two are one visit.
func mergeOwn(r *decode.Report, local int) {
	if n := len(r.Hops); local == 1 && n > 1 {
		newest, own := &r.Hops[n-2], &r.Hops[n-1]
		if newest.Has&decode.HopNodeID != 0 && newest.NodeID == own.NodeID {
			newest.Merge(own)
			r.Hops = r.Hops[:n-1]
		}
	}
}

// setFlow fills in what the IP header of p says.
func setFlow(r *decode.Report, p *packet.Packet, data []byte) {
	p.Flow(&r.Flow, data)
	has := r.Has | decode.HasFlow | decode.HasTTL
	r.TTL = p.TTL
	if p.HasPorts {
		has |= decode.HasPorts
	}
	if p.IP == 4 {
		r.PacketID = p.ID
		has |= decode.HasPacketID
	}
	r.Has = has
}

// restoreFlow undoes what the INT at d.place did to the flow key.
func (d *Decoder) restoreFlow(r *decode.Report, data []byte, v decode.Version) {
	place := &d.place
	switch {
	case place.NPT == 1:
		r.Flow.DstPort = place.Original
	case place.NPT == 2:
		r.Flow.Proto = uint8(place.Original)
		setPorts(r, data, place.Next)
	case v == decode.V05 && place.ByPort && r.Flow.DstPort == d.profile.TailPort:
		if tail := place.Next - 4; tail < len(data) && !place.SinkReport {
			r.Flow.Proto = data[tail]
			setPorts(r, data, place.Next)
		}
	}
}

// setPorts takes the ports from the transport header at data[at], if there is one.
func setPorts(r *decode.Report, data []byte, at int) {
	r.Flow.SrcPort, r.Flow.DstPort = 0, 0
	r.Has &^= decode.HasPorts
	if (r.Flow.Proto == packet.ProtoTCP || r.Flow.Proto == packet.ProtoUDP) && len(data)-at >= 4 {
		r.Flow.SrcPort = uint16(data[at])<<8 | uint16(data[at+1])
		r.Flow.DstPort = uint16(data[at+2])<<8 | uint16(data[at+3])
		r.Has |= decode.HasPorts
	}
}
