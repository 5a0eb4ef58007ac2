package demux

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// This file is the shortest path: an exporter sends reports whose bytes differ in few places. The bytes of a decoded
// report with those places masked are a shape. A report that agrees with a shape needs no other check. A shape is
// taken from a report that the general decoders accepted. Its masked places are bytes that they do not check.
// Everything else, such as a new bitmap or a wrong length, agrees with no shape and goes to them. Tests hold that
// [decode.Lazy.Report] and [Decoder.Datagram] return the same for every datagram.

const (
	// maxShapes is how many shapes a decoder remembers.
	maxShapes = 16
	// shapeHead is the most bytes that may precede the stack.
	shapeHead = 128
	// leastHead is the least length of a datagram that has a shape.
	leastHead = 64
	// learnEvery is the number of reports without a shape between two attempts to take one from them, after some
	// attempts. Traffic without a shape therefore costs little more.
	learnEvery = 64
)

// shapes are those that a decoder remembers, the one that came last in front.
type shapes struct {
	list    []*shape
	spare   *shape       // memory
	missed  int          // reports with a stack that agreed with none
	general decode.Batch // of one datagram
	batch   decode.Batch // of one whose shape is taken
}

// shape is a [decode.Shape] and the bytes before its stack.
type shape struct {
	decode.Shape
	words      int                   // of want and mask
	want, mask [shapeHead / 8]uint64 // of the bytes before the stack: want where mask has ones

	least     int // bytes of the shortest datagram
	version   decode.Version
	ip, stack int  // offsets of the IPv4 header and of the stack
	size      int  // of the stack
	udp       bool // otherwise TCP
	end       int  // of the INT, counted from the IPv4 header
	anyPort   bool // the destination port is not compared
	original  int  // offset of the destination port that the shim holds; 0 without
	postcard  bool // about a packet without INT, of which only the first bytes are read
	marks     *intmd.Marks
	reckoned  bool // times stand beside latencies, which may be the difference of these, or in their place
}

// find returns the shape that data agrees with, nil if there is none.
func (x *shapes) find(data []byte) *shape {
	for i, s := range x.list {
		if s.agrees(data) {
			if i > 0 {
				x.list[0], x.list[i] = s, x.list[0]
			}
			return s
		}
	}
	return nil
}

// agrees reports whether data has the shape: equal bytes where these are compared, and consistent lengths and ports.
func (s *shape) agrees(data []byte) bool {
	if len(data) < s.least {
		return false
	}
	le, be := binary.LittleEndian, binary.BigEndian
	head := (*[leastHead]byte)(data)
	differ := (le.Uint64(head[:])^s.want[0])&s.mask[0] | (le.Uint64(head[8:])^s.want[1])&s.mask[1] |
		(le.Uint64(head[16:])^s.want[2])&s.mask[2] | (le.Uint64(head[24:])^s.want[3])&s.mask[3] |
		(le.Uint64(head[32:])^s.want[4])&s.mask[4] | (le.Uint64(head[40:])^s.want[5])&s.mask[5] |
		(le.Uint64(head[48:])^s.want[6])&s.mask[6] | (le.Uint64(head[56:])^s.want[7])&s.mask[7]
	for i := leastHead / 8; i < s.words; i++ {
		differ |= (le.Uint64(data[8*i:]) ^ s.want[i]) & s.mask[i]
	}
	if differ != 0 {
		return false
	}
	if s.reckoned && !s.postcard && s.long(data) {
		return false
	}
	if s.version == decode.V20 && 4*int(head[9]) != len(data)-12 {
		return false
	}
	ip := (*[postcardPacket]byte)(data[s.ip:])
	end, room := int(be.Uint16(ip[2:])), len(data)-s.ip
	if s.postcard {
		if s.reckoned && s.timeless(data) {
			return false
		}
		port := be.Uint16(ip[22:])
		return end >= postcardPacket && !(s.udp && (special(s.marks, port) || packet.CarriesUDP(data[s.ip:][:min(end, room)], port, postcardPacket)))
	}
	if !s.udp {
		return end >= s.end && end <= room
	}
	inside := min(end, room) // the content may be longer than the UDP length
	if n := int(be.Uint16(ip[24:])); n != 0 {
		end = min(20+n, end)
	}
	port := be.Uint16(ip[22:])
	if end < s.end || end > room || s.anyPort && special(s.marks, port) {
		return false
	}
	if s.original != 0 {
		port = be.Uint16(data[s.original:])
	}
	return !packet.CarriesUDP(data[s.ip:][:inside], port, s.end)
}

