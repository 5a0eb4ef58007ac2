package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/hopscope/hopscope/inference"
)

// FORMAT.md draws the layout.
const (
	fileMagic   = "HOPSHIST"
	fileVersion = 1
	fileHead    = 16

	recordMagic = "HHR1"
	recordHead  = 68

	rowBytes = 9 + 4*int(numFigures)

	// maxPart bounds a part of a record, packed or not, whatever length its head has.
	maxPart = 512 << 20
)

// The parts of a record.
const (
	figuresPart = iota
	eventsPart
	sketchesPart
	numParts
)

var partNames = [numParts]string{"figures", "events", "sketches"}

// The errors of stored bytes.
var (
	ErrTruncated = errors.New("truncated")
	ErrVersion   = errors.New("unknown version")
	ErrCorrupt   = errors.New("corrupt")
)

// Error is an error of the bytes of a file, with their offset.
type Error struct {
	File   string
	Field  string
	Offset int64
	Err    error // ErrTruncated, ErrVersion, ErrCorrupt, or one of the parts
}

func (e *Error) Error() string {
	return fmt.Sprintf("history: %s: %s at byte %d: %v", e.File, e.Field, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is the head of a record.
type head struct {
	bucket, start, end int64
	windows            uint32
	reports            uint64
	length, sum        [numParts]uint32
}

// size is the length of the record.
func (h *head) size() int64 {
	n := int64(recordHead)
	for _, l := range h.length {
		n += int64(l)
	}
	return n
}

// offset is where a part begins in the record.
func (h *head) offset(part int) int64 {
	n := int64(recordHead)
	for _, l := range h.length[:part] {
		n += int64(l)
	}
	return n
}

func (h *head) append(b []byte) []byte {
	from, le := len(b), binary.LittleEndian
	b = append(b, recordMagic...)
	b = le.AppendUint64(b, uint64(h.bucket))
	b = le.AppendUint64(b, uint64(h.start))
	b = le.AppendUint64(b, uint64(h.end))
	b = le.AppendUint32(b, h.windows)
	b = le.AppendUint64(b, h.reports)
	for _, list := range [...][numParts]uint32{h.length, h.sum} {
		for _, v := range list {
			b = le.AppendUint32(b, v)
		}
	}
	return le.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// readHead reads the head of a record of a step, in ns.
func readHead(b []byte, step int64) (h head, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) < recordHead:
		return h, ErrTruncated
	case string(b[:4]) != recordMagic, le.Uint32(b[recordHead-4:]) != crc32.Checksum(b[:recordHead-4], castagnoli):
		return h, ErrCorrupt
	}
	h.bucket, h.start, h.end = int64(le.Uint64(b[4:])), int64(le.Uint64(b[12:])), int64(le.Uint64(b[20:]))
	h.windows, h.reports = le.Uint32(b[28:]), le.Uint64(b[32:])
	for i := range numParts {
		h.length[i], h.sum[i] = le.Uint32(b[40+4*i:]), le.Uint32(b[52+4*i:])
		if h.length[i] > maxPart {
			return h, ErrCorrupt
		}
	}
	if h.bucket < 0 || h.bucket > math.MaxInt64-step || h.bucket%step != 0 || h.start > h.end || h.end <= h.bucket || h.end > h.bucket+step || h.windows == 0 {
		return h, ErrCorrupt
	}
	return h, nil
}

func appendFileHead(b []byte, step int64) []byte {
	b = append(b, fileMagic...)
	b = binary.LittleEndian.AppendUint16(b, fileVersion)
	b = append(b, 0, 0)
	return binary.LittleEndian.AppendUint32(b, uint32(step/1e9))
}

// checkFileHead checks the head of a file of a step.
func checkFileHead(b []byte, step int64) error {
	switch {
	case len(b) < fileHead:
		return ErrTruncated
	case string(b[:8]) != fileMagic:
		return ErrCorrupt
	case binary.LittleEndian.Uint16(b[8:]) != fileVersion:
		return ErrVersion
	case int64(binary.LittleEndian.Uint32(b[12:]))*1e9 != step:
		return ErrCorrupt
	}
	return nil
}

// Figure is a value of a hop that charts draw.
type Figure uint8

// The figures of a hop, in the order in which they are stored.
const (
	LatencyMin Figure = iota
	LatencyP50
	LatencyP90
	LatencyP99
	LatencyMax
	QueueMin
	QueueP50
	QueueP99
	QueueMax
	UtilizationMax
	Records
	numFigures
)

// Figures are the values of one hop; NaN is a value that was not reported.
type Figures [numFigures]float32

// Absent is the value of a figure that was not reported. It is not zero.
var Absent = float32(math.NaN())

// NoFigures are the figures of a hop that was not seen.
func NoFigures() (f Figures) {
	for i := range f {
		f[i] = Absent
	}
	return f
}

// FiguresOf are the figures of a hop of a window.
func FiguresOf(s *inference.HopStats) Figures {
	f := NoFigures()
	f[Records] = float32(s.Count)
	if l := &s.Latency; l.Count > 0 {
		f[LatencyMin], f[LatencyP50], f[LatencyP90], f[LatencyP99], f[LatencyMax] = float32(l.Min), float32(l.P50), float32(l.P90), float32(l.P99), float32(l.Max)
	}
	if q := &s.Queue; q.Count > 0 {
		f[QueueMin], f[QueueP50], f[QueueP99], f[QueueMax] = float32(q.Min), float32(q.P50), float32(q.P99), float32(q.Max)
	}
	if s.HasUtilization && s.Utilization >= 0 {
		f[UtilizationMax] = float32(s.Utilization)
	}
	return f
}

func appendRow(b []byte, k inference.HopKey, f *Figures) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(le.AppendUint32(b, k.Node), k.EgressIf)
	other := byte(0)
	if k.Other {
		other = 1
	}
	b = append(b, other)
	for _, v := range f {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// rows reads a table of figures. It refuses one whose hops are not in their order.
func rows(b []byte, each func(k inference.HopKey, f *Figures)) error {
	if len(b)%rowBytes != 0 {
		return ErrTruncated
	}
	le := binary.LittleEndian
	var before inference.HopKey
	for i := 0; i < len(b); i += rowBytes {
		r := b[i : i+rowBytes]
		k := inference.HopKey{Node: le.Uint32(r), EgressIf: le.Uint32(r[4:]), Other: r[8] == 1}
		if r[8] > 1 || i > 0 && before.Compare(k) >= 0 {
			return ErrCorrupt
		}
		before = k
		var f Figures
		for j := range f {
			f[j] = math.Float32frombits(le.Uint32(r[9+4*j:]))
		}
		each(k, &f)
	}
	return nil
}

// packer packs and unpacks parts. It has one user at a time.
type packer struct {
	in  *zstd.Decoder
	out *zstd.Encoder
}

func newPacker() (p packer, err error) {
	if p.out, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)); err != nil {
		return p, err
	}
	p.in, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPart), zstd.WithDecoderMaxWindow(8<<20))
	return p, err
}

// unpack appends what is packed in b to dst.
func (p *packer) unpack(dst, b []byte) ([]byte, error) {
	out, err := p.in.DecodeAll(b, dst)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return out, nil
}

func (p *packer) close() {
	p.in.Close()
	_ = p.out.Close() // it wrote to no one
}
