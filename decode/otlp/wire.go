package otlp

import (
	"encoding/binary"
	"math"

	"github.com/hopscope/hopscope/decode"
)

// The wire types of protocol buffers that are in use.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
	fixed32 = 5
)

// field is one field of a message: a number in v, or bytes in data[from:to].
type field struct {
	num, typ uint64
	v        uint64
	from, to int
}

// is reports whether f is a field with a number and of a type. A known field of another type counts as unknown.
func (f *field) is(num, typ uint64) bool { return f.num == num && f.typ == typ }

func (f *field) float() float64 { return math.Float64frombits(f.v) }

// zigzag is a signed number of the types sint32 and sint64.
func (f *field) zigzag() int64 { return int64(f.v>>1) ^ -int64(f.v&1) }

// message walks over the fields of the message in data[at:end].
type message struct {
	data    []byte
	at, end int
	reason  decode.Reason // why it ended early; at is where
}

// in is the message that f holds.
func (m *message) in(f *field) message { return message{data: m.data, at: f.from, end: f.to} }

// next reads a field. If it returns false, the message has ended or is broken.
func (m *message) next(f *field) bool {
	if m.at >= m.end {
		return false
	}
	begin := m.at
	key, ok := m.number()
	if !ok {
		return false
	}
	f.num, f.typ = key>>3, key&7
	if f.num == 0 || f.num > 1<<29-1 {
		return m.fail(begin, decode.BadType)
	}
	switch f.typ {
	case varint:
		f.v, ok = m.number()
		return ok
	case fixed64:
		if m.end-m.at < 8 {
			return m.fail(begin, decode.Short)
		}
		f.v = binary.LittleEndian.Uint64(m.data[m.at:])
		m.at += 8
	case fixed32:
		if m.end-m.at < 4 {
			return m.fail(begin, decode.Short)
		}
		m.at += 4
	case bytes:
		n, ok := m.number()
		if !ok {
			return false
		}
		if n > uint64(m.end-m.at) {
			return m.fail(begin, decode.BadLength)
		}
		f.from, f.to = m.at, m.at+int(n)
		m.at = f.to
	default: // groups, which no proto3 message has
		return m.fail(begin, decode.BadType)
	}
	return true
}

func (m *message) number() (v uint64, ok bool) {
	v, n := binary.Uvarint(m.data[m.at:m.end])
	switch {
	case n == 0:
		return 0, m.fail(m.at, decode.Short)
	case n < 0:
		return 0, m.fail(m.at, decode.BadLength)
	}
	m.at += n
	return v, true
}

func (m *message) fail(at int, reason decode.Reason) bool {
	m.at, m.end, m.reason = at, at, reason
	return false
}

// kind is a kind of message. Those that are not listed are skipped as bytes.
type kind uint8

const (
	request kind = iota
	resourceMetrics
	resource
	scopeMetrics
	metric
	gauge
	sum
	histogram
	exponential
	summary
	numberPoint
	histogramPoint
	exponentialPoint
	summaryPoint
	exponentialBuckets
	keyValue
	anyValue
	kinds
)

// parts are the messages in messages, by the number of their field (opentelemetry/proto/metrics/v1/metrics.proto).
var parts = [kinds]map[uint64]kind{
	request:          {1: resourceMetrics},
	resourceMetrics:  {1: resource, 2: scopeMetrics},
	resource:         {1: keyValue},
	scopeMetrics:     {2: metric},
	metric:           {5: gauge, 7: sum, 9: histogram, 10: exponential, 11: summary},
	gauge:            {1: numberPoint},
	sum:              {1: numberPoint},
	histogram:        {1: histogramPoint},
	exponential:      {1: exponentialPoint},
	summary:          {1: summaryPoint},
	numberPoint:      {7: keyValue},
	histogramPoint:   {9: keyValue},
	exponentialPoint: {1: keyValue, 8: exponentialBuckets, 9: exponentialBuckets},
	summaryPoint:     {7: keyValue},
	keyValue:         {2: anyValue},
}

// Points checks the structure of a request and counts its data points. An error has the offset at which the request
// is broken.
func Points(data []byte) (n int, err *decode.Error) {
	n, at, reason := points(request, message{data: data, end: len(data)})
	if reason != 0 {
		return n, &decode.Error{Format: decode.OTLP, Field: "request", Offset: at, Reason: reason}
	}
	return n, nil
}

func points(k kind, m message) (n, at int, reason decode.Reason) {
	if k >= numberPoint && k <= summaryPoint {
		n = 1
	}
	inside := parts[k]
	for f := (field{}); m.next(&f); {
		if part, ok := inside[f.num]; ok && f.typ == bytes {
			more, at, reason := points(part, m.in(&f))
			if n += more; reason != 0 {
				return n, at, reason
			}
		}
	}
	return n, m.at, m.reason
}
