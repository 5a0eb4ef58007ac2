package shard

import "slices"

// firsts lists what a window saw first, as many as max; the rest is counted. What stays does not depend on how the
// reports were shared out over shards: it is what is smallest by compare, which goes by time and then by key, and not
// what happened to be counted first of reports of the same time.
//
// A list may hold twice as many for a while, so that it is put in order once for each max that came.
type firsts[V any] struct {
	max      int
	compare  func(a, b V) int
	weight   func(*V) uint64 // what is counted of an item that leaves
	list     []V
	greatest V // none of the list is greater
	other    uint64
}

// add lists v, which is not listed yet, and gives its place, or nil if it is none of the first.
func (l *firsts[V]) add(v V) *V {
	if l.max == 0 {
		return nil
	}
	if n := len(l.list); n == 0 || l.compare(v, l.greatest) > 0 {
		if n >= l.max {
			return nil
		}
		l.greatest = v
	}
	l.list = append(l.list, v)
	return &l.list[len(l.list)-1]
}

// full reports whether trim must be called before the next item is added.
func (l *firsts[V]) full() bool { return len(l.list) >= 2*l.max && l.max > 0 }

// trim lets all but the first go. Places of items change.
func (l *firsts[V]) trim() {
	if len(l.list) <= l.max {
		return
	}
	slices.SortFunc(l.list, l.compare)
	for i := range l.list[l.max:] {
		l.other += l.weight(&l.list[l.max+i])
	}
	l.list = l.list[:l.max]
	l.greatest = l.list[l.max-1]
}

func (l *firsts[V]) reset() { l.list, l.other = l.list[:0], 0 }
