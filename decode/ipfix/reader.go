package ipfix

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// The versions of a message.
const (
	V9  = 9
	V10 = 10 // IPFIX
)

// Message is the header of a message.
type Message struct {
	Version uint16
	Count   uint16 // NetFlow 9: records of all kinds, by the exporter's count
	Uptime  uint32 // NetFlow 9, ms
	Time    uint32 // of the export, s since 1970
	Seq     uint32
	Domain  uint32 // observation domain; NetFlow 9: source id
}

// Format is the family that the message belongs to.
func (m *Message) Format() decode.Format {
	if m.Version == V9 {
		return decode.NetFlow9
	}
	return decode.IPFIX
}

// Set is a set of templates or of records.
type Set struct {
	ID   uint16
	At   int    // of its first byte behind the header, in the data
	Data []byte // behind the header, padding included
}

// Templates reports whether the set holds templates, and whether these are of options.
func (s *Set) Templates() (yes, options bool) { return s.ID < 4, s.ID&1 == 1 }

// Reader reads the sets of one message, one Next each. It is for one goroutine and can be started again and again.
type Reader struct {
	Err     decode.Error // why reading stopped; Reason is 0 where all was read
	Cut     bool         // the capture ends before the message does
	data    []byte
	pos     int
	end     int
	version uint16
	done    bool
	cutID   uint16
	cutLen  int
}

// CutSet returns the set whose header is the last thing in a cut capture. It has the set's id, or 0 without one, and
// the number of bytes that belong behind the header.
func (rd *Reader) CutSet() (id uint16, bytes int) { return rd.cutID, rd.cutLen }

func (rd *Reader) format() decode.Format { return (&Message{Version: rd.version}).Format() }

func (rd *Reader) fail(field string, at int, reason decode.Reason) bool {
	if rd.Err.Reason == 0 {
		rd.Err = decode.Error{Format: rd.format(), Field: field, Offset: min(at, len(rd.data)), Reason: reason}
	}
	rd.done = true
	return false
}

// have reports whether n bytes at at are there.
func (rd *Reader) have(at, n int, field string) bool {
	switch {
	case min(len(rd.data), rd.end)-at >= n:
		return true
	case rd.end-at < n:
		return rd.fail(field, at, decode.Short)
	}
	rd.Cut, rd.done = true, true
	return false
}

// Start reads the header of the message in data[at:end], of which data may hold less. If it returns false there are
// no sets. Offsets of errors count from data[0].
func (rd *Reader) Start(m *Message, data []byte, at, end int) bool {
	be := binary.BigEndian
	*rd = Reader{data: data, end: end}
	*m = Message{}
	if !rd.have(at, 4, "version") {
		return false
	}
	m.Version = be.Uint16(data[at:])
	rd.version = m.Version
	switch n := int(be.Uint16(data[at+2:])); m.Version {
	case V10:
		if n < 16 || n > end-at {
			return rd.fail("length", at+2, decode.BadLength)
		}
		if rd.end = at + n; !rd.have(at, 16, "header") {
			return false
		}
		h := data[at : at+16 : at+16]
		m.Time, m.Seq, m.Domain = be.Uint32(h[4:]), be.Uint32(h[8:]), be.Uint32(h[12:])
		rd.pos = at + 16
	case V9:
		if !rd.have(at, 20, "header") {
			return false
		}
		if n > 0 && end-at == 20 { // it counts records, and ends
			return rd.fail("count", at+2, decode.BadCount)
		}
		h := data[at : at+20 : at+20]
		m.Count, m.Uptime, m.Time, m.Seq, m.Domain = uint16(n), be.Uint32(h[4:]), be.Uint32(h[8:]), be.Uint32(h[12:]), be.Uint32(h[16:])
		rd.pos = at + 20
	default:
		return rd.fail("version", at, decode.BadVersion)
	}
	return true
}

// Next reads the next set into s. It returns false if there is none, or none that can be read. Err then holds the
// error, if any.
func (rd *Reader) Next(s *Set) bool {
	at := rd.pos
	if rd.done || at == rd.end || !rd.have(at, 4, "set_id") {
		return false
	}
	be := binary.BigEndian
	id, n := be.Uint16(rd.data[at:]), int(be.Uint16(rd.data[at+2:]))
	first := uint16(2)
	if rd.version == V9 {
		first = 0
	}
	if id < 256 && id != first && id != first+1 {
		return rd.fail("set_id", at, decode.BadType)
	}
	if n < 4 || n > rd.end-at {
		return rd.fail("set_length", at+2, decode.BadLength)
	}
	if n > len(rd.data)-at {
		rd.Cut, rd.done, rd.cutID, rd.cutLen = true, true, id, n-4
		return false
	}
	rd.pos = at + n
	s.ID, s.At, s.Data = id, at+4, rd.data[at+4:at+n:at+n]
	return true
}

// Definition is a template as it is on the wire.
type Definition struct {
	ID      uint16
	Options bool
	Fields  int // with the scopes; 0 withdraws the template
	Scopes  int
	At      int    // in the data
	Raw     []byte // from its id on
	elems   []byte // of its fields
}

// Definitions reads the templates of a set, one Next each.
type Definitions struct {
	Err     decode.Error
	version uint16
	kind    uint16
	options bool
	b       []byte
	at      int
}

// Start begins with a set of templates of a message.
func (ds *Definitions) Start(version uint16, s *Set) {
	*ds = Definitions{version: version, kind: s.ID, b: s.Data, at: s.At}
	_, ds.options = s.Templates()
}

func (ds *Definitions) fail(field string, at int, reason decode.Reason) bool {
	ds.Err = decode.Error{Format: (&Message{Version: ds.version}).Format(), Field: field, Offset: at, Reason: reason}
	ds.b = nil
	return false
}

// Next reads the next template. It returns false if there is none, or none that can be read. Zeros at the end are
// padding.
func (ds *Definitions) Next(d *Definition) bool {
	be := binary.BigEndian
	if len(ds.b) < 4 || zeros(ds.b) {
		return false
	}
	b := ds.b
	*d = Definition{ID: be.Uint16(b), Options: ds.options, Fields: int(be.Uint16(b[2:])), At: ds.at}
	head := 4
	switch {
	case d.ID < 256 && (d.Fields > 0 || ds.version == V9 || d.ID != ds.kind): // the number of the set's kind withdraws all of it
		return ds.fail("template_id", ds.at, decode.BadType)
	case ds.options && ds.version == V9:
		if head = 6; len(b) < head {
			return ds.fail("option_length", ds.at, decode.Short)
		}
		scope, option := d.Fields, int(be.Uint16(b[4:]))
		if scope%4 != 0 || option%4 != 0 {
			return ds.fail("option_scope_length", ds.at+2, decode.BadLength)
		}
		d.Scopes, d.Fields = scope/4, (scope+option)/4
	case ds.options && d.Fields > 0:
		if head = 6; len(b) < head {
			return ds.fail("scope_field_count", ds.at, decode.Short)
		}
		if d.Scopes = int(be.Uint16(b[4:])); d.Scopes == 0 || d.Scopes > d.Fields {
			return ds.fail("scope_field_count", ds.at+4, decode.BadCount)
		}
	}
	n := head
	for range d.Fields {
		size := 4
		if ds.version == V10 && n < len(b) && b[n]&0x80 != 0 {
			size = 8
		}
		if n+size > len(b) {
			return ds.fail("field", ds.at+min(n, len(b)), decode.Short)
		}
		n += size
	}
	d.Raw, d.elems = b[:n:n], b[head:n:n]
	ds.b, ds.at = b[n:], ds.at+n
	return true
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
