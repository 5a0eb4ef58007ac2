package aggregation

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/hopscope/hopscope/sketches/quantile"
)

// A sketch is a run of bytes in the pool's memory, all zero when empty:
//
//	count <4b>  digests, at most 2³²-1
//	min   <2b>  smallest code
//	max   <2b>  largest code
//	used  <1b>  entries
//	shift <1b>  a weight w stands for w·2^shift digests; Quantiles
//	codes       <1b> each, <2b> if they are wider than 8 bits; Quantiles: ascending
//	weights     <2b> each, Frequent <4b>
const (
	minAt    = 4
	maxAt    = 6
	usedAt   = 8
	shiftAt  = 9
	headerAt = 10
)

var le = binary.LittleEndian

// layout holds the places of the fields of a sketch.
type layout struct {
	kind    Kind
	wide    bool // codes of two bytes
	fine    int  // bits that they are wider than 8
	room    int  // entries
	all     bool // there is one for every code
	weights int  // offset
	size    int
}

func newLayout(c *Config, bits int) layout {
	l := layout{kind: c.Kind, wide: bits > 8, fine: max(bits-8, 0), size: c.Bytes}
	code, weight := 1, 2
	if l.wide {
		code = 2
	}
	if l.kind == Frequent {
		weight = 4
	}
	l.room = min((c.Bytes-headerAt)/(code+weight), math.MaxUint8, 1<<bits)
	l.all = l.room == 1<<bits
	l.weights = headerAt + l.room*code
	return l
}

// entry is a code with what it weighs.
type entry struct {
	code   uint16
	weight uint64
}

func (l *layout) code(s []byte, i int) uint16 {
	if l.wide {
		return le.Uint16(s[headerAt+2*i:])
	}
	return uint16(s[headerAt+i])
}

func (l *layout) setCode(s []byte, i int, code uint16) {
	if l.wide {
		le.PutUint16(s[headerAt+2*i:], code)
		return
	}
	s[headerAt+i] = byte(code)
}

// find returns the place of a code; -1 if it has none.
func (l *layout) find(s []byte, code uint16) int {
	n := int(s[usedAt])
	if !l.wide {
		return bytes.IndexByte(s[headerAt:headerAt+n], byte(code))
	}
	for i := range n {
		if le.Uint16(s[headerAt+2*i:]) == code {
			return i
		}
	}
	return -1
}

// count notes a digest in the header.
func count(s []byte, code uint16) {
	n := le.Uint32(s)
	if n == 0 || code < le.Uint16(s[minAt:]) {
		le.PutUint16(s[minAt:], code)
	}
	if n == 0 || code > le.Uint16(s[maxAt:]) {
		le.PutUint16(s[maxAt:], code)
	}
	if n != math.MaxUint32 {
		le.PutUint32(s, n+1)
	}
}

func (l *layout) weight(s []byte, i int) uint64 { return uint64(le.Uint16(s[l.weights+2*i:])) }

func (l *layout) setWeight(s []byte, i int, w uint64) { le.PutUint16(s[l.weights+2*i:], uint16(w)) }

// add adds a digest to a sketch.
func (l *layout) add(s []byte, code uint16, r *quantile.Rand) {
	if l.kind == Frequent {
		l.addCounter(s, code)
	} else {
		l.addBin(s, code, r)
	}
}

// addBin adds a code to a sketch of Quantiles.
func (l *layout) addBin(s []byte, code uint16, r *quantile.Rand) {
	count(s, code)
	if s[shiftAt] != 0 && r.Next()&(1<<s[shiftAt]-1) != 0 {
		return
	}
	for {
		if i := l.find(s, code); i >= 0 {
			if w := l.weight(s, i); w != math.MaxUint16 {
				l.setWeight(s, i, w+1)
				return
			}
		} else if l.insert(s, code, r) {
			return
		}
		// A weight has come to its end: all weigh twice as much from now on, and so must what is added.
		l.halve(s, r)
		if r.Next()&1 != 0 {
			return
		}
	}
}

