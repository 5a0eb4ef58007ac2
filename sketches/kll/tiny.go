package kll

import (
	"math"
	"slices"
)

const (
	tinyItems  = 49
	tinyLevels = 6
)

// tinyCap is the number of items at which a level is compacted, by its distance from the heaviest one. The sum is at
// most tinyItems, so a full sketch always has such a level.
var tinyCap = [tinyLevels]uint8{17, 11, 8, 5, 4, 3}

// Tiny is a KLL sketch of 16-bit codes in 120 bytes without pointers, made to lie by the million inside other structs.
// The zero value is empty and ready. Randomness is the caller's, so that the same input and the same [Rand] give the
// same sketch.
type Tiny struct {
	count    uint64
	min, max uint16
	size     [tinyLevels]uint8 // items on each level; an item of level i weighs 2^(base+i)
	base     uint8             // below level 0 items are sampled: one of 2^base is taken
	coin     uint8             // by level: which half the last compaction kept
	flip     uint8             // by level: set if the next compaction keeps the other half
	// Free space, then the levels, lightest first. All but level 0 are in ascending order.
	items [tinyItems]uint16
}

// Update adds one code.
func (t *Tiny) Update(code uint16, r *Rand) {
	if t.count == 0 {
		t.min, t.max = code, code
	}
	t.min, t.max = min(t.min, code), max(t.max, code)
	t.count++
	if t.base != 0 && r.Next()&(1<<t.base-1) != 0 {
		return
	}
	t.insert(0, code, r)
}

// Add adds codes, as a loop over Update would, but faster.
func (t *Tiny) Add(codes []uint16, r *Rand) {
	for _, c := range codes {
		t.Update(c, r)
	}
}

// Merge adds what o has seen. o stays as it is.
func (t *Tiny) Merge(o *Tiny, r *Rand) {
	if o.count == 0 {
		return
	}
	if t.count == 0 {
		*t = *o
		return
	}
	t.min, t.max = min(t.min, o.min), max(t.max, o.max)
	t.count += o.count
	other := *o // also when o is t
	end := tinyItems
	for i := tinyLevels - 1; i >= 0; i-- { // heavy items first, so that base is settled before light ones come
		n := int(other.size[i])
		for _, c := range other.items[end-n : end] {
			level := int(other.base) + i - int(t.base)
			for level >= tinyLevels {
				t.raise(r)
				level--
			}
			if level < 0 {
				if r.Next()&(1<<-level-1) != 0 {
					continue
				}
				level = 0
			}
			t.insert(level, c, r)
		}
		end -= n
	}
}

// start is where the items begin.
func (t *Tiny) start() int {
	n := tinyItems
	for _, k := range t.size {
		n -= int(k)
	}
	return n
}

// top is the heaviest level in use.
func (t *Tiny) top() int {
	for i := tinyLevels - 1; i > 0; i-- {
		if t.size[i] != 0 {
			return i
		}
	}
	return 0
}

// insert puts c on a level and makes room before if there is none.
func (t *Tiny) insert(level int, c uint16, r *Rand) {
	start := t.start()
	for start == 0 {
		if t.compress(r) {
			if level--; level < 0 {
				if r.Next()&1 != 0 {
					return // the item's level went away: one of two is taken
				}
				level = 0
			}
		}
		start = t.start()
	}
	if level == 0 {
		t.items[start-1] = c
		t.size[0]++
		return
	}
	i := start
	for j := 0; j < level; j++ {
		i += int(t.size[j])
	}
	// Move everything lighter, and everything smaller on the level, one to the left.
	copy(t.items[start-1:], t.items[start:i])
	end := i + int(t.size[level])
	for i < end && t.items[i] < c {
		t.items[i-1] = t.items[i]
		i++
	}
	t.items[i-1] = c
	t.size[level]++
}

// compress compacts the lightest level that holds its share of the items. It reports whether base rose for that.
func (t *Tiny) compress(r *Rand) (raised bool) {
	top := t.top()
	for h := 0; ; h++ {
		if h < top && t.size[h] < tinyCap[top-h] {
			continue
		}
		if h == tinyLevels-1 {
			t.raise(r)
			h--
			raised = true
		}
		t.compact(h, r)
		return raised
	}
}

