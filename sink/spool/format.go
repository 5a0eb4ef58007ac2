package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

const (
	segmentMagic     = "hopspol2"
	segmentHeaderLen = 44
	headerLen        = 64
	// maxRecord bounds what a header may ask for, whatever the settings were when it was written.
	maxRecord = 1 << 30
)

// marker begins every record. It is no text in any encoding, so that payloads do not contain it by chance.
var marker = []byte{0xf5, 'h', 'R', 0x02}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// totals counts everything before some place of the spool, since the spool began.
type totals struct{ records, reports, points uint64 }

func (t totals) plus(u totals) totals {
	return totals{t.records + u.records, t.reports + u.reports, t.points + u.points}
}

func (t totals) minus(u totals) totals {
	return totals{t.records - u.records, t.reports - u.reports, t.points - u.points}
}

// notAfter reports whether t can be before u, or the same.
func (t totals) notAfter(u totals) bool {
	return t.records <= u.records && t.reports <= u.reports && t.points <= u.points
}

func (t totals) lost() Lost { return Lost{t.reports, t.points} }

func appendTotals(dst []byte, t totals) []byte {
	for _, n := range []uint64{t.records, t.reports, t.points} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return dst
}

func parseTotals(b []byte) totals {
	return totals{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}
}

// sumGood reports whether the last four bytes of b are the checksum of those before.
func sumGood(b []byte) bool {
	return crc32.Checksum(b[:len(b)-4], castagnoli) == binary.BigEndian.Uint32(b[len(b)-4:])
}

func appendSum(dst []byte, start int) []byte {
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendSegmentHeader appends the header of a segment: its number and the totals appended before it.
func appendSegmentHeader(dst []byte, number uint64, before totals) []byte {
	start := len(dst)
	dst = append(dst, segmentMagic...)
	dst = binary.BigEndian.AppendUint64(dst, number)
	return appendSum(appendTotals(dst, before), start)
}

func parseSegmentHeader(b []byte) (number uint64, before totals, ok bool) {
	if len(b) < segmentHeaderLen || string(b[:8]) != segmentMagic || !sumGood(b[:segmentHeaderLen]) {
		return 0, totals{}, false
	}
	return binary.BigEndian.Uint64(b[8:]), parseTotals(b[16:]), true
}

// header is a record's, of either version.
type header struct {
	len    int64 // of the header itself
	length int64 // of the payload
	crc    uint32
	before totals // everything before the record
	own    totals
	time   time.Time // when it was appended; zero where it is not known
}

func (h *header) after() totals { return h.before.plus(h.own) }
func (h *header) size() int64   { return h.len + h.length }

// appendRecord appends one record in its form on disk.
func appendRecord(dst []byte, before totals, reports, points uint64, now time.Time, payload []byte) []byte {
	start := len(dst)
	dst = append(dst, marker...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	dst = appendTotals(dst, before)
	dst = binary.BigEndian.AppendUint64(dst, reports)
	dst = binary.BigEndian.AppendUint64(dst, points)
	dst = binary.BigEndian.AppendUint64(dst, uint64(now.UnixNano()))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(payload, castagnoli))
	return append(appendSum(dst, start), payload...)
}

var (
	errHeader  = errors.New("bad record header")
	errPayload = errors.New("bad record payload")
)

// parseHeader reads a header of version 2 at the start of b.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < headerLen || !bytes.Equal(b[:4], marker) || !sumGood(b[:headerLen]) {
		return h, false
	}
	return header{
		len: headerLen, length: int64(binary.BigEndian.Uint32(b[4:])), crc: binary.BigEndian.Uint32(b[56:]),
		before: parseTotals(b[8:]),
		own:    totals{1, binary.BigEndian.Uint64(b[32:]), binary.BigEndian.Uint64(b[40:])},
		time:   time.Unix(0, int64(binary.BigEndian.Uint64(b[48:]))),
	}, true
}

// What version 1 wrote: a magic without anything behind it, and headers without marker, totals, points and time.
const (
	magicV1     = "hopspol1"
	headerLenV1 = 20
)

func parseHeaderV1(b []byte) (h header, ok bool) {
	if len(b) < headerLenV1 || !sumGood(b[:headerLenV1]) {
		return h, false
	}
	return header{
		len: headerLenV1, length: int64(binary.BigEndian.Uint32(b)), crc: binary.BigEndian.Uint32(b[12:]),
		own: totals{1, binary.BigEndian.Uint64(b[4:]), 0},
	}, true
}
