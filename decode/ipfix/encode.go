package ipfix

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// AppendMessage appends a message with the sets that body appends. Its length, of IPFIX, is that of all of it.
func AppendMessage(b []byte, m *Message, body func([]byte) []byte) []byte {
	be, at := binary.BigEndian, len(b)
	b = be.AppendUint16(b, m.Version)
	if m.Version == V9 {
		b = be.AppendUint32(be.AppendUint16(b, m.Count), m.Uptime)
	} else {
		b = be.AppendUint16(b, 0)
	}
	b = be.AppendUint32(be.AppendUint32(be.AppendUint32(b, m.Time), m.Seq), m.Domain)
	if b = body(b); m.Version != V9 {
		be.PutUint16(b[at+2:], uint16(len(b)-at))
	}
	return b
}

// AppendSet appends a set with the bytes that body appends, and pad zeros.
func AppendSet(b []byte, id uint16, pad int, body func([]byte) []byte) []byte {
	at := len(b)
	b = append(body(append(binary.BigEndian.AppendUint16(b, id), 0, 0)), make([]byte, pad)...)
	binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at))
	return b
}

// AppendTemplate appends the definition of a template, for a set of templates or, with scopes, for one of options.
func AppendTemplate(b []byte, t *decode.Template) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, t.ID)
	switch {
	case t.Scopes > 0 && t.Version == V9:
		b = be.AppendUint16(be.AppendUint16(b, uint16(4*t.Scopes)), uint16(4*(len(t.Fields)-t.Scopes)))
	case t.Scopes > 0:
		b = be.AppendUint16(be.AppendUint16(b, uint16(len(t.Fields))), uint16(t.Scopes))
	default:
		b = be.AppendUint16(b, uint16(len(t.Fields)))
	}
	for _, e := range t.Fields {
		id := e.ID
		if e.PEN != 0 {
			id |= 0x8000
		}
		b = be.AppendUint16(be.AppendUint16(b, id), e.Length)
		if e.PEN != 0 {
			b = be.AppendUint32(b, e.PEN)
		}
	}
	return b
}

// TemplateSet is the id of the set that defines t.
func TemplateSet(t *decode.Template) (id uint16) {
	if t.Version != V9 {
		id = 2
	}
	if t.Scopes > 0 {
		id++
	}
	return id
}

// AppendValue appends a value of an element of variable length.
func AppendValue(b, v []byte) []byte {
	if len(v) < 255 {
		return append(append(b, byte(len(v))), v...)
	}
	return append(append(b, 255, byte(len(v)>>8), byte(len(v))), v...)
}
