// Package reportjson writes decoded reports as JSON, one object a report.
//
// Numbers are raw wire values, as integers of up to 64 bits. Addresses are strings, IPv6 in the short form of RFC
// 5952. Bitmaps and opaque bytes are hex strings with 0x. A key is there only if the packet has the value, so there
// is no null and no empty list. A block of a stack without any value is an empty object. Hops are in the order of the
// path.
//
// All of it is printed ASCII. It appends to the caller's bytes, without reflection or allocation. The command
// "hopscope decode" prints these objects, one a line. The recorded readings of captures, with which decoders are
// tested, are such lines.
package reportjson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"

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

// member is a member of a report's object: its key, with the separator from the value before, and the column of its
// value.
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
	{`,"unknown":"0x`, decode.ColUnknown, asBytes},
	{`,"drop_reason":`, decode.ColDropReason, asNumber}, {`,"gap_time":`, decode.ColGapTime, asNumber}, {`,"lost":`, decode.ColLost, asNumber},
	{`,"action_id":`, decode.ColActionID, asNumber}, {`,"sr_list":"0x`, decode.ColSRList, asBytes}, {`,"sr_ports":[`, decode.ColSRPorts, asPorts},
	{"", decode.ColDigest, asDigest},
}

// key is a text, mostly a member's key, in an array, which is appended in moves of a size that the compiler knows.
type key struct {
	text [32]byte
	size int
}

func keyOf(s string) (k key) {
	k.size = copy(k.text[:], s)
	return k
}

// text appends the key.
func (k *key) append(b []byte) []byte {
	return append(append(b, k.text[:16]...), k.text[16:]...)[:len(b)+k.size]
}

// uint appends the key and a number.
func (k *key) uint(b []byte, v uint64) []byte { return appendUint(k.append(b), v) }

// Keys that are in no table, and texts of formats and kinds with the quote behind them.
var (
	frameKey, timeKey = keyOf(`{"frame":`), keyOf(`,"time_ns":`)
	flowKey, innerKey = keyOf(`,"flow":{"src":"`), keyOf(`,"inner_flow":{"src":"`)
	dstKey, protoKey  = keyOf(`,"dst":"`), keyOf(`,"proto":`)
	srcPortKey        = keyOf(`,"src_port":`)
	dstPortKey        = keyOf(`,"dst_port":`)
	formatTexts       = textsOf[decode.Format](decode.NumFormats)
	kindTexts         = textsOf[decode.Kind](decode.NumKinds)
)

// flagTexts are the names of flags by their bits, each with the separator behind it.
var flagTexts = func() (texts [16]key) {
	for i := range texts {
		texts[i] = keyOf(strings.Join(decode.Flags(1<<i).AppendNames(nil), "") + `","`)
	}
	return texts
}()

func textsOf[T interface {
	~uint8
	String() string
}](n int) []key {
	list := make([]key, n)
	for i := range list {
		list[i] = keyOf(T(i).String() + `"`)
	}
	return list
}

// The plan of an object is made of members and of the table of columns. Sets of members have bit i for members[i].
var (
	memberKeys = func() (keys [len(members)]key) {
		for i := range members {
			keys[i] = keyOf(members[i].key)
		}
		return keys
	}()
	memberOf = func() (set [ioamOption + 1]uint32) { // by column
		for i := range members {
			set[members[i].column] |= 1 << i
		}
		return set
	}()
	presence = func() (list [32]present) { // by bit of Report.Has
		for f := range list {
			list[f].columns = decode.Field(1 << f).Columns()
			for c := range decode.NumColumns {
				if list[f].columns>>c&1 != 0 {
					list[f].members |= memberOf[c]
				}
			}
		}
		return list
	}()
	// mayBeZero are the members whose value is in every report. They are not written if it is 0.
	mayBeZero = memberOf[decode.ColVersion] | memberOf[decode.ColINT] | memberOf[decode.ColKind] | memberOf[decode.ColFlags]
	// ofHeader are the members that are not accepted of a header that was cut.
	ofHeader = memberOf[decode.ColVersion] | memberOf[decode.ColNodeID] | memberOf[decode.ColHWID] | memberOf[decode.ColSeq]
)

// present is a member whose presence is a bit of Report.Has.
type present struct {
	members uint32
	columns decode.Columns
}

