package demux

import (
	"encoding/binary"
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
)

// ipfixState is the state of a decoder for IPFIX and NetFlow 9. The state of exporters is in a store, which the
// decoders of a collector share.
type ipfixState struct {
	store    *ipfix.Store // nil until it is needed, where none was given
	epoch    uint64
	sessions map[ipfix.Source]*ipfix.Session

	reader      ipfix.Reader
	message     ipfix.Message
	set         ipfix.Set
	definitions ipfix.Definitions
	definition  ipfix.Definition
	records     ipfix.Records
	drop        ipfix.Drop
	packet      packet.Packet
	in          reading
}

// most bounds the sessions that a decoder finds without the store, and the reports of one datagram.
const (
	mostSessions = 1 << 14
	mostRecords  = 1 << 12
)

// broadcomReasons are the names of drop reasons of Broadcom's chips.
var broadcomReasons, juniperReasons = func() (b, j decode.DropReasons) {
	b, j = decode.DropReasons{}, decode.DropReasons{}
	for r := range 256 {
		b[uint8(r)] = "Broadcom: " + ipfix.ReasonName(uint8(r))
		j[uint8(r)] = juniperReason(uint8(r))
	}
	return b, j
}()

// juniperReason names an exception code, whose meaning is the platform's. Codes that do not fit are 255.
func juniperReason(code uint8) string {
	if code == math.MaxUint8 {
		return "Juniper: exception code of 255 or above"
	}
	return "Juniper: exception code"
}

// The units of reports from IPFIX. They do not depend on the profile, which holds for other formats.
var (
	ipfixUnits    = decode.DefaultUnits
	broadcomUnits = decode.DefaultUnits.With(decode.Units{DropReasons: &broadcomReasons})
	juniperUnits  = decode.DefaultUnits.With(decode.Units{DropReasons: &juniperReasons})
)

// ShareIPFIX lets the decoders of rt remember exporters of IPFIX and NetFlow 9 in a store, which others may use too.
// With nil they read neither.
func (rt *Router) ShareIPFIX(store *ipfix.Store) *Router {
	rt.ipfix, rt.shared = store, true
	share(rt.fallback, store)
	for i := range rt.routes {
		share(rt.routes[i].dec, store)
	}
	return rt
}

func share(d *Decoder, store *ipfix.Store) {
	if d.ipfix != nil && store == nil {
		d.ipfix = nil
	} else if d.ipfix != nil {
		d.ipfix = newIPFIX(store)
	}
}

func newIPFIX(store *ipfix.Store) *ipfixState {
	return &ipfixState{store: store, sessions: map[ipfix.Source]*ipfix.Session{}}
}

// session returns the session of a source, locked, or nil if there is no room for it.
func (x *ipfixState) session(src ipfix.Source, now int64) *ipfix.Session {
	if x.store == nil {
		x.store = ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	}
	if e := x.store.Epoch(); e != x.epoch || len(x.sessions) > mostSessions {
		clear(x.sessions)
		x.epoch = e
	}
	for range 2 {
		s := x.sessions[src]
		if s == nil {
			if s = x.store.Session(src, now); s == nil {
				return nil
			}
			x.sessions[src] = s
		}
		if s.Begin(now) {
			return s
		}
		delete(x.sessions, src)
	}
	return nil
}

// reading is a message on its way to reports.
type reading struct {
	d       *Decoder
	x       *ipfixState
	s       *ipfix.Session
	b       *decode.Batch
	data    []byte
	src     decode.Addr
	at      int
	time    int64
	n       int    // reports
	records uint32 // of the message, options included
	fields  uint32
	unknown bool
	numbers ipfix.Numbered
	twice   ipfix.Twice
	late    bool // what waited is read: its records have no numbers
}

// readIPFIX reads the message in data[at:end]. Each of its records becomes a report. One report stands for a message
// without records.
func (d *Decoder) readIPFIX(b *decode.Batch, src *decode.Addr, data []byte, at, end int, time int64) (n int) {
	x := d.ipfix
	in := &x.in
	*in = reading{d: d, x: x, b: b, data: data, src: *src, at: at, time: time}
	m := &x.message
	ok := x.reader.Start(m, data, at, end)
	if ok {
		if in.s = x.session(ipfix.Source{Addr: *src, Port: d.port}, time); in.s == nil {
			in.next(0).Fail(m.Format(), "exporter", at, decode.Unsupported)
			return in.n
		}
		defer in.s.Unlock()
		in.numbers, in.twice = in.s.Numbers(m, data[at:min(end, len(data))], time)
	}
	for ok && x.reader.Next(&x.set) {
		if templates, _ := x.set.Templates(); templates {
			in.templates()
		} else {
			in.dataSet(end)
		}
	}
	if ok && in.twice != ipfix.Copy {
		in.s.End(m, in.records, in.fields, in.unknown || x.reader.Cut || x.reader.Err.Reason != 0)
	}
	if e := x.reader.Err; e.Reason != 0 {
		in.doubt()
		in.fail(e)
	} else if in.n == 0 && !x.reader.Cut {
		in.next(decode.KindRecord)
	}
	if x.reader.Cut {
		d.cutOff(b, &in.n, in.cutRecords(ok), in.next)
	}
	return in.n
}

