package arrow

import (
	"strconv"

	"github.com/hopscope/hopscope/decode"
)

// Version is that of the schema that is written. A column that is added makes a new version; who reads by names does not
// notice. ReaderVersion is the version that a reader has to know at least: it grows when what is there changes its meaning.
const (
	Version       = 1
	ReaderVersion = 1
)

// Keys of the metadata of the schema. The units of a report with number n in the column units are under UnitsKey with a
// dot and n, from 1 on; those of the others are under UnitsKey.
const (
	DatasetKey       = "hopscope.dataset"
	VersionKey       = "hopscope.schema_version"
	ReaderVersionKey = "hopscope.reader_version"
	UnitsKey         = "hopscope.units"
	NullKey          = "hopscope.null"
)

const (
	dataset  = "reports"
	nullText = "not reported, or marked invalid by the device"
)

// class is how the values of a column lie in memory.
type class uint8

const (
	u8 class = iota
	u16
	u32
	u64
	i64
	moment // ns since 1970
	bit
	address // 16 bytes
	blob
	text
	coded // u8 into a dictionary of texts
	list  // of hops
	strct
)

// width is the bytes of a value; offsets of bytes and of hops count as their values.
var width = [...]int{u8: 1, u16: 2, u32: 4, u64: 8, i64: 8, moment: 8, bit: 0, address: 16, blob: 4, text: 4, coded: 1, list: 4, strct: 0}

// column is one of the table. A column that is not nullable has a value in every row.
type column struct {
	name     string
	class    class
	nullable bool
	has      decode.Field // of a report that has a value; 0 where the value itself tells
}

// The columns of reports, in order.
const (
	cTime = iota
	cFormat
	cKind
	cVersion
	cINT
	cFlags
	cExporter
	cTo
	cNodeID
	cHWID
	cSeq
	cSeqBits
	cFirst
	cHeaderCut
	cHeaderTime
	cSrc
	cDst
	cProto
	cIPVersion
	cSrcPort
	cDstPort
	cPacketID
	cTTL
	cAnnounced
	cDropReason
	cRemainingHops
	cDomainID
	cInstructions
	cFlowID
	cSourceSeq
	cGapTime
	cLost
	cActionID
	cDigest
	cDigestID
	cDigestHops
	cDigestEpoch
	cDigestCoding
	cDigestAMS
	cDigestLastWriter
	cSourceMetadata
	cSRList
	cSRPorts
	cUnknown
	cErrReason
	cErrFormat
	cErrField
	cErrOffset
	cUnits
	numColumns
)

