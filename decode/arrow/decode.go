package arrow

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
)

// Decoder reads streams of reports of an [Encoder], or of any other writer of the schema that does not compress.
// Columns are found by name, in any order, and unknown ones are skipped. The zero value is ready. It has one user at
// a time, and keeps the most recent schemas.
//
// [Decoder.Decode] reads a stream at once. [Decoder.Open] and [Decoder.Next] read it in parts that stay in the caches
// of the processor until they were counted.
type Decoder struct {
	plans   []plan            // the one that was used last first
	fields  map[string]string // texts of errors
	batches []batch           // of the open stream
	left    limits

	// The place of the next read of Next.
	batch, row int
	unknown    int

	// Of the rows that are read at once.
	have    [chunk]decode.Columns
	used    decode.Columns // of the last rows: at all other places of numbers are zeros
	numbers [chunk]decode.ReportNumbers

	last presence

	hops   []decode.Hop
	column []byte
}

// batch is an open record batch, all of which is in bounds.
type batch struct {
	plan   *plan
	n      int // rows
	rows   views[decode.Columns]
	hops   views[decode.HopField] // with the bit of HopTimeBits
	starts []byte                 // of the hops of each row, and the end of the last; nil if there are none
}

// views are the columns of rows, or of hops.
type views[M decode.Columns | decode.HopField] struct {
	all, some M // columns with a value in every row, and in some
	cols      [numColumns]view
}

// presence is the meaning of the set of columns with a value in a row.
type presence struct {
	columns decode.Columns
	has     decode.Field
	valid   decode.Columns // without those that Has excludes
}

// plan is where the columns of a schema are.
type plan struct {
	schema        string // the flatbuffer
	rows, hops    [numColumns]place
	list, item    place
	nodes, buffer int
	units         []*decode.Units // by code; 0 are the default ones
}

// limits are the numbers of rows and hops that a stream may still hold.
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

// keptPlans bounds the schemas that are kept. A topic has those of two versions while a fleet is upgraded, and one
// for each set of units.
const keptPlans = 32

// Decode appends the reports of a stream to dst. They do not alias b, apart from the byte slices of rare fields
// ([decode.Report.SourceMetadata] and those beside it). Reports of an unknown kind or format are left out and
// counted. On error dst is as it was.
func (d *Decoder) Decode(b []byte, dst *decode.Batch) (unknown int, err error) {
	if err := d.Open(b); err != nil {
		return 0, err
	}
	for d.Next(dst, maxRows) {
	}
	return d.unknown, nil
}

// Open looks through a stream and finds all that is wrong with it. B must not change until its last report was read.
func (d *Decoder) Open(b []byte) error {
	d.batch, d.row, d.unknown = 0, 0, 0
	d.batches = d.batches[:0]
	if err := d.open(b); err != nil {
		d.batches = d.batches[:0]
		return err
	}
	return nil
}