// insert makes a bin for a new code, for which two others may have to share one. It fails if they weigh too much
// together.
func (l *layout) insert(s []byte, code uint16, r *quantile.Rand) bool {
	n := int(s[usedAt])
	at := 0
	for at < n && l.code(s, at) < code {
		at++
	}
	if n < l.room {
		l.move(s, at+1, at, n-at)
		s[usedAt]++
		l.setCode(s, at, code)
		l.setWeight(s, at, 1)
		return true
	}
	// The cheapest pair of neighbours, the new code with its weight of 1 being one of them.
	best, least := l.cheapest(s, at)
	side := -1 // the neighbour that takes the new code in
	for i := max(at-1, 0); i <= min(at, n-1); i++ {
		old := l.code(s, i)
		if x := l.cost(l.weight(s, i), max(code, old)-min(code, old)); x < least {
			side, least = i, x
		}
	}
	if side >= 0 {
		w := l.weight(s, side) + 1
		if w > math.MaxUint16 {
			return false
		}
		if r.Next()>>32*w>>32 == 0 {
			l.setCode(s, side, code)
		}
		l.setWeight(s, side, w)
		return true
	}
	w1, w2 := l.weight(s, best), l.weight(s, best+1)
	if w1+w2 > math.MaxUint16 {
		return false
	}
	merged := l.code(s, best)
	if r.Next()>>32*(w1+w2)>>32 < w2 {
		merged = l.code(s, best+1)
	}
	if at > best { // the bins from best+2 to the place move down, the new one behind them
		l.move(s, best+1, best+2, at-best-2)
		at--
	} else {
		l.move(s, at+1, at, best-at)
		best++
	}
	l.setCode(s, best, merged)
	l.setWeight(s, best, w1+w2)
	l.setCode(s, at, code)
	l.setWeight(s, at, 1)
	return true
}

// cost returns the cost of making one bin of two. It is the variance of the ranks between them, w₁·w₂, times the cube
// of their distance. The cube is better for the tail than a lower power, and almost as good for the middle. The
// distance is in 1/256 of all codes.
func (l *layout) cost(w1w2 uint64, gap uint16) uint64 {
	g := uint64(gap)
	if l.wide {
		g = g>>l.fine + 1
	}
	return w1w2 * g * g * g
}

// cheapest returns the first of the two neighbours that cost least, and their cost. The two at the sides of the place
// where a new code belongs are none.
func (l *layout) cheapest(s []byte, at int) (best int, least uint64) {
	n := int(s[usedAt])
	least = math.MaxUint64
	if l.wide {
		for i := range n - 1 {
			if x := l.cost(l.weight(s, i)*l.weight(s, i+1), l.code(s, i+1)-l.code(s, i)); x < least && i+1 != at {
				best, least = i, x
			}
		}
		return best, least
	}
	codes, weights := s[headerAt:headerAt+n], s[l.weights:l.weights+2*n]
	var c, w uint64
	for i, b := range codes {
		c2, w2 := uint64(b), uint64(le.Uint16(weights[2*i:]))
		g := c2 - c
		if x := w * w2 * g * g * g; x < least && i != at && i != 0 {
			best, least = i-1, x
		}
		c, w = c2, w2
	}
	return best, least
}

// move moves n bins.
func (l *layout) move(s []byte, to, from, n int) {
	if l.wide {
		copy(s[headerAt+2*to:headerAt+2*(to+n)], s[headerAt+2*from:])
	} else {
		copy(s[headerAt+to:headerAt+to+n], s[headerAt+from:])
	}
	copy(s[l.weights+2*to:l.weights+2*(to+n)], s[l.weights+2*from:])
}

// halve doubles what a weight stands for. Odd ones are rounded by a coin.
func (l *layout) halve(s []byte, r *quantile.Rand) {
	s[shiftAt]++
	n := 0
	var coins uint64
	for i := range int(s[usedAt]) {
		if i%64 == 0 {
			coins = r.Next()
		}
		w := l.weight(s, i)
		w = w>>1 + w&coins&1
		coins >>= 1
		if w != 0 {
			l.setCode(s, n, l.code(s, i))
			l.setWeight(s, n, w)
			n++
		}
	}
	s[usedAt] = byte(n)
}

// shared reports whether bins may hold more than their own code.
func (l *layout) shared(s []byte) bool { return int(s[usedAt]) == l.room && !l.all }

// appendEntries appends what a sketch holds.
func (l *layout) appendEntries(dst []entry, s []byte) []entry {
	for i := range int(s[usedAt]) {
		w := uint64(0)
		if l.kind == Frequent {
			w = uint64(l.counter(s, i))
		} else {
			w = l.weight(s, i) << s[shiftAt]
		}
		dst = append(dst, entry{l.code(s, i), w})
	}
	return dst
}
