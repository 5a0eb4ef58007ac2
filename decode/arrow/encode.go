package arrow

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// Encoder gathers reports column by column and writes them as a stream. It keeps its memory: that of the largest batch so
// far, for the columns that were ever needed. The zero value is ready. It has one user at a time.
type Encoder struct {
	rows      buffers[decode.Columns]
	hops      buffers[decode.HopField] // the bit of HopTimeBits is one behind those of Hop.Has
	blobs     [numBytes][]byte
	blobBytes int
	ends      []byte // by row: end of its hops

	lastHas       decode.Field
	lastPresent   decode.Columns
	lastUnits     *decode.Units
	lastUnitsCode uint16
	units         []decode.Units // that are not the default ones, by their code
	unitCodes     map[decode.Units]uint16
	prefix        []byte // schema and dictionaries, with units
	prefixUnits   int
	meta          batchMeta

	// The numbers of the last reports, and the last hops, are not in the columns yet: moving several at once takes
	// less time.
	numbers     [chunk]decode.ReportNumbers
	waiting     int // of numbers
	waitingHops []decode.Hop
}

// buffers are the columns of rows, or of hops.
type buffers[M decode.Columns | decode.HopField] struct {
	n, room int
	used    M // columns with a value in some row
	every   M // columns with a value in every row
	cols    [numColumns][]byte
	masks   []M // by row: the columns with a value
	width   int // of a row, in the columns in use
}

// reset leaves the memory of columns to be used again.
func (b *buffers[M]) reset() { b.n, b.used, b.every, b.width = 0, 0, 0, 0 }

// grow makes room for more rows. Columns that are not in use are left behind.
func (b *buffers[M]) grow(room int, l *layout) {
	b.room = room
	for u := uint64(b.used); u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		b.cols[c] = enlarge(b.cols[c], room*l.widths[c])
	}
	b.masks = append(make([]M, 0, room), b.masks[:b.n]...)[:room]
}

// begin makes columns ready that had no value yet. Where a row has none, there are zeros.
func (b *buffers[M]) begin(fresh M, l *layout) {
	b.used |= fresh
	for u := uint64(fresh); u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		w := l.widths[c]
		b.cols[c] = enlarge(b.cols[c], b.room*w)
		clear(b.cols[c][:b.n*w])
		b.width += w
	}
}

// count notes the columns that rows have: those of all, in each of them.
func (b *buffers[M]) count(all M) {
	if b.n == 0 {
		b.every = all
	}
	b.every &= all
}

// appendTo writes the columns. Values of their own length are in blobs.
func (b *buffers[M]) appendTo(body *batchWriter, l *layout, blobs *[numBytes][]byte) {
	for c, typ := range l.types {
		switch {
		case typ == decode.TypeBool:
			body.newNode(b.n, 0)
			body.add(nil)
			at := len(body.b)
			body.b = append(body.b, make([]byte, (b.n+7)/8)...)
			validity(body.b[at:], b.masks[:b.n], c)
			body.end(at)
			continue
		case b.used>>c&1 == 0:
			body.null(b.n, typ)
			continue
		case b.every>>c&1 != 0:
			body.newNode(b.n, 0)
			body.add(nil)
		default:
			at := len(body.b)
			body.b = append(body.b, make([]byte, (b.n+7)/8)...)
			body.newNode(b.n, validity(body.b[at:], b.masks[:b.n], c))
			body.end(at)
		}
		if typ == decode.TypeBytes || typ == decode.TypeText {
			body.offsets(b.cols[c][:4*b.n])
			body.add(blobs[bytesOf(c)])
		} else {
			body.add(b.cols[c][:l.widths[c]*b.n])
		}
	}
}

// Rows is the number of reports since Reset.
func (e *Encoder) Rows() int { return e.rows.n }

// Bytes is about how long the stream is.
func (e *Encoder) Bytes() int {
	zeros := max(16*e.rows.n, 8*e.hops.n)
	return e.rows.n*(e.rows.width+4) + e.hops.n*e.hops.width + e.blobBytes + zeros + len(e.prefix) + len(e.meta.b)
}

// Full reports whether the stream would be longer than a reader accepts if another report were appended.
func (e *Encoder) Full() bool {
	return e.rows.n == maxRows || e.hops.n > maxHops-maxHopsOfOne || len(e.units) > maxUnits-2
}

// Reset forgets the reports.
func (e *Encoder) Reset() {
	e.rows.reset()
	e.hops.reset()
	e.blobBytes, e.waiting, e.waitingHops = 0, 0, e.waitingHops[:0]
	for i := range e.blobs {
		e.blobs[i] = e.blobs[i][:0]
	}
	if len(e.units) > maxUnits/4 { // of profiles that were loaded again and again
		e.units, e.lastUnits, e.prefix = nil, nil, nil
		clear(e.unitCodes)
	}
}

func enlarge(b []byte, n int) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	c := make([]byte, n)
	copy(c, b)
	return c
}