// doubt refuses the data that wait for a template in a message that cannot be read to its end. The number of a set is
// no evidence.
func (in *reading) doubt() {
	for _, r := range in.b.Reports[len(in.b.Reports)-in.n:] {
		if r.Kind == decode.KindRecord && r.Rare != nil && r.Rare.Template != nil && len(r.Rare.Template.Fields) == 0 {
			r.Fail(r.Format, "set_id", in.at, decode.BadLength)
		}
	}
}

// cutRecords is the number of records in the set that was cut off, by its header and its template. It is one if these do
// not define it.
func (in *reading) cutRecords(ok bool) uint64 {
	set, data := in.x.reader.CutSet()
	if !ok || set == 0 {
		return 1
	}
	if set < 256 {
		return 0 // templates are no reports
	}
	if t := in.s.Template(&in.x.message, set); t != nil {
		return max(uint64(t.Holds(data)), 1)
	}
	return 1
}

// twiceRemarks are the remarks on reports of messages that came before.
var twiceRemarks = [...]decode.Remark{ipfix.Copy: decode.RemarkCopy, ipfix.Doubtful: decode.RemarkAlike}

// next appends a report of the exporter, of which nothing has a number yet.
func (in *reading) next(kind decode.Kind) *decode.Report {
	m, r := &in.x.message, in.d.next(in.b, in.time)
	r.Format, r.Kind, r.Units, r.Exporter = m.Format(), kind, &ipfixUnits, in.src
	r.NodeID, r.HWID = in.src.Node(), uint8(m.Domain)
	r.Has = decode.HasExporter | decode.HasNodeID | decode.HasHWID
	if in.numbers.Message && !in.late {
		r.Seq, r.SeqBits, r.FirstOfGroup = in.numbers.First, 32, in.n == 0
		r.Has |= decode.HasSeq
	}
	r.Remarks |= twiceRemarks[in.twice]
	in.n++
	return r
}

// record appends the report of a record, of which count came before it in the message.
func (in *reading) record(kind decode.Kind, count uint32) *decode.Report {
	r := in.next(kind)
	if in.numbers.Records && !in.late {
		r.Seq, r.SeqBits, r.FirstOfGroup = in.numbers.First+count, 32, true
		r.Has |= decode.HasSeq
	}
	return r
}

func (in *reading) fail(e decode.Error) {
	if in.late {
		e.Offset = in.at
	}
	in.next(0).Fail(e.Format, e.Field, e.Offset, e.Reason)
}

// templates records the definitions of the set, and reads the data that waited for them.
func (in *reading) templates() {
	x, m := in.x, &in.x.message
	for x.definitions.Start(m.Version, &x.set); x.definitions.Next(&x.definition); {
		t, e := in.s.Define(m, &x.definition)
		if e.Reason != 0 {
			in.fail(e)
		}
		if t == nil {
			continue
		}
		in.late = true
		in.s.Release(t, in.time, func(set *ipfix.Set) { in.readRecords(t, set, set.Data) })
		in.late = false
	}
	if e := x.definitions.Err; e.Reason != 0 {
		in.fail(e)
	}
}

// dataSet reads the records of the set, or keeps it until their template comes.
func (in *reading) dataSet(end int) {
	x, m, set := in.x, &in.x.message, &in.x.set
	if t := in.s.Template(m, set.ID); t != nil {
		in.readRecords(t, set, in.data)
		return
	}
	if m.Version == ipfix.V10 && (set.ID == ipfix.Tomahawk5 || set.ID == ipfix.Tomahawk6) && in.s.Empty() {
		in.records++
		in.fields++
		if e := ipfix.ReadDrop(&x.drop, set, set.At == in.at+20 && set.At+len(set.Data) == end); e.Reason != 0 {
			in.fail(e)
			return
		}
		in.broadcom(in.record(decode.KindDrop, in.records-1))
		return
	}
	in.unknown = true
	if in.twice != ipfix.Copy {
		in.s.Park(m, set, in.time)
	}
	r := in.next(decode.KindRecord)
	r.AddRare().Template = &decode.Template{Version: m.Version, ID: set.ID, Domain: m.Domain}
	r.Unknown = set.Data
}

