package quantile

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// The errors of the bytes of a histogram.
var (
	ErrTruncated = errors.New("truncated")
	ErrCorrupt   = errors.New("corrupt")
)

// Append appends the bytes of h to b. They include their length, and are the same for histograms with the same counts,
// however they came to them:
//
//	length of a run of codes, gap before it, counter of each of its codes   as often as there are runs
//	0                                                                       the end
//	values that are in no counter                                           only if a counter stopped
//
// All of them are unsigned varints as in package encoding/binary. A gap is the number of codes that were not counted
// since the run before, or before the first run since code 0.
func (h *Histogram) Append(b []byte) []byte {
	if h.count == 0 {
		return append(b, 0)
	}
	var memory [DenseCodes]uint32
	lo, hi := int(DenseCodes-h.bottom), int(h.top)
	first := lo / pageCodes * pageCodes
	for o := first; o < hi; o += pageCodes {
		if p := int(h.page[o/pageCodes]); p != 0 {
			copy(memory[o:o+pageCodes], h.counts[(p-1)*pageCodes:])
		}
	}
	counted, stopped, next := uint64(0), false, 0
	for c := lo; c < hi; {
		if memory[c] == 0 {
			c++
			continue
		}
		end := c + 1
		for end < hi && memory[end] != 0 {
			end++
		}
		b = binary.AppendUvarint(b, uint64(end-c))
		b = binary.AppendUvarint(b, uint64(c-next))
		for _, n := range memory[c:end] {
			b = binary.AppendUvarint(b, uint64(n))
			counted += uint64(n)
			stopped = stopped || n == math.MaxUint32
		}
		c, next = end, end
	}
	b = append(b, 0)
	if stopped {
		b = binary.AppendUvarint(b, h.count-counted)
	}
	return b
}

// Read makes h the histogram whose bytes b begins with, and returns their number. It refuses what [Histogram.Append] does
// not write; then h is empty, and the number is the offset of the error.
func (h *Histogram) Read(b []byte) (int, error) {
	h.Reset()
	at, err := h.MergeBytes(b)
	if err != nil {
		h.Reset()
	}
	return at, err
}

// MergeBytes adds the counts of the histogram with whose bytes b begins, and returns their number. It is
// [Histogram.Read] of another histogram and [Histogram.Merge] of that one. If it fails, h has some of its counters, and
// is good for [Histogram.Reset] only.
func (h *Histogram) MergeBytes(b []byte) (at int, err error) {
	if h.count > math.MaxUint32/2 {
		var o Histogram
		at, err = o.Read(b)
		h.Merge(&o)
		return at, err
	}
	// From here on no counter stops at what one or two bytes add to it.
	stopped, count := false, uint64(0)
	for next := uint64(0); ; {
		start := at
		var run, gap uint64
		if at+2 < len(b) && b[at] < 0x80 && b[at+1] < 0x80 && b[at] != 0 {
			run, gap = uint64(b[at]), uint64(b[at+1])
			at += 2
		} else {
			if run, at, err = uvarint(b, at); err != nil {
				return at, err
			}
			if run == 0 {
				break
			}
			if gap, at, err = uvarint(b, at); err != nil {
				return at, err
			}
		}
		// Runs without a gap between them would be one.
		if run > DenseCodes || gap > DenseCodes || next+gap+run > DenseCodes || gap == 0 && next != 0 {
			return start, ErrCorrupt
		}
		next += gap
		end := next + run
		h.top, h.bottom = max(h.top, uint16(end)), max(h.bottom, DenseCodes-uint16(next))
		for next < end {
			counts := h.octave(uint16(next / pageCodes))
			i := next % pageCodes
			last := min(i+end-next, pageCodes)
			next += last - i
			for i < last {
				if at+8 <= len(b) {
					if n, size, total := addShort(counts[i:last], binary.LittleEndian.Uint64(b[at:])); n > 0 {
						i, at, count = i+n, at+size, count+total
						continue
					}
				}
				start = at
				var n uint64
				if n, at, err = uvarint(b, at); err != nil {
					return at, err
				} else if n == 0 || n > math.MaxUint32 {
					return start, ErrCorrupt
				}
				counts[i] = uint32(min(uint64(counts[i])+n, math.MaxUint32))
				i++
				count += n
				stopped = stopped || n == math.MaxUint32
			}
		}
	}
	if stopped {
		start := at
		var rest, carry uint64
		if rest, at, err = uvarint(b, at); err != nil {
			return at, err
		}
		if count, carry = bits.Add64(count, rest, 0); carry != 0 {
			return start, ErrCorrupt
		}
	}
	h.count = sum(h.count, count)
	return at, nil
}

// addShort adds up to eight counters of one byte, or up to four of one or two, that the next eight bytes begin with. It
// gives how many counters these were, in how many bytes, and their sum; none if there is anything else among the bytes.
func addShort(page []uint32, x uint64) (n uint64, size int, total uint64) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	more := x & tops // where another byte follows
	if (x-ones)&^x&tops|more&(more<<8) != 0 {
		return 0, 0, 0 // a byte is zero, which no counter has, or two of them have others behind
	}
	if more == 0 && len(page) >= 8 {
		p := (*[8]uint32)(page)
		p[0] += uint32(x & 0x7f)
		p[1] += uint32(x >> 8 & 0x7f)
		p[2] += uint32(x >> 16 & 0x7f)
		p[3] += uint32(x >> 24 & 0x7f)
		p[4] += uint32(x >> 32 & 0x7f)
		p[5] += uint32(x >> 40 & 0x7f)
		p[6] += uint32(x >> 48 & 0x7f)
		p[7] += uint32(x >> 56)
		x = x&0x00ff00ff00ff00ff + x>>8&0x00ff00ff00ff00ff
		return 8, 8, x * 0x0001000100010001 >> 48
	}
	page = page[:min(len(page), 4)]
	for i := range page {
		// Which counters take two bytes a branch would guess wrong half of the time.
		two := x >> 7 & 1
		v := x&0x7f | x>>8&(0x7f&-two)<<7
		page[i] += uint32(v)
		total += v
		x >>= (8 + 8*two) & 63
		size += 1 + int(two)
	}
	return uint64(len(page)), size, total
}

// uvarint reads the varint at a place, and returns the place behind it.
func uvarint(b []byte, at int) (v uint64, next int, err error) {
	if at+1 < len(b) {
		if b[at] < 0x80 {
			return uint64(b[at]), at + 1, nil
		}
		if b[at+1]-1 < 0x7f { // not 0, which makes a varint longer than it has to be
			return uint64(b[at]&0x7f) | uint64(b[at+1])<<7, at + 2, nil
		}
	}
	v, n := binary.Uvarint(b[at:])
	switch {
	case n > 1 && b[at+n-1] == 0:
		return 0, at, ErrCorrupt
	case n > 0:
		return v, at + n, nil
	case n == 0:
		return 0, at, ErrTruncated
	}
	return 0, at, ErrCorrupt
}