// Append copies a report. Hops beyond any format's number are left out.
func (e *Encoder) Append(r *decode.Report) {
	if e.rows.n == e.rows.room {
		e.rows.grow(max(64, 2*e.rows.room), &rowLayout)
		e.ends = enlarge(e.ends, 4*e.rows.room)
	}
	if r.Has != e.lastHas || e.lastPresent == 0 {
		e.lastHas, e.lastPresent = r.Has, decode.AlwaysColumns|r.Has.Columns()
	}
	have := e.lastPresent | r.PresentByValue()&^(1<<decode.ColUnits)
	var units uint16
	if r.Units != nil && r.Units != &decode.DefaultUnits {
		if r.Units != e.lastUnits {
			e.lookUpUnits(r.Units)
		}
		if units = e.lastUnitsCode; units != 0 {
			have |= 1 << decode.ColUnits
		}
	}
	if fresh := have &^ e.rows.used; fresh != 0 {
		e.moveNumbers()
		e.rows.begin(fresh, &rowLayout)
	}
	e.rows.count(have)
	i := e.rows.n
	e.rows.masks[i] = have
	v := &e.numbers[e.waiting]
	r.Numbers(e.rows.used, v)
	v[decode.ColUnits] = uint64(units)
	for u := uint64(e.rows.used & notNumbers); u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		if columns[c].Type == decode.TypeAddress {
			*(*[16]byte)(e.rows.cols[c][16*i:]) = *r.Address(c)
		} else {
			e.appendBytes(c, have, r)
		}
	}
	e.appendHops(r.Hops[:min(len(r.Hops), maxHopsOfOne)])
	le.PutUint32(e.ends[4*i:], uint32(e.hops.n))
	e.rows.n++
	if e.waiting++; e.waiting == chunk {
		e.moveNumbers()
	}
}

// chunk and hopChunk are about how many reports and hops wait until their values move to the columns.
const (
	chunk    = 16
	hopChunk = 256
)

// moveNumbers moves the numbers that wait to the columns.
func (e *Encoder) moveNumbers() {
	waiting := e.numbers[:e.waiting]
	if len(waiting) == 0 {
		return
	}
	from := e.rows.n - e.waiting
	for u := uint64(e.rows.used &^ notNumbers); u != 0; u &= u - 1 {
		c := bits.TrailingZeros64(u)
		w := rowLayout.widths[c]
		col := e.rows.cols[c][w*from:]
		switch w {
		case 1:
			col = col[:len(waiting)]
			for i := range waiting {
				col[i] = uint8(waiting[i][c])
			}
		case 2:
			for i := range waiting {
				le.PutUint16(col[2*i:], uint16(waiting[i][c]))
			}
		case 4:
			for i := range waiting {
				le.PutUint32(col[4*i:], uint32(waiting[i][c]))
			}
		case 8:
			for i := range waiting {
				le.PutUint64(col[8*i:], waiting[i][c])
			}
		}
	}
	e.waiting = 0
}

// notNumbers are the columns whose values move one by one.
var notNumbers = decode.ColumnsOf(decode.TypeAddress, decode.TypeBytes, decode.TypeText)

// appendBytes appends a value that has a length of its own.
func (e *Encoder) appendBytes(c int, have decode.Columns, r *decode.Report) {
	k := bytesOf(c)
	if have>>c&1 != 0 {
		n := len(e.blobs[k])
		if c == decode.ColErrField {
			e.blobs[k] = append(e.blobs[k], r.Err.Field...)
		} else {
			e.blobs[k] = append(e.blobs[k], *r.Bytes(c)...)
		}
		e.blobBytes += len(e.blobs[k]) - n
	}
	le.PutUint32(e.rows.cols[c][4*e.rows.n:], uint32(len(e.blobs[k])))
}

// lookUpUnits finds the code of units, from 1 on; 0 are the default ones.
func (e *Encoder) lookUpUnits(u *decode.Units) {
	e.lastUnits, e.lastUnitsCode = u, 0
	if *u == decode.DefaultUnits {
		return
	}
	code, ok := e.unitCodes[*u]
	if !ok {
		if e.unitCodes == nil {
			e.unitCodes = map[decode.Units]uint16{}
		}
		e.units = append(e.units, *u)
		code = uint16(len(e.units))
		e.unitCodes[*u] = code
	}
	e.lastUnitsCode = code
}

func (e *Encoder) appendHops(hops []decode.Hop) {
	n := len(hops)
	if n == 0 {
		return
	}
	if e.hops.n+n > e.hops.room {
		e.hops.grow(max(256, 2*e.hops.room, e.hops.n+n), &hopLayout)
	}
	any, all := decode.HopField(0), ^decode.HopField(0)
	masks := e.hops.masks[e.hops.n : e.hops.n+n]
	for i := range hops {
		m := hops[i].Has & (1<<hopTimeBits - 1)
		if hops[i].TimeBits != 0 {
			m |= 1 << hopTimeBits
		}
		masks[i] = m
		any |= m
		all &= m
	}
	if fresh := any &^ e.hops.used; fresh != 0 {
		e.moveHops()
		e.hops.begin(fresh, &hopLayout)
	}
	e.hops.count(all)
	e.hops.n += n
	e.waitingHops = append(e.waitingHops, hops...)
	if len(e.waitingHops) >= hopChunk {
		e.moveHops()
	}
}

