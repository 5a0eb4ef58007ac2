package demux

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Recognise returns the export format with which a UDP payload of length bytes begins: sFlow 5 or before, IPFIX,
// NetFlow 9 or 5. The payload may be cut. It is 0 for everything else. It checks bytes that such a datagram must
// begin with and that no report has, so that it precedes every profile.
func Recognise(payload []byte, length int) decode.Format {
	be := binary.BigEndian
	if len(payload) < 8 || payload[0] != 0 {
		return 0
	}
	version, n := be.Uint16(payload), int(be.Uint16(payload[2:]))
	if address := be.Uint32(payload[4:]); version == 0 && (address == 1 || address == 2) {
		switch n { // also where it ends before its header does: no report is that short
		case 5:
			return decode.SFlow
		case 4, 2:
			return decode.SFlow4
		}
	}
	if len(payload) < 20 {
		return 0
	}
	switch {
	case version == 10 && n == length && sets(payload[16:], length-16, 2, 3):
		return decode.IPFIX
	case version == 9 && n > 0 && sets(payload[20:], length-20, 0, 1):
		return decode.NetFlow9
	case version == 5 && n >= 1 && n <= 30 && length == 24+48*n:
		return decode.NetFlow5
	}
	return 0
}

// begins names the format by its first bytes alone, at a port of reports: also where the rest is damaged, or cut by
// its sender. No dialect of reports begins with these bits.
func begins(payload []byte) decode.Format {
	if len(payload) < 4 || payload[0] != 0 {
		return 0
	}
	switch n := binary.BigEndian.Uint16(payload[2:]); {
	case payload[1] == 10:
		return decode.IPFIX
	case payload[1] == 9 && n > 0:
		return decode.NetFlow9
	case payload[1] == 5 && n >= 1 && n <= 30:
		return decode.NetFlow5
	}
	return 0
}

// sets reports whether b, which has length bytes on the wire, is sets of templates, of options or of data, one behind
// the other.
func sets(b []byte, length int, template, options uint16) bool {
	for length > 0 {
		if len(b) < 4 {
			return len(b) < length // the capture ends
		}
		id, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 || n > length || id < 256 && id != template && id != options {
			return false
		}
		b, length = b[min(n, len(b)):], length-n
	}
	return true
}

// known reads data[at:end], of which data may hold less, if it is of a recognised format. It returns the number of
// reports, 0 for any other format. reports means that only reports are expected there.
func (d *Decoder) known(b *decode.Batch, src *decode.Addr, data []byte, at, end int, time int64, reports bool) (n int) {
	if at >= min(end, len(data)) || data[at] != 0 {
		return 0
	}
	payload := data[at:min(end, len(data))]
	f := Recognise(payload, end-at)
	if f == 0 && reports {
		f = begins(payload)
	}
	if f == 0 {
		return 0
	}
	if f == decode.SFlow && d.sflow != nil {
		return d.readSFlow(b, src, data, at, end, time)
	}
	if (f == decode.IPFIX || f == decode.NetFlow9) && d.ipfix != nil {
		return d.readIPFIX(b, src, data, at, end, time)
	}
	r := d.next(b, time)
	r.Format, r.Exporter = f, *src
	r.Has |= decode.HasExporter
	r.Fail(f, "version", at, decode.NotRead)
	return 1
}

