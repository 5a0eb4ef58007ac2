package arrow

import "encoding/binary"

// Metadata of Arrow are flatbuffers. A table of offsets before each table has the places of its fields. This file has
// a writer that goes forward, and a reader that checks every offset.

var le = binary.LittleEndian

// flatWriter writes a flatbuffer from its first byte on, a table before its targets.
type flatWriter struct{ b []byte }

// slot is a field of a table: a number of size bytes, or, with size 0, a place for a reference.
type slot struct {
	id    int
	size  int
	value uint64
}

func ref(id int) slot                 { return slot{id: id} }
func num(id, size int, v uint64) slot { return slot{id, size, v} }
func boolean(id int, v bool) (s slot) {
	if v {
		return slot{id, 1, 1}
	}
	return slot{id, 1, 0}
}

func (w *flatWriter) align(n, plus int) {
	for (len(w.b)+plus)%n != 0 {
		w.b = append(w.b, 0)
	}
}

// table writes a table and returns its position, and those of its fields by their place in slots.
func (w *flatWriter) table(slots ...slot) (at int, fields []int) {
	last := -1
	for _, s := range slots {
		last = max(last, s.id)
	}
	w.align(2, 0)
	vtable := len(w.b)
	w.b = append(w.b, make([]byte, 4+2*(last+1))...)
	w.align(8, 0)
	at = len(w.b)
	w.b = le.AppendUint32(w.b, uint32(at-vtable))
	for _, s := range slots {
		n := s.size
		if n == 0 {
			n = 4
		}
		w.align(n, 0)
		pos := len(w.b)
		fields = append(fields, pos)
		var v [8]byte
		le.PutUint64(v[:], s.value)
		w.b = append(w.b, v[:n]...)
		le.PutUint16(w.b[vtable+4+2*s.id:], uint16(pos-at))
	}
	le.PutUint16(w.b[vtable:], uint16(4+2*(last+1)))
	le.PutUint16(w.b[vtable+2:], uint16(len(w.b)-at))
	return at, fields
}

// point makes the reference at pos one to target.
func (w *flatWriter) point(pos, target int) { le.PutUint32(w.b[pos:], uint32(target-pos)) }

func (w *flatWriter) text(s string) int {
	w.align(4, 0)
	at := len(w.b)
	w.b = le.AppendUint32(w.b, uint32(len(s)))
	w.b = append(w.b, s...)
	w.b = append(w.b, 0)
	return at
}

// vector writes a list of n references and returns the positions of the list and of the first one.
func (w *flatWriter) vector(n int) (at, first int) {
	w.align(4, 0)
	at = len(w.b)
	w.b = le.AppendUint32(w.b, uint32(n))
	w.b = append(w.b, make([]byte, 4*n)...)
	return at, at + 4
}

// pairs writes a list of n structs of two 64-bit words and returns the positions of the list and of the first one.
func (w *flatWriter) pairs(n int) (at, first int) {
	w.align(8, 4)
	at = len(w.b)
	w.b = le.AppendUint32(w.b, uint32(n))
	w.b = append(w.b, make([]byte, 16*n)...)
	return at, at + 4
}

// flat is a flatbuffer that is read. The first failure stays; after it everything is zero.
type flat struct {
	b    []byte
	base int // of b in the stream
	err  *Error
}

func (f *flat) fail(at int, field string, err error) {
	if f.err == nil {
		f.err = &Error{f.base + at, field, err}
	}
}

// in reports whether n bytes at a position are there.
func (f *flat) in(at, n int, field string) bool {
	if f.err != nil {
		return false
	}
	if at < 0 || n < 0 || at > len(f.b) || n > len(f.b)-at {
		f.fail(min(max(at, 0), len(f.b)), field, ErrRange)
		return false
	}
	return true
}

// target returns the place that the reference at a position points at.
func (f *flat) target(at int, field string) int {
	if !f.in(at, 4, field) {
		return 0
	}
	to := at + int(le.Uint32(f.b[at:]))
	if !f.in(to, 4, field) {
		return 0
	}
	return to
}

// flatTable is a table in a flatbuffer.
type flatTable struct {
	f      *flat
	at     int
	vtable int
	fields int // entries of the vtable
	size   int
}

func (f *flat) table(at int, field string) (t flatTable) {
	if !f.in(at, 4, field) {
		return flatTable{f: f}
	}
	v := at - int(int32(le.Uint32(f.b[at:])))
	if !f.in(v, 4, field) {
		return flatTable{f: f}
	}
	n, size := int(le.Uint16(f.b[v:])), int(le.Uint16(f.b[v+2:]))
	if n < 4 || n%2 != 0 {
		f.fail(v, field, ErrRange)
	}
	if !f.in(v, n, field) || !f.in(at, size, field) {
		return flatTable{f: f}
	}
	return flatTable{f, at, v, (n - 4) / 2, size}
}

// field returns the position of a field of n bytes, or 0 if it has its default.
func (t *flatTable) field(id, n int, name string) int {
	if t.f.err != nil || id >= t.fields {
		return 0
	}
	o := int(le.Uint16(t.f.b[t.vtable+4+2*id:]))
	if o == 0 {
		return 0
	}
	if o < 4 || o+n > t.size {
		t.f.fail(t.vtable+4+2*id, name, ErrRange)
		return 0
	}
	return t.at + o
}

func (t *flatTable) num(id, size int, name string) uint64 {
	at := t.field(id, size, name)
	if at == 0 {
		return 0
	}
	var v [8]byte
	copy(v[:size], t.f.b[at:])
	return le.Uint64(v[:])
}

func (t *flatTable) table(id int, name string) (flatTable, bool) {
	at := t.field(id, 4, name)
	if at == 0 {
		return flatTable{f: t.f}, false
	}
	to := t.f.table(t.f.target(at, name), name)
	return to, t.f.err == nil
}

// list returns the position of the first of n elements of size bytes.
func (t *flatTable) list(id, size int, name string) (first, n int) {
	at := t.field(id, 4, name)
	if at == 0 {
		return 0, 0
	}
	at = t.f.target(at, name)
	if t.f.err != nil {
		return 0, 0
	}
	n = int(le.Uint32(t.f.b[at:]))
	if n > len(t.f.b)/size || !t.f.in(at+4, n*size, name) {
		t.f.fail(at, name, ErrRange)
		return 0, 0
	}
	return at + 4, n
}

func (t *flatTable) text(id int, name string) string {
	first, n := t.list(id, 1, name)
	return string(t.f.b[first : first+n])
}