// moveHops moves the hops that wait to the columns.
func (e *Encoder) moveHops() {
	if len(e.waitingHops) == 0 {
		return
	}
	from := e.hops.n - len(e.waitingHops)
	for u := uint32(e.hops.used); u != 0; u &= u - 1 {
		c := bits.TrailingZeros32(u)
		hopColumns[c].Move(e.hops.cols[c][hopLayout.widths[c]*from:], e.waitingHops, false)
	}
	if e.waitingHops = e.waitingHops[:0]; cap(e.waitingHops) > 4*hopChunk { // of a report with very many
		e.waitingHops = nil
	}
}

// AppendStream appends the stream of all reports to b.
//
// A column that is null in every row refers to zeros at the end of the body, which all such columns share. So they
// cost nothing, and the schema is always the same.
func (e *Encoder) AppendStream(b []byte) []byte {
	e.moveNumbers()
	e.moveHops()
	if e.prefix == nil || e.prefixUnits != len(e.units) {
		e.prefix, e.prefixUnits = appendSchema(nil, e.units), len(e.units)
	}
	if e.meta.b == nil {
		e.meta = newBatchMeta()
	}
	b = append(b, e.prefix...)
	b = le.AppendUint32(b, continuation)
	b = le.AppendUint32(b, uint32(len(e.meta.b)))
	meta := len(b)
	b = append(b, e.meta.b...)
	body := batchWriter{b: b, body: len(b), meta: meta, node: meta + e.meta.nodes, buffer: meta + e.meta.buffer}
	e.rows.appendTo(&body, &rowLayout, &e.blobs)
	body.newNode(e.rows.n, 0)
	body.add(nil)
	body.offsets(e.ends[:4*e.rows.n])
	body.newNode(e.hops.n, 0)
	body.add(nil)
	e.hops.appendTo(&body, &hopLayout, nil)
	body.finish()
	b = body.b
	le.PutUint64(b[meta+e.meta.rows:], uint64(e.rows.n))
	le.PutUint64(b[meta+e.meta.bodyLength:], uint64(len(b)-body.body))
	b = le.AppendUint32(b, continuation)
	return le.AppendUint32(b, 0)
}

// batchWriter writes the body of a record batch, and into its metadata where everything is.
type batchWriter struct {
	b                  []byte
	body               int // begins here
	meta, node, buffer int // places of the next ones
	zeros              [numBuffers][2]int
	numZeros, maxZeros int
}

func (w *batchWriter) newNode(n, nulls int) {
	le.PutUint64(w.b[w.node:], uint64(n))
	le.PutUint64(w.b[w.node+8:], uint64(nulls))
	w.node += 16
}

// add writes a buffer. An empty first buffer of a column means that no value is null.
func (w *batchWriter) add(v []byte) {
	at := len(w.b)
	w.b = append(w.b, v...)
	w.end(at)
}

// end ends a buffer that was written from a place on.
func (w *batchWriter) end(at int) {
	le.PutUint64(w.b[w.buffer:], uint64(at-w.body))
	le.PutUint64(w.b[w.buffer+8:], uint64(len(w.b)-at))
	w.buffer += 16
	for (len(w.b)-w.body)%8 != 0 {
		w.b = append(w.b, 0)
	}
}

// offsets writes where values of their own length end, behind the 0 where the first begins.
func (w *batchWriter) offsets(ends []byte) {
	at := len(w.b)
	w.b = append(w.b, 0, 0, 0, 0)
	w.b = append(w.b, ends...)
	w.end(at)
}

// null writes a column without values: its buffers are zeros.
func (w *batchWriter) null(n int, c decode.ValueType) {
	w.newNode(n, n)
	w.zero((n + 7) / 8)
	switch c {
	case decode.TypeBytes, decode.TypeText:
		w.zero(4 * (n + 1))
		w.zero(0)
	default:
		w.zero(width[c] * n)
	}
}

func (w *batchWriter) zero(n int) {
	w.zeros[w.numZeros] = [2]int{w.buffer, n}
	w.numZeros++
	w.maxZeros = max(w.maxZeros, n)
	w.buffer += 16
}

// finish writes the zeros.
func (w *batchWriter) finish() {
	at := len(w.b) - w.body
	w.b = append(w.b, make([]byte, (w.maxZeros+7)&^7)...)
	for _, z := range w.zeros[:w.numZeros] {
		le.PutUint64(w.b[z[0]:], uint64(at))
		le.PutUint64(w.b[z[0]+8:], uint64(z[1]))
	}
}

// validity sets the bits of the rows that have a column, and counts the others.
func validity[M decode.Columns | decode.HopField](valid []byte, masks []M, c int) (nulls int) {
	set := 0
	for i, m := range masks {
		bit := int(m >> c & 1)
		valid[i/8] |= byte(bit << (i % 8))
		set += bit
	}
	return len(masks) - set
}
