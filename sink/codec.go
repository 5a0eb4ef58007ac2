package sink

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// A batch as bytes, for writers that have no form of their own to keep in memory or in a spool:
//
//	version<1b> reports<uvarint> points<uvarint> { point }
//	point:  measurement<string> time<varint> tags<uvarint> { key<string> value<string> } fields<uvarint> { field }
//	field:  key<string> kind<1b> value: <varint>, <8b big endian> or <string>
//	string: 0<uvarint> length<uvarint> bytes, the first time; index + 1<uvarint> after that
//
// Keys come again and again, so most strings are one byte.
const codecVersion = 1

// AppendBatch appends b in this form.
func AppendBatch(dst []byte, b *Batch) []byte {
	known := make(map[string]uint64, 64)
	str := func(s string) {
		if i, ok := known[s]; ok {
			dst = binary.AppendUvarint(dst, i)
			return
		}
		known[s] = uint64(len(known)) + 1
		dst = append(dst, 0)
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	dst = append(dst, codecVersion)
	dst = binary.AppendUvarint(dst, b.Reports)
	dst = binary.AppendUvarint(dst, uint64(len(b.Points)))
	for i := range b.Points {
		p := &b.Points[i]
		str(p.Measurement)
		dst = binary.AppendVarint(dst, p.Time)
		dst = binary.AppendUvarint(dst, uint64(len(p.Tags)))
		for _, t := range p.Tags {
			str(t.Key)
			str(t.Value)
		}
		dst = binary.AppendUvarint(dst, uint64(len(p.Fields)))
		for j := range p.Fields {
			f := &p.Fields[j]
			str(f.Key)
			dst = append(dst, byte(f.Kind))
			switch f.Kind {
			case Int:
				dst = binary.AppendVarint(dst, f.Int)
			case Float:
				dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(f.Float))
			default:
				str(f.Str)
			}
		}
	}
	return dst
}

// DecodeBatch reads what AppendBatch wrote. b is overwritten; its strings do not alias payload.
func DecodeBatch(payload []byte, b *Batch) error {
	*b = Batch{Points: b.Points[:0]}
	d := decoder{b: payload}
	if v := d.byte(); v != codecVersion {
		return fmt.Errorf("batch: version %d is not known", v)
	}
	b.Reports = d.uvarint()
	for range d.count() {
		p := Point{Measurement: d.string(), Time: d.varint()}
		for range d.count() {
			p.Tags = append(p.Tags, Tag{d.string(), d.string()})
			if d.bad {
				break
			}
		}
		for range d.count() {
			f := Field{Key: d.string(), Kind: FieldKind(d.byte())}
			switch f.Kind {
			case Int:
				f.Int = d.varint()
			case Float:
				f.Float = math.Float64frombits(d.uint64())
			case String:
				f.Str = d.string()
			default:
				d.bad = true
			}
			if d.bad {
				break
			}
			p.Fields = append(p.Fields, f)
		}
		if d.bad {
			break
		}
		b.Points = append(b.Points, p)
	}
	if d.bad || len(d.b) != d.at {
		return fmt.Errorf("batch: damaged at byte %d", d.at)
	}
	return nil
}

// decoder reads b. After the first failure bad is set and everything is zero.
type decoder struct {
	b     []byte
	at    int
	known []string
	bad   bool
}

func (d *decoder) byte() byte {
	if d.bad || d.at >= len(d.b) {
		d.bad = true
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b[d.at:])
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.at += n
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b[d.at:])
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.at += n
	return v
}

// count reads a number of elements, each of which takes at least two bytes.
func (d *decoder) count() uint64 {
	n := d.uvarint()
	if n > uint64(len(d.b)-d.at)/2 {
		d.bad = true
		return 0
	}
	return n
}

func (d *decoder) uint64() uint64 {
	if d.bad || len(d.b)-d.at < 8 {
		d.bad = true
		return 0
	}
	d.at += 8
	return binary.BigEndian.Uint64(d.b[d.at-8:])
}

func (d *decoder) string() string {
	i := d.uvarint()
	switch {
	case i > uint64(len(d.known)):
		d.bad = true
	case i > 0:
		return d.known[i-1]
	}
	n := d.uvarint()
	if d.bad || n > uint64(len(d.b)-d.at) {
		d.bad = true
		return ""
	}
	s := string(d.b[d.at : d.at+int(n)])
	d.at += int(n)
	d.known = append(d.known, s)
	return s
}

// AsEncoder returns w as an Encoder: itself if it is one, and otherwise with the encoding above.
func AsEncoder(w Writer) Encoder {
	if e, ok := w.(Encoder); ok {
		return e
	}
	return &encoded{Writer: w}
}

// encoded makes an Encoder of any Writer.
type encoded struct {
	Writer
	b Batch
}

func (e *encoded) Encode(dst []byte, b *Batch) ([]byte, uint64) { return AppendBatch(dst, b), 0 }

func (e *encoded) WriteEncoded(ctx context.Context, payload []byte) error {
	if err := DecodeBatch(payload, &e.b); err != nil {
		return &PermanentError{Err: err}
	}
	return e.Write(ctx, &e.b)
}

// Part implements [Parter].
func (e *encoded) Part(payload []byte, held func(key string) bool) (behind, rest Refusal, err error) {
	var all, late, others Batch
	if err := DecodeBatch(payload, &all); err != nil {
		return Refusal{}, Refusal{}, err
	}
	keyed, _ := e.Writer.(Keyed)
	for i := range all.Points {
		p := &all.Points[i]
		key := ""
		if keyed != nil {
			key = keyed.Key(p)
		} else {
			key = strconv.FormatInt(p.Time, 10)
		}
		to := &others
		if held(key) {
			to = &late
		}
		to.Points = append(to.Points, *p)
	}
	return refusalOf(&late), refusalOf(&others), nil
}

// refusalOf returns points in this form.
func refusalOf(b *Batch) Refusal {
	if len(b.Points) == 0 {
		return Refusal{}
	}
	return Refusal{Payload: AppendBatch(nil, b), Points: uint64(len(b.Points)), Series: countSeries(b.Points)}
}
