package kll

import (
	"math"
	"math/bits"
	"unsafe"
)

// Number is what a [Sketch] can hold: values with an order and a fixed size. NaN has no place in an order and is left
// out, not even counted.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int | ~uint | ~float32 | ~float64
}

// MinK and MaxK bound the accuracy parameter k.
const (
	MinK = 8
	MaxK = 4096
)

// ErrorBound is the rank error that a sketch with parameter k keeps with 99 % confidence, for all ranks at once. After
// a merge, k is the smaller one of the two.
func ErrorBound(k int) float64 { return 2.296 / math.Pow(float64(k), 0.9723) }

const (
	bufItems  = 16
	maxRuns   = 8
	maxLevels = 15
)

// Sketch is a quantile sketch. Make one with [New], or with [Sketch.Init] where it lies inside another struct. It is
// not safe for concurrent use, not even for two readers, because questions put things in order; and a plain copy shares
// memory: see [Sketch.CopyFrom].
type Sketch[T Number] struct {
	// What most updates touch comes first: with 16-bit values it is one cache line.
	count    uint64
	skip     uint64 // values to leave out before the next one is taken
	base     uint8
	buffered uint8  // values in buf
	k        uint16 // accuracy parameter
	min, max T
	buf      [bufItems]T // values of weight 2^base, in order of arrival

	items []T               // free space, then the levels, lightest first, each in ascending order (but see runs)
	used  uint16            // items on the levels
	coin  uint16            // by level: which half the last compaction kept
	flip  uint16            // by level: set if the next compaction keeps the other half
	top   uint8             // heaviest level in use
	grown bool              // items has reached its limit
	runs  uint8             // level 0 begins with so many buffers, each in order; the rest of it is in order too
	size  [maxLevels]uint16 // items by level; one on level i weighs 2^(base+i)
	rng   Rand
}

// New returns an empty sketch with accuracy parameter k, clamped to [MinK, MaxK].
func New[T Number](k int, seed uint64) *Sketch[T] {
	s := new(Sketch[T])
	s.Init(k, seed)
	return s
}

// Init makes s an empty sketch without memory of its own.
func (s *Sketch[T]) Init(k int, seed uint64) {
	*s = Sketch[T]{k: uint16(min(max(k, MinK), MaxK)), rng: Rand(seed)}
}

// Reset empties s and keeps its memory and the state of its generator.
func (s *Sketch[T]) Reset() { *s = Sketch[T]{items: s.items, grown: s.grown, rng: s.rng, k: s.k} }

// CopyFrom makes s an independent copy of o, in the memory of s where that is enough.
func (s *Sketch[T]) CopyFrom(o *Sketch[T]) {
	items := s.items
	if len(items) < int(o.used) {
		items = make([]T, len(o.items))
	}
	copy(items[len(items)-int(o.used):], o.items[len(o.items)-int(o.used):])
	*s = *o
	s.items, s.grown = items, false
}

// K is the accuracy parameter.
func (s *Sketch[T]) K() int { return int(s.k) }

// Count is the number of values.
func (s *Sketch[T]) Count() uint64 { return s.count }

// Min is the smallest value, exactly; zero if there is none.
func (s *Sketch[T]) Min() T { return s.min }

// Max is the largest value, exactly; zero if there is none.
func (s *Sketch[T]) Max() T { return s.max }

// SizeBytes is the memory that s holds, itself included.
func (s *Sketch[T]) SizeBytes() int {
	var t T
	return int(unsafe.Sizeof(*s)) + cap(s.items)*int(unsafe.Sizeof(t))
}

// Update adds one value.
func (s *Sketch[T]) Update(v T) {
	if v != v {
		return
	}
	if s.count == 0 {
		s.min, s.max = v, v
	}
	s.count++
	if v < s.min {
		s.min = v
	}
	if v > s.max {
		s.max = v
	}
	if s.skip != 0 {
		s.skip--
		return
	}
	n := s.buffered
	s.buf[n%bufItems] = v
	s.buffered = n + 1
	if s.base != 0 {
		s.draw()
	}
	if n == bufItems-1 {
		s.flush()
	}
}

