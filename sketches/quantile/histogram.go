package quantile

import (
	"iter"
	"math"
	"math/bits"
	"unsafe"
)

// OctaveCodes is the number of dense codes of an octave, and Octaves the number of octaves.
const (
	OctaveCodes = 1 << denseMantissa
	Octaves     = DenseCodes / OctaveCodes

	pageCodes = OctaveCodes
)

// Histogram counts dense codes: every quantile within [DenseRelativeError], whatever the number of values. The zero
// value is empty and ready.
//
// Counters come in pages of one octave, 128 bytes, and only octaves that were seen have one. That is some 1 to 2 KB for
// the latencies of a device, and 7.8 KB for values spread over all of uint64. A counter stops at 2³²-1. It is not safe
// for concurrent use.
type Histogram struct {
	count uint64
	// 1 + the largest code, and DenseCodes - the smallest: both grow from zero, so that Add needs no branch for the
	// first value.
	top, bottom uint16
	page        [DenseCodes / pageCodes]uint8 // by octave: 1 + its page in counts, 0 for none
	counts      []uint32
}

// Add counts one value with the dense code c.
func (h *Histogram) Add(c uint16) {
	c = min(c, DenseCodes-1)
	h.count++
	h.top = max(h.top, c+1)
	h.bottom = max(h.bottom, DenseCodes-c)
	p := uint(h.page[c/pageCodes])
	if p == 0 {
		p = h.grow(c / pageCodes)
	}
	n := &h.counts[(p-1)*pageCodes+uint(c%pageCodes)]
	if *n != math.MaxUint32 {
		*n++
	}
}

// AddWithin is Add, unless the code's octave has no counters yet and octaves is 0; otherwise it takes those it needs from
// octaves. It reports whether it counted.
func (h *Histogram) AddWithin(c uint16, octaves *int) bool {
	c = min(c, DenseCodes-1)
	p := uint(h.page[c/pageCodes])
	if p == 0 {
		if *octaves == 0 {
			return false
		}
		*octaves--
		p = h.grow(c / pageCodes)
	}
	h.count++
	h.top = max(h.top, c+1)
	h.bottom = max(h.bottom, DenseCodes-c)
	if n := &h.counts[(p-1)*pageCodes+uint(c%pageCodes)]; *n != math.MaxUint32 {
		*n++
	}
	return true
}

// AddValue counts v.
func (h *Histogram) AddValue(v uint64) { h.Add(EncodeDense(v)) }

// AddN counts n values with the dense code c.
func (h *Histogram) AddN(c uint16, n uint64) {
	if n == 0 {
		return
	}
	h.Add(c)
	c = min(c, DenseCodes-1)
	h.count = sum(h.count, n-1)
	x := &h.counts[(uint(h.page[c/pageCodes])-1)*pageCodes+uint(c%pageCodes)]
	*x = uint32(min(uint64(*x)+min(n-1, math.MaxUint32), math.MaxUint32))
}

// grow allocates a page of counters for octave o.
func (h *Histogram) grow(o uint16) uint {
	n := len(h.counts)
	if cap(h.counts) < n+pageCodes {
		// Four octaves at first, because values of one kind span a few; then two at a time, not twice as many.
		c := make([]uint32, n, max(4*pageCodes, n+2*pageCodes))
		copy(c, h.counts)
		h.counts = c
	}
	h.counts = h.counts[:n+pageCodes]
	h.page[o] = uint8(n/pageCodes + 1)
	return uint(h.page[o])
}

// AddOctave counts n[i] values with the i-th dense code of an octave, which is the code octave * OctaveCodes + i.
func (h *Histogram) AddOctave(octave int, n *[OctaveCodes]uint64) {
	lo, hi, total := 0, -1, uint64(0)
	for i, k := range n {
		if k == 0 {
			continue
		}
		if hi < 0 {
			lo = i
		}
		hi = i
		total = sum(total, k)
	}
	if hi < 0 || octave < 0 || octave >= Octaves {
		return
	}
	first := uint16(octave * pageCodes)
	h.count = sum(h.count, total)
	h.top = max(h.top, first+uint16(hi)+1)
	h.bottom = max(h.bottom, DenseCodes-first-uint16(lo))
	counts := h.octave(uint16(octave))
	for i := range counts {
		counts[i] = uint32(min(uint64(counts[i])+min(n[i], math.MaxUint32), math.MaxUint32))
	}
}

// octave returns the counters of an octave, which it takes memory for if it has none.
func (h *Histogram) octave(o uint16) *[pageCodes]uint32 {
	p := uint(h.page[o])
	if p == 0 {
		p = h.grow(o)
	}
	return (*[pageCodes]uint32)(h.counts[(p-1)*pageCodes:])
}

// sum adds counts that stop at the largest number.
func sum(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	return s | -carry
}

