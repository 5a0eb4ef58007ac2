package telemetry

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// individual reads one report of a group.
func (rd *Reader) individual(r *decode.Report, in *Inner) (more bool) {
	r.Version = decode.V20
	r.HWID, r.NodeID, r.Seq = uint8(rd.word>>22&0x3f), rd.node, rd.word&0x3fffff
	r.Has |= decode.HasHWID | decode.HasNodeID | decode.HasSeq
	if !rd.opts.NoSequence {
		r.SeqBits, r.FirstOfGroup = 22, rd.count == 0
	}
	at := rd.pos
	if rd.count++; rd.count > MaxReports {
		r.Fail(format, "report_length", at, decode.BadCount)
		return false
	}
	b, left := rd.data[min(at, len(rd.data)):], rd.end-at-4
	if len(b) == 0 || left < 0 {
		rd.missing(r, at, 4, "report_length")
		return false
	}
	// A cut header can be rejected for its captured bytes. A check of which a byte is missing ends the reading.
	var first [4]byte
	cut := copy(first[:], b) < 4
	body, word := at+4, binary.BigEndian.Uint32(first[:])
	toEnd := word>>16&0xff == 0xff
	repType, inType, length, mdLength := word>>28, word>>24&0x0f, 4*int(word>>16&0xff), 4*int(word>>8&0xff)
	if len(b) < 2 || repType == 1 && len(b) < 3 {
		r.Flags |= decode.Truncated
		return false
	}
	switch {
	case toEnd:
		if left < length && !rd.opts.ShortToEnd {
			r.Fail(format, "report_length", at+1, decode.BadLength)
			return false
		}
		length = left
	case length == 0 && repType == 1 && rd.opts.ZeroToEnd:
		length = left
	}
	if length > left || repType == 1 && length < 8+mdLength {
		r.Fail(format, "report_length", at+1, decode.BadLength)
		return false
	}
	rd.pos = body + length
	more = rd.pos < rd.end

	inner := body
	switch repType {
	case 0:
	case 1:
		if inner = rd.metadata(r, body, mdLength); inner < 0 {
			return more && r.Flags&decode.Truncated == 0 // a header that is cut stands for the rest
		}
	default:
		rd.unknown(r, body, rd.pos)
		reason := decode.BadType
		if repType == 2 { // IOAM, whose contents the specification leaves open
			reason = decode.Unsupported
		}
		r.Fail(format, "rep_type", at, reason)
		return more
	}
	if inType == 0 && inner != rd.pos {
		r.Hops, r.DropReason, r.DomainID, r.Unknown = r.Hops[:0], 0, 0, nil
		r.Flags, r.Kind, r.Digest = 0, 0, decode.Digest{}
		r.Has &^= decode.HasDropReason | decode.HasDomainID | decode.HasDigest
		r.Fail(format, "in_type", at, decode.BadLength)
		return more
	}
	if cut || r.Flags&decode.Truncated != 0 {
		r.Flags |= decode.Truncated
		return false
	}
	r.Flags |= decode.Flags(bits.Reverse8(uint8(word & 0xf0))) // D, Q, F, I are the first four of them
	if r.Kind != decode.KindProbes {
		r.Kind = KindOf(r.Flags)
	}
	if r.Has&decode.HasDigest != 0 && r.Kind == decode.KindPostcard {
		r.Kind = decode.KindDigest
	}
	in.At, in.End = inner, rd.pos
	switch inType {
	case 0:
	case 1:
		rd.tlvs(r, in)
	case 2:
		rd.unknown(r, inner, rd.pos)
		r.Remarks |= decode.RemarkDomainData
	case 3, 4, 5:
		in.Type = InnerEthernet + InnerType(inType-3)
	default:
		r.Fail(format, "in_type", at, decode.BadType)
	}
	if in.Type == InnerNone && r.Err.Reason == 0 && (r.Unknown != nil || rd.bad) && (word&0x0f != 0 || repType == 0 && toEnd && mdLength != 0 || repType == 1 && reservedIn(rd.data[body:], mdLength)) {
		r.Fail(format, "in_type", at, decode.BadType) // senders write 0 there, and nothing else shows that this is a report
		r.FirstOfGroup = false
	}
	return more
}

// reservedIn reports whether the main contents of an INT report at the start of b have reserved bits. It is also true
// if they have fewer bytes of metadata than bits of a domain.
func reservedIn(b []byte, mdLength int) bool {
	md, ds := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[4:])
	return md&mdReserved != 0 || binary.BigEndian.Uint16(b[2:]) != 0 && 4*(packet.Words(packet.INT2, md)+bits.OnesCount16(ds)) > mdLength
}