// draw chooses the next value to take: any one of the next 2^base, counted from a multiple of that.
func (s *Sketch[T]) draw() {
	mask := uint64(1)<<s.base - 1
	s.skip = -s.count&mask + s.rng.Next()&mask
}

// flush moves the buffer to level 0.
func (s *Sketch[T]) flush() {
	base := s.base
	sort16(&s.buf)
	if s.size[0] == 0 && s.top != 0 && s.full() {
		// Level 0 would be compacted at once, so the buffer is in its stead.
		var kept [bufItems / 2]T
		from := s.toss(0)
		for i := range kept {
			kept[i] = s.buf[2*i+from]
		}
		if s.room(len(kept)); s.base == base {
			s.insert(1, kept[:])
			s.buffered = 0
		}
		return
	}
	if s.room(bufItems); s.base != base {
		return // the buffer was halved
	}
	if s.runs == maxRuns {
		s.settle()
	}
	s.used += bufItems
	s.size[0] += bufItems
	s.runs++
	copy(s.items[len(s.items)-int(s.used):], s.buf[:])
	s.buffered = 0
}

// settle puts level 0 in order. Its buffers are merged with each other before they are merged with the rest, because
// that is longer.
func (s *Sketch[T]) settle() {
	if s.runs == 0 {
		return
	}
	var scratch [2][maxRuns * bufItems]T
	level := s.items[len(s.items)-int(s.used):][:s.size[0]]
	n := int(s.runs) * bufItems
	from, to := level[:n], scratch[0][:n]
	for width, i := bufItems, 0; ; width, i = 2*width, i^1 {
		for at := 0; at < n; at += 2 * width {
			mid, end := min(at+width, n), min(at+2*width, n)
			copy(to[at+mid-at:end], from[mid:end])
			merge(to[at:end], from[at:mid])
		}
		from, to = to, scratch[i^1][:n]
		if 2*width >= n {
			break
		}
	}
	merge(level, from)
	s.runs = 0
}

// Merge adds what o has seen. o stays as it is; it may be s.
func (s *Sketch[T]) Merge(o *Sketch[T]) {
	if o.count == 0 {
		return
	}
	if s == o {
		var c Sketch[T]
		c.CopyFrom(o)
		o = &c
	}
	if s.count == 0 {
		s.min, s.max = o.min, o.max
	}
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	s.count += o.count
	o.settle()
	end := len(o.items)
	for i := int(o.top); i >= 0; i-- { // heavy first, so that base has risen before the light ones come
		n := int(o.size[i])
		s.add(o.items[end-n:end], o.base+uint8(i))
		end -= n
	}
	buf := o.buf
	sortSmall(buf[:o.buffered])
	s.add(buf[:o.buffered], o.base)
}

// add puts values in ascending order, each of weight 2^w, on the levels.
func (s *Sketch[T]) add(run []T, w uint8) {
	var chunk [2 * bufItems]T
	for len(run) > 0 {
		for int(w) >= int(s.base)+s.levels() {
			s.raise()
		}
		base := s.base
		free := s.room(min(len(run), bufItems))
		if s.base != base {
			continue
		}
		if w >= base {
			n := min(len(run), free)
			s.insert(int(w-base), run[:n])
			run = run[n:]
			continue
		}
		// Too light: of each 2^d neighbours one is taken.
		n, d := 0, base-w
		for len(run) > 0 && n < min(len(chunk), free) {
			block := run[:min(uint64(len(run)), 1<<min(d, 62))]
			if r := s.rng.Next() & (1<<d - 1); r < uint64(len(block)) {
				chunk[n] = block[r]
				n++
			}
			run = run[len(block):]
		}
		s.insert(0, chunk[:n])
	}
}

// levels is the number of levels before base rises. With so many, a value on the heaviest one weighs 8 k to 16 k times
// what is sampled, and sampling adds 1 to 3 % to the variance of the estimates; 5 % at the largest k.
func (s *Sketch[T]) levels() int { return min(bits.Len16(s.k)+4, maxLevels) }
