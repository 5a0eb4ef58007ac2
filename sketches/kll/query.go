package kll

import (
	"math"
	"sort"
)

// Rank estimates the share of values that are not larger than v; 0 if there is no value.
func (s *Sketch[T]) Rank(v T) float64 {
	switch {
	case s.count == 0 || !(v >= s.min):
		return 0
	case v >= s.max:
		return 1
	}
	s.settle()
	var below, total uint64
	i := len(s.items) - int(s.used)
	for h, n := range s.size[:s.top+1] {
		level := s.items[i : i+int(n)]
		below += uint64(sort.Search(len(level), func(j int) bool { return level[j] > v })) << h
		total += uint64(n) << h
		i += int(n)
	}
	for _, x := range s.buf[:s.buffered] {
		if x <= v {
			below++
		}
	}
	total += uint64(s.buffered)
	return float64(below) / float64(max(total, 1))
}

// Quantile estimates the smallest value that at least the share q of all values does not exceed. It is exact for 0 and
// 1, and zero if there is no value.
func (s *Sketch[T]) Quantile(q float64) T {
	var v [1]T
	s.Quantiles(v[:0], q)
	return v[0]
}

// Quantiles appends the quantiles qs, which must ascend, to dst, in one pass over the sketch.
func (s *Sketch[T]) Quantiles(dst []T, qs ...float64) []T {
	var total uint64
	for h, n := range s.size[:s.top+1] {
		total += uint64(n) << h
	}
	total += uint64(s.buffered)
	it := newCursor(s)
	v, w := s.min, uint64(0)
	var below uint64 // weight of all items that are not larger than v
	for _, q := range qs {
		switch {
		case !(q > 0) || total == 0:
			dst = append(dst, s.min)
			continue
		case q >= 1:
			dst = append(dst, s.max)
			continue
		}
		for want := math.Ceil(q * float64(total)); float64(below) < want; below += w {
			if v, w = it.next(); w == 0 {
				v = s.max
				break
			}
		}
		dst = append(dst, v)
	}
	return dst
}

// cursor walks all items in ascending order: a merge of the levels and the buffer.
type cursor[T Number] struct {
	items    []T
	buf      [bufItems]T
	n        int // runs in use
	at, end  [maxLevels + 1]uint16
	weight   [maxLevels + 1]uint8
	buffered int
	b        int
}

func newCursor[T Number](s *Sketch[T]) (c cursor[T]) {
	s.settle()
	c.items, c.buf, c.buffered = s.items, s.buf, int(s.buffered)
	sortSmall(c.buf[:c.buffered])
	i := len(s.items) - int(s.used)
	for h, n := range s.size[:s.top+1] {
		if n != 0 {
			c.at[c.n], c.end[c.n], c.weight[c.n] = uint16(i), uint16(i)+n, uint8(h)
			c.n++
		}
		i += int(n)
	}
	return c
}

// next gives the next item and its weight in units of 2^base; weight 0 when there is none.
func (c *cursor[T]) next() (v T, w uint64) {
	best := -1
	if c.b < c.buffered {
		v, w = c.buf[c.b], 1
	}
	for r := range c.n {
		if x := c.items[c.at[r]]; w == 0 || x < v {
			v, w, best = x, 1<<c.weight[r], r
		}
	}
	switch {
	case best < 0:
		c.b++
	default:
		if c.at[best]++; c.at[best] == c.end[best] {
			c.n--
			c.at[best], c.end[best], c.weight[best] = c.at[c.n], c.end[c.n], c.weight[c.n]
		}
	}
	return v, w
}
