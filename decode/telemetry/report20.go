package telemetry

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/wire"
)

// RepMdBits of report 2.0 §3.3. Bits 1 to 8 are those of an INT 2.x bitmap.
const (
	mdReserved0 = 0x8000
	mdINT       = 0x7f80
	mdDrop      = 0x0001
)

// group reads the group header of report 2.0 §3.1 and the first report behind it.
func (rd *Reader) group(r *decode.Report, in *Inner) bool {
	be, at := binary.BigEndian, rd.pos
	if !rd.have(r, at, 8, "version") {
		return false
	}
	h := rd.data[at : at+8 : at+8]
	word := be.Uint32(h)
	rd.hwID = uint8(word >> 22 & 0x3f)
	rd.seq = word & 0x3fffff
	rd.node = be.Uint32(h[4:])
	rd.pos = at + 8
	return rd.individual(r, in)
}

// individual reads one report of a group.
func (rd *Reader) individual(r *decode.Report, in *Inner) (more bool) {
	at := rd.pos
	r.Version = decode.V20
	r.HWID, r.NodeID = rd.hwID, rd.node
	r.Has |= decode.HasHWID | decode.HasNodeID
	rd.sequence(r, rd.seq, 22)
	if rd.count > 0 {
		r.FirstOfGroup = false
	}
	if rd.count++; rd.count > MaxReports {
		r.Fail(format, "report_length", at, decode.BadCount)
		return false
	}
	if !rd.have(r, at, 4, "report_length") {
		return false
	}
	h := rd.data[at : at+4 : at+4]
	repType, inType, length, mdLength := h[0]>>4, h[0]&0x0f, 4*int(h[1]), 4*int(h[2])
	body, left := at+4, rd.end-(at+4)
	switch {
	case h[1] == 0xff:
		if left < length && !rd.opts.ShortToEnd {
			r.Fail(format, "report_length", at+1, decode.BadLength)
			return false
		}
		length = left
	case h[1] == 0 && rd.opts.ZeroToEnd:
		length = left
	}
	if length > left || repType == 1 && length < 8+mdLength {
		r.Fail(format, "report_length", at+1, decode.BadLength)
		return false
	}
	rd.pos = body + length
	more = rd.pos < rd.end && rd.pos < len(rd.data)

	inner := body
	switch repType {
	case 0:
	case 1:
		if inner = rd.metadata(r, body, mdLength); inner < 0 {
			return more
		}
	default:
		r.Unknown = rd.data[min(body, len(rd.data)):min(rd.pos, len(rd.data))]
		reason := decode.BadType
		if repType == 2 { // IOAM, whose contents the specification leaves open
			reason = decode.Unsupported
		}
		r.Fail(format, "rep_type", at, reason)
		return more
	}
	if inType == 0 && inner != rd.pos {
		r.Hops, r.DropReason, r.DomainID, r.Unknown = r.Hops[:0], 0, 0, nil
		r.Has &^= decode.HasDropReason | decode.HasDomainID
		r.Fail(format, "in_type", at, decode.BadLength)
		return more
	}
	r.Flags |= decode.Flags(h[3]>>7)*decode.Dropped | decode.Flags(h[3]>>6&1)*decode.Congested |
		decode.Flags(h[3]>>5&1)*decode.Tracked | decode.Flags(h[3]>>4&1)*decode.Transit
	r.Kind = kind(r.Flags)
	in.At, in.End = inner, rd.pos
	switch inType {
	case 0:
	case 1:
		rd.tlvs(r, in)
	case 2:
		rd.unknown(r, inner, rd.pos)
	case 3, 4, 5:
		in.Type = InnerEthernet + InnerType(inType-3)
	default:
		r.Fail(format, "in_type", at, decode.BadType)
	}
	return more
}

// unknown keeps bytes that only the sender's domain can read. If there are several, the first stand.
func (rd *Reader) unknown(r *decode.Report, at, end int) {
	if r.Unknown == nil {
		r.Unknown = rd.data[min(at, len(rd.data)):min(end, len(rd.data))]
	}
}

// metadata reads the main contents of an INT report, §3.3, and gives the offset behind them, or -1.
func (rd *Reader) metadata(r *decode.Report, at, mdLength int) int {
	be := binary.BigEndian
	if !rd.have(r, at, 8+mdLength, "rep_md_bits") {
		return -1
	}
	h := rd.data[at : at+8 : at+8]
	x := rd.data[at+8 : at+8+mdLength : at+8+mdLength]
	md, domain, ds := be.Uint16(h), be.Uint16(h[2:]), be.Uint16(h[4:])
	if md&mdReserved0 != 0 {
		r.Fail(format, "rep_md_bits", at, decode.Unsupported)
		return -1
	}
	base := 4 * wire.Words(wire.INT2, md)
	if mdLength < base || mdLength > base && (domain == 0 || ds == 0) {
		r.Fail(format, "md_length", at-2, decode.BadWidth)
		return -1
	}
	if domain != 0 {
		r.DomainID = domain
		r.Has |= decode.HasDomainID
	}
	if mdLength > base {
		r.Unknown = x[base:]
	}
	if md == 0 {
		return at + 8 + mdLength
	}
	hops := r.Grow(1)
	hop := &hops[len(hops)-1]
	rd.plans.Plan(wire.INT2, md&mdINT).Stack(hops[len(hops)-1:], x, 0)
	hop.NodeID = r.NodeID
	hop.Has |= decode.HopNodeID
	if md&mdDrop != 0 {
		v := be.Uint32(x[base-4:])
		wire.AddQueueID(hop, uint8(v>>24))
		r.DropReason = uint8(v >> 16)
		r.Has |= decode.HasDropReason
	}
	return at + 8 + mdLength
}

// tlvs walks the TLVs of §3.4, which must fill the inside exactly. The first packet among them is the inner one.
func (rd *Reader) tlvs(r *decode.Report, in *Inner) {
	at, end := in.At, in.End
	found := Inner{At: in.At, End: in.At}
	for at < end {
		if end-at < 4 {
			r.Fail(format, "tlv_length", at, decode.Short)
			return
		}
		if len(rd.data)-at < 4 {
			r.Flags |= decode.Truncated
			break
		}
		size := 4 * int(rd.data[at+1])
		if size > end-at-4 {
			r.Fail(format, "tlv_length", at+1, decode.BadLength)
			return
		}
		switch t := rd.data[at] >> 4; {
		case t == 0:
			rd.unknown(r, at+4, at+4+size)
		case t <= 3 && found.Type == InnerNone:
			found = Inner{Type: InnerEthernet + InnerType(t-1), At: at + 4, End: at + 4 + size}
		}
		at += 4 + size
	}
	*in = found
}
