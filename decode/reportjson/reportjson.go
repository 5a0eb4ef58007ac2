// Package reportjson writes decoded reports as JSON, one object a report.
//
// Numbers are raw wire values, as integers of up to 64 bits. Addresses are strings, IPv6 in the short form of RFC
// 5952. Bitmaps and opaque bytes are hex strings with 0x. A key is there only if the packet has the value, so there is
// no null and no empty list; a block of a stack without any value is an empty object. Hops come first hop first.
//
// It appends to the caller's bytes, without reflection or allocation. The command "hopscope decode" prints what it writes,
// one object a line, and the recorded readings of captures that decoders are tested with are such lines.
package reportjson

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/hopscope/hopscope/decode"
)

// style is how a value is written.
type style uint8

const (
	asNumber style = iota
	asHexNumber
	asVersion
	asFormat
	asKind
	asFlags
	asAddress
	asBytes
	asPorts
	asFlow
	asDigest
	asOption
)

// member is a member of the object of a report: its key, with what separates it from the value before, and the column of its value.
type member struct {
	key    string
	column int
	style  style
}

// Columns behind those of reports are values of the IOAM option.
const (
	ioamSeq = decode.NumColumns + iota
	ioamNamespace
	ioamOption
)

// members are the members of a report's object between its time and its hops, in order.
var members = [...]member{
	{`,"format":"`, decode.ColFormat, asFormat}, {`,"version":"`, decode.ColVersion, asVersion}, {`,"exporter":"`, decode.ColExporter, asAddress},
	{`,"node_id":`, decode.ColNodeID, asNumber}, {`,"hw_id":`, decode.ColHWID, asNumber}, {`,"seq":`, decode.ColSeq, asNumber}, {`,"seq":`, ioamSeq, asNumber},
	{`,"header_time":`, decode.ColHeaderTime, asNumber}, {`,"kind":"`, decode.ColKind, asKind}, {"", decode.ColSrc, asFlow},
	{`,"packet_id":`, decode.ColPacketID, asNumber}, {`,"flow_id":`, decode.ColFlowID, asNumber}, {`,"flags":["`, decode.ColFlags, asFlags},
	{`,"int_version":"`, decode.ColINT, asVersion}, {`,"domain_id":`, decode.ColDomainID, asNumber}, {`,"namespace":`, ioamNamespace, asNumber},
	{`,"instructions":"0x`, decode.ColInstructions, asHexNumber}, {"", ioamOption, asOption}, {`,"remaining_hops":`, decode.ColRemainingHops, asNumber},
	{`,"source_seq":`, decode.ColSourceSeq, asNumber}, {`,"source_metadata":"0x`, decode.ColSourceMetadata, asBytes},
	{`,"drop_reason":`, decode.ColDropReason, asNumber}, {`,"gap_time":`, decode.ColGapTime, asNumber}, {`,"lost":`, decode.ColLost, asNumber},
	{`,"action_id":`, decode.ColActionID, asNumber}, {`,"sr_list":"0x`, decode.ColSRList, asBytes}, {`,"sr_ports":[`, decode.ColSRPorts, asPorts},
	{"", decode.ColDigest, asDigest},
}

// maybeEmpty are the columns that have a value in every report, and no member where it is 0.
const maybeEmpty decode.Columns = 1<<decode.ColVersion | 1<<decode.ColINT | 1<<decode.ColKind | 1<<decode.ColFlags

// ofHeader are the columns that are not accepted of a header that was cut.
const ofHeader decode.Columns = 1<<decode.ColVersion | 1<<decode.ColNodeID | 1<<decode.ColHWID | 1<<decode.ColSeq

// Append appends r as one JSON object without a newline. Frame is the number of the frame in its file, from 1.
// Nothing in the result needs escaping: every string in it is a name, a number or an address.
func Append(dst []byte, frame uint64, r *decode.Report) []byte {
	o := object{b: dst}
	o.uint(`{"frame":`, frame)
	o.b = strconv.AppendInt(append(o.b, `,"time_ns":`...), r.Time, 10)
	var v [ioamOption + 1]uint64
	have := r.Present()
	r.Numbers(have, (*decode.ReportNumbers)(v[:]))
	if r.HeaderCut {
		have &^= ofHeader
	}
	if x := &r.IOAM; x.Has != 0 {
		v[ioamSeq], v[ioamNamespace] = x.Seq, uint64(x.Namespace)
		have |= 1<<ioamOption | decode.Columns(x.Has&decode.IOAMSeq)/decode.Columns(decode.IOAMSeq)<<ioamSeq |
			decode.Columns(x.Has&decode.IOAMNamespace)/decode.Columns(decode.IOAMNamespace)<<ioamNamespace
	}
	for i := range members {
		if m := &members[i]; have>>m.column&1 != 0 && (maybeEmpty>>m.column&1 == 0 || v[m.column] != 0) {
			o.member(m, v[m.column], r)
		}
	}
	if len(r.Hops) > 0 {
		sep := `,"hops":[`
		for i := range r.Hops {
			o.b = append(o.b, sep...)
			if i < len(r.IOAM.Nodes) {
				o.node(&r.Hops[i], &r.IOAM.Nodes[i])
			} else {
				o.hop(&r.Hops[i])
			}
			sep = ","
		}
		o.b = append(o.b, ']')
	}
	if r.Err.Reason != 0 {
		o.text(`,"error":{"format":"`, r.Err.Format.String())
		o.text(`,"field":"`, r.Err.Field)
		o.b = strconv.AppendInt(append(o.b, `,"offset":`...), int64(r.Err.Offset), 10)
		o.text(`,"reason":"`, r.Err.Reason.String())
		o.b = append(o.b, '}')
	}
	return append(o.b, '}')
}

