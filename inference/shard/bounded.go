package shard

import "slices"

// bounded lists the max least of what a window saw, by an order that compare gives, and counts the rest. So what stays
// does not depend on how the reports were shared out over shards, nor on which of them came first: whatever is among the
// max least of all shards is among the max least of its own, from its first report on.
//
// A list may hold twice as many for a while, so that it is put in order once for each max that came.
type bounded[V any] struct {
	max      int
	compare  func(a, b V) int
	weight   func(*V) uint64 // what is counted of an item that leaves
	list     []V
	greatest V // none of the list is greater
	other    uint64
}

// add lists v, which is not listed yet, and gives its place, or nil if it is none of the least.
func (l *bounded[V]) add(v V) *V {
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
func (l *bounded[V]) full() bool { return len(l.list) >= 2*l.max && l.max > 0 }

// trim lets all but the least go. Places of items change.
func (l *bounded[V]) trim() {
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

func (l *bounded[V]) reset() { l.list, l.other = l.list[:0], 0 }
