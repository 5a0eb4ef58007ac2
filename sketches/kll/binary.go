package kll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// What can be wrong with an encoded sketch.
var (
	ErrTruncated = errors.New("truncated")
	ErrVersion   = errors.New("unknown version")
	ErrType      = errors.New("made for another type of values")
	ErrCorrupt   = errors.New("corrupt")
)

// Error says at which byte of an encoded sketch something is wrong.
type Error struct {
	Field  string
	Offset int
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("kll: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

const (
	magic     = "KLL\x01" // the last byte is the version
	headerLen = 4 + 6 + 6 + 3*8
)

// AppendBinary appends s to b: all of it, so that a sketch read back goes on as s would. It never fails. FORMAT.md
// draws the layout.
func (s *Sketch[T]) AppendBinary(b []byte) ([]byte, error) {
	s.settle()
	le := binary.LittleEndian
	b = append(b, magic...)
	b = append(b, kindOf[T](), s.base, s.top, s.buffered)
	b = le.AppendUint16(b, s.k)
	b = le.AppendUint16(b, s.coin)
	b = le.AppendUint16(b, s.flip)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint64(b, s.count)
	b = le.AppendUint64(b, uint64(s.rng))
	b = le.AppendUint64(b, s.skip)
	b = appendValue(b, s.min)
	b = appendValue(b, s.max)
	for _, n := range s.size[:s.top+1] {
		b = le.AppendUint16(b, n)
	}
	for _, v := range s.items[len(s.items)-int(s.used):] {
		b = appendValue(b, v)
	}
	for _, v := range s.buf[:s.buffered] {
		b = appendValue(b, v)
	}
	return b, nil
}

// UnmarshalBinary makes s what AppendBinary encoded. Anything else is refused with an [*Error], and then s stays as it
// was: whatever it accepts is a sketch that works and takes no more memory than its k allows. It does not keep b.
func (s *Sketch[T]) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	wrong := func(field string, off int, err error) error { return &Error{field, off, err} }
	if len(b) < len(magic) {
		return wrong("header", len(b), ErrTruncated)
	}
	if string(b[:len(magic)]) != magic {
		return wrong("version", 0, ErrVersion)
	}
	if len(b) < headerLen {
		return wrong("header", len(b), ErrTruncated)
	}
	if b[4] != kindOf[T]() {
		return wrong("type", 4, ErrType)
	}
	n := Sketch[T]{base: b[5], top: b[6], buffered: b[7],
		k: le.Uint16(b[8:]), coin: le.Uint16(b[10:]), flip: le.Uint16(b[12:]),
		count: le.Uint64(b[16:]), rng: Rand(le.Uint64(b[24:])), skip: le.Uint64(b[32:])}
	switch {
	case n.k < MinK || n.k > MaxK:
		return wrong("k", 8, ErrCorrupt)
	case n.base > 62:
		return wrong("base", 5, ErrCorrupt)
	case int(n.top) >= n.levels():
		return wrong("top", 6, ErrCorrupt)
	case n.buffered >= bufItems:
		return wrong("buffered", 7, ErrCorrupt)
	case le.Uint16(b[14:]) != 0:
		return wrong("reserved", 14, ErrCorrupt)
	case n.count > 1<<62:
		return wrong("count", 16, ErrCorrupt)
	case n.skip > 2<<n.base-2:
		return wrong("skip", 32, ErrCorrupt)
	}
	var zero T
	width := int(unsafe.Sizeof(zero))
	sizes := headerLen + 2*width
	first := sizes + 2*(int(n.top)+1)
	if len(b) < first {
		return wrong("levels", len(b), ErrTruncated)
	}
	n.min, n.max = value[T](b[headerLen:]), value[T](b[headerLen+width:])
	items, weight := 0, float64(n.buffered)
	for i := range int(n.top) + 1 {
		n.size[i] = le.Uint16(b[sizes+2*i:])
		items += int(n.size[i])
		weight += float64(n.size[i]) * float64(uint64(1)<<i)
	}
	weight *= float64(uint64(1) << n.base)
	switch {
	case items > n.limit():
		return wrong("levels", sizes, ErrCorrupt)
	case len(b) != first+(items+int(n.buffered))*width:
		if len(b) < first+(items+int(n.buffered))*width {
			return wrong("values", len(b), ErrTruncated)
		}
		return wrong("values", first+(items+int(n.buffered))*width, ErrCorrupt)
	case n.top != 0 && n.size[n.top] == 0:
		return wrong("top", 6, ErrCorrupt)
	case n.base == 0 && weight != float64(n.count), weight > 2*float64(n.count)+1, weight < float64(n.count)/2-1:
		// Above base 0 the weights only sum to the count on average, but by far within these bounds.
		return wrong("count", 16, ErrCorrupt)
	case n.count == 0 && (n.min != zero || n.max != zero), !(n.min <= n.max):
		return wrong("minimum", headerLen, ErrCorrupt)
	}
	n.used = uint16(items)
	n.items = make([]T, items)
	at := 0
	for i := range int(n.top) + 1 {
		last := n.min
		for range n.size[i] {
			v := value[T](b[first+at*width:])
			if !(v >= last && v <= n.max) {
				return wrong("values", first+at*width, ErrCorrupt)
			}
			n.items[at], last = v, v
			at++
		}
	}
	for i := range int(n.buffered) {
		v := value[T](b[first+at*width:])
		if !(v >= n.min && v <= n.max) {
			return wrong("values", first+at*width, ErrCorrupt)
		}
		n.buf[i] = v
		at++
	}
	*s = n
	return nil
}

// kindOf tells types of values apart that have different encodings: 0x10 unsigned, 0x20 signed, 0x30 floating point,
// and the width in bytes.
func kindOf[T Number]() uint8 {
	var zero T
	kind := uint8(unsafe.Sizeof(zero))
	switch {
	case isFloat[T]():
		return kind | 0x30
	case zero-1 < zero:
		return kind | 0x20
	}
	return kind | 0x10
}

func isFloat[T Number]() bool {
	one := T(1)
	return one/2 != 0
}

func appendValue[T Number](b []byte, v T) []byte {
	le := binary.LittleEndian
	switch unsafe.Sizeof(v) {
	case 1:
		return append(b, uint8(v))
	case 2:
		return le.AppendUint16(b, uint16(v))
	case 4:
		if isFloat[T]() {
			return le.AppendUint32(b, math.Float32bits(float32(v)))
		}
		return le.AppendUint32(b, uint32(v))
	}
	if isFloat[T]() {
		return le.AppendUint64(b, math.Float64bits(float64(v)))
	}
	return le.AppendUint64(b, uint64(v))
}

func value[T Number](b []byte) (v T) {
	le := binary.LittleEndian
	switch unsafe.Sizeof(v) {
	case 1:
		return T(b[0])
	case 2:
		return T(le.Uint16(b))
	case 4:
		if isFloat[T]() {
			return T(math.Float32frombits(le.Uint32(b)))
		}
		return T(le.Uint32(b))
	}
	if isFloat[T]() {
		return T(math.Float64frombits(le.Uint64(b)))
	}
	return T(le.Uint64(b))
}
