package refused

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
)

// Entry is what was refused of one record.
type Entry struct {
	Time   time.Time // when
	Sink   string    // by whom: "influx"
	Target string    // where that was, for people
	Batch  uint64    // of the record
	Part   uint64    // the record's place in the batch
	Groups []Group
}

// Group are points that were refused for one reason.
type Group struct {
	Points  uint64
	Series  []Series
	Reason  string // in the store's words
	Payload []byte // in the encoding of the store's writer
}

// Series is a number of points of one series.
type Series struct {
	Name   string
	Points uint64
}

// Points is the number of refused points.
func (e *Entry) Points() (n uint64) {
	for i := range e.Groups {
		n += e.Groups[i].Points
	}
	return n
}

// Name is the name of the entry's file.
func (e *Entry) Name() string { return fmt.Sprintf("%020d-%06d%s", e.Batch, e.Part, suffix) }

const (
	magic     = "hopsref1"
	headerLen = len(magic) + 8 + 4
	suffix    = ".refused"
	// maxFile bounds what is read of one file. A record is smaller by far.
	maxFile = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged is told of a file that no collector wrote, or that changed since.
var errDamaged = errors.New("is damaged, or no file of refused points")

func (e *Entry) encode() []byte {
	text := func(b []byte, s string) []byte {
		return append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	b := make([]byte, headerLen, 4096)
	b = binary.AppendVarint(b, e.Time.UnixNano())
	b = text(text(b, e.Sink), e.Target)
	b = binary.AppendUvarint(binary.AppendUvarint(b, e.Batch), e.Part)
	b = binary.AppendUvarint(b, uint64(len(e.Groups)))
	for i := range e.Groups {
		g := &e.Groups[i]
		b = binary.AppendUvarint(b, g.Points)
		b = binary.AppendUvarint(b, uint64(len(g.Series)))
		for _, s := range g.Series {
			b = binary.AppendUvarint(text(b, s.Name), s.Points)
		}
		b = text(b, g.Reason)
		b = append(binary.AppendUvarint(b, uint64(len(g.Payload))), g.Payload...)
	}
	return seal(b)
}

// seal fills in what stands before the body, for which b has room.
func seal(b []byte) []byte {
	copy(b, magic)
	binary.BigEndian.PutUint64(b[len(magic):], uint64(len(b)-headerLen))
	binary.BigEndian.PutUint32(b[len(magic)+8:], crc32.Checksum(b[headerLen:], castagnoli))
	return b
}

// decode reads what encode wrote.
func decode(b []byte) (*Entry, error) {
	if len(b) < headerLen || string(b[:len(magic)]) != magic ||
		binary.BigEndian.Uint64(b[len(magic):]) != uint64(len(b)-headerLen) ||
		binary.BigEndian.Uint32(b[len(magic)+8:]) != crc32.Checksum(b[headerLen:], castagnoli) {
		return nil, errDamaged
	}
	d := reader{b: b[headerLen:]}
	e := &Entry{Time: time.Unix(0, d.varint()), Sink: d.text(), Target: d.text(), Batch: d.uvarint(), Part: d.uvarint()}
	sum := uint64(0)
	for range d.count() {
		g := Group{Points: d.uvarint()}
		for range d.count() {
			g.Series = append(g.Series, Series{d.text(), d.uvarint()})
		}
		g.Reason = d.text()
		g.Payload = []byte(d.text())
		if g.Points > math.MaxInt64-sum {
			d.bad = true
		}
		if d.bad {
			break
		}
		sum += g.Points
		e.Groups = append(e.Groups, g)
	}
	if d.bad || len(d.b) != 0 {
		return nil, errDamaged
	}
	return e, nil
}

// reader reads b. After the first failure bad is set and everything is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of elements, each of which takes at least two bytes.
func (r *reader) count() uint64 {
	n := r.uvarint()
	if n > uint64(len(r.b))/2 {
		r.bad = true
		return 0
	}
	return n
}

func (r *reader) text() string {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