// broadcom completes the report of a drop by a chip of Broadcom.
func (in *reading) broadcom(r *decode.Report) {
	d := &in.x.drop
	r.Units = &broadcomUnits
	if d.Switch != 0 {
		r.NodeID = d.Switch
	}
	r.Flags |= decode.Dropped
	r.Weight = in.s.DefaultRate()
	if d.HasReason {
		r.DropReason = d.Reason
		r.Has |= decode.HasDropReason
		in.s.LearnReason(r.NodeID, d.Reason, broadcomReason)
	}
	in.frame(r, in.data, d.FrameAt, len(d.Frame), 0, true)
	h := hopOf(r)
	port(h, uint32(d.Ingress), decode.HopIngressIf, decode.HopL2IngressIf, &h.IngressIf, &h.L2IngressIf)
	if d.Egress != 0 {
		port(h, uint32(d.Egress), decode.HopEgressIf, decode.HopL2EgressIf, &h.EgressIf, &h.L2EgressIf)
	}
}

func broadcomReason(r uint8) string { return broadcomReasons[r] }

// frame completes r by the packet of which n bytes are at data[at:], of size bytes on the wire, 0 if that is unknown.
func (in *reading) frame(r *decode.Report, data []byte, at, n int, size uint64, ethernet bool) {
	p := &in.x.packet
	*p = packet.Packet{}
	data, end := data[:at+n], at+max(n, int(min(size, 1<<16)))
	if size == 0 {
		end = at + 1<<16 // by its own lengths
	}
	switch {
	case ethernet:
		p.Ethernet(data, at, end)
	case n > 0 && data[at]>>4 == 4:
		p.IPv4(data, at, end)
	case n > 0 && data[at]>>4 == 6:
		p.IPv6(data, at, end)
	}
	in.n += in.d.sampled(in.b, r, p, data)
}

// readRecords makes reports of the records of a set, whose bytes are in data.
func (in *reading) readRecords(t *ipfix.Template, set *ipfix.Set, data []byte) {
	recs := &in.x.records
	before := in.records
	for recs.Start(t, set); recs.Next(); {
		count := in.records
		if !in.late {
			in.records++
			in.fields += uint32(len(t.Fields))
		}
		if in.n >= mostRecords {
			if in.late {
				in.s.Count(t, 1)
			}
			continue
		}
		in.oneRecord(t, recs, data, count)
	}
	if !in.late && in.twice != ipfix.Copy {
		in.s.Count(t, in.records-before)
	}
	if e := recs.Err; e.Reason != 0 {
		in.unknown = in.unknown || !in.late
		in.fail(e)
	}
}

// oneRecord makes the report of a record.
func (in *reading) oneRecord(t *ipfix.Template, recs *ipfix.Records, data []byte, count uint32) {
	if in.late {
		in.s.Count(t, 1)
	}
	kind := decode.KindSample
	var exception ipfix.JuniperException
	switch t.View.Kind {
	case ipfix.Other, ipfix.Settings:
		kind = decode.KindRecord
	case ipfix.Delay:
		kind = decode.KindDelay
	case ipfix.Exception:
		if exception = recs.Exception(); exception.Code != 0 {
			kind = decode.KindDrop
		}
	}
	r := in.record(kind, count)
	r.AddRare().Template, r.Unknown = &t.Template, recs.Record
	switch t.View.Kind {
	case ipfix.Settings:
		in.settings(r, recs)
		return
	case ipfix.Other:
		return
	}
	in.flow(r, recs, data)
	rate, sampler := recs.Rate()
	if rate == 0 {
		rate = in.s.Rate(&in.x.message, sampler, t.ID)
	}
	packets, _ := recs.Number(ipfix.Packets)
	r.Weight = uint32(min(min(max(packets, 1), math.MaxUint32)*uint64(rate), math.MaxUint32))
	ingress, _ := recs.Number(ipfix.Ingress)
	egress, _ := recs.Number(ipfix.Egress)
	if kind != decode.KindDrop {
		in.traffic(r, recs, uint32(ingress), uint32(egress), rate)
	}
	switch kind {
	case decode.KindDelay:
		if d := &r.Rare.Traffic.Delay; d.Has != 0 && in.twice != ipfix.Copy {
			in.s.AddDelay(uint32(ingress), uint32(egress), d)
		}
	case decode.KindDrop:
		in.juniper(r, &exception, uint32(ingress), uint32(egress))
	}
}

