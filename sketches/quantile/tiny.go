package quantile

import (
	"math"
	"slices"
)

const (
	tinyItems  = 50
	tinyLevels = 4
	tinyChunk  = 16 // codes that are put in order and on the levels at once
)

// tinyShare is the number of items with which a level is due for compaction, by its distance from the heaviest one.
var tinyShare = [tinyLevels]uint8{24, 12, 8, 6}

// Tiny is the sketch of Karnin, Lang and Liberty, "Optimal Quantile Approximation in Streams", FOCS 2016 (KLL), cut down to
// 16-bit codes in 120 bytes without pointers, made to lie by the million inside other structs. The zero value is empty and
// ready to use, and a plain copy is a copy. It is not safe for concurrent use.
//
// A sketch keeps some of the codes, on levels. A code on level h stands for 2ʰ codes. When there is no room left, a
// level is compacted. Its codes are sorted, every other one moves to the next level, and the rest is discarded. The
// flip of a coin decides whether the first or the second of each two moves.
//
// # Guarantee
//
// Up to 50 codes, every answer is exact. Beyond that, whatever the distribution and the order of the codes, and also
// after merges, each of these holds with 99 % confidence:
//
//   - the error of any one rank is at most 9 %, as a share of the number of codes;
//   - the largest error over all ranks at once is at most 12 % ([TinyErrorBound]);
//   - the estimated 0.99-quantile is a code of rank 0.92 or more.
//
// The smallest and the largest code are exact, but for the smallest one of a sketch that was fed by [Tiny.AddSample].
//
// # What is not promised
//
// A rank error of 9 % bounds little in the last percent of a distribution. Where the tail matters, count codes in a
// Histogram or use a [Tail].
//
// # Readings of the paper
//
//   - The capacities of levels are shares of one pool of 50 places and not limits. Nothing is compacted while there is
//     any room. Then it is the turn of the lightest level that holds its share.
//   - Coins come in pairs: every second compaction of a level keeps the half that the one before it dropped. That
//     halves the variance (Ivkin, Liberty, Lang, Karnin, Braverman, "Streaming Quantiles Algorithms with Small Space
//     and Update Time", 2019, §3). The sweeping compaction of that article was tried on a larger sketch with such a
//     pool, and gained nothing there.
//   - There are four levels. When they are used up, the base rises. Of each 2^base codes one is taken and the others
//     are skipped, as in §4 of the paper. From then on most codes cost next to nothing.
//   - Of an odd number of codes, the largest waits for the next compaction, because operators ask for the upper quantiles.
type Tiny struct {
	count    uint64
	min, max uint16
	size     [tinyLevels]uint8 // items on each level; an item of level i weighs 2^(base+i)
	used     uint8             // items on all levels
	base     uint8             // of every 2^base codes one is taken
	coin     uint8             // by level: which half the last compaction kept
	flip     uint8             // by level: set if the next compaction keeps the other half
	// Free space, then the levels, lightest first, each in ascending order.
	items [tinyItems]uint16
}

// TinyErrorBound is the largest rank error of a [Tiny] over all ranks, with 99 % confidence.
const TinyErrorBound = 0.12

// Update adds one code.
func (t *Tiny) Update(code uint16, r *Rand) {
	run := [1]uint16{code}
	t.Add(run[:], r)
}

// Add adds codes. Batches of 16 are faster than one code at a time. They are also more accurate, because a batch is put
// in order before it is decided which of its codes are left out.
func (t *Tiny) Add(codes []uint16, r *Rand) {
	for len(codes) > tinyChunk {
		t.add(codes[:tinyChunk], r)
		codes = codes[tinyChunk:]
	}
	if len(codes) > 0 {
		t.add(codes, r)
	}
}

func (t *Tiny) add(codes []uint16, r *Rand) {
	lo, hi := t.min, t.max
	if t.count == 0 {
		lo = codes[0]
	}
	for _, c := range codes {
		lo, hi = min(lo, c), max(hi, c)
	}
	t.min, t.max = lo, hi
	t.count += uint64(len(codes))
	from, n := 0, len(codes)
	if t.base != 0 {
		i := r.Next() & (1<<t.base - 1)
		if i >= uint64(n) {
			return
		}
		if from = int(i); 1<<t.base >= n {
			t.insert(0, codes[from:from+1], r)
			return
		}
	}
	var run [tinyChunk]uint16
	if n < 4 {
		copy(run[:], codes)
		sortSmall(run[:n])
	} else {
		for i := copy(run[:], codes); i < len(run); i++ {
			run[i] = math.MaxUint16 // sorts behind the codes
		}
		sort16(&run)
	}
	if t.base != 0 {
		n = strided(run[:n], from, 1<<t.base)
	}
	t.insert(0, run[:n], r)
}

// AddSample adds n codes of which only a sample is known: one of each 2^w, chosen at random without regard to the
// codes. The argument largest is the largest of the others. The smallest of them is not known, so Min may be too large
// from then on.
//
// If w is [Tiny.Base], the sketch would have left out as many codes itself. So a caller that feeds several sketches at
// once can draw once for all of them, and has no work with most codes.
func (t *Tiny) AddSample(sample []uint16, w uint8, n uint64, largest uint16, r *Rand) {
	if n == 0 {
		return
	}
	if t.count == 0 {
		t.min = math.MaxUint16
		if len(sample) == 0 {
			t.min = largest
		}
	}
	t.max = max(t.max, largest)
	t.count += n
	for len(sample) > 0 {
		var run [tinyChunk]uint16
		k := copy(run[:], sample)
		sample = sample[k:]
		for i := k; i < len(run); i++ {
			run[i] = math.MaxUint16 // sorts behind the codes
		}
		sort16(&run)
		t.min, t.max = min(t.min, run[0]), max(t.max, run[k-1])
		t.put(run[:k], int(w), r)
	}
}

