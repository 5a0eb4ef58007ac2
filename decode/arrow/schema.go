package arrow

import (
	"strconv"

	"github.com/hopscope/hopscope/decode"
)

// Version is the version of the schema that is written. A new column makes a new version, which readers by name need
// not notice. readerVersion is the least version that a reader must support. It grows when an existing column changes
// its meaning.
const (
	Version       = 1
	readerVersion = 1
)

// Keys of the metadata of the schema. The units of reports with number n from 1 on in the column units are under
// unitsKey with a dot and n. Those of the others are under unitsKey.
const (
	DatasetKey       = "hopscope.dataset"
	VersionKey       = "hopscope.schema_version"
	ReaderVersionKey = "hopscope.reader_version"
	unitsKey         = "hopscope.units"
	nullKey          = "hopscope.null"
)

const (
	dataset  = "reports"
	nullText = "not reported, or marked invalid by the device"
)

// width is the bytes of a value; offsets of bytes count as their values.
var width = [...]int{
	decode.TypeUint8: 1, decode.TypeUint16: 2, decode.TypeUint32: 4, decode.TypeUint64: 8, decode.TypeInt64: 8, decode.TypeTime: 8, decode.TypeBool: 0,
	decode.TypeCode: 1, decode.TypeAddress: 16, decode.TypeBytes: 4, decode.TypeText: 4, decode.TypeUnits: 2,
}

// The columns of a stream are those of decode.ReportColumns, and the hops.
var (
	columns    = &decode.ReportColumns
	hopColumns = &decode.HopColumns
)

const (
	numColumns  = decode.NumColumns
	numHop      = decode.NumHopColumns
	hopTimeBits = decode.HopTimeBits
)

// layout is how a group of columns lies in memory.
type layout struct {
	names  []string
	types  []decode.ValueType
	widths []int
}

func (l *layout) add(name string, t decode.ValueType) {
	l.names, l.types, l.widths = append(l.names, name), append(l.types, t), append(l.widths, width[t])
}

// rowLayout and hopLayout are the layouts of the columns of rows and of hops.
var rowLayout, hopLayout = func() (rows, hops layout) {
	for c := range columns {
		rows.add(columns[c].Name, columns[c].Type)
	}
	for c := range hopColumns {
		hops.add(hopColumns[c].Name, hopColumns[c].Type)
	}
	return rows, hops
}()

// nullable reports whether a column can be null. Columns of type bool are false rather than null.
func nullable(c int) bool {
	return decode.AlwaysColumns>>c&1 == 0 && columns[c].Type != decode.TypeBool
}

// bytesColumns are those whose values have lengths of their own: one memory each.
const (
	firstBytes = decode.ColSourceMetadata
	numBytes   = 5 // the last one is ColErrField
)

// bytesOf returns the place of such a column among them.
func bytesOf(c int) int {
	if c == decode.ColErrField {
		return numBytes - 1
	}
	return c - firstBytes
}

const hopsName = "hops"