// long reports whether a latency is one that may have been taken from a time that was not set: the general decoders
// look closer.
func (s *shape) long(data []byte) bool {
	for at := s.stack + 8; at < s.stack+s.size; at += s.Stride {
		if binary.BigEndian.Uint32(data[at:]) >= decode.LeastReckoned {
			return true
		}
	}
	return false
}

// timeless reports whether no latency can be made of the times of a postcard: the general decoders look closer.
func (s *shape) timeless(data []byte) bool {
	h := decode.Hop{
		Has: decode.HopIngressTime | decode.HopEgressTime, TimeBits: 32,
		IngressTime: uint64(binary.BigEndian.Uint32(data[8:])), EgressTime: uint64(binary.BigEndian.Uint32(data[24:])),
	}
	_, ok := s.Common.Units.Latency(&h)
	return !ok
}

// special reports whether a UDP destination port is a mark of INT.
func special(c *intmd.Marks, port uint16) bool {
	return contains(c.Ports, port) || c.TailPort != 0 && port == c.TailPort || c.Tunnels && (port == intmd.PortVXLANGPE || port == intmd.PortGeneve)
}

// read makes r the report in data, which agrees with s.
func (s *shape) read(r *decode.Lazy, src *decode.Addr, data []byte, time int64) {
	be := binary.BigEndian
	r.Shape, r.Time, r.Exporter, r.To = &s.Shape, time, *src, 0
	switch h := data[:16]; s.version {
	case decode.V20:
		first := be.Uint32(h)
		r.HWID, r.NodeID, r.Seq, r.HeaderTime = uint8(first>>22&0x3f), be.Uint32(h[4:]), first&0x3fffff, 0
	case decode.V10:
		r.HWID, r.NodeID, r.Seq, r.HeaderTime = h[3]&0x3f, be.Uint32(h[4:]), be.Uint32(h[8:]), be.Uint32(h[12:])
	default:
		r.HWID, r.NodeID, r.Seq, r.HeaderTime = h[3]&0x3f, 0, be.Uint32(h[4:]), be.Uint32(h[8:])
		if s.postcard {
			r.NodeID = be.Uint32(h[12:])
		}
	}
	ip := data[s.ip : s.ip+28]
	packet.FlowIPv4(&r.Flow, ip, be.Uint32(ip[20:]))
	r.TTL, r.PacketID = ip[8], be.Uint16(ip[4:])
	if s.original != 0 {
		r.Flow.DstPort = be.Uint16(data[s.original:])
	}
	stack := data[s.stack : s.stack+s.size]
	i := 0
	for ; i+64 <= len(stack); i += 64 { // in less time than it takes to call copy
		*(*[64]byte)(r.Stack[i:]) = *(*[64]byte)(stack[i:])
	}
	for ; i+16 <= len(stack); i += 16 {
		*(*[16]byte)(r.Stack[i:]) = *(*[16]byte)(stack[i:])
	}
	if i < len(stack) {
		copy(r.Stack[i:], stack[i:])
	}
}

// lazy reads the payload of a datagram into b.
func (d *Decoder) lazy(b *decode.LazyBatch, src *decode.Addr, payload []byte, length int, time int64) (n int) {
	if length == len(payload) {
		if s := d.shapes.find(payload); s != nil {
			r := b.Next()
			s.read(r, src, payload, time)
			r.Sum = decode.Sum(payload)
			return 1
		}
	}
	general := d.shapes.memory()
	n = d.DatagramCut(general, *src, payload, length, time)
	if n == 1 && length == len(payload) {
		d.learn(general.Reports[0], payload)
	}
	b.AppendBatch(general)
	b.SetSum(n, decode.Sum(payload))
	return n
}

// lazyFrame reads the frame that p was read from into b.
func (d *Decoder) lazyFrame(b *decode.LazyBatch, p *packet.Packet, data []byte, time int64) (n int) {
	var payload []byte
	if !d.special && p.Proto == packet.ProtoUDP && p.HasPorts && !p.Fragment && contains(d.table.reports, p.DstPort()) {
		if at, end := p.L4+packet.UDPLen, p.UDPEnd(data); at < end && end <= len(data) {
			payload = data[at:end]
		}
	}
	if s := d.shapes.find(payload); s != nil {
		r, src, dst := b.Next(), p.Src(data), p.Dst(data)
		s.read(r, &src, payload, time)
		r.To, r.Sum = decode.Destination(&dst, p.DstPort()), decode.Sum(payload)
		return 1
	}
	general := d.shapes.memory()
	n = d.packet(general, p, data, time)
	if d.special {
		d.forget(general, n)
	}
	if n == 1 && payload != nil {
		d.learn(general.Reports[0], payload)
	}
	numbered := n > 0 && general.Reports[0].Has&decode.HasExporter != 0 // by its exporter, so that there can be copies
	b.AppendBatch(general)
	if at := p.L4 + packet.UDPLen; numbered && p.Proto == packet.ProtoUDP && p.HasPorts && at <= len(data) {
		b.SetSum(n, decode.Sum(data[at:min(max(p.UDPEnd(data), at), len(data))]))
	}
	return n
}