// Base returns how much is left out: of every 2^Base codes one is taken.
func (t *Tiny) Base() uint8 { return t.base }

// put puts codes, which come in ascending order and weigh 2^w each, on the level of that weight.
func (t *Tiny) put(run []uint16, w int, r *Rand) {
	for w >= int(t.base)+tinyLevels {
		t.raise(r)
	}
	if d := int(t.base) - w; d > 0 { // too light for level 0: of 2^d neighbours one is taken
		run = run[:strided(run, int(r.Next()&(1<<d-1)), 1<<d)]
		w = int(t.base)
	}
	if len(run) > 0 {
		t.insert(w-int(t.base), run, r)
	}
}

// strided keeps every stride-th item from the i-th on, and returns their number.
func strided(run []uint16, i, stride int) (n int) {
	for ; i < len(run); i += stride {
		run[n] = run[i]
		n++
	}
	return n
}

// insert puts codes, which come in ascending order and weigh 2^(base+level) each, on a level.
func (t *Tiny) insert(level int, run []uint16, r *Rand) {
	for tinyItems-int(t.used) < len(run) {
		base := t.base
		if t.compress(r); t.base == base {
			continue
		}
		if level--; level < 0 {
			level = 0
			if run = run[:strided(run, int(r.Next()&1), 2)]; len(run) == 0 {
				return
			}
		}
	}
	start, lighter := tinyItems-int(t.used), 0
	for _, n := range t.size[:level] {
		lighter += int(n)
	}
	place(t.items[start-len(run):start+lighter+int(t.size[level])], lighter, run)
	t.size[level] += uint8(len(run))
	t.used += uint8(len(run))
}

// compress compacts the lightest level that holds its share, or else the one that comes nearest to it.
func (t *Tiny) compress(r *Rand) {
	top := t.top()
	best, ratio := 0, 0
	for h := 0; h <= top; h++ {
		n, share := int(t.size[h]), int(tinyShare[top-h])
		if q := n * 64 / share; q > ratio && n > 1 {
			best, ratio = h, q
			if q >= 64 {
				break
			}
		}
	}
	if best == tinyLevels-1 {
		t.raise(r)
		best--
	}
	t.compact(best, r)
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

// compact halves level h.
func (t *Tiny) compact(h int, r *Rand) {
	start, lighter := tinyItems-int(t.used), 0
	for _, n := range t.size[:h] {
		lighter += int(n)
	}
	bit := uint8(1) << h
	if t.flip&bit == 0 {
		t.coin = t.coin&^bit | uint8(r.Next())&bit
	} else {
		t.coin ^= bit
	}
	t.flip ^= bit
	n := int(t.size[h])
	halve(t.items[start:start+lighter+n+int(t.size[h+1])], lighter, n, int(t.coin>>h&1))
	t.size[h] = uint8(n & 1)
	t.size[h+1] += uint8(n / 2)
	t.used -= uint8(n / 2)
}

// raise doubles the weight of level 0: it is compacted into what was level 1, which takes its place. An item that is left
// over moves with a chance of one in two, and is forgotten otherwise.
func (t *Tiny) raise(r *Rand) {
	t.compact(0, r)
	if t.size[0] != 0 {
		odd := [1]uint16{t.items[tinyItems-int(t.used)]}
		t.size[0] = 0
		t.used--
		if r.Next()&1 != 0 {
			t.insert(1, odd[:], r)
		}
	}
	copy(t.size[:], t.size[1:])
	t.size[tinyLevels-1] = 0
	t.coin >>= 1
	t.flip >>= 1
	t.base++
}

// Merge adds what o has seen. o stays as it is; it may be t.
func (t *Tiny) Merge(o *Tiny, r *Rand) {
	if o.count == 0 {
		return
	}
	if t.count == 0 {
		*t = *o
		return
	}
	other := *o
	t.min, t.max = min(t.min, other.min), max(t.max, other.max)
	t.count += other.count
	end := tinyItems
	for i := tinyLevels - 1; i >= 0; i-- { // the heaviest first, so that base has risen before the light ones come
		level := other.items[end-int(other.size[i]) : end]
		end -= len(level)
		for len(level) > 0 {
			run := level[:min(len(level), tinyChunk)]
			level = level[len(run):]
			t.put(run, int(other.base)+i, r)
		}
	}
}

// Count is the number of codes that were added.
func (t *Tiny) Count() uint64 { return t.count }

// Min is the smallest code, exactly unless [Tiny.AddSample] was used; 0 if there is none.
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
	i := tinyItems - int(t.used)
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
		dst = append(dst, uint16(sorted[i]>>8))
	}
	return dst
}

// sort fills dst with code<<8 | level of all items, in order, and returns their number and the sum of their weights.
func (t *Tiny) sort(dst *[tinyItems]uint32) (n int, total uint64) {
	i := tinyItems - int(t.used)
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