// prove refuses a report without content that no check of lengths could have refused, as a version nibble is no
// evidence. The first word of a header 0.5 or 1.0 is in first. A genuine report of these versions has a flag for its
// reason, and without a packet it has a hop or a node. Data in L2TPv3, with a frame at the same place, have neither.
// The sequence number of a refused report is ignored, so that no loss is counted. If the capture ends before the
// packet can be checked, the report stays.
func (d *Decoder) prove(r *decode.Report, data []byte, first uint32) {
	in, p := &d.in, &d.inner
	if r.Err.Reason != 0 {
		return
	}
	at, cut := in.At, len(data) < in.End
	if in.Type != telemetry.InnerNone {
		data = data[:min(in.End, len(data))]
	}
	switch in.Type {
	case telemetry.InnerNone:
		if r.Version == decode.V20 && len(r.Hops) == 0 && r.Unknown == nil && r.Has&decode.HasDigest == 0 && r.Flags&decode.Truncated == 0 {
			r.Fail(decode.TelemetryReport, "in_type", min(at, len(data)), decode.BadType)
			r.FirstOfGroup = false
		}
		return
	case telemetry.InnerEthernet:
		size, clean := in.End-at, first&reserved(r.Version) == 0
		if at += 12; size < packet.EthernetLen {
			if d.bare(r, data[:min(at-12, len(data))], first, size) {
				return
			}
		} else if !clean && r.Flags&(decode.Dropped|decode.Congested|decode.Tracked) == 0 {
			at -= 12
		} else if len(data)-at < 2 {
			return
		} else if packet.Announced(p.EtherType) {
			begun := p.IP == 0 && p.Begins(data) // one EtherType of many is little evidence
			if clean && (begun || p.IP != 0) || p.Holds(data, in.End) || cut && begun && !packet.BesideIP(p.EtherType) {
				return
			}
			at = p.L3
		}
	default:
		if at >= len(data) {
			if cut || d.bare(r, data, first, in.End-at) {
				return
			}
		} else if p.Holds(data, in.End) || p.IP == 0 && (cut || r.Version == decode.V20) && len(data)-at < fixed(in.Type) && data[at]>>4 == ipOf(in.Type) {
			return
		}
	}
	r.Fail(decode.TelemetryReport, "inner", min(at, len(data)), decode.BadType)
	r.FirstOfGroup = false
}

// question reports whether a report 1.0 without a packet, which is whole in b, is a DNS message. Such a message has
// one question, whose name begins with letters, digits and hyphens.
func question(b []byte, v decode.Version) bool {
	const most = 16 // records of each kind
	be := binary.BigEndian
	if v != decode.V10 || len(b) < 16 || b[2]&0x78 != 0 || be.Uint16(b[4:]) != 1 || be.Uint16(b[6:]) > most || be.Uint16(b[8:]) > most || be.Uint16(b[10:]) > most || b[12] == 0 || b[12] > 63 {
		return false
	}
	for _, c := range b[13:min(13+int(b[12]), len(b))] {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// fixed is how long the header of IP is that an inside begins with.
func fixed(t telemetry.InnerType) int {
	if t == telemetry.InnerIPv4 {
		return 20
	}
	return 40
}

func ipOf(t telemetry.InnerType) byte {
	if t == telemetry.InnerIPv4 {
		return 4
	}
	return 6
}

// bare reports whether a report has content without its packet. The packet is announced by the header at the end of
// data, and its size bytes are too few for a header. A report 2.0 is recognised by its lengths, if it holds anything.
// An earlier one is recognised by the bits that senders leave 0 and by a flag, if nothing follows.
func (d *Decoder) bare(r *decode.Report, data []byte, first uint32, size int) bool {
	why := r.Flags&(decode.Dropped|decode.Congested|decode.Tracked) != 0
	switch {
	case d.profile.Report.Postcard:
		return true
	case r.Version == decode.V20:
		return size > 0 || len(r.Hops) > 0 || r.Unknown != nil || r.Has&decode.HasDigest != 0
	case size != 0 || !why || first&d.unused(r.Version) != 0:
		return false
	case r.Version == decode.V10:
		return !question(data[len(data)-4*int(first>>24&0xf):], r.Version)
	}
	return len(r.Hops) > 0
}

// unused are the bits of a header's first word that senders leave 0.
func (d *Decoder) unused(v decode.Version) uint32 {
	switch {
	case v != decode.V10:
		return reserved(v)
	case d.profile.Report.FlagsFirst:
		return 0xfc0
	}
	return 0x7e00
}

// reserved are the bits of a header's first word that no dialect uses.
func reserved(v decode.Version) uint32 {
	if v == decode.V05 {
		return 0x1fffc0
	}
	return 0
}

// doubt refuses the earlier reports of a datagram in which a later one cannot be read. It spares reports with a flow,
// and those with a hop and no unknown metadata.
func (d *Decoder) doubt(list []*decode.Report, at int) {
	for _, r := range list {
		if r.Has&decode.HasFlow == 0 && (len(r.Hops) == 0 || r.Unknown != nil) {
			r.Fail(decode.TelemetryReport, "report_length", at, decode.BadLength)
		}
	}
}