var columns = [numColumns]column{
	cTime:             {"time", moment, false, 0},
	cFormat:           {"format", coded, false, 0},
	cKind:             {"kind", coded, false, 0},
	cVersion:          {"version", u8, false, 0},
	cINT:              {"int_version", u8, false, 0},
	cFlags:            {"flags", u16, false, 0},
	cExporter:         {"exporter", address, true, decode.HasExporter},
	cTo:               {"destination", u64, true, 0},
	cNodeID:           {"node_id", u32, true, decode.HasNodeID},
	cHWID:             {"hw_id", u8, true, decode.HasHWID},
	cSeq:              {"seq", u32, true, decode.HasSeq},
	cSeqBits:          {"seq_bits", u8, true, 0},
	cFirst:            {"first_of_group", bit, false, 0},
	cHeaderCut:        {"header_cut", bit, false, 0},
	cHeaderTime:       {"header_time", u32, true, decode.HasHeaderTime},
	cSrc:              {"src", address, true, decode.HasFlow},
	cDst:              {"dst", address, true, decode.HasFlow},
	cProto:            {"proto", u8, true, decode.HasFlow},
	cIPVersion:        {"ip_version", u8, true, decode.HasFlow},
	cSrcPort:          {"src_port", u16, true, decode.HasPorts},
	cDstPort:          {"dst_port", u16, true, decode.HasPorts},
	cPacketID:         {"packet_id", u16, true, decode.HasPacketID},
	cTTL:              {"ttl", u8, true, decode.HasTTL},
	cAnnounced:        {"announced_hops", u8, true, 0},
	cDropReason:       {"drop_reason", u8, true, decode.HasDropReason},
	cRemainingHops:    {"remaining_hops", u8, true, decode.HasRemainingHops},
	cDomainID:         {"domain_id", u16, true, decode.HasDomainID},
	cInstructions:     {"instructions", u16, true, decode.HasInstructions},
	cFlowID:           {"flow_id", u32, true, decode.HasFlowID},
	cSourceSeq:        {"source_seq", u32, true, decode.HasSourceSeq},
	cGapTime:          {"gap_time", u32, true, decode.HasGap},
	cLost:             {"lost", u32, true, decode.HasGap},
	cActionID:         {"action_id", u32, true, decode.HasActionID},
	cDigest:           {"digest", u64, true, decode.HasDigest},
	cDigestID:         {"digest_packet", u32, true, decode.HasDigest},
	cDigestHops:       {"digest_hops", u8, true, decode.HasDigest},
	cDigestEpoch:      {"digest_epoch", u8, true, decode.HasDigest},
	cDigestCoding:     {"digest_coding", u8, true, decode.HasDigest},
	cDigestAMS:        {"digest_ams", u16, true, decode.HasDigest},
	cDigestLastWriter: {"digest_last_writer", u16, true, decode.HasDigest},
	cSourceMetadata:   {"source_metadata", blob, true, decode.HasSourceMetadata},
	cSRList:           {"sr_list", blob, true, decode.HasSRList},
	cSRPorts:          {"sr_ports", blob, true, decode.HasSRPorts},
	cUnknown:          {"unknown", blob, true, 0},
	cErrReason:        {"error_reason", u8, true, 0},
	cErrFormat:        {"error_format", u8, true, 0},
	cErrField:         {"error_field", text, true, 0},
	cErrOffset:        {"error_offset", i64, true, 0},
	cUnits:            {"units", u16, true, 0},
}

// bytesColumns are those whose values have lengths of their own: one memory each.
const (
	firstBytes = cSourceMetadata
	numBytes   = 5 // the last one is cErrField
)

// bytesOf gives the place of such a column among them.
func bytesOf(c int) int {
	if c == cErrField {
		return numBytes - 1
	}
	return c - firstBytes
}

// The columns of hops, in the order of their bits in decode.HopField, and the width of the device's clock.
const (
	hopTimeBits = 17
	numHop      = 18
)

var hopColumns = [numHop]column{
	{"node_id", u32, true, 0}, {"ingress_if", u16, true, 0}, {"egress_if", u16, true, 0}, {"latency", u32, true, 0},
	{"queue_id", u8, true, 0}, {"queue_occupancy", u32, true, 0}, {"ingress_time", u64, true, 0}, {"egress_time", u64, true, 0},
	{"l2_ingress_if", u32, true, 0}, {"l2_egress_if", u32, true, 0}, {"tx_utilization", u32, true, 0}, {"buffer_id", u8, true, 0},
	{"buffer_occupancy", u32, true, 0}, {"queue_congestion", u32, true, 0}, {"enq_time", u32, true, 0}, {"queue_delay", u32, true, 0},
	{"deq_occupancy", u32, true, 0}, {"time_bits", u8, true, 0},
}

const hopsName = "hops"

// present gives the columns that have a value in a report with bits in Has. Those of class bit tell by themselves: where
// it is not set they are false rather than null.
func present(has decode.Field) (have uint64) {
	for c := range columns {
		if h := columns[c].has; h != 0 && has&h != 0 || !columns[c].nullable && columns[c].class != bit {
			have |= 1 << c
		}
	}
	return have
}

// leaders are, of the columns of each bit in Has, the first one.
var leaders = func() (list []int) {
	var seen decode.Field
	for c := range columns {
		if h := columns[c].has; h != 0 && seen&h == 0 {
			seen |= h
			list = append(list, c)
		}
	}
	return list
}()

// fieldsOf gives Has of a report with values in some columns, and these columns without those whose bit is not set.
func fieldsOf(have uint64) (decode.Field, uint64) {
	var has, all decode.Field
	for _, c := range leaders {
		all |= columns[c].has
		if have>>c&1 != 0 {
			has |= columns[c].has
		}
	}
	return has, have&^present(all&^has) | present(0)&have
}

