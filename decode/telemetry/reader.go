package telemetry

import (
	"encoding/binary"
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// InnerType is the first protocol inside of a report.
type InnerType uint8

// The kinds of inside.
const (
	InnerNone InnerType = iota
	InnerEthernet
	InnerIPv4
	InnerIPv6
)

// Inner is the place of a report's packet.
type Inner struct {
	Type    InnerType
	INT     bool // it carries INT, independently of its markers (Intel NProto 4)
	StandIn bool // its header was made up: only the flow key counts, and nothing is inside
	At, End int  // by the report's lengths; End can be beyond the captured bytes
}

// Reader reads the reports of one datagram, one Next each. It is for one goroutine and can be started again and again.
type Reader struct {
	opts     *Options
	data     []byte
	pos, end int
	count    int

	word, node uint32 // group header of 2.0
	bad        bool   // a report of the group failed, by Doubt
}

const format = decode.TelemetryReport

// Start begins with the payload data[at:end]. End comes from the lengths of the headers around it; a capture that was
// cut has less data. Offsets of errors count from data[0]. The reports alias data.
func (rd *Reader) Start(opts *Options, data []byte, at, end int) {
	rd.opts, rd.data, rd.pos, rd.end, rd.count, rd.bad = opts, data, at, end, 0, false
}

// Next reads the next report into r, which must be empty, and sets in to the place and type of its content. It
// reports whether there is another one to read. If a capture ends before the last report of a group, one more stands
// for all missing ones. It has the values of the group's header, and the flag Truncated. The header's values about
// the reporting node itself become the only hop of r.
func (rd *Reader) Next(r *decode.Report, in *Inner) (more bool) {
	*in = Inner{}
	r.Format = format
	if rd.count > 0 {
		return rd.individual(r, in)
	}
	at := rd.pos
	if !rd.have(r, at, 1, "version") {
		return false
	}
	switch b := rd.data[at]; b >> 4 {
	case 0:
		if rd.opts.Versions&V05 != 0 {
			rd.report05(r, in)
			return false
		}
	case 1:
		switch low := b & 0x0f; {
		case low <= 2 && rd.opts.Versions&V05 != 0:
			rd.report05(r, in)
			return false
		case low >= 4 && rd.opts.Versions&V10 != 0:
			rd.report10(r, in)
			return false
		}
	case 2:
		if rd.opts.Versions&V20 != 0 {
			h := rd.data[at:]
			if len(h) < 8 || rd.end-at < 8 {
				rd.missing(r, at, 8, "version")
				return false
			}
			rd.word, rd.node = binary.BigEndian.Uint32(h), binary.BigEndian.Uint32(h[4:])
			rd.pos += 8
			return rd.individual(r, in)
		}
	}
	r.Fail(format, "version", at, decode.BadVersion)
	return false
}

// have reports whether n bytes at data[at] are there.
func (rd *Reader) have(r *decode.Report, at, n int, field string) bool {
	if min(len(rd.data), rd.end)-at >= n {
		return true
	}
	rd.missing(r, at, n, field)
	return false
}

// missing handles n missing bytes at data[at]. If the payload ends before them, r fails at field. If only the capture
// does, r is marked.
func (rd *Reader) missing(r *decode.Report, at, n int, field string) {
	if rd.end-at < n {
		r.Fail(format, field, min(at, len(rd.data)), decode.Short) // a lying length can end before it begins
		return
	}
	r.Flags |= decode.Truncated
}

// Doubt records that the last report of Next failed because of its content, or before it. Later reports of its group
// then need more evidence that they are reports.
func (rd *Reader) Doubt() { rd.bad = true }

func (rd *Reader) sequence(r *decode.Report, seq uint32, bits uint8) {
	r.Seq = seq
	r.Has |= decode.HasSeq
	if !rd.opts.NoSequence {
		r.SeqBits, r.FirstOfGroup = bits, true
	}
}

// KindOf returns the kind of a report with these flags, unless an INT stack is found in it.
func KindOf(f decode.Flags) decode.Kind {
	switch {
	case f&decode.Dropped != 0:
		return decode.KindDrop
	case f&decode.Congested != 0:
		return decode.KindQueue
	}
	return decode.KindPostcard
}

// OwnHop adds the reporting node's own hop.
func OwnHop(r *decode.Report) *decode.Hop {
	h := r.AddHop()
	h.NodeID = r.NodeID
	h.Has = decode.HopNodeID
	return h
}

// report05 reads report 0.5 §3.
func (rd *Reader) report05(r *decode.Report, in *Inner) {
	be, at, nproto := binary.BigEndian, rd.pos, rd.data[rd.pos]&0x0f
	if nproto > 2 && !(rd.opts.HostINT && nproto <= 4) {
		r.Fail(format, "nproto", at, decode.BadType)
		return
	}
	if !rd.have(r, at, 12, "version") {
		if b := rd.data[at:]; r.Flags != 0 && len(b) >= 8 {
			r.HeaderCut, r.Version, r.HWID = true, decode.V05, b[3]&0x3f
			r.Has |= decode.HasHWID
			rd.sequence(r, be.Uint32(b[4:]), 32)
		}
		return
	}
	h := rd.data[at : at+12 : at+12]
	r.Version = decode.V05
	r.HWID = h[3] & 0x3f
	rd.sequence(r, be.Uint32(h[4:]), 32)
	r.HeaderTime = be.Uint32(h[8:])
	r.Has |= decode.HasHWID | decode.HasHeaderTime
	r.Flags |= decode.Flags(h[1]>>7)*decode.Dropped | decode.Flags(h[1]>>6&1)*decode.Congested | decode.Flags(h[1]>>5&1)*decode.Tracked
	r.Kind = KindOf(r.Flags)
	// The following header is separate: if it is cut or short, the values of the fixed one stay.
	extra := [...]int{0, 12, 16, 24, 4}[nproto]
	if nproto == 4 && rd.opts.NoSinkID {
		extra = 0
	}
	if !rd.have(r, at+12, extra, "nproto") {
		return
	}
	x := rd.data[at+12 : at+12+extra : at+12+extra]
	*in = Inner{Type: InnerEthernet, At: at + 12 + extra, End: rd.end}
	switch nproto {
	case 1:
		r.NodeID = be.Uint32(x)
		r.Has |= decode.HasNodeID
		hop := OwnHop(r)
		packet.AddTime32(hop, decode.HopIngressTime, &hop.IngressTime, r.HeaderTime)
		packet.AddInterfaces(hop, be.Uint32(x[4:]))
		packet.AddQueueID(hop, x[8])
		r.DropReason = x[9]
		r.Has |= decode.HasDropReason
	case 2:
		r.NodeID = be.Uint32(x)
		r.Has |= decode.HasNodeID
		Hop05(r.Grow(1), rd.data[at+8:at+8+HopLen05], HopLen05)
	case 3:
		rd.loss(r, in, x)
	case 4:
		in.Type, in.INT = InnerIPv4, true
		if extra != 0 {
			r.NodeID = be.Uint32(x)
			r.Has |= decode.HasNodeID
		}
	}
}

// HopLen05 is the bytes of a hop of [Hop05].
const HopLen05 = 4 + 16

// Hop05 reads the hop of a postcard of report 0.5 into the last of hops. The slice b holds the time of the header,
// and the header of the switch behind it.
func Hop05(hops []decode.Hop, b []byte, _ int) {
	be, h := binary.BigEndian, &hops[len(hops)-1]
	b = b[:HopLen05]
	*h = decode.Hop{NodeID: be.Uint32(b[4:]), Has: decode.HopNodeID}
	packet.AddTime32(h, decode.HopIngressTime, &h.IngressTime, be.Uint32(b))
	packet.AddInterfaces(h, be.Uint32(b[8:]))
	packet.AddQueue(h, be.Uint32(b[12:]))
	packet.AddTime32(h, decode.HopEgressTime, &h.EgressTime, be.Uint32(b[16:]))
}

// loss reads the loss summary of Intel host INT as two hops. The source has the egress interface of the packets, and
// the sink the ingress interface at which they were expected.
func (rd *Reader) loss(r *decode.Report, in *Inner, x []byte) {
	be := binary.BigEndian
	in.Type, in.StandIn = InnerIPv4, true
	source := r.AddHop()
	packet.AddWord(source, decode.HopNodeID, &source.NodeID, be.Uint32(x))
	if v := be.Uint16(x[8:]); v != math.MaxUint16 {
		source.EgressIf = v
		source.Has |= decode.HopEgressIf
	}
	r.NodeID = be.Uint32(x[4:])
	sink := OwnHop(r)
	if v := be.Uint16(x[10:]); v != math.MaxUint16 {
		sink.IngressIf = v
		sink.Has |= decode.HopIngressIf
	}
	r.GapTime, r.SourceSeq, r.Lost = be.Uint32(x[12:]), be.Uint32(x[16:]), be.Uint32(x[20:])
	r.Has |= decode.HasNodeID | decode.HasGap | decode.HasSourceSeq
}

// report10 reads report 1.0 §3.
func (rd *Reader) report10(r *decode.Report, in *Inner) {
	be, at := binary.BigEndian, rd.pos
	if !rd.have(r, at, 16, "version") {
		if b := rd.data[at:]; r.Flags != 0 && len(b) >= 12 {
			rd.cut10(r, b)
		}
		return
	}
	h := rd.data[at : at+16 : at+16]
	word := be.Uint32(h)
	length, nprot, md := int(word>>24&0x0f), word>>21&7, word>>15&0x3f
	flags := word >> 6 & 7 // D, Q, F
	if rd.opts.FlagsFirst {
		flags = word >> 12 & 7
	}
	if nprot > 2 {
		r.Fail(format, "nprot", at+1, decode.BadType)
		return
	}
	words := 0
	for m := md; m != 0; m &= m - 1 {
		words++
	}
	if length != 4+words || rd.end-at < 4*length {
		r.Fail(format, "length", at, decode.BadLength)
		return
	}
	size := 4 * length
	if rd.opts.Postcard {
		size = 40
	}
	if !rd.have(r, at, size, "length") {
		if r.Flags != 0 {
			rd.cut10(r, h)
		}
		return
	}
	r.Version = decode.V10
	r.HWID = h[3] & 0x3f
	r.NodeID = be.Uint32(h[4:])
	rd.sequence(r, be.Uint32(h[8:]), 32)
	r.Has |= decode.HasHWID | decode.HasNodeID
	r.Flags |= decode.Flags(flags>>2)*decode.Dropped | decode.Flags(flags>>1&1)*decode.Congested | decode.Flags(flags&1)*decode.Tracked
	r.Kind = KindOf(r.Flags)
	*in = Inner{Type: InnerEthernet + InnerType(nprot), At: at + size, End: rd.end}
	x := rd.data[at+16 : at+size : at+size]
	if rd.opts.Postcard {
		r.FlowID = be.Uint32(h[12:])
		r.Has |= decode.HasFlowID
		hop := OwnHop(r)
		packet.AddWord(hop, decode.HopLatency, &hop.Latency, be.Uint32(x))
		packet.AddQueue(hop, be.Uint32(x[4:]))
		packet.AddTime32(hop, decode.HopIngressTime, &hop.IngressTime, be.Uint32(x[8:]))
		packet.AddTime32(hop, decode.HopEgressTime, &hop.EgressTime, be.Uint32(x[12:]))
		packet.AddInterfaces(hop, be.Uint32(x[16:]))
		packet.AddWord(hop, decode.HopTxUtilization, &hop.TxUtilization, be.Uint32(x[20:]))
		return
	}
	r.HeaderTime = be.Uint32(h[12:])
	r.Has |= decode.HasHeaderTime
	if md != 0 {
		AddMetadata10(r, md, x)
	}
}

// cut10 reads the identity of the exporter from the header at the start of b, which was cut behind its first 12
// bytes.
func (rd *Reader) cut10(r *decode.Report, b []byte) {
	be := binary.BigEndian
	r.HeaderCut, r.Version = true, decode.V10
	r.HWID, r.NodeID = b[3]&0x3f, be.Uint32(b[4:])
	r.Has |= decode.HasHWID | decode.HasNodeID
	rd.sequence(r, be.Uint32(b[8:]), 32)
}

// AddMetadata10 reads the optional metadata of report 1.0 §3.1 into a hop of r, one word of x for each bit of md. The
// hop has the node and the time of r's header.
func AddMetadata10(r *decode.Report, md uint32, x []byte) {
	be, hop := binary.BigEndian, OwnHop(r)
	packet.AddTime32(hop, decode.HopIngressTime, &hop.IngressTime, r.HeaderTime)
	for bit := uint32(0x20); bit != 0; bit >>= 1 {
		if md&bit == 0 {
			continue
		}
		v := be.Uint32(x)
		x = x[4:]
		switch bit {
		case 0x20:
			packet.AddInterfaces(hop, v)
		case 0x10:
			packet.AddWord(hop, decode.HopLatency, &hop.Latency, v)
		case 0x08:
			packet.AddQueue(hop, v)
		case 0x04:
			packet.AddTime32(hop, decode.HopEgressTime, &hop.EgressTime, v)
		case 0x02:
			packet.AddQueueID(hop, uint8(v>>24))
			r.DropReason = uint8(v >> 16)
			r.Has |= decode.HasDropReason
		case 0x01:
			packet.AddWord(hop, decode.HopTxUtilization, &hop.TxUtilization, v)
		}
	}
}
