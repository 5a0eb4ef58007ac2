package arrow

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
)

// Decoder reads streams of reports, such as an [Encoder] writes, or any other writer of the schema that does not compress:
// columns are found by their names, in any order, and those that it does not know are passed over. The zero value is
// ready. It has one user at a time, and keeps the schemas that it saw last.
//
// [Decoder.Decode] reads a stream at once. [Decoder.Open] and [Decoder.Next] read it in parts that stay in the caches of the
// processor until they were counted.
type Decoder struct {
	plans   []plan            // the one that was used last first
	fields  map[string]string // texts of errors
	batches []batch           // of the open stream
	left    limits

	// What Next reads next.
	batch, row int
	cursor     uint32 // first hop
	unknown    int

	have uint64 // of the last row
	last presence
}

// batch is an open record batch, all of which is in bounds.
type batch struct {
	plan            *plan
	rows            int
	all, some       uint64 // columns with a value in every row, and in some
	cols            [numColumns]view
	hopAll, hopSome uint32
	hops            [numHop]view
	starts          []byte // of the hops of each row, and the end of the last; nil if there are none
}

type presence struct {
	has  decode.Field
	have uint64
}

// plan is where the columns of a schema are.
type plan struct {
	schema        string // the flatbuffer
	cols          [numColumns]place
	hop           [numHop]place
	list, item    place
	nodes, buffer int
	units         []*decode.Units // by code; 0 are the default ones
}

// limits are what a stream may still hold.
type limits struct{ rows, hops int }

// place is the number of a column's node and of its first buffer, both from 1 on; 0 is a column that is not there.
type place struct{ node, buffer int }

// view is a column of a batch.
type view struct {
	valid  []byte // nil if every row has a value
	data   []byte
	values []byte // of data that are offsets
	none   bool   // no row has a value
}

// keptPlans bounds the schemas that are kept. A topic has those of two versions while a fleet is upgraded, and one for each
// set of units.
const keptPlans = 32

// Decode appends the reports of a stream to dst. They do not alias b, apart from the byte slices of rare fields
// ([decode.Report.SourceMetadata] and those beside it). Reports of a kind or of a format that this version does not know
// are left out and counted. On error dst is as it was.
func (d *Decoder) Decode(b []byte, dst *decode.Batch) (unknown int, err error) {
	if err := d.Open(b); err != nil {
		return 0, err
	}
	for d.Next(dst, MaxRows) {
	}
	return d.unknown, nil
}

// Open looks through a stream and finds all that is wrong with it. B must not change until its last report was read.
func (d *Decoder) Open(b []byte) error {
	d.batch, d.row, d.cursor, d.unknown = 0, 0, 0, 0
	d.batches = d.batches[:0]
	if err := d.open(b); err != nil {
		d.batches = d.batches[:0]
		return err
	}
	d.begin()
	return nil
}

func (d *Decoder) open(b []byte) *Error {
	var p *plan
	d.left = limits{MaxRows, MaxHops}
	at := 0
	for {
		m, next, err := nextMessage(b, at)
		if err != nil {
			return err
		}
		if m.kind == 0 { // the end
			if p == nil {
				return &Error{at, "schema", ErrMissing}
			}
			return nil
		}
		switch {
		case m.kind == messageSchema && p == nil:
			p, err = d.plan(b, &m)
		case m.kind == messageSchema || p == nil:
			err = &Error{at, "schema", ErrRange}
		case m.kind == messageDictionary: // codes are fixed
		case m.kind == messageBatch:
			err = d.openBatch(p, b, &m)
		default:
			err = &Error{at, "message", ErrUnsupported}
		}
		if err != nil {
			return err
		}
		at = next
	}
}

// Unknown is how many reports of the open stream were left out so far.
func (d *Decoder) Unknown() int { return d.unknown }

// Next appends reports of the open stream to dst, at most limit, which are those of as many rows less the unknown ones. It
// reports whether there are rows left.
func (d *Decoder) Next(dst *decode.Batch, limit int) (more bool) {
	for d.batch < len(d.batches) && limit > 0 {
		b := &d.batches[d.batch]
		n := min(limit, b.rows-d.row)
		d.readRows(b, n, dst)
		limit -= n
		if d.row += n; d.row == b.rows {
			d.batch++
			d.row = 0
			d.begin()
		}
	}
	return d.batch < len(d.batches)
}