// raise doubles the weight of level 0, whose items move up with what was level 1.
func (t *Tiny) raise(r *Rand) {
	t.compact(0, r)
	if t.size[0] != 0 { // the odd one, taken or left with equal chance
		start := t.start()
		t.size[0] = 0
		if c := t.items[start]; r.Next()&1 != 0 {
			t.insert(1, c, r)
		}
	}
	copy(t.size[:], t.size[1:])
	t.size[tinyLevels-1] = 0
	t.coin >>= 1
	t.flip >>= 1
	t.base++
}

// compact halves level h: every other item, with twice the weight, moves to the level above. If the number of items
// is odd the largest stays, because the upper quantiles are the ones that people ask for.
func (t *Tiny) compact(h int, r *Rand) {
	start := t.start()
	lo := start
	for j := range h {
		lo += int(t.size[j])
	}
	m := int(t.size[h])
	hi := lo + m
	if h == 0 {
		slices.Sort(t.items[lo:hi])
	}
	bit := uint8(1) << h
	if t.flip&bit == 0 {
		t.coin = t.coin&^bit | uint8(r.Next())&bit
	} else {
		t.coin ^= bit
	}
	t.flip ^= bit
	var kept [tinyItems / 2]uint16
	half := m / 2
	off := 0
	if t.coin&bit != 0 {
		off = 1
	}
	for i := range half {
		kept[i] = t.items[lo+2*i+off]
	}
	odd := t.items[max(hi-1, 0)]
	// Merge what is kept with the level above, to the left of it.
	w, a, b, end := hi-half, 0, hi, hi+int(t.size[h+1])
	for a < half {
		if b < end && t.items[b] < kept[a] {
			t.items[w] = t.items[b]
			b++
		} else {
			t.items[w] = kept[a]
			a++
		}
		w++
	}
	free := half
	t.size[h+1] += uint8(half)
	t.size[h] = uint8(m & 1)
	if m&1 != 0 {
		t.items[hi-half-1] = odd
	}
	copy(t.items[start+free:], t.items[start:lo])
}

// Count is the number of codes that were added.
func (t *Tiny) Count() uint64 { return t.count }

// Min is the smallest code, exactly; 0 if there is none.
func (t *Tiny) Min() uint16 { return t.min }

// Max is the largest code, exactly; 0 if there is none.
func (t *Tiny) Max() uint16 { return t.max }

// Reset empties t.
func (t *Tiny) Reset() { *t = Tiny{} }

// Rank estimates the share of codes that are not larger than code.
func (t *Tiny) Rank(code uint16) float64 {
	if t.count == 0 || code < t.min {
		return 0
	}
	if code >= t.max {
		return 1
	}
	var below, total uint64
	i := t.start()
	for h, n := range t.size {
		for _, c := range t.items[i : i+int(n)] {
			if c <= code {
				below += 1 << h
			}
		}
		total += uint64(n) << h
		i += int(n)
	}
	return float64(below) / float64(total)
}

// Quantile estimates the smallest code that at least the share q of all codes does not exceed. It is exact for 0 and
// 1, and 0 if there is no code.
func (t *Tiny) Quantile(q float64) uint16 {
	var c [1]uint16
	t.Quantiles(c[:0], q)
	return c[0]
}

// Quantiles appends the quantiles qs, which must ascend, to dst.
func (t *Tiny) Quantiles(dst []uint16, qs ...float64) []uint16 {
	var sorted [tinyItems]uint32
	n, total := t.sort(&sorted)
	var below uint64
	i := 0
	for _, q := range qs {
		switch {
		case !(q > 0) || n == 0:
			dst = append(dst, t.min)
			continue
		case q >= 1:
			dst = append(dst, t.max)
			continue
		}
		want := uint64(math.Ceil(q * float64(total)))
		for i < n-1 && below+1<<(sorted[i]&0xff) < want {
			below += 1 << (sorted[i] & 0xff)
			i++
		}
		dst = append(dst, min(max(uint16(sorted[i]>>8), t.min), t.max))
	}
	return dst
}

// sort fills dst with code<<8 | level of all items, in order, and gives their number and the sum of their weights.
func (t *Tiny) sort(dst *[tinyItems]uint32) (n int, total uint64) {
	i := t.start()
	for h, k := range t.size {
		for _, c := range t.items[i : i+int(k)] {
			dst[n] = uint32(c)<<8 | uint32(h)
			n++
		}
		total += uint64(k) << h
		i += int(k)
	}
	slices.Sort(dst[:n])
	return n, total
}