// unknown keeps bytes that only the sender's domain can read. Of several, the first ones are kept.
func (rd *Reader) unknown(r *decode.Report, at, end int) {
	if r.Unknown == nil {
		r.Unknown = rd.data[min(at, len(rd.data)):min(end, len(rd.data))]
	}
}

// metadata reads the main contents of an INT report, §3.3, and returns the offset behind them, or -1. If they are cut
// it reads nothing, but checks the captured bytes.
func (rd *Reader) metadata(r *decode.Report, at, mdLength int) int {
	be := binary.BigEndian
	b := rd.data[min(at, len(rd.data)):]
	var main [8]byte
	n := copy(main[:], b)
	cut := n < 8 || len(b)-8 < mdLength // the length of the report has room
	if n < 2 {
		r.Flags |= decode.Truncated
		return -1
	}
	word := be.Uint64(main[:])
	md, domain, ds := uint16(word>>48), uint16(word>>32), uint16(word>>16)
	if md&mdReserved0 != 0 {
		r.Fail(format, "rep_md_bits", at, decode.Unsupported)
		return -1
	}
	base := 4 * packet.Words(packet.INT2, md)
	switch {
	case mdLength < base, mdLength > base && (n >= 4 && domain == 0 || n >= 6 && ds == 0):
		r.Fail(format, "md_length", at-2, decode.BadWidth)
		return -1
	case mdLength > base && n < 6:
		r.Flags |= decode.Truncated
		return -1
	case cut:
		r.Flags |= decode.Truncated
		return at + 8 + mdLength
	}
	x := b[8 : 8+mdLength]
	switch {
	case mdLength == base:
	case rd.opts.PINTDomain != 0 && domain == rd.opts.PINTDomain:
		if !AddDigest(r, ds, x[base:]) {
			r.Fail(decode.PINT, "md_length", at-2, decode.BadWidth)
			return -1
		}
	case domain == ProbeDomain && base == 0 && probes(r, ds, x): // a report with values of a hop is about a packet
	default:
		r.Unknown = x[base:]
		r.Remarks |= decode.RemarkMoreData
	}
	if domain != 0 {
		r.DomainID = domain
		r.Has |= decode.HasDomainID
	}
	if md == 0 {
		return at + 8 + mdLength
	}
	hop := OwnHop(r)
	AddMetadata(hop, md, x)
	if md&MDDrop != 0 {
		v := be.Uint32(x[base-4:])
		packet.AddQueueID(hop, uint8(v>>24))
		r.DropReason = uint8(v >> 16)
		r.Has |= decode.HasDropReason
	}
	return at + 8 + mdLength
}

// AddMetadata reads the baseline metadata of report 2.0, of the bits 1 to 8 of md, into hop. All of it is in x.
func AddMetadata(hop *decode.Hop, md uint16, x []byte) {
	be, o := binary.BigEndian, 0
	if md&MDInterfaces != 0 {
		packet.AddInterfaces(hop, be.Uint32(x[o:o+4:o+4]))
		o += 4
	}
	if md&MDLatency != 0 {
		packet.AddWord(hop, decode.HopLatency, &hop.Latency, be.Uint32(x[o:o+4:o+4]))
		o += 4
	}
	if md&MDQueue != 0 {
		packet.AddQueue(hop, be.Uint32(x[o:o+4:o+4]))
		o += 4
	}
	if md&MDIngressTime != 0 {
		packet.AddTime64(hop, decode.HopIngressTime, &hop.IngressTime, be.Uint64(x[o:o+8:o+8]))
		o += 8
	}
	if md&MDEgressTime != 0 {
		packet.AddTime64(hop, decode.HopEgressTime, &hop.EgressTime, be.Uint64(x[o:o+8:o+8]))
		o += 8
	}
	if md&MDL2Interfaces != 0 {
		packet.AddWord(hop, decode.HopL2IngressIf, &hop.L2IngressIf, be.Uint32(x[o:o+4:o+4]))
		packet.AddWord(hop, decode.HopL2EgressIf, &hop.L2EgressIf, be.Uint32(x[o+4:o+8:o+8]))
		o += 8
	}
	if md&MDTxUtilization != 0 {
		packet.AddWord(hop, decode.HopTxUtilization, &hop.TxUtilization, be.Uint32(x[o:o+4:o+4]))
		o += 4
	}
	if md&MDBuffer != 0 {
		packet.AddBuffer(hop, be.Uint32(x[o:o+4:o+4]))
	}
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
		switch t := rd.data[at] >> 4; { // 0 is of a domain, 1 to 3 are packets, and others are not defined
		case t == 0 || t > 3:
			rd.unknown(r, at+4, at+4+size)
			r.Remarks |= decode.RemarkMoreData
		case t <= 3 && found.Type == InnerNone:
			found = Inner{Type: InnerEthernet + InnerType(t-1), At: at + 4, End: at + 4 + size}
		}
		at += 4 + size
	}
	*in = found
}
