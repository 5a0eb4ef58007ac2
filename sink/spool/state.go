package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	stateName = "state"
	slotBytes = 512 // from one slot to the next: a torn sector hits one
	slotLen   = 48
)

// kinds of slots. Each kind has two, which are written in turn.
const (
	slotHead = iota // everything before it was stored, or is gone and counted
	slotTail        // everything before it was appended
	slotKinds
)

var slotMagic = [slotKinds]string{"hopH", "hopT"}

// slot is a place with the segment that it is in.
type slot struct {
	generation uint64
	segment    uint64
	at         totals
}

func (s slot) encode(kind int) []byte {
	b := append(make([]byte, 0, slotLen), slotMagic[kind]...)
	b = binary.BigEndian.AppendUint64(b, s.generation)
	b = binary.BigEndian.AppendUint64(b, s.segment)
	return appendSum(appendTotals(b, s.at), 0)
}

func parseSlot(b []byte, kind int) (s slot, ok bool) {
	if len(b) < slotLen || string(b[:4]) != slotMagic[kind] || !sumGood(b[:slotLen]) {
		return slot{}, false
	}
	return slot{binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[12:]), parseTotals(b[20:])}, true
}

// slotAt is where generation g of a kind is.
func slotAt(kind int, g uint64) int64 { return int64(kind*2+int(g%2)) * slotBytes }

// readSlots finds the newest good slot of a kind. The result whole is false if the other slot is not the generation
// just before it. A newer one may then have been lost.
func readSlots(f io.ReaderAt, kind int) (newest slot, ok, whole bool) {
	var good [2]bool
	var slots [2]slot
	for i := range slots {
		var b [slotLen]byte
		if _, err := f.ReadAt(b[:], slotAt(kind, uint64(i))); err == nil {
			slots[i], good[i] = parseSlot(b[:], kind)
			good[i] = good[i] && slots[i].generation%2 == uint64(i)
		}
	}
	switch {
	case good[0] && (!good[1] || slots[0].generation > slots[1].generation):
		newest = slots[0]
	case good[1]:
		newest = slots[1]
	}
	return newest, good[0] || good[1], good[0] && good[1] && max(slots[0].generation, slots[1].generation)-min(slots[0].generation, slots[1].generation) == 1
}

// The head file of version 1 has two slots of text, of which the later good one counts.
const (
	headNameV1    = "head"
	headSlotV1    = 64
	headSlotLenV1 = 51
)

// placeV1 is a place in segments of version 1.
type placeV1 struct {
	segment uint64
	offset  int64
}

// String is the form of a slot. It always has headSlotLenV1 bytes.
func (p placeV1) String() string {
	s := fmt.Sprintf("%020d %020d", p.segment, p.offset)
	return fmt.Sprintf("%s %08x\n", s, crc32.Checksum([]byte(s), castagnoli))
}

func parsePlaceV1(b []byte) (p placeV1, ok bool) {
	var sum uint32
	if fmt.Sscanf(string(b), "%d %d %x\n", &p.segment, &p.offset, &sum); p.String() != string(b) {
		return placeV1{}, false
	}
	return p, p.offset >= 0
}

func readHeadV1(f io.ReaderAt) (p placeV1, slot int) {
	var b [headSlotLenV1]byte
	for i := range 2 {
		if _, err := f.ReadAt(b[:], int64(i)*headSlotV1); err != nil {
			continue
		}
		q, ok := parsePlaceV1(b[:])
		if ok && (q.segment > p.segment || q.segment == p.segment && q.offset >= p.offset) {
			p, slot = q, i
		}
	}
	return p, slot
}
