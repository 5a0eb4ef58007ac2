package quantile

import "slices"

// BriefTail holds a [Tail] of few codes in 52 bytes, as long as it has room for it. That is a list of up to 21 codes, or
// fewer than 384 of them in 84 cells of four bits. Nothing is lost: the sketch comes back as it was. The zero value is
// empty and ready to use.
type BriefTail struct {
	min, max uint16
	origin   uint16 // of the sketch
	count    uint16
	width    uint8 // of the sketch
	first    uint8 // cell of the sketch that is the first one here
	cell     [briefCells / 2]uint8
}

const (
	briefCells  = 84
	briefListed = briefCells / 4
	briefMost   = 15 // in a cell
)

// Add adds codes as [Tail.Add] does. It reports false where b has no room for the sketch with them, or may have none,
// and leaves b as it was.
func (b *BriefTail) Add(codes []uint16) bool {
	return len(codes) == 0 || b.AddRange(codes, slices.Min(codes), slices.Max(codes))
}

// AddRange is Add of codes of which the smallest and the largest are known. There is at least one.
func (b *BriefTail) AddRange(codes []uint16, lo, hi uint16) bool {
	n := int(b.count)
	if b.width == 0 {
		if n+len(codes) > briefListed {
			return false
		}
		list := b.cell[2*n:]
		for i, c := range codes {
			list[2*i], list[2*i+1] = uint8(c), uint8(c>>8)
		}
	} else {
		first, shift := int(b.origin)+int(b.first), b.width-1
		if n+len(codes) >= sampleFrom || int(fine(lo)>>shift) < first || int(fine(hi)>>shift) >= first+briefCells {
			return false
		}
		cell := b.cell
		for _, c := range codes {
			i := int(fine(c)>>shift) - first
			p, at := &cell[i/2], i%2*4
			if *p>>at&briefMost == briefMost {
				return false
			}
			*p += 1 << at
		}
		b.cell = cell
	}
	if n != 0 {
		lo, hi = min(lo, b.min), max(hi, b.max)
	}
	b.min, b.max, b.count = lo, hi, uint16(n+len(codes))
	return true
}

// Hold makes b hold t. It reports false where b has no room for t, and leaves b as it was.
func (b *BriefTail) Hold(t *Tail) bool {
	if t.count >= sampleFrom || t.limit != 0 {
		return false
	}
	to := BriefTail{min: t.min, max: t.max, origin: t.origin, width: t.width, count: uint16(t.count)}
	if t.width == 0 {
		if t.count > briefListed {
			return false
		}
		copy(to.cell[:], t.cell[:2*t.count])
		*b = to
		return true
	}
	first, last, most := cells, 0, uint8(0)
	for i, v := range t.cell {
		if v != 0 {
			first, last, most = min(first, i), i, max(most, v)
		}
	}
	spare := briefCells - 1 - (last - first)
	if spare < 0 || most > briefMost || t.scale != 0 {
		return false
	}
	first = min(max(first-spare/2, 0), cells-briefCells)
	to.first = uint8(first)
	for i := range to.cell {
		to.cell[i] = t.cell[first+2*i] | t.cell[first+2*i+1]<<4
	}
	*b = to
	return true
}

// Tail returns the sketch that b holds.
func (b *BriefTail) Tail() Tail {
	t := Tail{count: uint64(b.count), min: b.min, max: b.max, origin: b.origin, width: b.width}
	if b.width == 0 {
		t.scale = uint8(b.count)
		copy(t.cell[:], b.cell[:2*b.count])
		return t
	}
	at := t.cell[b.first:][:briefCells]
	for i, v := range b.cell {
		at[2*i], at[2*i+1] = v&briefMost, v>>4
	}
	return t
}

// Touch reads the cache lines of b, as [Tail.Touch] does.
func (b *BriefTail) Touch() uint64 { return uint64(b.min) + uint64(b.cell[len(b.cell)-1]) }