func (o *object) member(m *member, v uint64, r *decode.Report) {
	switch m.style {
	case asNumber:
		o.uint(m.key, v)
	case asHexNumber:
		o.hex(m.key, byte(v>>8), byte(v))
	case asVersion:
		o.b = append(append(o.b, m.key...), '0'+byte(v/10), '.', '0'+byte(v%10), '"')
	case asFormat:
		o.text(m.key, decode.Format(v).String())
	case asKind:
		o.text(m.key, decode.Kind(v).String())
	case asFlags:
		o.flags(m.key, decode.Flags(v))
	case asAddress:
		o.addr(m.key, r.Address(m.column).Netip())
	case asBytes:
		if b := *r.Bytes(m.column); len(b) > 0 {
			o.hex(m.key, b...)
		}
	case asPorts:
		if b := *r.Bytes(m.column); len(b) > 0 {
			o.ports(m.key, b)
		}
	case asFlow:
		o.flow(&r.Flow, r.Has&decode.HasPorts != 0)
	case asDigest:
		o.digest(r)
	case asOption:
		o.option(&r.IOAM)
	}
}

// object is an object under construction. Keys come with what separates them from the value before.
type object struct{ b []byte }

func (o *object) uint(key string, v uint64) {
	o.b = strconv.AppendUint(append(o.b, key...), v, 10)
}

func (o *object) text(key, v string) {
	o.b = append(append(append(o.b, key...), v...), '"')
}

func (o *object) addr(key string, a netip.Addr) {
	o.b = append(a.AppendTo(append(o.b, key...)), '"')
}

func (o *object) hex(key string, v ...byte) {
	const digits = "0123456789abcdef"
	o.b = append(o.b, key...)
	for _, c := range v {
		o.b = append(o.b, digits[c>>4], digits[c&15])
	}
	o.b = append(o.b, '"')
}

func (o *object) flow(k *decode.FlowKey, ports bool) {
	o.addr(`,"flow":{"src":"`, k.SrcAddr())
	o.addr(`,"dst":"`, k.DstAddr())
	o.uint(`,"proto":`, uint64(k.Proto))
	if ports {
		o.uint(`,"src_port":`, uint64(k.SrcPort))
		o.uint(`,"dst_port":`, uint64(k.DstPort))
	}
	o.b = append(o.b, '}')
}

func (o *object) flags(sep string, f decode.Flags) {
	var space [16]string
	for _, name := range f.AppendNames(space[:0]) {
		o.text(sep, name)
		sep = `,"`
	}
	o.b = append(o.b, ']')
}

// digest writes the digest as its program has it on the wire.
func (o *object) digest(r *decode.Report) {
	d := &r.Digest
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], d.Value)
	switch d.Coding {
	case decode.CodingMininet:
		o.hex(`,"digest":"0x`, b[2:]...)
		o.hex(`,"ams_digest":"0x`, byte(d.AMS>>8), byte(d.AMS))
		o.uint(`,"ttl":`, uint64(r.TTL))
		o.uint(`,"last_writer":`, uint64(d.LastWriter))
	case decode.CodingTofino:
		o.hex(`,"digest":"0x`, b[4:]...)
		o.uint(`,"ttl":`, uint64(r.TTL))
	case decode.CodingHPCC:
		o.hex(`,"digest":"0x`, b[6:]...)
	default:
		o.uint(`,"plan_epoch":`, uint64(d.Epoch))
		o.uint(`,"digest_id":`, uint64(d.ID))
		o.uint(`,"digest_hops":`, uint64(d.Hops))
		o.hex(`,"digest":"0x`, b[:]...)
	}
}

// ports writes the second byte of every 2-byte entry.
func (o *object) ports(sep string, entries []byte) {
	for i := 1; i < len(entries); i += 2 {
		o.uint(sep, uint64(entries[i]))
		sep = ","
	}
	o.b = append(o.b, ']')
}

func (o *object) hop(h *decode.Hop) {
	start := len(o.b)
	var v decode.HopNumbers
	h.Numbers(h.Has, &v)
	for _, c := range hopOrder {
		if h.Has>>c&1 != 0 {
			o.uint(hopKeys[c], v[c])
		}
	}
	o.close(start)
}

// close ends an object whose members begin at start.
func (o *object) close(start int) {
	if len(o.b) == start {
		o.b = append(o.b, '{')
	} else {
		o.b[start] = '{' // instead of the first value's comma
	}
	o.b = append(o.b, '}')
}

// hopOrder is the order of the values of a hop, by the bits of decode.HopField: the queue's values are together.
var hopOrder = [...]uint8{0, 1, 2, 8, 9, 3, 4, 5, 14, 15, 16, 6, 7, 10, 11, 12, 13}

// hopKeys are the keys of a hop's values, with what separates them from the value before.
var hopKeys = func() (keys [decode.NumHopColumns]string) {
	for c := range keys {
		keys[c] = `,"` + decode.HopColumns[c].Name + `":`
	}
	return keys
}()