// Merge adds what o counted. Merging is exact, so it does not depend on order or grouping; a counter that stopped stays
// at its largest value.
func (h *Histogram) Merge(o *Histogram) {
	if o.top == 0 {
		return
	}
	first, last := (DenseCodes-o.bottom)/pageCodes, (o.top-1)/pageCodes
	if h.top == 0 && len(o.counts) <= int(last-first+1)*pageCodes {
		// The counters of h beyond are zero, so that only the counters of o have to be copied. O has no more of them
		// than it needs.
		if cap(h.counts) < len(o.counts) {
			h.counts = make([]uint32, 0, len(o.counts))
		}
		h.counts = append(h.counts[:0], o.counts...)
		h.page, h.count, h.top, h.bottom = o.page, o.count, o.top, o.bottom
		return
	}
	for i := first; i <= last; i++ {
		p := int(o.page[i])
		if p == 0 {
			continue
		}
		addPage(h.octave(i), (*[pageCodes]uint32)(o.counts[(p-1)*pageCodes:]))
	}
	h.count = sum(h.count, o.count)
	h.top, h.bottom = max(h.top, o.top), max(h.bottom, o.bottom)
}

// addPage adds counters that stop at their largest value.
func addPage(to, from *[pageCodes]uint32) {
	// Two counters are a word. As long as no counter of either has its highest bit set, a sum does not reach into the
	// next one, and does not stop.
	const highest = 1<<63 | 1<<31
	a, b := (*[pageCodes / 2]uint64)(unsafe.Pointer(to)), (*[pageCodes / 2]uint64)(unsafe.Pointer(from))
	var seen uint64
	for i := 0; i < len(a); i += 4 {
		x, y, z, u := b[i], b[i+1], b[i+2], b[i+3]
		p, q, r, s := a[i], a[i+1], a[i+2], a[i+3]
		seen |= x | y | z | u | p | q | r | s
		a[i], a[i+1], a[i+2], a[i+3] = p+x, q+y, r+z, s+u
	}
	if seen&highest == 0 {
		return
	}
	for i := range a {
		a[i] -= b[i]
	}
	for c, n := range from {
		s := to[c] + n
		if s < n {
			s = math.MaxUint32
		}
		to[c] = s
	}
}

// KeptOctaves is the greatest number of octaves whose counters Reset keeps. Values of one kind span fewer.
const KeptOctaves = 16

// Reset empties h. It keeps its memory as long as that is not much more than values of one kind take. So values that
// once spread over all octaves do not stay for ever.
func (h *Histogram) Reset() {
	if h.top == 0 {
		return
	}
	if cap(h.counts) > KeptOctaves*pageCodes {
		*h = Histogram{}
		return
	}
	for o := (DenseCodes - h.bottom) / pageCodes; o <= (h.top-1)/pageCodes; o++ {
		if p := int(h.page[o]); p != 0 {
			clear(h.counts[(p-1)*pageCodes : p*pageCodes])
		}
	}
	h.count, h.top, h.bottom = 0, 0, 0
}

// All returns the codes that were counted, in ascending order, with their counts.
func (h *Histogram) All() iter.Seq2[uint16, uint32] {
	return func(yield func(uint16, uint32) bool) {
		if h.count == 0 {
			return
		}
		lo, hi := DenseCodes-h.bottom, h.top-1
		for o := lo / pageCodes; o <= hi/pageCodes; o++ {
			p := int(h.page[o])
			if p == 0 {
				continue
			}
			for i, n := range h.counts[(p-1)*pageCodes : p*pageCodes] {
				if n != 0 && !yield(o*pageCodes+uint16(i), n) {
					return
				}
			}
		}
	}
}

// Count is the number of values.
func (h *Histogram) Count() uint64 { return h.count }

// Min returns the smallest value, within the relative error; 0 if there is none.
func (h *Histogram) Min() uint64 {
	if h.count == 0 {
		return 0
	}
	return DecodeDense(DenseCodes - h.bottom)
}

// Max returns the largest value, within the relative error; 0 if there is none.
func (h *Histogram) Max() uint64 {
	if h.count == 0 {
		return 0
	}
	return DecodeDense(h.top - 1)
}

// Quantile returns the smallest value that at least the share q of all values does not exceed, within the relative
// error. A q of 0 gives the smallest, 1 the largest. Quantile returns 0 if there is no value.
func (h *Histogram) Quantile(q float64) uint64 {
	var v [1]uint64
	h.Quantiles(v[:0], q)
	return v[0]
}

// Quantiles appends the quantiles qs, which must ascend, to dst, in one pass.
func (h *Histogram) Quantiles(dst []uint64, qs ...float64) []uint64 {
	n := len(dst)
	var below uint64
	for c, k := range h.All() {
		below += uint64(k)
		for len(dst)-n < len(qs) && below >= rank(qs[len(dst)-n], h.count) {
			dst = append(dst, DecodeDense(c))
		}
		if len(dst)-n == len(qs) {
			return dst
		}
	}
	for len(dst)-n < len(qs) { // nothing was counted, or a counter stopped
		dst = append(dst, h.Max())
	}
	return dst
}

// rank is the number of values, of n, that the quantile q does not fall short of: at least 1, at most n.
func rank(q float64, n uint64) uint64 {
	switch {
	case !(q > 0):
		return 1
	case q >= 1:
		return n
	}
	return min(max(uint64(math.Ceil(q*float64(n))), 1), n)
}

// Touch reads the cache lines of h, for those that need many histograms at once: their misses overlap.
func (h *Histogram) Touch() uint64 {
	sum := h.count + uint64(h.page[len(h.page)-1])
	for i := 0; i < len(h.counts); i += 16 {
		sum += uint64(h.counts[i])
	}
	return sum
}

// SizeBytes is the memory that h holds.
func (h *Histogram) SizeBytes() int { return int(unsafe.Sizeof(*h)) + 4*cap(h.counts) }
