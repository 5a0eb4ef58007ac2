package guess

import (
	"encoding/binary"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
)

// Datagram is the link type of a sample that is the payload of a datagram to a report port, as from a socket.
const Datagram uint16 = 0xffff

// Sample is one frame, or the payload of one datagram.
type Sample struct {
	Link   uint16
	Src    decode.Addr // of a datagram
	Data   []byte
	Length int   // on the wire
	Time   int64 // of receipt, ns since 1970

	Dropped bool // it was in no statistics
	Within  bool // it is a packet in a record, which is read without the packet's payload
	To      Port // where it went, if that takes one kind of datagrams
}

// reading is the result of one profile for one packet.
type reading uint8

const (
	unread   reading = iota // not all of it is read
	silent                  // it is read, announces something, and holds nothing of it: another profile may
	nameless                // it is read, and holds hops that name no node: another profile may find their names
	empty                   // it is read, and holds no hop
	content                 // it is read, and holds hops, or a digest
)

// found reports whether there are hops, or a digest.
func (r reading) found() bool { return r == content || r == nameless }

// trial reads samples with one profile.
type trial struct {
	profile *demux.Profile
	port    uint16 // that the profile was given in addition; 0 without
	gre     uint16 // protocol number of GRE that it was given in addition; 0 without
	decoder *demux.Decoder
	batch   decode.Batch
	outer   packet.Packet
}

func newTrial(p *demux.Profile) *trial { return &trial{profile: p, decoder: demux.New(*p)} }

// explains reports whether the profile reads s, and finds something in it.
func (t *trial) explains(s *Sample) bool {
	r, _ := t.read(s)
	return r.found()
}

// read returns the profile's reading of s, and its reports, which are valid until the next call.
func (t *trial) read(s *Sample) (reading, []*decode.Report) {
	t.batch.Reset()
	payload := 0
	if s.Link == Datagram {
		t.decoder.DatagramCut(&t.batch, s.Src, s.Data, max(s.Length, len(s.Data)), s.Time)
	} else {
		t.decoder.Frame(&t.batch, s.Link, s.Data, s.Length, s.Time)
	}
	if len(t.batch.Reports) == 0 {
		return unread, nil
	}
	if s.Link != Datagram {
		t.outer.Frame(s.Link, s.Data, s.Length)
		payload = t.outer.L4 + packet.UDPLen
	}
	worst := content
	inside := carries(t.batch.Reports)
	for i, r := range t.batch.Reports {
		if inside && ofPacket(r) && r.Err.Reason == 0 {
			continue // the sampled packet is judged
		}
		worst = min(worst, t.judge(r, s, payload, i == 0))
	}
	return worst, t.batch.Reports
}

// carries reports whether telemetry was read in packets that reports are samples of.
func carries(reports []*decode.Report) bool {
	return slices.ContainsFunc(reports, func(r *decode.Report) bool { return r.Flags&decode.Sampled != 0 })
}

// ofPacket reports whether r can be a sample of a packet, whose telemetry is in reports of their own. Records of
// IPFIX are not tried: their templates came in other datagrams.
func ofPacket(r *decode.Report) bool { return r.Format == decode.SFlow }

// judge returns how far r was read. Its telemetry report begins at payload, and first means that r is the first of
// it.
func (t *trial) judge(r *decode.Report, s *Sample, payload int, first bool) reading {
	if r.Err.Reason != 0 || r.HeaderCut {
		return unread
	}
	if r.Remarks&(decode.RemarkDomainData|decode.RemarkStackInMX|decode.RemarkUnflagged) != 0 {
		return silent
	}
	if r.Unknown != nil {
		return unread
	}
	switch r.Format {
	case decode.TelemetryReport:
		if payload > len(s.Data) || first && !t.clean(r, s.Data[payload:]) {
			return unread
		}
		if r.Kind == decode.KindDigest {
			return content
		}
		if r.Kind == 0 {
			return unread
		}
		if r.Has&(decode.HasFlow|decode.HasInner) == 0 && !t.profile.Report.Postcard {
			return silent // the packet is cut, or of another protocol than IP
		}
		if r.Flags&decode.Tracked != 0 && r.INT == 0 && len(r.Hops) == 0 {
			return silent // it announces content, and none was found
		}
	case decode.INTPath:
		if (t.port != 0 || s.Link == Datagram) && !provenPath(r) {
			return unread
		}
	case decode.INTMD, decode.INTMX:
	case decode.PINT:
		return t.digest(r, s)
	}
	if r.Has&decode.HasInstructions != 0 && r.Format != decode.IOAM && r.Instructions&^t.instructions(r) != 0 {
		return unread
	}
	for i := range r.Hops {
		if h := &r.Hops[i]; h.Has&decode.HopNodeID == 0 && (r.Flags&decode.Truncated == 0 || i > 0) {
			return nameless
		}
	}
	if len(r.Hops) == 0 {
		if r.Kind == decode.KindStack && r.Flags&decode.Truncated != 0 {
			return unread
		}
		return empty
	}
	return content
}