// Append appends r as one JSON object without a newline. Frame is the number of the frame in its file, from 1.
// Nothing in the result needs escaping: every string in it is a name, a number or an address.
func Append(dst []byte, frame uint64, r *decode.Report) []byte {
	b := timeKey.append(frameKey.uint(dst, frame))
	if r.Time < 0 {
		b = append(b, '-')
	}
	b = appendUint(b, uint64(max(r.Time, -r.Time))) // the least number is its own opposite, and right as a uint64
	have := present{members: mayBeZero | memberOf[decode.ColFormat]}
	if r.Remarks&(decode.RemarkDomainData|decode.RemarkMoreData) != 0 && len(r.Unknown) > 0 {
		have.members |= memberOf[decode.ColUnknown]
	}
	if r.Has&decode.HasInner != 0 { // behind labels, where no other flow is
		have.members |= memberOf[decode.ColSrc]
	}
	for f := uint32(r.Has); f != 0; f &= f - 1 {
		p := &presence[bits.TrailingZeros32(f)&31]
		have.members |= p.members
		have.columns |= p.columns
	}
	var v [ioamOption + 1]uint64
	r.Numbers(have.columns, (*decode.ReportNumbers)(v[:]))
	if r.HeaderCut {
		have.members &^= ofHeader
	}
	rare := r.Rare
	if rare != nil && rare.IOAM.Has != 0 {
		x := &rare.IOAM
		have.members |= memberOf[ioamOption]
		if v[ioamSeq] = x.Seq; x.Has&decode.IOAMSeq != 0 {
			have.members |= memberOf[ioamSeq]
		}
		if v[ioamNamespace] = uint64(x.Namespace); x.Has&decode.IOAMNamespace != 0 {
			have.members |= memberOf[ioamNamespace]
		}
	}
	o := object{}
	for set := have.members; set != 0; set &= set - 1 {
		i := bits.TrailingZeros32(set)
		m := &members[i]
		v := v[m.column]
		if v == 0 && mayBeZero>>i&1 != 0 {
			continue
		}
		switch k := &memberKeys[i]; m.style {
		case asNumber:
			b = k.uint(b, v)
		case asVersion:
			if b = append(k.append(b), '0'+byte(v/10)); r.Format != decode.IFA || m.column != decode.ColVersion { // versions of IFA are whole
				b = append(b, '.', '0'+byte(v%10))
			}
			b = append(b, '"')
		case asFormat:
			b = formatTexts[v%uint64(len(formatTexts))].append(k.append(b))
		case asKind:
			b = kindTexts[v%uint64(len(kindTexts))].append(k.append(b))
		case asFlags:
			b = k.append(b)
			for f := v; f != 0; f &= f - 1 {
				b = flagTexts[bits.TrailingZeros64(f)&15].append(b)
			}
			b = append(b[:len(b)-2], ']') // instead of what leads to another one
		case asAddress:
			b = appendAddr(k.append(b), r.Address(m.column), nil)
		default:
			o.b = b
			o.member(m, v, r)
			b = o.b
		}
	}
	o.b = b
	var nodes []decode.IOAMNode
	if rare != nil {
		nodes = rare.IOAM.Nodes
		if rare.Template != nil {
			o.record(rare.Template, r.Unknown)
		}
	}
	if len(r.Hops) > 0 {
		sep := `,"hops":[`
		for i := range r.Hops {
			o.b = append(o.b, sep...)
			if i < len(nodes) {
				o.node(&r.Hops[i], &nodes[i])
			} else {
				o.hop(&r.Hops[i], r.HopCounts(i))
			}
			sep = ","
		}
		o.b = append(o.b, ']')
	}
	if rare != nil && rare.Counters.Has != 0 {
		o.counters(&rare.Counters)
	}
	if r.Kind == decode.KindProbes && rare != nil && rare.Probes != nil {
		o.probes(rare.Probes)
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

// counterKeys are the keys of the counts of an interface, in the order of their bits.
var counterKeys = [...]string{`,"in_packets":`, `,"out_packets":`, `,"in_errors":`, `,"out_errors":`, `,"in_discards":`, `,"out_discards":`, `,"in_octets":`, `,"out_octets":`}

// counters appends the counts of an interface.
func (o *object) counters(c *decode.Counters) {
	o.uint(`,"counters":{"interface":`, uint64(c.Interface))
	for i, n := range c.All() {
		if c.Has>>i&1 != 0 {
			o.uint(counterKeys[i], *n)
		}
	}
	if c.Has&decode.CountRxUtilization != 0 {
		o.uint(`,"rx_utilization":`, uint64(c.RxUtilization))
	}
	o.b = append(o.b, '}')
}

// probes appends the outcomes of the probes of a path, and the number of delays in each bucket. A bucket has an upper
// bound in nanoseconds, and begins above the previous one.
func (o *object) probes(p *decode.ProbeCounts) {
	o.uint(`,"probes":{"path":`, uint64(p.Path))
	o.uint(`,"epoch":`, uint64(p.Epoch))
	if len(p.Way) > 0 {
		sep := `,"way":[`
		for _, a := range p.Way {
			o.b = append(o.b, sep...)
			if a == (decode.Addr{}) {
				o.b = append(o.b, "null"...)
			} else {
				o.b = append(append(append(o.b, '"'), a.String()...), '"')
			}
			sep = ","
		}
		o.b = append(o.b, "]}"...)
		return
	}
	if n := &p.Rounds; n.End != decode.NoEnd {
		o.b = append(append(o.b, `,"rounds":{"end":"`...), n.End.String()...)
		o.uint(`","count":`, uint64(n.Count))
		o.uint(`,"turn":`, uint64(n.Turn))
		o.uint(`,"first":`, uint64(n.First))
		o.uint(`,"next":`, uint64(n.Next))
		o.uint(`,"received":`, uint64(n.Received))
		o.b = append(o.b, "}}"...)
		return
	}
	o.uint(`,"sent":`, uint64(p.Sent))
	o.uint(`,"received":`, uint64(p.Received))
	o.uint(`,"missed":`, uint64(p.Missed))
	o.uint(`,"late":`, uint64(p.Late))
	o.uint(`,"twice":`, uint64(p.Twice))
	o.uint(`,"corrupt":`, uint64(p.Corrupt))
	o.uint(`,"reordered":`, uint64(p.Reordered))
	o.b = strconv.AppendInt(append(o.b, `,"lost_forward":`...), int64(p.Forward), 10)
	o.b = strconv.AppendInt(append(o.b, `,"lost_back":`...), int64(p.Back), 10)
	sep := `,"delays":[[`
	for _, d := range p.Delays {
		o.uint(sep, decode.LongestDelay(d.Code))
		o.uint(`,`, uint64(d.Count))
		sep = `],[`
	}
	if len(p.Delays) > 0 {
		o.b = append(o.b, ']', ']')
	}
	o.b = append(o.b, '}')
}

// record writes a record of IPFIX or NetFlow 9: its template, its known delays, and all elements with their bytes.
// Scopes come first.
func (o *object) record(t *decode.Template, record []byte) {
	o.uint(`,"template":`, uint64(t.ID))
	o.uint(`,"observation_domain":`, uint64(t.Domain))
	if len(t.Fields) == 0 {
		o.b = append(o.b, `,"waiting":true`...)
		o.hex(`,"unknown":"0x`, record...)
		return
	}
	if t.Scopes > 0 {
		o.uint(`,"scopes":`, uint64(t.Scopes))
	}
	if t.Delays != nil {
		if d, ok := t.Delays(record); ok {
			o.delays(&d)
		}
	}
	sep := `,"elements":[`
	for e, v := range t.Values(record) {
		o.uint(sep+`{"id":`, uint64(e.ID))
		if e.PEN != 0 {
			o.uint(`,"pen":`, uint64(e.PEN))
		}
		o.uint(`,"length":`, uint64(len(v)))
		o.hex(`,"value":"0x`, v...)
		o.b = append(o.b, '}')
		sep = ","
	}
	if sep == "," {
		o.b = append(o.b, ']')
	}
}

// delays writes how long packets were on their way to the reporting node, in ns.
func (o *object) delays(d *decode.PathDelay) {
	sep := `,"path_delay":{"`
	for _, x := range [...]struct {
		has  decode.DelayField
		name string
		v    uint64
	}{{decode.DelayMean, "mean", d.Mean}, {decode.DelayMin, "min", d.Min}, {decode.DelayMax, "max", d.Max}, {decode.DelaySum, "sum", d.Sum}} {
		if d.Has&x.has != 0 {
			o.uint(sep+x.name+`_ns":`, x.v)
			sep = `,"`
		}
	}
	if d.Packets > 0 {
		o.uint(sep+`packets":`, d.Packets)
	}
	o.b = append(o.b, '}')
}

func (o *object) member(m *member, v uint64, r *decode.Report) {
	switch m.style {
	case asHexNumber:
		o.hex(m.key, byte(v>>8), byte(v))
	case asBytes:
		if b := *r.Bytes(m.column); len(b) > 0 {
			o.hex(m.key, b...)
		}
	case asPorts:
		if b := *r.Bytes(m.column); len(b) > 1 {
			o.ports(m.key, b)
		}
	case asFlow:
		if r.Has&decode.HasFlow != 0 {
			o.flow(&flowKey, &r.Flow, r.Has&decode.HasPorts != 0)
		}
		if r.Has&decode.HasInner != 0 && r.Rare != nil {
			o.flow(&innerKey, &r.Rare.Inner, r.Has&decode.HasInnerPorts != 0)
		}
	case asDigest:
		o.digest(r)
	case asOption:
		o.option(&r.Rare.IOAM)
	}
}

// object is an object under construction. Keys include the separator from the previous value.
type object struct{ b []byte }

func (o *object) uint(key string, v uint64) {
	o.b = appendUint(append(o.b, key...), v)
}

// appendUint is strconv.AppendUint in decimal.
func appendUint(b []byte, v uint64) []byte {
	if v < 10 {
		return append(b, '0'+byte(v))
	}
	const most = 1e8 // below, eight digits are enough
	if v < most {
		return appendShort(b, v)
	}
	high := v / most
	if high < most {
		b = appendShort(b, high)
	} else {
		b = binary.LittleEndian.AppendUint64(appendShort(b, high/most), eightDigits(high%most)|zeros)
	}
	return binary.LittleEndian.AppendUint64(b, eightDigits(v%most)|zeros)
}

const zeros = 0x3030303030303030

// appendShort is appendUint for a number of at most eight digits.
func appendShort(b []byte, v uint64) []byte {
	digits := eightDigits(v)
	leading := bits.TrailingZeros64(digits|1<<56) &^ 7 // but for the last digit
	return binary.LittleEndian.AppendUint64(b, (digits|zeros)>>leading)[:len(b)+8-leading/8]
}

// eightDigits returns the digits of a number below 1e8 as the bytes of a word, the first one the lowest. Halves,
// quarters and digits are divided at once, each by a multiplication that is exact in its range.
func eightDigits(v uint64) uint64 {
	high := v / 1e4
	v = high | (v-high*1e4)<<32
	high = v * 10486 >> 20 & ((1<<7 - 1) * (1 + 1<<32)) // by 100
	v = high | (v-high*100)<<16
	high = v * 103 >> 10 & ((1<<4 - 1) * (1 + 1<<16 + 1<<32 + 1<<48)) // by 10
	return high | (v-high*10)<<8
}

func (o *object) text(key, v string) {
	o.b = append(append(append(o.b, key...), v...), '"')
}

// appendAddr appends an address and the quote behind it. Of is the key of a flow that it belongs to, if it does.
func appendAddr(b []byte, a *decode.Addr, of *decode.FlowKey) []byte {
	v, ok := a.IPv4()
	if !ok || of != nil && of.IPVersion == 6 {
		ip := a.Netip()
		if of != nil {
			k := decode.FlowKey{Src: *a, IPVersion: of.IPVersion}
			ip = k.SrcAddr()
		}
		return append(ip.AppendTo(b), '"')
	}
	for range 4 {
		n := &bytesInText[v>>24]
		b = append(b, n.text[:]...)[:len(b)+n.size]
		v <<= 8
	}
	b[len(b)-1] = '"' // instead of the last dot
	return b
}

// bytesInText holds numbers of a byte, each with a dot.
var bytesInText = func() (list [256]struct {
	text [4]byte
	size int
}) {
	for v := range list {
		list[v].size = copy(list[v].text[:], strconv.Itoa(v)+".")
	}
	return list
}()

func (o *object) hex(key string, v ...byte) {
	const digits = "0123456789abcdef"
	o.b = append(o.b, key...)
	for _, c := range v {
		o.b = append(o.b, digits[c>>4], digits[c&15])
	}
	o.b = append(o.b, '"')
}

func (o *object) flow(in *key, k *decode.FlowKey, ports bool) {
	b := appendAddr(in.append(o.b), &k.Src, k)
	b = appendAddr(dstKey.append(b), &k.Dst, k)
	b = protoKey.uint(b, uint64(k.Proto))
	if ports {
		b = srcPortKey.uint(b, uint64(k.SrcPort))
		b = dstPortKey.uint(b, uint64(k.DstPort))
	}
	o.b = append(b, '}')
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

func (o *object) hop(h *decode.Hop, counts *decode.HopCounts) {
	start := len(o.b)
	var v decode.HopNumbers
	h.Numbers(h.Has, &v)
	b := o.b
	for i := range hopMembers {
		if m := &hopMembers[i]; h.Has&m.bit != 0 {
			b = m.key.uint(b, v[m.column])
		}
	}
	o.b = b
	if counts != nil {
		for i, n := range counts.All() {
			if counts.Has>>i&1 != 0 {
				o.uint(hopCountKeys[i], uint64(*n))
			}
		}
	}
	o.close(start)
}

// hopCountKeys are the keys of the counts of a hop, in the order of their bits.
var hopCountKeys = func() (list [decode.NumHopCounts]string) {
	for i, name := range decode.HopCountNames {
		list[i] = `,"` + name + `":`
	}
	return list
}()

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

// hopMember is a member of the object of a hop.
type hopMember struct {
	bit    decode.HopField
	column uint8
	key    key
}

// hopMembers are the members of a hop in hopOrder.
var hopMembers = func() (list [len(hopOrder)]hopMember) {
	for i, c := range hopOrder {
		list[i] = hopMember{1 << c, c, keyOf(`,"` + decode.HopColumns[c].Name + `":`)}
	}
	return list
}()