// memory returns an empty batch for the reports of one datagram.
func (x *shapes) memory() *decode.Batch {
	x.general.Reset()
	return &x.general
}

// learn records the shape of a report that was read from data, if it has one.
func (d *Decoder) learn(r *decode.Report, data []byte) {
	x := &d.shapes
	if d.special || !shapely(r) {
		return
	}
	if x.missed++; x.missed > 2*maxShapes && x.missed%learnEvery != 0 {
		return
	}
	s := x.spare
	if s == nil {
		s = new(shape)
	}
	*s = shape{Shape: decode.Shape{Common: *r, Hops: len(r.Hops)}, version: r.Version, marks: &d.profile.INT.Marks}
	s.Common.Hops = nil
	if !d.measure(s, data) {
		x.spare = s
		return
	}
	x.spare = nil
	if len(x.list) < maxShapes {
		x.list = append(x.list, nil)
	}
	copy(x.list[1:], x.list)
	x.list[0] = s
}

// shapely reports whether r is of a kind that has a shape. That is a whole stack of few hops and nothing else, or a
// postcard with a queue.
func shapely(r *decode.Report) bool {
	return (r.Kind == decode.KindStack || r.Postcard() && r.Version == decode.V05 && r.Remarks == 0) &&
		r.Flags == decode.Tracked && r.Err.Reason == 0 && r.Format == decode.TelemetryReport && r.Flow.IPVersion == 4 &&
		len(r.Hops) > 0 && len(r.SourceMetadata)+len(r.SRList)+len(r.SRPorts)+len(r.Unknown) == 0 && r.Rare == nil &&
		r.Has&^(decode.HasExporter|decode.HasNodeID|decode.HasHWID|decode.HasSeq|decode.HasHeaderTime|decode.HasFlow|decode.HasPorts|decode.HasPacketID|
			decode.HasInstructions|decode.HasRemainingHops|decode.HasTTL) == 0
}

// measure determines the places of values in data, and the bytes that may differ.
func (d *Decoder) measure(s *shape, data []byte) bool {
	batch := &d.shapes.batch
	batch.Reset()
	var src decode.Addr
	d.in, d.place = telemetry.Inner{}, intmd.Place{}
	if d.group(batch, &src, data, 0, len(data), 0) != 1 {
		return false
	}
	in, p, place := &d.in, &d.inner, &d.place
	marks := s.marks
	if s.Common.Postcard() {
		return d.measurePostcard(s, data)
	}
	if d.ownHop(s.version, data) || in.INT || in.StandIn || p.IP != 4 || p.Fragment || place.Carrier != intmd.TCPUDP || place.SinkReport || marks.ProbeMarker != 0 || data[p.L3] != 0x45 {
		return false
	}
	s.ip, s.udp = p.L3, p.Proto == packet.ProtoUDP
	shim := place.At
	if want := p.L4 + packet.UDPLen; s.udp && shim != want || !s.udp && (p.Proto != packet.ProtoTCP || marks.BehindOptions || shim != p.L4+packet.TCPLen) || p.L4 != s.ip+20 {
		return false
	}
	opts := &d.profile.INT
	layout, around := packet.INT2, 12 // bytes of the INT that are not its stack
	switch s.Common.INT {
	case decode.V21:
		s.stack, around = shim+16, 16
		if opts.LeastFirst {
			layout = packet.INT2Reversed
		}
		switch npt := data[shim] >> 2 & 3; npt {
		case 0:
		case 1:
			s.original = shim + 2
		default:
			return false
		}
		if opts.SwapNPT2 || binary.BigEndian.Uint32(data[shim+10:]) != 0 { // a domain, or its words
			return false
		}
	case decode.V10:
		s.stack, layout = shim+12, packet.INT10
		if opts.WideTimes {
			return false
		}
	case decode.V05:
		s.stack, layout, around = shim+12, packet.INT05, 16
		if marks.TailPort != 0 || opts.HostINT {
			return false
		}
	default:
		return false
	}
	plan := packet.Compile(layout, s.Common.Instructions)
	s.Stride, s.Blocks = 4*plan.Words, plan.Stack
	s.end = place.Next - s.ip
	if !plan.Usual() {
		return false
	}
	s.Timed = plan.Fields&decode.HopEgressTime != 0
	s.reckoned = plan.Fields&(decode.HopIngressTime|decode.HopEgressTime) != 0
	s.least = max(s.ip+s.end, (s.stack+7)/8*8, leastHead)
	if s.size = s.Hops * s.Stride; s.size > decode.StackBytes || s.size+around != place.Next-shim || s.stack > shapeHead || len(data) < s.least {
		return false
	}
	s.compare(data, in, s.stack)
	return s.agrees(data)
}

