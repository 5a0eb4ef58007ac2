package ddsketch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// What can be wrong with an encoded sketch.
var (
	ErrTruncated = errors.New("truncated")
	ErrVersion   = errors.New("unknown version")
	ErrCorrupt   = errors.New("corrupt")
)

// Error says at which byte of an encoded sketch something is wrong.
type Error struct {
	Field  string
	Offset int
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("ddsketch: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

const (
	magic     = "DDS\x01" // the last byte is the version
	headerLen = len(magic) + 3*8
)

// AppendBinary appends s to b. It never fails. The layout, numbers little endian:
//
//	"DDS" <3b>, 1 <1b>, accuracy <8b>, min <8b>, max <8b>
//	zero count <uvarint>, number of bins <uvarint>
//	first index <varint>, its count <uvarint>, then for each bin: distance to the one before <uvarint>, count <uvarint>
//
// DataDog's own encoding is not used, because its reader accepts bins at any index, so that a few bytes can ask for a lot
// of memory.
func (s *Sketch) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, magic...)
	for _, v := range []float64{s.cfg.Accuracy, s.min, s.max} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	b = binary.AppendUvarint(b, s.zero)
	n, last := uint64(0), 0
	s.bins.ForEach(func(int, float64) bool { n++; return false })
	b = binary.AppendUvarint(b, n)
	first := true
	s.bins.ForEach(func(i int, n float64) bool {
		if first {
			b = binary.AppendVarint(b, int64(i))
		} else {
			b = binary.AppendUvarint(b, uint64(i-last))
		}
		first, last = false, i
		b = binary.AppendUvarint(b, uint64(n))
		return false
	})
	return b, nil
}

// UnmarshalBinary makes s, which [New] made, hold what AppendBinary encoded at the same accuracy. Anything else is
// refused with an [*Error], and then s stays as it was. The number of bins stays that of s.
func (s *Sketch) UnmarshalBinary(b []byte) error {
	n, err := New(s.cfg)
	if err != nil {
		return err
	}
	r := reader{b: b}
	if len(b) >= len(magic) && string(b[:len(magic)]) != magic {
		return &Error{"version", 0, ErrVersion}
	}
	if len(b) < headerLen {
		return &Error{"header", len(b), ErrTruncated}
	}
	le := binary.LittleEndian
	if a := math.Float64frombits(le.Uint64(b[4:])); a != s.cfg.Accuracy {
		return &Error{"accuracy", 4, ErrAccuracy}
	}
	n.min, n.max = math.Float64frombits(le.Uint64(b[12:])), math.Float64frombits(le.Uint64(b[20:]))
	if !(n.min >= 0 && n.min <= n.max && n.max <= n.m.MaxIndexableValue()) {
		return &Error{"minimum", 12, ErrCorrupt}
	}
	// The indexes that values can have. The bins of a sketch that collapsed lie within these as well.
	lowest, highest := n.m.Index(n.m.MinIndexableValue()), n.m.Index(max(n.max, n.m.MinIndexableValue()))
	r.at = headerLen
	if n.zero = r.uvarint("zero count"); n.zero > maxCount {
		return &Error{"zero count", headerLen, ErrCorrupt}
	}
	n.count = n.zero
	bins := r.uvarint("bins")
	index := 0
	for i := uint64(0); i < bins && r.err == nil; i++ {
		start := r.at
		if i == 0 {
			index = r.index()
		} else if d := r.uvarint("index"); d == 0 || d > uint64(highest-lowest) {
			r.fail("index", start, ErrCorrupt)
		} else {
			index += int(d)
		}
		if index < lowest || index > highest {
			r.fail("index", start, ErrCorrupt)
		}
		start = r.at
		c := r.uvarint("count")
		if c == 0 || c > maxCount-n.count {
			r.fail("count", start, ErrCorrupt)
		}
		if r.err == nil {
			n.count += c
			n.bins.AddWithCount(index, float64(c))
		}
	}
	switch {
	case r.err != nil:
		return r.err
	case r.at != len(b):
		return &Error{"end", r.at, ErrCorrupt}
	case n.count == 0 && n.max != 0:
		return &Error{"zero count", headerLen, ErrCorrupt}
	}
	*s = *n
	return nil
}

// reader reads numbers until the first error.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) fail(field string, off int, err error) {
	if r.err == nil {
		r.err = &Error{field, off, err}
	}
}

func (r *reader) uvarint(field string) uint64 {
	v, n := binary.Uvarint(r.b[r.at:])
	return r.read(field, v, n)
}

func (r *reader) index() int {
	v, n := binary.Varint(r.b[r.at:])
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail("index", r.at, ErrCorrupt)
	}
	return int(r.read("index", uint64(v), n))
}

func (r *reader) read(field string, v uint64, n int) uint64 {
	switch {
	case n == 0:
		r.fail(field, len(r.b), ErrTruncated)
	case n < 0:
		r.fail(field, r.at, ErrCorrupt)
	}
	if r.err != nil {
		return 0
	}
	r.at += n
	return v
}