func (d *Decoder) open(b []byte) *Error {
	var p *plan
	d.left = limits{maxRows, maxHops}
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

// Unknown returns the number of reports of the open stream that were left out so far.
func (d *Decoder) Unknown() int { return d.unknown }

// Next appends reports of the open stream to dst, at most limit, which are those of as many rows less the unknown
// ones. It reports whether there are rows left.
func (d *Decoder) Next(dst *decode.Batch, limit int) (more bool) {
	for d.batch < len(d.batches) && limit > 0 {
		b := &d.batches[d.batch]
		n := min(limit, b.n-d.row)
		d.readRows(b, n, dst)
		limit -= n
		if d.row += n; d.row == b.n {
			d.batch++
			d.row = 0
		}
	}
	return d.batch < len(d.batches)
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
	t := f.table(f.target(0, "message"), "message")
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

// table returns the header of m to read from.
func (m *part) table() flatTable {
	t := m.header
	t.f = &m.flat
	return t
}

// plan returns the plan of a schema.
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
		kv := f.table(f.target(first+4*i, "metadata"), "metadata")
		key, value := kv.text(0, "metadata"), kv.text(1, "metadata")
		if f.err != nil {
			break
		}
		code, isUnits := strings.CutPrefix(key, unitsKey+".")
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
		w.field(f.table(f.target(first+4*i, "field"), "field"), topLevel, 0)
	}
	p.nodes, p.buffer = w.nodes, w.buffers
	for _, c := range []int{decode.ColTime, decode.ColFormat, decode.ColKind} {
		if f.err == nil && p.rows[c].node == 0 {
			f.fail(t.at, columns[c].Name, ErrMissing)
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

// level is the place of a field in the schema, which defines the meaning of its name.
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
	if typ, known := w.known(name, l, here); known && !sameType(arrowTypes[typ], kind, &def, coded_, &dict) {
		f.fail(t.at, name, ErrType)
		return
	}
	if coded_ { // the coded values do not matter
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
		w.field(f.table(f.target(first+4*i, name), name), next, depth+1)
	}
}

// known records the place of a column and returns its type, if the table has it.
func (w *walker) known(name string, l level, here place) (decode.ValueType, bool) {
	group, places := &rowLayout, &w.p.rows
	switch l {
	case topLevel:
	case inHop:
		group, places = &hopLayout, &w.p.hops
	default:
		return 0, false
	}
	c := slices.Index(group.names, name)
	if c < 0 {
		return 0, false
	}
	places[c] = here
	return group.types[c], true
}

func sameType(want arrowType, kind int, def *flatTable, isCoded bool, dict *flatTable) bool {
	integer := func(t *flatTable, bits int, signed bool) bool {
		return t.num(0, 4, "type") == uint64(bits) && (t.num(1, 1, "type") != 0) == signed
	}
	if kind != want.kind || isCoded != want.coded {
		return false
	}
	switch {
	case want.coded:
		index, ok := dict.table(1, "type")
		return ok && integer(&index, 8, false)
	case kind == typeInt:
		return integer(def, want.bits, want.signed)
	case kind == typeTimestamp:
		return def.num(0, 2, "type") == nanosecond
	case kind == typeFixedSizeBinary:
		return def.num(0, 4, "type") == uint64(want.bits/8)
	}
	return true
}

// batchReader reads where the columns of a batch are.
type batchReader struct {
	f              *flat
	b              []byte // the body
	nodes, buffers int    // places of the first in the flatbuffer
}

// node returns the numbers of a column: of values, and of nulls.
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

func (r *batchReader) view(p place, name string, typ decode.ValueType, n int) (v view) {
	if p.node == 0 || r.f.err != nil {
		return view{none: true}
	}
	nulls := r.node(p, n, name)
	if r.f.err != nil || nulls == n {
		return view{none: true}
	}
	if nulls > 0 {
		v.valid = r.slice(p.buffer, (n+7)/8, name)
	}
	switch typ {
	case decode.TypeBool:
		v.data = r.slice(p.buffer+1, (n+7)/8, name)
	case decode.TypeBytes, decode.TypeText:
		v.data = r.slice(p.buffer+1, 4*(n+1), name)
		v.values = r.slice(p.buffer+2, 0, name)
	default:
		v.data = r.slice(p.buffer+1, n*width[typ], name)
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
	to.plan, to.n, to.hops.all, to.hops.some, to.starts = p, n, 0, 0, nil
	to.rows.open(&r, &p.rows, &rowLayout, n)
	for _, c := range [...]int{decode.ColTime, decode.ColFormat, decode.ColKind} {
		if f.err == nil && to.rows.all>>c&1 == 0 {
			f.fail(t.at, columns[c].Name, ErrMissing)
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

// open finds the columns of n rows.
func (x *views[M]) open(r *batchReader, places *[numColumns]place, l *layout, n int) {
	x.all, x.some = 0, 0
	for c, typ := range l.types {
		v := view{none: true}
		if n > 0 {
			v = r.view(places[c], l.names[c], typ, n)
		}
		x.cols[c] = v
		switch {
		case v.none:
		case v.valid == nil:
			x.all |= 1 << c
		default:
			x.some |= 1 << c
		}
	}
}

// openHops finds the columns of hops.
func (r *batchReader) openHops(p *plan, to *batch, left *limits) {
	f, n := r.f, to.n
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
	to.hops.open(r, &p.hops, &hopLayout, hops)
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
	if v := &to.hops.cols[hopTimeBits]; !v.none {
		for i, bits := range v.data[:hops] {
			if bits > 64 && (v.valid == nil || v.valid[i>>3]>>(i&7)&1 != 0) {
				f.fail(at, hopColumns[hopTimeBits].Name, ErrRange)
				return
			}
		}
	}
}

// check checks the offsets of other values. It returns the name of a wrong column.
func (b *batch) check() (wrong string) {
	for u := uint64((b.rows.all | b.rows.some) & checked); u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		v := &b.rows.cols[c]
		if c == decode.ColUnits {
			for i := range b.n {
				code := int(le.Uint16(v.data[2*i:]))
				if (v.valid == nil || v.valid[i>>3]>>(i&7)&1 != 0) && (code >= len(b.plan.units) || b.plan.units[code] == nil) {
					return columns[c].Name
				}
			}
			continue
		}
		last := le.Uint32(v.data)
		for i := range b.n {
			next := le.Uint32(v.data[4*i+4:])
			if next < last {
				return columns[c].Name
			}
			last = next
		}
		if uint64(last) > uint64(len(v.values)) {
			return columns[c].Name
		}
	}
	return ""
}

var checked = decode.ColumnsOf(decode.TypeBytes, decode.TypeText, decode.TypeUnits)

// readRows reads the next n rows of b.
func (d *Decoder) readRows(b *batch, n int, dst *decode.Batch) {
	for first, end := d.row, d.row+n; first < end; {
		rows := min(chunk, end-first)
		for rows > 1 && b.hopsUntil(first+rows)-b.hopsUntil(first) > hopsAtOnce {
			rows /= 2
		}
		d.readNumbers(b, first, rows)
		d.readHops(b, first, rows)
		hops := d.hops
		for i := range rows {
			n := b.hopsUntil(first+i+1) - b.hopsUntil(first+i)
			of := hops[:n]
			hops = hops[n:]
			v := &d.numbers[i]
			if v[decode.ColErrReason] == 0 {
				v[decode.ColErrFormat], v[decode.ColErrOffset] = 0, 0
			}
			if !known(d.have[i], v) {
				d.unknown++
				continue
			}
			r := dst.Next()
			d.setRow(b, r, i, first+i)
			if n > 0 {
				copy(r.Grow(n), of)
			}
		}
		first += rows
	}
}

// hopsAtOnce bounds the hops that are read at once, unless they are those of one report.
const hopsAtOnce = 1 << 10

// hopsUntil is where the hops of the i-th row of b begin among all hops of b.
func (b *batch) hopsUntil(i int) int {
	if b.starts == nil {
		return 0
	}
	return int(le.Uint32(b.starts[4*i:]))
}

// known reports whether this version has all kinds of a row with values in some columns.
func known(have decode.Columns, v *decode.ReportNumbers) bool {
	for u := uint64(have & limited); u != 0; u &= u - 1 {
		if c := bits.TrailingZeros64(u); v[c] >= uint64(columns[c].Limit) {
			return false
		}
	}
	return true
}

// limited are the columns that have a limit.
var limited = func() (set decode.Columns) {
	for c := range columns {
		if columns[c].Limit != 0 {
			set |= 1 << c
		}
	}
	return set
}()

// readNumbers reads the numbers of rows, from the first-th of b on. A null is 0.
func (d *Decoder) readNumbers(b *batch, first, rows int) {
	used := decode.Columns(0)
	for i := range rows {
		have := b.rows.all
		for u := uint64(b.rows.some); u != 0; u &= u - 1 {
			c := bits.TrailingZeros64(u)
			have |= decode.Columns(b.rows.cols[c].valid[(first+i)>>3]>>((first+i)&7)&1) << c
		}
		if have != d.last.columns {
			has := have.Fields()
			d.last = presence{have, has, have &^ (^has).Columns()}
		}
		d.have[i] = d.last.valid
		used |= d.last.valid
	}
	if used != d.used {
		d.used, d.numbers = used, [chunk]decode.ReportNumbers{}
	}
	for u := uint64(used &^ notNumbers); u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		col, numbers := b.rows.cols[c].data, d.numbers[:rows]
		switch columns[c].Type {
		case decode.TypeUint8, decode.TypeCode:
			col = col[first:]
			for i := range numbers {
				numbers[i][c] = uint64(col[i]) & d.valid(i, c)
			}
		case decode.TypeUint16, decode.TypeUnits:
			col = col[2*first:]
			for i := range numbers {
				numbers[i][c] = uint64(le.Uint16(col[2*i:])) & d.valid(i, c)
			}
		case decode.TypeUint32:
			col = col[4*first:]
			for i := range numbers {
				numbers[i][c] = uint64(le.Uint32(col[4*i:])) & d.valid(i, c)
			}
		case decode.TypeUint64, decode.TypeInt64, decode.TypeTime:
			col = col[8*first:]
			for i := range numbers {
				numbers[i][c] = le.Uint64(col[8*i:]) & d.valid(i, c)
			}
		case decode.TypeBool:
			for i := range numbers {
				numbers[i][c] = uint64(col[(first+i)>>3]>>((first+i)&7)) & 1 & d.valid(i, c)
			}
		}
	}
}

// valid returns all ones if the i-th of the rows has a value in a column, and else zero.
func (d *Decoder) valid(i, c int) uint64 { return -(uint64(d.have[i]) >> c & 1) }

// setRow fills r, but for its hops, with the at-th row of b, which is the i-th of those whose numbers were read.
func (d *Decoder) setRow(b *batch, r *decode.Report, i, at int) {
	have, v := d.have[i], &d.numbers[i]
	if have != d.last.valid {
		d.last = presence{have, have.Fields(), have}
	}
	r.Has = d.last.has
	r.Units = b.plan.units[v[decode.ColUnits]]
	r.SetNumbers(have, v)
	for u := uint64(have & notNumbers); u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		data, values := b.rows.cols[c].data, b.rows.cols[c].values
		if columns[c].Type == decode.TypeAddress {
			*r.Address(c) = decode.Addr(data[16*at:])
			continue
		}
		from, to := le.Uint32(data[4*at:]), le.Uint32(data[4*at+4:])
		if c != decode.ColErrField {
			*r.Bytes(c) = values[from:to:to]
		} else if r.Err.Reason != 0 {
			r.Err.Field = d.field(values[from:to])
		}
	}
}

// field returns the text of a field's name, of which there are few.
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

// readHops reads the hops of rows, from the first-th of b on.
func (d *Decoder) readHops(b *batch, first, rows int) {
	at := b.hopsUntil(first)
	n := b.hopsUntil(first+rows) - at
	if d.hops = slices.Grow(d.hops[:0], n)[:n]; n == 0 {
		return
	}
	all, some := uint32(b.hops.all), uint32(b.hops.some)
	has := decode.HopField(all & (1<<hopTimeBits - 1))
	for i := range d.hops {
		d.hops[i] = decode.Hop{Has: has}
	}
	mixed := uint32(0) // of some: hops with a value, and hops without
	for u := some; u != 0; u &= u - 1 {
		c := bits.TrailingZeros32(u)
		valid, count := b.hops.cols[c].valid, 0
		for i := range d.hops {
			bit := valid[(at+i)>>3] >> ((at + i) & 7) & 1
			count += int(bit)
			if c != hopTimeBits {
				d.hops[i].Has |= decode.HopField(bit) << c
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
		w := width[hopColumns[c].Type]
		column := b.hops.cols[c].data[w*at : w*(at+n)]
		if mixed>>c&1 != 0 { // a column can hold any value where it is null
			d.column = append(d.column[:0], column...)
			column = d.column
			for i, valid := 0, b.hops.cols[c].valid; i < n; i++ {
				if valid[(at+i)>>3]>>((at+i)&7)&1 == 0 {
					clear(column[w*i : w*(i+1)])
				}
			}
		}
		hopColumns[c].Move(column, d.hops, true)
	}
}
