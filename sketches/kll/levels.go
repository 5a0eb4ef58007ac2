package kll

// share is 2¹⁶ times the share of a level by its distance d from the heaviest one, for k = 1: 0.8 (5/8)ᵈ. The factor is
// the largest with which a full sketch of 16-bit codes at k = 200 takes 1 KiB.
var share = [maxLevels]uint32{52428, 32768, 20480, 12800, 8000, 5000, 3125, 1953, 1220, 762, 476, 298, 186, 116, 72}

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

// full reports whether something must be compacted before another buffer fits.
func (s *Sketch[T]) full() bool { return s.grown && len(s.items)-int(s.used) < bufItems }

// room makes room for n ≤ bufItems more items and gives the number of free places. Base may rise.
func (s *Sketch[T]) room(n int) int {
	for len(s.items)-int(s.used) < n {
		if s.grown {
			s.compress()
		} else {
			s.grow()
		}
	}
	return len(s.items) - int(s.used)
}

// grow doubles the memory for items, up to the limit.
func (s *Sketch[T]) grow() {
	limit := s.limit()
	if s.grown = len(s.items) >= limit; s.grown {
		return
	}
	items := make([]T, min(max(2*len(s.items), 2*bufItems), limit))
	copy(items[len(items)-int(s.used):], s.items[len(s.items)-int(s.used):])
	s.items = items
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
	if h == 0 {
		s.settle()
	}
	n := int(s.size[h])
	start := len(s.items) - int(s.used)
	halve(s.items[start:lo+n+int(s.size[h+1])], lo-start, n, s.toss(h))
	s.size[h] = uint16(n & 1)
	s.size[h+1] += uint16(n / 2)
	s.used -= uint16(n / 2)
	s.top = max(s.top, uint8(h+1))
}

// toss says whether a compaction of level h keeps what is on even (0) or odd (1) places: a coin the first time, the
// other side of it the second time, and so on.
func (s *Sketch[T]) toss(h int) int {
	bit := uint16(1) << h
	if s.flip&bit == 0 {
		s.coin = s.coin&^bit | uint16(s.rng.Next())&bit
	} else {
		s.coin ^= bit
	}
	s.flip ^= bit
	return int(s.coin >> h & 1)
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
	if level == 0 {
		s.settle()
	}
	start, lighter := len(s.items)-int(s.used), 0
	for _, n := range s.size[:level] {
		lighter += int(n)
	}
	place(s.items[start-len(run):start+lighter+int(s.size[level])], lighter, run)
	s.size[level] += uint16(len(run))
	s.used += uint16(len(run))
	s.top = max(s.top, uint8(level))
}
