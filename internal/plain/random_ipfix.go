package plain

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
)

// elements are those that mean something to the collector, with the length that they have in full.
var elements = []decode.Element{{ID: 1, Length: 8}, {ID: 2, Length: 8}, {ID: 4, Length: 1}, {ID: 7, Length: 2}, {ID: 11, Length: 2}, {ID: 8, Length: 4}, {ID: 12, Length: 4},
	{ID: 27, Length: 16}, {ID: 28, Length: 16}, {ID: 10, Length: 4}, {ID: 14, Length: 4}, {ID: 48, Length: 1}, {ID: 34, Length: 4}, {ID: 50, Length: 4}, {ID: 302, Length: 8},
	{ID: 305, Length: 4}, {ID: 306, Length: 4}, {ID: 312, Length: 2}, {ID: 530, Length: 4}, {ID: 531, Length: 4}, {ID: 532, Length: 4}, {ID: 533, Length: 8},
	{ID: 521, Length: 4}, {ID: 522, Length: 4}, {ID: 600, Length: 4}, {PEN: ipfix.Huawei, ID: 521, Length: 4}, {PEN: ipfix.Juniper, ID: 137, Length: 4}, {PEN: ipfix.Juniper, ID: 137, Length: 2},
	{ID: 82, Length: decode.VariableLength}, {ID: 83, Length: decode.VariableLength}, {ID: 315, Length: decode.VariableLength}, {ID: 313, Length: decode.VariableLength}}

// RandomTemplate makes a template of a version.
func RandomTemplate(rnd *rand.Rand, version uint16) *decode.Template {
	t := &decode.Template{Version: version, ID: 256 + uint16(rnd.IntN(40)), Domain: rnd.Uint32N(4), Fields: []decode.Element{{ID: 1, Length: 4}}}
	for range rnd.IntN(14) {
		e := elements[rnd.IntN(len(elements))]
		switch {
		case version == ipfix.V9 && (e.PEN != 0 || e.Length == decode.VariableLength):
			continue
		case rnd.IntN(3) == 0:
			e = decode.Element{ID: uint16(1 + rnd.IntN(700)), Length: uint16(1 + rnd.IntN(20))}
			if version == ipfix.V10 && rnd.IntN(3) == 0 {
				e.PEN = 1 + rnd.Uint32N(60_000)
			}
		case e.Length <= 8 && rnd.IntN(4) == 0:
			e.Length = 1 + uint16(rnd.IntN(int(e.Length))) // reduced
		}
		t.Fields = append(t.Fields, e)
	}
	if rnd.IntN(5) == 0 {
		t.Scopes = 1 + rnd.IntN(len(t.Fields))
		for i := range t.Fields[:t.Scopes] {
			if version == ipfix.V9 {
				t.Fields[i].ID = uint16(1 + rnd.IntN(5))
			}
		}
	}
	return t
}

// AppendRandomRecord appends a record of any values.
func AppendRandomRecord(b []byte, rnd *rand.Rand, t *decode.Template) []byte {
	for _, e := range t.Fields {
		n := int(e.Length)
		if n == decode.VariableLength {
			if n = rnd.IntN(40); rnd.IntN(10) == 0 {
				n += 240
			}
		}
		v := make([]byte, n)
		for i := range v {
			v[i] = byte(rnd.Uint32())
		}
		if e.Length == decode.VariableLength {
			b = ipfix.AppendValue(b, v)
		} else {
			b = append(b, v...)
		}
	}
	return b
}

// RandomIPFIX makes a message of RandomIPFIX or NetFlow 9: templates, and records of these and of the ones in list,
// which are of its domain.
func RandomIPFIX(rnd *rand.Rand, version uint16, seq uint32, list []*decode.Template) []byte {
	m := ipfix.Message{Version: version, Time: 1_790_000_000 + seq, Seq: seq, Uptime: 1000 * seq}
	if len(list) > 0 {
		m.Domain = list[0].Domain
	}
	sets := 1 + rnd.IntN(4)
	m.Count = uint16(sets)
	return ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
		for i := range sets {
			t := RandomTemplate(rnd, version)
			if len(list) > 0 && (i > 0 || rnd.IntN(2) == 0) {
				t = list[rnd.IntN(len(list))]
				b = ipfix.AppendSet(b, t.ID, 0, func(b []byte) []byte {
					for range 1 + rnd.IntN(5) {
						b = AppendRandomRecord(b, rnd, t)
					}
					return b
				})
				continue
			}
			t.ID += 100
			t.Domain = m.Domain
			b = ipfix.AppendSet(b, ipfix.TemplateSet(t), 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, t) })
		}
		return b
	})
}

// Uint32 is b with v behind it.
func Uint32(b []byte, v ...uint32) []byte {
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}