// begin goes to the hops of the next batch.
func (d *Decoder) begin() {
	d.cursor = 0
	if d.batch < len(d.batches) && d.batches[d.batch].starts != nil {
		d.cursor = le.Uint32(d.batches[d.batch].starts)
	}
}

// part is a message: its flatbuffer, the table of its header in that, and its body.
type part struct {
	kind               int
	meta, body, length int // places and length of the body
	metaEnd            int
	header             flatTable
	flat               flat
}

func nextMessage(b []byte, at int) (m part, next int, err *Error) {
	if len(b)-at < 8 {
		if len(b) == at && at > 0 {
			return part{}, at, nil // writers may leave out the end
		}
		return part{}, 0, &Error{at, "message", ErrShort}
	}
	if le.Uint32(b[at:]) != continuation {
		return part{}, 0, &Error{at, "message", ErrUnsupported}
	}
	n := int(le.Uint32(b[at+4:]))
	if n == 0 {
		return part{}, at + 8, nil
	}
	if n > len(b)-at-8 {
		return part{}, 0, &Error{at + 4, "message", ErrShort}
	}
	m.meta, m.metaEnd = at+8, at+8+n
	m.flat = flat{b: b[m.meta:m.metaEnd], base: m.meta}
	f := &m.flat
	t := f.table(f.follow(0, "message"), "message")
	kind := t.num(1, 1, "message")
	length := t.num(3, 8, "body length")
	if f.err != nil {
		return part{}, 0, f.err
	}
	if kind == 0 {
		return part{}, 0, &Error{at, "message", ErrMissing}
	}
	if length > uint64(len(b)-m.metaEnd) {
		return part{}, 0, &Error{m.metaEnd, "body", ErrShort}
	}
	m.kind, m.body, m.length = int(kind), m.metaEnd, int(length)
	header, ok := t.table(2, "header")
	if f.err != nil {
		return part{}, 0, f.err
	}
	if !ok {
		return part{}, 0, &Error{at, "header", ErrMissing}
	}
	m.header = header
	m.header.f = nil // moves with m
	return m, m.metaEnd + m.length, nil
}

// table gives the header of m to read from.
func (m *part) table() flatTable {
	t := m.header
	t.f = &m.flat
	return t
}

// plan gives the plan of a schema.
func (d *Decoder) plan(b []byte, m *part) (*plan, *Error) {
	schema := b[m.meta:m.metaEnd]
	for i := range d.plans {
		if d.plans[i].schema == string(schema) {
			if i > 0 {
				p := d.plans[i]
				copy(d.plans[1:i+1], d.plans[:i])
				d.plans[0] = p
			}
			return &d.plans[0], nil
		}
	}
	p, err := readSchema(m)
	if err != nil {
		return nil, err
	}
	p.schema = string(schema)
	if len(d.plans) == keptPlans {
		d.plans = d.plans[:keptPlans-1]
	}
	d.plans = slices.Insert(d.plans, 0, *p)
	return &d.plans[0], nil
}

