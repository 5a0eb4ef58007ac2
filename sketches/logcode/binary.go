package logcode

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// What can be wrong with the bytes of a histogram.
var (
	ErrTruncated = errors.New("truncated")
	ErrCorrupt   = errors.New("corrupt")
)

// Append appends the bytes of h to b. They say how long they are, and are the same for histograms that counted the
// same, however they came to it:
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

// Read makes h the histogram whose bytes b begins with, and gives their number. It refuses what [Histogram.Append] does
// not write; then h is empty, and the number is the offset of what is wrong.
func (h *Histogram) Read(b []byte) (int, error) {
	h.Reset()
	at, err := h.read(b)
	if err != nil {
		h.Reset()
	}
	return at, err
}

func (h *Histogram) read(b []byte) (at int, err error) {
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
		h.top, h.bottom = uint16(end), max(h.bottom, DenseCodes-uint16(next))
		for next < end {
			counts := h.octave(uint16(next / pageCodes))
			first := next % pageCodes
			page := counts[first:min(first+end-next, pageCodes)]
			next += uint64(len(page))
			for i := range page {
				// Most counters take a byte or two, and which of them a branch would guess wrong half of the time.
				if at+2 <= len(b) {
					x := uint32(b[at]) | uint32(b[at+1])<<8
					two := x >> 7 & 1
					if v := x&0x7f | x>>8&0x7f*two<<7; x>>15&two == 0 && v > 0x7f*two { // complete, not 0, and no shorter
						page[i] = v
						count += uint64(v)
						at += 1 + int(two)
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
				page[i] = uint32(n)
				count += n
				stopped = stopped || n == math.MaxUint32
			}
		}
	}
	h.count = count
	if stopped {
		start := at
		var rest, carry uint64
		if rest, at, err = uvarint(b, at); err != nil {
			return at, err
		}
		if h.count, carry = bits.Add64(h.count, rest, 0); carry != 0 {
			return start, ErrCorrupt
		}
	}
	return at, nil
}

// uvarint reads the varint at a place, and gives the place behind it.
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