// clean reports whether the reserved bits of a report's header are zero.
func (t *trial) clean(r *decode.Report, payload []byte) bool {
	if len(payload) < 12 {
		return false
	}
	word := binary.BigEndian.Uint32(payload)
	o := &t.profile.Report
	switch r.Version {
	case decode.V05:
		return word>>6&0x7fff == 0
	case decode.V10:
		if o.Postcard {
			return word>>6&0x3f == 0 && len(payload) >= 54 && etherType(binary.BigEndian.Uint16(payload[52:]))
		}
		if o.FlagsFirst {
			return word>>6&0x3f == 0
		}
		return word>>9&0x3f == 0
	case decode.V20:
		return binary.BigEndian.Uint32(payload[8:])&0xf == 0
	}
	return true
}

// etherType reports whether v is an EtherType of frames in a switched network.
func etherType(v uint16) bool {
	return v == packet.EtherIPv4 || v == packet.EtherIPv6 || v == 0x0806 || v == 0x8100 || v == 0x88a8 || v == 0x8847
}

// instructions are the bits of r's instruction bitmap that have a meaning.
func (t *trial) instructions(r *decode.Report) uint16 {
	version := r.Version
	if r.Format == decode.TelemetryReport {
		version = r.INT
	}
	o := &t.profile.INT
	switch {
	case o.LeastFirst && version == decode.V21:
		return 0x01ff
	case r.DomainID != 0:
		return 0xffff
	case version == decode.V05:
		return 0xff00
	case version == decode.V10:
		return 0xff01
	}
	return 0xff81
}

// provenPath reports whether a probe shows by itself that it is one: INT-path has no mark but its port, so that many
// a payload of the right length can be read as it. A switch copies the low 32 bits of one clock into the enqueue time
// soon after it took the ingress time. A route of at most 64 hops leaves the first half of its 64 bytes zero.
func provenPath(r *decode.Report) bool {
	const (
		both = decode.HopIngressTime | decode.HopEnqTime
		most = 10_000_000 // from ingress to enqueue; microseconds in the software switch
	)
	if r.Flags&decode.Truncated != 0 || slices.ContainsFunc(r.SRList[:len(r.SRList)/2], func(b byte) bool { return b != 0 }) {
		return false
	}
	for i := range r.Hops {
		h := &r.Hops[i]
		if h.Has&both != both || h.IngressTime == 0 || h.EnqTime-uint32(h.IngressTime) >= most {
			return false
		}
	}
	return true
}

// digest judges a PINT digest, which is a few bits in a place that other packets use, too.
func (t *trial) digest(r *decode.Report, s *Sample) reading {
	if s.Link == Datagram || t.outer.IP != 4 || len(s.Data) < t.outer.L3+20 {
		return unread
	}
	if r.Digest.Coding == decode.CodingMininet && checksum(s.Data[t.outer.L3:][:20]) == 0xffff {
		return unread // the program writes a node id there, so that it is an ordinary packet
	}
	return content
}

// checksum is the one's complement sum of b, which has an even length.
func checksum(b []byte) uint32 {
	sum := uint32(0)
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return sum
}

// packetSections are the elements of IANA that hold the beginning of a packet, with its link type.
var packetSections = map[uint16]uint16{315: packet.LinkEthernet, 104: packet.LinkEthernet, 313: packet.LinkRaw}

// Within returns the packet that r, a record of IPFIX or NetFlow 9, is a sample of, as a sample of its own. The
// template of the record must be known. For any other report it returns x, the sample from which r was read.
func Within(r *decode.Report, x Sample) Sample {
	if r.Format != decode.IPFIX && r.Format != decode.NetFlow9 || r.Err.Reason != 0 || r.Rare == nil || r.Rare.Template == nil {
		return x
	}
	for e, b := range r.Rare.Template.Values(r.Unknown) {
		if link, ok := packetSections[e.ID]; ok && e.PEN == 0 && len(b) > 0 {
			x.Link, x.Data, x.Length, x.Within = link, b, len(b), true
		}
	}
	return x
}

// Doubtful reports whether r may lack content of its bytes. It failed, or has no hop, or is about a packet in GRE
// whose payload was not read and has room for INT. It is a quick check for every report. [Guesser.Reads] checks
// thoroughly.
func Doubtful(r *decode.Report) bool {
	if r.Err.Reason != 0 || r.Remarks&^(decode.RemarkCopy|decode.RemarkAlike|decode.RemarkPathDelay|decode.RemarkShort) != 0 {
		return true
	}
	if r.Flow.Proto == packet.ProtoGRE || r.Rare != nil && r.Rare.Inner.Proto == packet.ProtoGRE {
		if r.Format == decode.TelemetryReport && r.INT == 0 || r.Format == decode.SFlow || Within(r, Sample{}).Within {
			return true
		}
	}
	if len(r.Hops) == 0 {
		return r.Kind <= decode.KindQueue
	}
	return r.Hops[0].Has&decode.HopNodeID == 0
}

// tryable reports whether p can be recognised by its formats.
func tryable(p *demux.Profile) bool {
	if p.Report.Versions != 0 || p.INT.Versions != 0 {
		return true
	}
	for _, f := range p.Formats {
		if w := f.Where(); len(w.Ports) == 0 && len(w.EtherTypes) == 0 && w.Mark == "UDP behind PPP" {
			return false // one byte anywhere
		}
	}
	return len(p.Formats) > 0
}