func readSchema(m *part) (*plan, *Error) {
	f := &m.flat
	t := m.table()
	p := &plan{units: []*decode.Units{&decode.DefaultUnits}}
	if t.num(0, 2, "endianness") != 0 {
		f.fail(t.at, "endianness", ErrUnsupported)
	}
	first, n := t.list(2, 4, "metadata")
	needs, is := 0, ""
	for i := range n {
		kv := f.table(f.follow(first+4*i, "metadata"), "metadata")
		key, value := kv.text(0, "metadata"), kv.text(1, "metadata")
		if f.err != nil {
			break
		}
		code, isUnits := strings.CutPrefix(key, UnitsKey+".")
		switch {
		case key == DatasetKey:
			is = value
		case key == ReaderVersionKey:
			var err error
			if needs, err = strconv.Atoi(value); err != nil {
				f.fail(kv.at, key, ErrVersion)
			}
		case isUnits:
			code, err := strconv.ParseUint(code, 10, 16)
			if err != nil || code == 0 || code > maxUnits {
				f.fail(kv.at, key, ErrRange)
				break
			}
			u, err := parseUnits(value)
			if err != nil {
				f.fail(kv.at, key, err)
				break
			}
			for len(p.units) <= int(code) {
				p.units = append(p.units, nil)
			}
			p.units[code] = u
		}
	}
	switch {
	case f.err != nil:
	case is != dataset:
		f.fail(t.at, DatasetKey, ErrMissing)
	case needs > Version:
		f.fail(t.at, ReaderVersionKey, ErrVersion)
	}
	w := walker{f: f, p: p}
	first, n = t.list(1, 4, "fields")
	for i := range n {
		if f.err != nil {
			break
		}
		w.field(f.table(f.follow(first+4*i, "field"), "field"), topLevel, 0)
	}
	p.nodes, p.buffer = w.nodes, w.buffers
	for _, c := range []int{cTime, cFormat, cKind} {
		if f.err == nil && p.cols[c].node == 0 {
			f.fail(t.at, columns[c].name, ErrMissing)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return p, nil
}

// walker counts the nodes and the buffers that the columns of a schema take.
type walker struct {
	f              *flat
	p              *plan
	nodes, buffers int
}

// level is where a field stands: what its name means.
type level uint8

const (
	elsewhere level = iota
	topLevel
	inList // the struct of the list of hops
	inHop
)

const (
	maxDepth  = 16
	maxFields = 4096
)

func (w *walker) field(t flatTable, l level, depth int) {
	f := w.f
	if depth > maxDepth || w.nodes > maxFields {
		f.fail(t.at, "fields", ErrTooLarge)
		return
	}
	name := t.text(0, "field")
	kind := int(t.num(2, 1, name))
	def, _ := t.table(3, name)
	dict, coded_ := t.table(4, name)
	if f.err != nil {
		return
	}
	here := place{w.nodes + 1, w.buffers + 1}
	w.nodes++
	known := w.known(name, l, here)
	if known != nil && !sameType(known.class, kind, &def, coded_, &dict) {
		f.fail(t.at, name, ErrType)
		return
	}
	if coded_ { // what it codes is of no matter
		w.buffers += 2
		return
	}
	next := elsewhere
	switch {
	case l == topLevel && name == hopsName:
		if next = inList; kind != typeList {
			f.fail(t.at, name, ErrType)
			return
		}
		w.p.list = here
	case l == inList:
		if next = inHop; kind != typeStruct {
			f.fail(t.at, name, ErrType)
			return
		}
		w.p.item = here
	}
	switch kind {
	case typeNull:
	case typeInt, typeFloat, typeBool, typeDecimal, typeDate, typeTime, typeTimestamp, typeInterval, typeFixedSizeBinary, typeDuration,
		typeList, typeMap, typeLargeList:
		w.buffers += 2
	case typeBinary, typeUtf8, typeLargeBinary, typeLargeUtf8:
		w.buffers += 3
	case typeStruct, typeFixedSizeList:
		w.buffers++
	default:
		f.fail(t.at, name, ErrUnsupported)
		return
	}
	first, n := t.list(5, 4, name)
	if next == inList && n != 1 {
		f.fail(t.at, name, ErrType)
	}
	for i := range n {
		if f.err != nil {
			return
		}
		w.field(f.table(f.follow(first+4*i, name), name), next, depth+1)
	}
}

// known notes where a column is and gives what is known of it.
func (w *walker) known(name string, l level, here place) *column {
	switch l {
	case topLevel:
		for c := range columns {
			if columns[c].name == name {
				w.p.cols[c] = here
				return &columns[c]
			}
		}
	case inHop:
		for c := range hopColumns {
			if hopColumns[c].name == name {
				w.p.hop[c] = here
				return &hopColumns[c]
			}
		}
	}
	return nil
}

func sameType(c class, kind int, def *flatTable, isCoded bool, dict *flatTable) bool {
	integer := func(t *flatTable, bits uint64, signed uint64) bool {
		return t.num(0, 4, "type") == bits && t.num(1, 1, "type") == signed
	}
	if isCoded != (c == coded) {
		return false
	}
	switch c {
	case u8:
		return kind == typeInt && integer(def, 8, 0)
	case u16:
		return kind == typeInt && integer(def, 16, 0)
	case u32:
		return kind == typeInt && integer(def, 32, 0)
	case u64:
		return kind == typeInt && integer(def, 64, 0)
	case i64:
		return kind == typeInt && integer(def, 64, 1)
	case moment:
		return kind == typeTimestamp && def.num(0, 2, "type") == nanosecond
	case bit:
		return kind == typeBool
	case address:
		return kind == typeFixedSizeBinary && def.num(0, 4, "type") == 16
	case blob:
		return kind == typeBinary
	case text:
		return kind == typeUtf8
	case coded:
		index, ok := dict.table(1, "type")
		return ok && kind == typeUtf8 && integer(&index, 8, 0)
	}
	return false
}

// batchReader reads where the columns of a batch are.
type batchReader struct {
	f              *flat
	b              []byte // the body
	nodes, buffers int    // places of the first in the flatbuffer
}

// node gives the numbers of a column: of values, and of nulls.
func (r *batchReader) node(p place, want int, name string) (nulls int) {
	at := r.nodes + 16*(p.node-1)
	n, missing := le.Uint64(r.f.b[at:]), le.Uint64(r.f.b[at+8:])
	if n != uint64(want) || missing > n {
		r.f.fail(at, name, ErrRange)
		return 0
	}
	return int(missing)
}

func (r *batchReader) slice(i, atLeast int, name string) []byte {
	at := r.buffers + 16*(i-1)
	from, n := le.Uint64(r.f.b[at:]), le.Uint64(r.f.b[at+8:])
	if from > uint64(len(r.b)) || n > uint64(len(r.b))-from || n < uint64(atLeast) {
		r.f.fail(at, name, ErrRange)
		return nil
	}
	return r.b[from : from+n]
}

func (r *batchReader) view(p place, c *column, n int) (v view) {
	if p.node == 0 || r.f.err != nil {
		return view{none: true}
	}
	nulls := r.node(p, n, c.name)
	if r.f.err != nil || nulls == n {
		return view{none: true}
	}
	if nulls > 0 {
		v.valid = r.slice(p.buffer, (n+7)/8, c.name)
	}
	switch c.class {
	case bit:
		v.data = r.slice(p.buffer+1, (n+7)/8, c.name)
	case blob, text:
		v.data = r.slice(p.buffer+1, 4*(n+1), c.name)
		v.values = r.slice(p.buffer+2, 0, c.name)
	default:
		v.data = r.slice(p.buffer+1, n*width[c.class], c.name)
	}
	return v
}

func (d *Decoder) openBatch(p *plan, b []byte, m *part) *Error {
	f := &m.flat
	t := m.table()
	length := t.num(0, 8, "rows")
	r := batchReader{f: f, b: b[m.body : m.body+m.length]}
	var numNodes, numBuffers int
	r.nodes, numNodes = t.list(1, 16, "nodes")
	r.buffers, numBuffers = t.list(2, 16, "buffers")
	if t.field(3, 4, "compression") != 0 {
		f.fail(t.at, "compression", ErrUnsupported)
	}
	switch {
	case f.err != nil:
	case numNodes != p.nodes || numBuffers != p.buffer:
		f.fail(t.at, "nodes", ErrRange)
	case length > uint64(d.left.rows):
		f.fail(t.at, "rows", ErrTooLarge)
	}
	if f.err != nil || length == 0 {
		return f.err
	}
	n := int(length)
	d.left.rows -= n
	if len(d.batches) < cap(d.batches) {
		d.batches = d.batches[:len(d.batches)+1]
	} else {
		d.batches = append(d.batches, batch{})
	}
	to := &d.batches[len(d.batches)-1]
	to.plan, to.rows, to.all, to.some, to.hopAll, to.hopSome, to.starts = p, n, 0, 0, 0, 0, nil
	for c := range columns {
		v := r.view(p.cols[c], &columns[c], n)
		to.cols[c] = v
		switch {
		case v.none:
		case v.valid == nil:
			to.all |= 1 << c
		default:
			to.some |= 1 << c
		}
	}
	for _, c := range [...]int{cTime, cFormat, cKind} {
		if f.err == nil && to.all>>c&1 == 0 {
			f.fail(t.at, columns[c].name, ErrMissing)
		}
	}
	r.openHops(p, to, &d.left)
	if f.err != nil {
		return f.err
	}
	if name := to.check(); name != "" {
		return &Error{m.body, name, ErrRange}
	}
	return nil
}

// openHops finds the columns of hops.
func (r *batchReader) openHops(p *plan, to *batch, left *limits) {
	f, n := r.f, to.rows
	if p.list.node == 0 || p.item.node == 0 || f.err != nil || r.node(p.list, n, hopsName) == n || f.err != nil {
		return
	}
	starts := r.slice(p.list.buffer+1, 4*(n+1), hopsName)
	at := r.nodes + 16*(p.item.node-1)
	count := le.Uint64(f.b[at:])
	switch {
	case f.err != nil:
	case count > uint64(left.hops):
		f.fail(at, hopsName, ErrTooLarge)
	case le.Uint64(f.b[at+8:]) != 0:
		f.fail(at, hopsName, ErrUnsupported)
	}
	if f.err != nil {
		return
	}
	hops := int(count)
	left.hops -= hops
	for c := range hopColumns {
		v := view{none: true}
		if hops > 0 {
			v = r.view(p.hop[c], &hopColumns[c], hops)
		}
		to.hops[c] = v
		switch {
		case v.none:
		case v.valid == nil:
			to.hopAll |= 1 << c
		default:
			to.hopSome |= 1 << c
		}
	}
	if f.err != nil {
		return
	}
	last := le.Uint32(starts)
	for i := range n {
		next := le.Uint32(starts[4*i+4:])
		if next < last || next-last > maxHopsOfOne {
			f.fail(at, hopsName, ErrRange)
			return
		}
		last = next
	}
	if last > uint32(hops) {
		f.fail(at, hopsName, ErrRange)
		return
	}
	to.starts = starts
	if v := &to.hops[hopTimeBits]; !v.none {
		for i, bits := range v.data[:hops] {
			if bits > 64 && (v.valid == nil || v.valid[i>>3]>>(i&7)&1 != 0) {
				f.fail(at, hopColumns[hopTimeBits].name, ErrRange)
				return
			}
		}
	}
}

// check looks at values that say where others are. It gives the name of the column that is wrong.
func (b *batch) check() (wrong string) {
	for u := (b.all | b.some) & checked; u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		v := &b.cols[c]
		if c == cUnits {
			for i := range b.rows {
				code := int(le.Uint16(v.data[2*i:]))
				if (v.valid == nil || v.valid[i>>3]>>(i&7)&1 != 0) && (code >= len(b.plan.units) || b.plan.units[code] == nil) {
					return columns[c].name
				}
			}
			continue
		}
		last := le.Uint32(v.data)
		for i := range b.rows {
			next := le.Uint32(v.data[4*i+4:])
			if next < last {
				return columns[c].name
			}
			last = next
		}
		if uint64(last) > uint64(len(v.values)) {
			return columns[c].name
		}
	}
	return ""
}

const checked = 1<<cSourceMetadata | 1<<cSRList | 1<<cSRPorts | 1<<cUnknown | 1<<cErrField | 1<<cUnits

// readRows reads the next n rows of b.
func (d *Decoder) readRows(b *batch, n int, dst *decode.Batch) {
	formats, kinds := b.cols[cFormat].data, b.cols[cKind].data
	for i := d.row; i < d.row+n; i++ {
		from := d.cursor
		if b.starts != nil {
			d.cursor = le.Uint32(b.starts[4*i+4:])
		}
		if formats[i] >= uint8(decode.NumFormats) || kinds[i] >= uint8(decode.NumKinds) {
			d.unknown++
			continue
		}
		r := dst.Next()
		d.readRow(b, r, i)
		if r.Err.Reason >= decode.Reason(decode.NumReasons) || r.Err.Format >= decode.Format(decode.NumFormats) || r.Digest.Coding > decode.CodingHPCC {
			dst.Cancel()
			d.unknown++
			continue
		}
		if d.cursor > from {
			b.readHops(r.Grow(int(d.cursor-from)), int(from))
		}
	}
}

// readRow reads the i-th row of b but for its hops.
func (d *Decoder) readRow(b *batch, r *decode.Report, i int) {
	have := b.all
	for u := b.some; u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		have |= uint64(b.cols[c].valid[i>>3]>>(i&7)&1) << c
	}
	if have != d.have || d.last.have == 0 {
		d.have = have
		d.last.has, d.last.have = fieldsOf(have)
	}
	r.Has = d.last.has
	r.Units = &decode.DefaultUnits
	for u := d.last.have; u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		v := &b.cols[c]
		data := v.data
		switch c {
		case cTime:
			r.Time = int64(le.Uint64(data[8*i:]))
		case cFormat:
			r.Format = decode.Format(data[i])
		case cKind:
			r.Kind = decode.Kind(data[i])
		case cVersion:
			r.Version = decode.Version(data[i])
		case cINT:
			r.INT = decode.Version(data[i])
		case cFlags:
			r.Flags = decode.Flags(le.Uint16(data[2*i:]))
		case cExporter:
			r.Exporter = decode.Addr(data[16*i:])
		case cTo:
			r.To = le.Uint64(data[8*i:])
		case cNodeID:
			r.NodeID = le.Uint32(data[4*i:])
		case cHWID:
			r.HWID = data[i]
		case cSeq:
			r.Seq = le.Uint32(data[4*i:])
		case cSeqBits:
			r.SeqBits = data[i]
		case cFirst:
			r.FirstOfGroup = data[i>>3]>>(i&7)&1 != 0
		case cHeaderCut:
			r.HeaderCut = data[i>>3]>>(i&7)&1 != 0
		case cHeaderTime:
			r.HeaderTime = le.Uint32(data[4*i:])
		case cSrc:
			r.Flow.Src = decode.Addr(data[16*i:])
		case cDst:
			r.Flow.Dst = decode.Addr(data[16*i:])
		case cProto:
			r.Flow.Proto = data[i]
		case cIPVersion:
			r.Flow.IPVersion = data[i]
		case cSrcPort:
			r.Flow.SrcPort = le.Uint16(data[2*i:])
		case cDstPort:
			r.Flow.DstPort = le.Uint16(data[2*i:])
		case cPacketID:
			r.PacketID = le.Uint16(data[2*i:])
		case cTTL:
			r.TTL = data[i]
		case cAnnounced:
			r.Announced = data[i]
		case cDropReason:
			r.DropReason = data[i]
		case cRemainingHops:
			r.RemainingHops = data[i]
		case cDomainID:
			r.DomainID = le.Uint16(data[2*i:])
		case cInstructions:
			r.Instructions = le.Uint16(data[2*i:])
		case cFlowID:
			r.FlowID = le.Uint32(data[4*i:])
		case cSourceSeq:
			r.SourceSeq = le.Uint32(data[4*i:])
		case cGapTime:
			r.GapTime = le.Uint32(data[4*i:])
		case cLost:
			r.Lost = le.Uint32(data[4*i:])
		case cActionID:
			r.ActionID = le.Uint32(data[4*i:])
		case cDigest:
			r.Digest.Value = le.Uint64(data[8*i:])
		case cDigestID:
			r.Digest.ID = le.Uint32(data[4*i:])
		case cDigestHops:
			r.Digest.Hops = data[i]
		case cDigestEpoch:
			r.Digest.Epoch = data[i]
		case cDigestCoding:
			r.Digest.Coding = decode.Coding(data[i])
		case cDigestAMS:
			r.Digest.AMS = le.Uint16(data[2*i:])
		case cDigestLastWriter:
			r.Digest.LastWriter = le.Uint16(data[2*i:])
		case cErrReason:
			r.Err.Reason = decode.Reason(data[i])
		case cErrFormat:
			r.Err.Format = decode.Format(data[i])
		case cErrOffset:
			r.Err.Offset = int(int64(le.Uint64(data[8*i:])))
		case cUnits:
			r.Units = b.plan.units[le.Uint16(data[2*i:])]
		default: // bytes
			from, to := le.Uint32(data[4*i:]), le.Uint32(data[4*i+4:])
			words := v.values[from:to:to]
			switch c {
			case cSourceMetadata:
				r.SourceMetadata = words
			case cSRList:
				r.SRList = words
			case cSRPorts:
				r.SRPorts = words
			case cUnknown:
				r.Unknown = words
			case cErrField:
				r.Err.Field = d.field(words)
			}
		}
	}
	if r.Err.Reason == 0 {
		r.Err = decode.Error{}
	}
}

