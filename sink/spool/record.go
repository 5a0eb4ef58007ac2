package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	magic     = "hopspol1"
	headerLen = 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends one record in its form on disk.
func appendRecord(dst []byte, reports uint64, payload []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	dst = binary.BigEndian.AppendUint64(dst, reports)
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(payload, castagnoli))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
	return append(dst, payload...)
}

type header struct {
	length  int64
	reports uint64
	crc     uint32
}

var (
	errHeader  = errors.New("bad record header")
	errPayload = errors.New("bad record payload")
)

// parseHeader reads a header at the start of b. room is the number of bytes that are left for header and payload.
func parseHeader(b []byte, room int64) (h header, err error) {
	if len(b) < headerLen || room < headerLen {
		return h, errHeader
	}
	if crc32.Checksum(b[:headerLen-4], castagnoli) != binary.BigEndian.Uint32(b[headerLen-4:]) {
		return h, errHeader
	}
	h = header{int64(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint32(b[12:])}
	if h.length > room-headerLen {
		return header{}, errHeader
	}
	return h, nil
}

// readHeader reads the header at off of a segment that ends at size.
func readHeader(f file, off, size int64) (header, error) {
	var b [headerLen]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		return header{}, errHeader
	}
	return parseHeader(b[:], size-off)
}

// readPayload appends the payload behind the header at off.
func readPayload(dst []byte, f file, off int64, h header) ([]byte, error) {
	n := len(dst)
	dst = append(dst, make([]byte, h.length)...)
	if _, err := f.ReadAt(dst[n:], off+headerLen); err != nil || crc32.Checksum(dst[n:], castagnoli) != h.crc {
		return dst[:n], errPayload
	}
	return dst, nil
}

// Position is a place between two records.
type Position struct {
	segment uint64
	offset  int64
}

func (p Position) before(q Position) bool {
	return p.segment < q.segment || p.segment == q.segment && p.offset < q.offset
}

const (
	headSlot = 64 // bytes from one slot of the head file to the other
	slotLen  = 51 // bytes of one slot that are used
)

// String is the form of a slot of the head file. It always has slotLen bytes.
func (p Position) String() string {
	s := fmt.Sprintf("%020d %020d", p.segment, p.offset)
	return fmt.Sprintf("%s %08x\n", s, crc32.Checksum([]byte(s), castagnoli))
}

// parsePosition reads a slot. ok is false for anything that String did not write.
func parsePosition(b []byte) (p Position, ok bool) {
	var sum uint32
	if n, err := fmt.Sscanf(string(b), "%d %d %x\n", &p.segment, &p.offset, &sum); n != 3 || err != nil || p.String() != string(b) {
		return Position{}, false
	}
	return p, p.offset >= 0
}

// readHead finds the later of the good slots and says which one it was.
func readHead(f file) (p Position, slot int) {
	var b [slotLen]byte
	for i := range 2 {
		if _, err := f.ReadAt(b[:], int64(i)*headSlot); err != nil {
			continue
		}
		if q, ok := parsePosition(b[:]); ok && !q.before(p) {
			p, slot = q, i
		}
	}
	return p, slot
}
