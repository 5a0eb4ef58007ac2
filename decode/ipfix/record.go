package ipfix

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// Template is a template with the values derived from it.
type Template struct {
	decode.Template
	View View // what its records are about

	raw      []byte  // as it came
	least    int     // bytes of the shortest record
	from, to []int32 // where values begin and end, for the elements before the first one of variable length
	fixed    int     // how many those are
	used     int64   // when records of it came last, ns since 1970; its session's lock guards it
}

// Holds is how many records are in that many bytes of a set, padding included. For records of variable length the
// number is unknown, and Holds returns 1.
func (t *Template) Holds(bytes int) int {
	if t.fixed < len(t.Fields) {
		return 1
	}
	return bytes / t.least
}

// compile makes a template of its definition on the wire. It is nil if the records would be empty.
func compile(version uint16, domain uint32, d *Definition, o *Options) *Template {
	be := binary.BigEndian
	t := &Template{Template: decode.Template{Version: version, ID: d.ID, Domain: domain, Scopes: d.Scopes, Fields: make([]decode.Element, d.Fields)}, raw: append([]byte(nil), d.Raw...)}
	b := d.elems
	for i := range t.Fields {
		e := &t.Fields[i]
		e.ID, e.Length = be.Uint16(b), be.Uint16(b[2:])
		if b = b[4:]; version == V10 && e.ID&0x8000 != 0 {
			e.ID &= 0x7fff
			e.PEN = be.Uint32(b)
			b = b[4:]
		}
		if e.Length == decode.VariableLength {
			t.least++
			continue
		}
		if len(t.from) == i {
			t.from, t.to = append(t.from, int32(t.least)), append(t.to, int32(t.least)+int32(e.Length))
		}
		t.least += int(e.Length)
	}
	if t.fixed = len(t.from); t.least == 0 {
		return nil
	}
	if t.View = viewOf(&t.Template, o); t.View.Kind == Delay {
		t.Delays = func(record []byte) (d decode.PathDelay, ok bool) {
			var r Records
			if r.Start(t, &Set{Data: record}); !r.Next() {
				return d, false
			}
			d, _, ok = r.Delays()
			return d, ok
		}
	}
	return t
}

// Records reads the records of a data set, one Next each. It is for one goroutine and can be started again and again.
type Records struct {
	Err      decode.Error
	At       int    // of the record in the data
	Record   []byte // all of it
	t        *Template
	b        []byte
	at       int
	from, to []int32
	own      [2][]int32 // memory for records of variable length
}

// Start begins with a set of records that t describes.
func (r *Records) Start(t *Template, s *Set) {
	r.Err, r.t, r.b, r.at = decode.Error{}, t, s.Data, s.At
	if r.from, r.to = t.from, t.to; t.fixed < len(t.Fields) {
		r.own[0] = append(r.own[0][:0], t.from...)
		r.own[1] = append(r.own[1][:0], t.to...)
		for len(r.own[0]) < len(t.Fields) {
			r.own[0], r.own[1] = append(r.own[0], 0), append(r.own[1], 0)
		}
		r.from, r.to = r.own[0], r.own[1]
	}
}

// Next reads the next record. It returns false at the end, and if a length in the record exceeds it. A rest shorter
// than every record is padding.
func (r *Records) Next() bool {
	n := r.t.least
	if len(r.b) < n {
		return false
	}
	if r.t.fixed < len(r.t.Fields) {
		at := 0
		if r.t.fixed > 0 {
			at = int(r.to[r.t.fixed-1])
		}
		for i := r.t.fixed; i < len(r.t.Fields); i++ {
			size, begin, ok := decode.ValueLength(&r.t.Fields[i], r.b, at)
			if !ok {
				m := Message{Version: r.t.Version}
				r.Err = decode.Error{Format: m.Format(), Field: "value_length", Offset: r.at + min(at, len(r.b)), Reason: decode.BadLength}
				r.b = nil
				return false
			}
			at = begin + size
			r.from[i], r.to[i] = int32(begin), int32(at)
		}
		n = at
	}
	r.At, r.Record = r.at, r.b[:n:n]
	r.b, r.at = r.b[n:], r.at+n
	return true
}

// Value returns the bytes of element i of the record.
func (r *Records) Value(i int) []byte { return r.Record[r.from[i]:r.to[i]] }

// Offset returns where the value of element i begins in the data.
func (r *Records) Offset(i int) int { return r.At + int(r.from[i]) }

// Uint returns the value of element i as a number. Any shorter length than that of the element is allowed (RFC 7011,
// section 6.2); more than 8 bytes are no number.
func (r *Records) Uint(i int) (v uint64, ok bool) {
	b := r.Value(i)
	switch len(b) {
	case 1:
		return uint64(b[0]), true
	case 2:
		return uint64(binary.BigEndian.Uint16(b)), true
	case 4:
		return uint64(binary.BigEndian.Uint32(b)), true
	case 8:
		return binary.BigEndian.Uint64(b), true
	case 3, 5, 6, 7:
		for _, c := range b {
			v = v<<8 | uint64(c)
		}
		return v, true
	}
	return 0, false
}
