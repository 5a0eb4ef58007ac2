package spool

import (
	"bytes"
	"hash/crc32"
	"io"
	"time"
)

// segment is one file of records, or the records that no file could be made for.
type segment struct {
	number  uint64
	name    string
	version int
	shift   totals // from the totals on disk to those in memory
	start   totals // of the first record
	from    int64  // where the first record is
	size    int64  // behind the last one
	mem     []byte // the records, where they are in memory only
	changed time.Time
	keep    bool // holds damage that could not be copied
	aside   map[int64]bool
}

func (g *segment) headerLen() int64 {
	if g.version == 1 {
		return headerLenV1
	}
	return headerLen
}

// header reads the header at off.
func (g *segment) header(f io.ReaderAt, off int64) (h header, err error) {
	var b [headerLen]byte
	n := g.headerLen()
	if off+n > g.size {
		return h, errHeader
	}
	if _, err := f.ReadAt(b[:n], off); err != nil {
		return h, err
	}
	return g.parse(b[:n], off)
}

func (g *segment) parse(b []byte, off int64) (h header, err error) {
	var ok bool
	if g.version == 1 {
		h, ok = parseHeaderV1(b)
	} else if h, ok = parseHeader(b); ok {
		h.before = h.before.plus(g.shift)
	}
	if !ok || h.length > maxRecord || off+h.size() > g.size {
		return header{}, errHeader
	}
	return h, nil
}

// payload appends the payload of the record at off.
func (h *header) payload(dst []byte, f io.ReaderAt, off int64) ([]byte, error) {
	n := len(dst)
	dst = append(dst, make([]byte, h.length)...)
	if _, err := f.ReadAt(dst[n:], off+h.len); err != nil && h.length > 0 {
		return dst[:n], err
	}
	if crc32.Checksum(dst[n:], castagnoli) != h.crc {
		return dst[:n], errPayload
	}
	return dst, nil
}

const scanBytes = 128 << 10

// scan returns the offset of the next whole record at or after off, or the end of the segment if there is none. Header
// and payload must both be good, so that bytes that only resemble a header are not taken for a record.
func (g *segment) scan(f io.ReaderAt, off int64) (int64, bool) {
	buf := make([]byte, max(0, min(scanBytes, g.size-off)))
	var payload []byte
	step := g.headerLen()
	for off+step <= g.size {
		b := buf[:min(int64(len(buf)), g.size-off)]
		if n, _ := f.ReadAt(b, off); n < len(b) { // what cannot be read is passed over
			n = n &^ 511
			if n < int(step) {
				off = (off &^ 511) + 512
				continue
			}
			b = b[:n]
		}
		i := 0
		for ; i+int(step) <= len(b); i++ {
			if g.version != 1 {
				j := bytes.Index(b[i:], marker)
				if j < 0 {
					i = len(b) - int(step) + 1
					break
				}
				if i += j; i+int(step) > len(b) {
					break
				}
			}
			at := off + int64(i)
			h, err := g.parse(b[i:i+int(step)], at)
			if err != nil {
				continue
			}
			if payload, err = h.payload(payload[:0], f, at); err == nil {
				return at, true
			}
		}
		off += int64(max(i, 1))
	}
	return g.size, false
}

// walked is the result of a walk through a segment.
type walked struct {
	end   int64  // behind the last good record
	after totals // up to there
	count totals // of the records that are there; in version 1 a damaged stretch counts as a record
}

// walk goes through all records from off, whose totals are at, and finds the way behind damage. With verify a record is
// good only if its payload is.
func (g *segment) walk(f io.ReaderAt, off int64, at totals, verify bool) walked {
	w := walked{end: off, after: at}
	var payload []byte
	for off < g.size {
		h, err := g.header(f, off)
		if err == nil && g.version != 1 && h.before.records > w.after.records && h.before.records-w.after.records > uint64((off-w.end)/headerLen) {
			err = errHeader // more records than there is room for: this is no header
		}
		if err != nil {
			next, found := g.scan(f, off+1)
			if g.version == 1 && found {
				w.count = w.count.plus(totals{records: 1})
			}
			off = next
			continue
		}
		if verify {
			payload, err = h.payload(payload[:0], f, off)
		}
		off += h.size()
		w.count = w.count.plus(h.own)
		if err == nil {
			w.end = off
			if g.version != 1 && w.after.notAfter(h.after()) {
				w.after = h.after()
			}
		}
	}
	if g.version == 1 {
		w.after = at.plus(w.count)
	}
	return w
}
