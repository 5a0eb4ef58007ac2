package kll

// share is 2¹⁶ times the share of a level by its distance d from the heaviest one, for k = 1: 0.8 (5/8)ᵈ. The factor is
// the largest with which a full sketch of 16-bit codes at k = 200 takes 1 KiB.
var share = [maxLevels]uint32{52428, 32768, 20480, 12800, 8000, 5000, 3125, 1953, 1220, 762, 476, 298, 186, 116, 72, 45}

// capacity is the number of values with which a level is due for compaction, by its distance from the heaviest one.
func (s *Sketch[T]) capacity(d int) int { return max(int(uint32(s.k)*share[d]>>16)+1, 2) }

// limit is the largest number of items. Besides the shares of all levels there is room for one buffer, so that when
// there is not, some level has its share.
func (s *Sketch[T]) limit() int {
	n := bufItems
	for d := range s.levels() {
		n += s.capacity(d)
	}
	return n
}

// room makes room for n ≤ bufItems more items and gives the number of free places. Base may rise.
func (s *Sketch[T]) room(n int) int {
	for len(s.items)-int(s.used) < n {
		if full := s.limit(); len(s.items) < full {
			items := make([]T, min(max(2*len(s.items), 2*bufItems), full))
			copy(items[len(items)-int(s.used):], s.items[len(s.items)-int(s.used):])
			s.items = items
			continue
		}
		s.compress()
	}
	return len(s.items) - int(s.used)
}

// compress compacts the lightest level that has its share.
func (s *Sketch[T]) compress() {
	top, start := int(s.top), len(s.items)-int(s.used)
	for h := 0; ; h++ {
		if n := int(s.size[h]); h == top || n >= s.capacity(top-h) {
			if h == s.levels()-1 {
				s.raise()
				return
			}
			s.compact(h, start)
			return
		}
		start += int(s.size[h])
	}
}

// compact halves level h, whose items begin at lo.
func (s *Sketch[T]) compact(h, lo int) {
	items, start := s.items, len(s.items)-int(s.used)
	n := int(s.size[h])
	half, hi := n/2, lo+n
	bit := uint16(1) << h
	if s.flip&bit == 0 {
		s.coin = s.coin&^bit | uint16(s.rng.Next())&bit
	} else {
		s.coin ^= bit
	}
	s.flip ^= bit
	// The kept half moves to the front of the level, then merges with the level above into the room behind:
	// what is written never reaches what is still to be read.
	kept := items[lo:hi:hi]
	from := int(s.coin >> h & 1)
	for i := range half {
		kept[i] = kept[2*i+from]
	}
	copy(kept[half:], kept[2*half:]) // the odd one
	merge(items[hi-half:hi+int(s.size[h+1])], kept[:half])
	copy(items[start+half:], items[start:lo])
	s.size[h] = uint16(n & 1)
	s.size[h+1] += uint16(half)
	s.used -= uint16(half)
	s.top = max(s.top, uint8(h+1))
}

// raise doubles the weight of level 0: its items move up with what was level 1, the odd one with even chance, and so
// do those in the buffer.
func (s *Sketch[T]) raise() {
	s.compact(0, len(s.items)-int(s.used))
	if s.size[0] != 0 {
		odd := [1]T{s.items[len(s.items)-int(s.used)]}
		s.used--
		s.size[0] = 0
		if s.rng.Next()&1 != 0 {
			s.insert(1, odd[:])
		}
	}
	copy(s.size[:], s.size[1:])
	s.size[maxLevels-1] = 0
	s.top--
	s.coin >>= 1
	s.flip >>= 1
	s.base++
	n := 0
	for i := 0; i+1 < int(s.buffered); i += 2 {
		s.buf[n] = s.buf[i+int(s.rng.Next()&1)]
		n++
	}
	if s.buffered&1 != 0 && s.rng.Next()&1 != 0 {
		s.buf[n] = s.buf[s.buffered-1]
		n++
	}
	s.buffered = uint8(n)
	s.draw()
}

// insert puts values in ascending order on a level. There must be room.
func (s *Sketch[T]) insert(level int, run []T) {
	n, start := len(run), len(s.items)-int(s.used)
	lo := start
	for _, k := range s.size[:level] {
		lo += int(k)
	}
	copy(s.items[start-n:], s.items[start:lo])
	merge(s.items[lo-n:lo+int(s.size[level])], run)
	s.size[level] += uint16(n)
	s.used += uint16(n)
	s.top = max(s.top, uint8(level))
}

// merge merges a into dst, whose last len(dst)-len(a) items are in order and whose first len(a) are free.
func merge[T Number](dst, a []T) {
	w, b := 0, len(a)
	for len(a) > 0 {
		if b < len(dst) && dst[b] < a[0] {
			dst[w] = dst[b]
			b++
		} else {
			dst[w] = a[0]
			a = a[1:]
		}
		w++
	}
}

func sort16[T Number](a *[bufItems]T) { sortSmall(a[:]) }

func sortSmall[T Number](a []T) {
	for i := 1; i < len(a); i++ {
		v, j := a[i], i
		for ; j > 0 && v < a[j-1]; j-- {
			a[j] = a[j-1]
		}
		a[j] = v
	}
}
