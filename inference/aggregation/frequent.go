package aggregation

import "math"

func (l *layout) counter(s []byte, i int) uint32 { return le.Uint32(s[l.weights+4*i:]) }

// addCounter adds a code to a sketch of Frequent: Space-Saving (Metwally, Agrawal and El Abbadi, ICDT 2005) with the
// counters in no order.
func (l *layout) addCounter(s []byte, code uint16) {
	count(s, code)
	i := l.find(s, code)
	if n := int(s[usedAt]); i < 0 && n < l.room {
		i = n
		s[usedAt]++
		l.setCode(s, i, code)
		le.PutUint32(s[l.weights+4*i:], 0)
	} else if i < 0 {
		i = l.smallest(s)
		l.setCode(s, i, code)
	}
	if w := l.counter(s, i); w != math.MaxUint32 {
		le.PutUint32(s[l.weights+4*i:], w+1)
	}
}

func (l *layout) smallest(s []byte) int {
	best, least := 0, l.counter(s, 0)
	for i := range int(s[usedAt]) {
		if w := l.counter(s, i); w < least {
			best, least = i, w
		}
	}
	return best
}

// overcount returns how much of each counter of the sketch may have been counted for other codes. A code without a
// counter has come at most as often.
func (l *layout) overcount(s []byte) uint64 {
	if int(s[usedAt]) < l.room || l.all {
		return 0
	}
	return uint64(l.counter(s, l.smallest(s)))
}