// Limits of a stream, for its reader: Encoder.Full keeps to them with room to spare.
const (
	MaxRows = 1 << 16
	MaxHops = 1 << 18
	// maxHopsOfOne is more than any format can carry in a packet.
	maxHopsOfOne = 1 << 14
	maxUnits     = 1 << 10
)

// Arrow's numbers, from format/Schema.fbs and format/Message.fbs.
const (
	versionV5 = 4

	messageSchema     = 1
	messageDictionary = 2
	messageBatch      = 3

	typeNull            = 1
	typeInt             = 2
	typeFloat           = 3
	typeBinary          = 4
	typeUtf8            = 5
	typeBool            = 6
	typeDecimal         = 7
	typeDate            = 8
	typeTime            = 9
	typeTimestamp       = 10
	typeInterval        = 11
	typeList            = 12
	typeStruct          = 13
	typeFixedSizeBinary = 15
	typeFixedSizeList   = 16
	typeMap             = 17
	typeDuration        = 18
	typeLargeBinary     = 19
	typeLargeUtf8       = 20
	typeLargeList       = 21

	nanosecond = 3
)

const continuation = 0xffffffff

// dictionaries are the texts of coded columns: a code is the place of its text. Codes never change their text.
func dictionaryOf(c int) (texts []string) {
	if c == cFormat {
		for f := range decode.NumFormats {
			texts = append(texts, decode.Format(f).String())
		}
		return texts
	}
	for k := range decode.NumKinds {
		texts = append(texts, decode.Kind(k).String())
	}
	return texts
}

// appendMessage appends a message whose flatbuffer is w and whose body follows.
func appendMessage(b []byte, meta, body []byte) []byte {
	b = le.AppendUint32(b, continuation)
	n := (len(meta) + 7) &^ 7
	b = le.AppendUint32(b, uint32(n))
	b = append(b, meta...)
	b = append(b, make([]byte, n-len(meta))...)
	return append(b, body...)
}

// message begins a message and gives the place of the reference to its header.
func message(w *flatWriter, kind uint64, body int) (header int) {
	w.b = append(w.b, 0, 0, 0, 0)
	at, f := w.table(num(3, 8, uint64(body)), ref(2), num(0, 2, versionV5), num(1, 1, kind))
	w.point(0, at)
	return f[1]
}

// appendSchema appends what stands before the record batch: the schema and the dictionaries.
func appendSchema(b []byte, units []decode.Units) []byte {
	var w flatWriter
	header := message(&w, messageSchema, 0)
	at, f := w.table(ref(1), ref(2))
	w.point(header, at)
	vec, pos := w.vector(numColumns + 1)
	w.point(f[0], vec)
	for c := range columns {
		w.point(pos+4*c, writeField(&w, &columns[c], c, nil))
	}
	hops := column{hopsName, list, false, 0}
	item := column{"item", strct, false, 0}
	w.point(pos+4*numColumns, writeField(&w, &hops, 0, func(children int) {
		vec, pos := w.vector(1)
		w.point(children, vec)
		w.point(pos, writeField(&w, &item, 0, func(children int) {
			vec, pos := w.vector(numHop)
			w.point(children, vec)
			for c := range hopColumns {
				w.point(pos+4*c, writeField(&w, &hopColumns[c], 0, nil))
			}
		}))
	}))
	pairs := [][2]string{
		{DatasetKey, dataset}, {VersionKey, strconv.Itoa(Version)}, {ReaderVersionKey, strconv.Itoa(ReaderVersion)},
		{NullKey, nullText}, {UnitsKey, string(appendUnits(nil, &decode.DefaultUnits))},
	}
	for i := range units {
		pairs = append(pairs, [2]string{UnitsKey + "." + strconv.Itoa(i+1), string(appendUnits(nil, &units[i]))})
	}
	vec, pos = w.vector(len(pairs))
	w.point(f[1], vec)
	for i, p := range pairs {
		at, kv := w.table(ref(0), ref(1))
		w.point(pos+4*i, at)
		w.point(kv[0], w.text(p[0]))
		w.point(kv[1], w.text(p[1]))
	}
	b = appendMessage(b, w.b, nil)
	for _, c := range []int{cFormat, cKind} {
		b = appendDictionary(b, c)
	}
	return b
}