// field gives the text of a field's name, of which there are few.
func (d *Decoder) field(b []byte) string {
	if s, ok := d.fields[string(b)]; ok {
		return s
	}
	if d.fields == nil || len(d.fields) > 1000 {
		d.fields = map[string]string{}
	}
	const longest = 64
	s := string(b[:min(len(b), longest)])
	d.fields[s] = s
	return s
}

// readHops reads hops, the first of which is the at-th of the batch, over whatever is in them.
func (b *batch) readHops(hops []decode.Hop, at int) {
	all, some := b.hopAll, b.hopSome
	n := len(hops)
	has := decode.HopField(all & (1<<hopTimeBits - 1))
	for i := range hops {
		hops[i] = decode.Hop{Has: has}
	}
	mixed := uint32(0) // of some: hops with a value, and hops without
	for u := some; u != 0; u &= u - 1 {
		c := bits.TrailingZeros32(u)
		valid, count := b.hops[c].valid, 0
		for i := range hops {
			bit := valid[(at+i)>>3] >> ((at + i) & 7) & 1
			count += int(bit)
			if c != hopTimeBits {
				hops[i].Has |= decode.HopField(bit) << c
			}
		}
		switch count {
		case 0:
		case n:
			all |= 1 << c
		default:
			mixed |= 1 << c
		}
	}
	for u := all | mixed; u != 0; u &= u - 1 {
		c := bits.TrailingZeros32(u)
		col := b.hops[c].data
		switch w := width[hopColumns[c].class]; w {
		case 1:
			col = col[at : at+n]
		default:
			col = col[w*at : w*(at+n)]
		}
		switch c {
		case 0:
			for i := range hops {
				hops[i].NodeID = le.Uint32(col[4*i:])
			}
		case 1:
			for i := range hops {
				hops[i].IngressIf = le.Uint16(col[2*i:])
			}
		case 2:
			for i := range hops {
				hops[i].EgressIf = le.Uint16(col[2*i:])
			}
		case 3:
			for i := range hops {
				hops[i].Latency = le.Uint32(col[4*i:])
			}
		case 4:
			for i := range hops {
				hops[i].QueueID = col[i]
			}
		case 5:
			for i := range hops {
				hops[i].QueueOccupancy = le.Uint32(col[4*i:])
			}
		case 6:
			for i := range hops {
				hops[i].IngressTime = le.Uint64(col[8*i:])
			}
		case 7:
			for i := range hops {
				hops[i].EgressTime = le.Uint64(col[8*i:])
			}
		case 8:
			for i := range hops {
				hops[i].L2IngressIf = le.Uint32(col[4*i:])
			}
		case 9:
			for i := range hops {
				hops[i].L2EgressIf = le.Uint32(col[4*i:])
			}
		case 10:
			for i := range hops {
				hops[i].TxUtilization = le.Uint32(col[4*i:])
			}
		case 11:
			for i := range hops {
				hops[i].BufferID = col[i]
			}
		case 12:
			for i := range hops {
				hops[i].BufferOccupancy = le.Uint32(col[4*i:])
			}
		case 13:
			for i := range hops {
				hops[i].QueueCongestion = le.Uint32(col[4*i:])
			}
		case 14:
			for i := range hops {
				hops[i].EnqTime = le.Uint32(col[4*i:])
			}
		case 15:
			for i := range hops {
				hops[i].QueueDelay = le.Uint32(col[4*i:])
			}
		case 16:
			for i := range hops {
				hops[i].DeqOccupancy = le.Uint32(col[4*i:])
			}
		case hopTimeBits:
			for i := range hops {
				hops[i].TimeBits = col[i]
			}
		}
	}
	for u := mixed; u != 0; u &= u - 1 {
		c := bits.TrailingZeros32(u)
		for i := range hops {
			if b.hops[c].valid[(at+i)>>3]>>((at+i)&7)&1 == 0 {
				clearHop(&hops[i], c)
			}
		}
	}
}

// clearHop makes a value zero: what stands in a column where it is null can be anything.
func clearHop(h *decode.Hop, c int) {
	switch c {
	case 0:
		h.NodeID = 0
	case 1:
		h.IngressIf = 0
	case 2:
		h.EgressIf = 0
	case 3:
		h.Latency = 0
	case 4:
		h.QueueID = 0
	case 5:
		h.QueueOccupancy = 0
	case 6:
		h.IngressTime = 0
	case 7:
		h.EgressTime = 0
	case 8:
		h.L2IngressIf = 0
	case 9:
		h.L2EgressIf = 0
	case 10:
		h.TxUtilization = 0
	case 11:
		h.BufferID = 0
	case 12:
		h.BufferOccupancy = 0
	case 13:
		h.QueueCongestion = 0
	case 14:
		h.EnqTime = 0
	case 15:
		h.QueueDelay = 0
	case 16:
		h.DeqOccupancy = 0
	case hopTimeBits:
		h.TimeBits = 0
	}
}
