package web

import "iter"

// recents are cells of the recent windows, by window number modulo their number.
type recents[C any] [recentWindows]struct {
	window uint64 // its number; 0 for none
	cell   C
}

// open returns the cell of window n, emptied, or nil where a later window has its place.
func (r *recents[C]) open(n uint64) *C {
	c := &r[n%recentWindows]
	if n < c.window {
		return nil
	}
	var none C
	c.window, c.cell = n, none
	return &c.cell
}

// forget empties the cell of window n, which comes again.
func (r *recents[C]) forget(n uint64) {
	if c := &r[n%recentWindows]; c.window == n {
		*c = recents[C]{}[0]
	}
}

// since returns the cells of window n and later ones, in no order.
func (r *recents[C]) since(n uint64) iter.Seq[*C] {
	return func(yield func(*C) bool) {
		for i := range r {
			if c := &r[i]; c.window > 0 && c.window >= n && !yield(&c.cell) {
				return
			}
		}
	}
}

// series is an entry of a table, with the number of the last window in which it was seen.
type series interface{ lastSeen() uint64 }

// table is a map of bounded size. When it is full, the entries that were silent longest make room, all of the same
// age at once. A flood of new keys costs one scan per age and not one per key.
type table[K comparable, V series] struct {
	max     int
	all     map[K]V
	refused uint64 // rows of new keys for which there was no room
	evicted uint64
	fullIn  uint64 // window in which every entry was seen: no room before the next
}

func newTable[K comparable, V series](max int) table[K, V] {
	return table[K, V]{max: max, all: map[K]V{}}
}

func (t *table[K, V]) get(k K) (V, bool) {
	v, ok := t.all[k]
	return v, ok
}

// open returns the entry of a key. It adds the value of build if there is no entry and room can be made for it in
// window n. Otherwise it counts the key's rows of window n as refused.
func (t *table[K, V]) open(k K, n uint64, rows int, build func() V) (V, bool) {
	if v, ok := t.all[k]; ok {
		return v, true
	}
	if len(t.all) >= t.max && (t.fullIn == n || !t.makeRoom(n)) {
		t.fullIn = n
		t.refused += uint64(rows)
		var zero V
		return zero, false
	}
	v := build()
	t.all[k] = v
	return v, true
}

// makeRoom removes the entries with the oldest last window, unless that is window n.
func (t *table[K, V]) makeRoom(n uint64) bool {
	oldest := n
	for _, v := range t.all {
		oldest = min(oldest, v.lastSeen())
	}
	if oldest >= n {
		return false
	}
	for k, v := range t.all {
		if v.lastSeen() == oldest {
			delete(t.all, k)
			t.evicted++
		}
	}
	return true
}