// writeField writes a field of a schema; with children, it calls it with the place of their reference.
func writeField(w *flatWriter, c *column, id int, children func(int)) int {
	slots := []slot{ref(0), ref(3), boolean(1, c.nullable), ref(5)}
	kind := uint64(typeInt)
	var def []slot
	integer := func(bits uint64, signed bool) { def = []slot{num(0, 4, bits), boolean(1, signed)} }
	switch c.class {
	case u8:
		integer(8, false)
	case u16:
		integer(16, false)
	case u32:
		integer(32, false)
	case u64:
		integer(64, false)
	case i64:
		integer(64, true)
	case moment:
		kind, def = typeTimestamp, []slot{num(0, 2, nanosecond), ref(1)}
	case bit:
		kind = typeBool
	case address:
		kind, def = typeFixedSizeBinary, []slot{num(0, 4, 16)}
	case blob:
		kind = typeBinary
	case text:
		kind = typeUtf8
	case coded:
		kind = typeUtf8
		slots = append(slots, ref(4))
	case list:
		kind = typeList
	case strct:
		kind = typeStruct
	}
	slots = append(slots, num(2, 1, kind))
	at, f := w.table(slots...)
	w.point(f[0], w.text(c.name))
	t, tf := w.table(def...)
	w.point(f[1], t)
	if c.class == moment {
		w.point(tf[1], w.text("UTC"))
	}
	if c.class == coded {
		d, df := w.table(num(0, 8, uint64(id)), ref(1))
		w.point(f[4], d)
		i, _ := w.table(num(0, 4, 8), boolean(1, false))
		w.point(df[1], i)
	}
	if children != nil {
		children(f[3])
	} else {
		vec, _ := w.vector(0)
		w.point(f[3], vec)
	}
	return at
}

func appendDictionary(b []byte, c int) []byte {
	texts := dictionaryOf(c)
	var offsets, values []byte
	for _, t := range texts {
		offsets = le.AppendUint32(offsets, uint32(len(values)))
		values = append(values, t...)
	}
	offsets = le.AppendUint32(offsets, uint32(len(values)))
	for len(offsets)%8 != 0 {
		offsets = append(offsets, 0)
	}
	for len(values)%8 != 0 {
		values = append(values, 0)
	}
	body := append(offsets, values...)

	var w flatWriter
	header := message(&w, messageDictionary, len(body))
	at, f := w.table(num(0, 8, uint64(c)), ref(1))
	w.point(header, at)
	at, g := w.table(num(0, 8, uint64(len(texts))), ref(1), ref(2))
	w.point(f[1], at)
	vec, pos := w.pairs(1)
	w.point(g[1], vec)
	le.PutUint64(w.b[pos:], uint64(len(texts)))
	vec, pos = w.pairs(3)
	w.point(g[2], vec)
	for i, p := range [][2]int{{0, 0}, {0, 4 * (len(texts) + 1)}, {len(offsets), len(values)}} {
		le.PutUint64(w.b[pos+16*i:], uint64(p[0]))
		le.PutUint64(w.b[pos+16*i+8:], uint64(p[1]))
	}
	return appendMessage(b, w.b, body)
}

// batchMeta is the flatbuffer of a record batch whose numbers are to be filled in.
type batchMeta struct {
	b             []byte
	bodyLength    int
	rows          int
	nodes, buffer int // the first
}

const (
	numNodes   = numColumns + 2 + numHop
	numBuffers = 2*numColumns + numBytes + 2 + 1 + 2*numHop
)

func newBatchMeta() (m batchMeta) {
	var w flatWriter
	w.b = append(w.b, 0, 0, 0, 0)
	at, f := w.table(num(3, 8, 0), ref(2), num(0, 2, versionV5), num(1, 1, messageBatch))
	w.point(0, at)
	m.bodyLength = f[0]
	at, g := w.table(num(0, 8, 0), ref(1), ref(2))
	w.point(f[1], at)
	m.rows = g[0]
	vec, pos := w.pairs(numNodes)
	w.point(g[1], vec)
	m.nodes = pos
	vec, pos = w.pairs(numBuffers)
	w.point(g[2], vec)
	m.buffer = pos
	w.align(8, 0)
	m.b = w.b
	return m
}