// traffic sets the record's values about the packets of its flow.
func (in *reading) traffic(r *decode.Report, recs *ipfix.Records, ingress, egress, rate uint32) {
	t := r.AddTraffic()
	t.Ingress, t.Egress = ingress, egress
	octets, _ := recs.Number(ipfix.Octets)
	if octets == 0 { // a sample of one packet has the size of its frame
		octets, _ = recs.Number(ipfix.FrameSize)
	}
	t.Octets = min(octets, math.MaxUint64/uint64(max(rate, 1))) * uint64(max(rate, 1))
	t.Start, t.End = recs.Times(&in.x.message)
	var left bool
	if t.Delay, left, _ = recs.Delays(); left {
		r.Remarks |= decode.RemarkPathDelay
	}
}

// juniper completes the report of an exception: interfaces are those of SNMP, and those of Junos beside them.
func (in *reading) juniper(r *decode.Report, x *ipfix.JuniperException, ingress, egress uint32) {
	r.Units = &juniperUnits
	r.Flags |= decode.Dropped
	r.DropReason = uint8(min(x.Code, math.MaxUint8))
	r.Has |= decode.HasDropReason
	in.s.LearnReason(r.NodeID, r.DropReason, juniperReason)
	h := hopOf(r)
	side := func(index, junos uint32, narrow, wide decode.HopField, to *uint16, toWide *uint32) {
		if index != 0 {
			port(h, index, narrow, wide, to, toWide)
		}
		if junos != 0 && h.Has&wide == 0 {
			packet.AddWord(h, wide, toWide, junos)
		}
	}
	side(ingress, x.Ingress, decode.HopIngressIf, decode.HopL2IngressIf, &h.IngressIf, &h.L2IngressIf)
	side(egress, x.Egress, decode.HopEgressIf, decode.HopL2EgressIf, &h.EgressIf, &h.L2EgressIf)
}

// flow completes a report by the flow of a record: of the packet in it, or of its elements.
func (in *reading) flow(r *decode.Report, recs *ipfix.Records, data []byte) {
	size, _ := recs.Number(ipfix.FrameSize)
	if b, at := recs.Bytes(ipfix.Frame); len(b) > 0 {
		in.frame(r, data, at, len(b), size, true)
		return
	}
	if b, at := recs.Bytes(ipfix.IPPacket); len(b) > 0 {
		in.frame(r, data, at, len(b), 0, false)
		return
	}
	src4, _ := recs.Bytes(ipfix.Src4)
	dst4, _ := recs.Bytes(ipfix.Dst4)
	src6, _ := recs.Bytes(ipfix.Src6)
	dst6, _ := recs.Bytes(ipfix.Dst6)
	k := &r.Flow
	switch is4, is6 := len(src4) == 4 && len(dst4) == 4, len(src6) == 16 && len(dst6) == 16; {
	case is4 && !(is6 && binary.BigEndian.Uint32(src4)|binary.BigEndian.Uint32(dst4) == 0):
		k.Src, k.Dst, k.IPVersion = decode.AddrFrom4(src4), decode.AddrFrom4(dst4), 4
	case is6:
		copy(k.Src[:], src6)
		copy(k.Dst[:], dst6)
		k.IPVersion = 6
	default:
		return
	}
	r.Has |= decode.HasFlow
	proto, _ := recs.Number(ipfix.Proto)
	k.Proto = uint8(proto)
	src, ok := recs.Number(ipfix.SrcPort)
	dst, ok2 := recs.Number(ipfix.DstPort)
	if ok && ok2 && (k.Proto == packet.ProtoTCP || k.Proto == packet.ProtoUDP) {
		k.SrcPort, k.DstPort = uint16(src), uint16(dst)
		r.Has |= decode.HasPorts
	}
}

// settings records the values of an options record about its exporter.
func (in *reading) settings(r *decode.Report, recs *ipfix.Records) {
	if rate, sampler := recs.Rate(); rate > 0 {
		in.s.SetRate(&in.x.message, sampler, rate)
	}
	index, ok := recs.Number(ipfix.Ingress)
	if !ok {
		index, ok = recs.Number(ipfix.Egress)
	}
	name, _ := recs.Bytes(ipfix.Name)
	if len(name) == 0 {
		name, _ = recs.Bytes(ipfix.Description)
	}
	if ok && index > 0 && index < 1<<31 {
		in.s.Learn(r.NodeID, uint32(index), name)
	}
}
