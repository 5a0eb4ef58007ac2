package sketches

import "math/bits"

// NoSlot is no slot.
const NoSlot = ^uint32(0)

// SlotIndex maps hashes to the slots of a table, such as a flow table or a top-k list. The caller compares keys.
//
// It is open addressing with linear probing over cells of 8 bytes, which hold a 32-bit tag and a slot number. The tag
// is the upper half of the hash. It determines the first cell of a key and, but for one chance in 2³² a cell, whether a
// slot is the right one. So a look-up reads one cache line of the index and nothing of entries that it does not want.
// Deletion shifts back what came behind (Knuth, TAOCP 3, §6.4, algorithm R): there are no tombstones, and look-ups do
// not slow down with age.
//
// Look-ups read at most [SlotReach] cells, because no slot lies farther from its first cell: a slot that would is not
// inserted. With well-mixed hashes that does not happen. With hashes that a sender chose, it bounds the work.
type SlotIndex struct {
	cells []slotCell
}

// slotCell is tag<<32 | slot+1, or 0 where nothing is.
type slotCell uint64

func (c slotCell) tag() uint32  { return uint32(c >> 32) }
func (c slotCell) slot() uint32 { return uint32(c) - 1 }

// NewSlotIndex returns an index for at most n slots.
func NewSlotIndex(n int) SlotIndex { return SlotIndex{cells: MakeHuge[slotCell](SlotCells(n))} }

// SlotCells is the number of 8-byte cells that an index for n slots needs. A third stays empty, so that a look-up
// passes 2 cells on average if the slot is there, and 5 if it is not.
func SlotCells(n int) int { return n + n/2 + 8 }

// SlotTag returns the part of a hash that an index keeps.
func SlotTag(hash uint64) uint32 { return uint32(hash >> 32) }

func (x *SlotIndex) home(tag uint32) int {
	hi, _ := bits.Mul64(uint64(tag)<<32, uint64(len(x.cells)))
	return int(hi)
}

// SlotReach is the most cells that a look-up reads. In a table as full as it gets, the longest run of a billion slots
// with random tags is some 300 cells long.
const SlotReach = 1024

// First returns the slot of the first cell of a tag, if it has the tag; otherwise NoSlot. Find continues from there. It
// is small enough to be inlined.
func (x *SlotIndex) First(tag uint32) uint32 {
	if c := x.cells[x.home(tag)]; c.tag() == tag {
		return c.slot() // NoSlot of an empty cell
	}
	return NoSlot
}

// Find returns the position of the next cell with the tag behind position at, and its slot; NoSlot if there is no more.
// Start with at = -1.
func (x *SlotIndex) Find(tag uint32, at int) (pos int, slot uint32) {
	cells := x.cells
	home := x.home(tag)
	i, left := home, min(SlotReach, len(cells))
	if at >= 0 {
		i = at + 1
		if i > home {
			left -= i - home
		} else {
			left -= i + len(cells) - home
		}
	}
	for ; left > 0; left-- {
		if i >= len(cells) {
			i = 0
		}
		switch c := cells[i]; {
		case c == 0:
			return i, NoSlot
		case c.tag() == tag:
			return i, c.slot()
		}
		i++
	}
	return i, NoSlot
}

// Insert adds a slot under a tag. There must be room. It reports whether there was any within [SlotReach].
func (x *SlotIndex) Insert(tag, slot uint32) bool {
	i := x.home(tag)
	for left := SlotReach; x.cells[i] != 0; left-- {
		if left == 1 {
			return false
		}
		if i++; i == len(x.cells) {
			i = 0
		}
	}
	x.cells[i] = slotCell(tag)<<32 | slotCell(slot+1)
	return true
}

// Delete removes a slot that was inserted under the tag.
func (x *SlotIndex) Delete(tag, slot uint32) {
	n := len(x.cells)
	i := x.home(tag)
	for want := slotCell(tag)<<32 | slotCell(slot+1); x.cells[i] != want; {
		if x.cells[i] == 0 {
			return
		}
		if i++; i == n {
			i = 0
		}
	}
	// A cell that may fill a hole lies less than SlotReach behind it.
	for j, left := i, SlotReach-1; left > 0; left-- {
		if j++; j == n {
			j = 0
		}
		c := x.cells[j]
		if c == 0 {
			break
		}
		// c may fill the hole at i unless its home lies behind i, cyclically in (i, j].
		if h := x.home(c.tag()); (i < h && h <= j) || (j < i && (i < h || h <= j)) {
			continue
		}
		x.cells[i] = c
		i, left = j, SlotReach
	}
	x.cells[i] = 0
}

// Clear removes everything.
func (x *SlotIndex) Clear() { clear(x.cells) }