// Limits of a stream, for its reader: Encoder.Full keeps to them with room to spare.
const (
	maxRows = 1 << 16
	maxHops = 1 << 18
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

// dictionaryOf returns the texts of a coded column: a code is the place of its text. Codes never change their text.
func dictionaryOf(c int) (texts []string) {
	for code := range columns[c].Limit {
		text := decode.Kind(code).String()
		if c == decode.ColFormat {
			text = decode.Format(code).String()
		}
		texts = append(texts, text)
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

// message begins a message and returns the place of the reference to its header.
func message(w *flatWriter, kind uint64, body int) (header int) {
	w.b = append(w.b, 0, 0, 0, 0)
	at, f := w.table(num(3, 8, uint64(body)), ref(2), num(0, 2, versionV5), num(1, 1, kind))
	w.point(0, at)
	return f[1]
}

// appendSchema appends the messages before the record batch: the schema and the dictionaries.
func appendSchema(b []byte, units []decode.Units) []byte {
	var w flatWriter
	header := message(&w, messageSchema, 0)
	at, f := w.table(ref(1), ref(2))
	w.point(header, at)
	vec, pos := w.vector(numColumns + 1)
	w.point(f[0], vec)
	for c := range columns {
		w.point(pos+4*c, writeField(&w, columns[c].Name, arrowTypes[columns[c].Type], nullable(c), c, nil))
	}
	w.point(pos+4*numColumns, writeField(&w, hopsName, arrowType{kind: typeList}, false, 0, func(children int) {
		vec, pos := w.vector(1)
		w.point(children, vec)
		w.point(pos, writeField(&w, "item", arrowType{kind: typeStruct}, false, 0, func(children int) {
			vec, pos := w.vector(numHop)
			w.point(children, vec)
			for c := range hopColumns {
				w.point(pos+4*c, writeField(&w, hopColumns[c].Name, arrowTypes[hopColumns[c].Type], true, 0, nil))
			}
		}))
	}))
	pairs := [][2]string{
		{DatasetKey, dataset}, {VersionKey, strconv.Itoa(Version)}, {ReaderVersionKey, strconv.Itoa(readerVersion)},
		{nullKey, nullText}, {unitsKey, string(appendUnits(nil, &decode.DefaultUnits))},
	}
	for i := range units {
		pairs = append(pairs, [2]string{unitsKey + "." + strconv.Itoa(i+1), string(appendUnits(nil, &units[i]))})
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
	for _, c := range []int{decode.ColFormat, decode.ColKind} {
		b = appendDictionary(b, c)
	}
	return b
}

// arrowType is a type of Arrow: its number, and the bits of an integer or the bytes of fixed ones.
type arrowType struct {
	kind   int
	bits   int
	signed bool
	coded  bool
}

var arrowTypes = [...]arrowType{
	decode.TypeUint8: {kind: typeInt, bits: 8}, decode.TypeUint16: {kind: typeInt, bits: 16}, decode.TypeUint32: {kind: typeInt, bits: 32},
	decode.TypeUint64: {kind: typeInt, bits: 64}, decode.TypeInt64: {kind: typeInt, bits: 64, signed: true}, decode.TypeUnits: {kind: typeInt, bits: 16},
	decode.TypeTime: {kind: typeTimestamp}, decode.TypeBool: {kind: typeBool}, decode.TypeCode: {kind: typeUtf8, coded: true},
	decode.TypeAddress: {kind: typeFixedSizeBinary, bits: 8 * 16}, decode.TypeBytes: {kind: typeBinary}, decode.TypeText: {kind: typeUtf8},
}

// writeField writes a field of a schema; with children, it calls it with the place of their reference.
func writeField(w *flatWriter, name string, typ arrowType, nullable bool, id int, children func(int)) int {
	slots := []slot{ref(0), ref(3), boolean(1, nullable), ref(5)}
	var def []slot
	switch typ.kind {
	case typeInt:
		def = []slot{num(0, 4, uint64(typ.bits)), boolean(1, typ.signed)}
	case typeTimestamp:
		def = []slot{num(0, 2, nanosecond), ref(1)}
	case typeFixedSizeBinary:
		def = []slot{num(0, 4, uint64(typ.bits/8))}
	}
	if typ.coded {
		slots = append(slots, ref(4))
	}
	slots = append(slots, num(2, 1, uint64(typ.kind)))
	at, f := w.table(slots...)
	w.point(f[0], w.text(name))
	t, tf := w.table(def...)
	w.point(f[1], t)
	if typ.kind == typeTimestamp {
		w.point(tf[1], w.text("UTC"))
	}
	if typ.coded {
		d, df := w.table(num(0, 8, uint64(id)), ref(1))
		w.point(f[4], d)
		i, _ := w.table(num(0, 4, 8), boolean(1, false))
		w.point(df[1], i)
	}
	if children == nil {
		children = func(at int) {
			vec, _ := w.vector(0)
			w.point(at, vec)
		}
	}
	children(f[3])
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