// postcardPacket is how many bytes of a postcard's packet are read: the IPv4 header, and the ports.
const postcardPacket = 20 + 8

// measurePostcard is measure for a postcard of report 0.5, whose hop begins with the time of the header.
func (d *Decoder) measurePostcard(s *shape, data []byte) bool {
	in, p, opts := &d.in, &d.inner, &d.profile.INT
	if data[0]&0x0f != 2 || binary.BigEndian.Uint32(data)&reserved(s.version) != 0 || in.Type != telemetry.InnerEthernet || p.IP != 4 || p.Fragment || data[p.L3] != 0x45 ||
		p.L4 != p.L3+20 || p.Proto != packet.ProtoUDP && p.Proto != packet.ProtoTCP {
		return false
	}
	m := &opts.Marks
	if opts.HostINT || m.TailPort != 0 || m.BehindOptions || m.ProbeMarker != 0 || m.DSCPMask != 0 && (p.DSCP()^m.DSCP)&m.DSCPMask == 0 {
		return false
	}
	s.postcard, s.reckoned, s.ip, s.udp = true, s.Common.Units.LatencyCalc, p.L3, p.Proto == packet.ProtoUDP
	s.stack, s.size, s.Stride, s.Blocks = 8, telemetry.HopLen05, telemetry.HopLen05, telemetry.Hop05
	end := s.ip + postcardPacket
	if s.least = max((end+7)/8*8, leastHead); end > shapeHead || len(data) < s.least {
		return false
	}
	s.compare(data, in, end)
	return s.agrees(data)
}

// ownHop reports whether the header of a report holds metadata of the reporting node.
func (d *Decoder) ownHop(v decode.Version, data []byte) bool {
	be := binary.BigEndian
	switch v {
	case decode.V20:
		return data[8]>>4 == 1 && be.Uint16(data[12:]) != 0
	case decode.V10:
		return d.profile.Report.Postcard || be.Uint32(data)>>15&0x3f != 0
	}
	return data[0]&0x0f != 0
}

// compare sets the bytes to compare: everything before end, where a metadata stack begins, except the bytes that the
// decoders do not check.
func (s *shape) compare(data []byte, in *telemetry.Inner, end int) {
	var mask [shapeHead]byte
	for i := range mask[:end] {
		mask[i] = 0xff
	}
	free := func(at, n int) { clear(mask[at:min(at+n, end)]) }
	switch s.version {
	case decode.V20:
		mask[0] = 0xf0
		free(1, 7)
		free(9, 1) // the length is compared with that of the datagram
	case decode.V10:
		mask[3] = 0xc0
		free(4, 12)
	default:
		mask[3] = 0xc0
		free(4, 8)
		if s.postcard {
			free(12, 16)
		}
	}
	if in.Type == telemetry.InnerEthernet {
		free(in.At, 12) // its addresses
	}
	ip := s.ip
	free(ip+2, 4)   // length, which is compared with the rest, and identifier
	free(ip+8, 1)   // TTL
	free(ip+10, 10) // checksum, addresses
	free(ip+20, 2)  // source port
	port := binary.BigEndian.Uint16(data[ip+22:])
	if s.anyPort = !s.udp || s.postcard || !special(s.marks, port); s.anyPort {
		free(ip+22, 2)
	}
	if s.udp {
		free(ip+24, 4) // length, checksum
	} else {
		free(ip+24, 16)
	}
	if s.original != 0 {
		free(s.original, 2)
	}
	s.words = (end + 7) / 8
	for i := range s.words {
		s.want[i], s.mask[i] = binary.LittleEndian.Uint64(data[8*i:]), binary.LittleEndian.Uint64(mask[8*i:])
	}
}
