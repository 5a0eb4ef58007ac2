// Package topk keeps the heaviest keys of a stream in a fixed number of counters: Space-Saving, from Metwally, Agrawal
// and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005.
//
// With m counters and a stream of total weight N, this holds for any stream and any order:
//
//   - the true weight of a key in the list is at most its Count and at least its Count - Error;
//   - Error is at most N/m;
//   - every key whose true weight is above N/m is in the list, unless a thousand keys share its hash.
//
// It also holds for lists that were merged, in any order, with the smallest m of all. Which of the lighter keys are listed,
// and their counts, does depend on the order. [New] takes all memory: the key and some 52 bytes for each counter.
//
// The counters form a heap that is only repaired when its smallest member is needed, which is when a key comes that has no
// counter. Weight for a key that has one costs a look-up and an addition. The list of buckets that the paper has instead
// adds only one at a time. In BenchmarkAdd (processor time an addition, keys of 8 bytes) it is faster if every key is new,
// 83 against 118 ns with 1000 counters. On a heavy-tailed stream it takes as long, and longer with 10 000 counters, 57
// against 40 ns.
package topk

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/sketches"
)

// Item is a key with what is known of its weight: at most Count, at least Count - Error.
type Item[K comparable] struct {
	Key          K
	Count, Error uint64
}

// List is a bounded list of heavy keys. It is not safe for concurrent use.
type List[K comparable] struct {
	items []counter[K] // by slot
	heap  []node       // smallest count first; a count may be out of date, and is too small then
	index sketches.SlotIndex
	total uint64
	floor uint64 // how much a key without a counter can weigh although counters are free: after a merge with a shorter list
}

type counter[K comparable] struct {
	Item[K]
	tag uint32
}

type node struct {
	count uint64
	slot  uint32
}

// New returns an empty list of at most m ≥ 1 keys.
func New[K comparable](m int) *List[K] {
	m = max(m, 1)
	return &List[K]{items: make([]counter[K], 0, m), heap: make([]node, 0, m), index: sketches.NewSlotIndex(m)}
}

// Add adds weight n to key. hash is the caller's: 64 well-mixed bits of the key, of which the upper 32 are used.
func (l *List[K]) Add(hash uint64, key *K, n uint64) {
	l.total += n
	tag := sketches.SlotTag(hash)
	if c := l.find(tag, key); c != nil {
		c.Count += n
		return
	}
	l.insert(tag, Item[K]{Key: *key, Count: n})
}

func (l *List[K]) find(tag uint32, key *K) *counter[K] {
	for pos, slot := l.index.Find(tag, -1); slot != sketches.NoSlot; pos, slot = l.index.Find(tag, pos) {
		if c := &l.items[slot]; c.Key == *key {
			return c
		}
	}
	return nil
}

// insert gives a new key a counter, the smallest one's if all are taken. A key whose hash many others share gets none: its
// counter could not be found again.
func (l *List[K]) insert(tag uint32, it Item[K]) {
	if slot := len(l.items); slot < cap(l.items) {
		if !l.index.Insert(tag, uint32(slot)) {
			return
		}
		it.Count += l.floor
		it.Error += l.floor
		l.items = append(l.items, counter[K]{it, tag})
		l.heap = append(l.heap, node{it.Count, uint32(slot)})
		l.up(slot)
		return
	}
	slot := l.smallest()
	c := &l.items[slot]
	if !l.index.Insert(tag, slot) {
		return
	}
	l.index.Delete(c.tag, slot)
	it.Error += c.Count
	it.Count += c.Count
	*c = counter[K]{it, tag}
	l.heap[0].count = c.Count
	l.down()
}

// smallest gives the slot with the smallest count, at the root of the heap.
func (l *List[K]) smallest() uint32 {
	for {
		root := l.heap[0]
		count := l.items[root.slot].Count
		if count == root.count {
			return root.slot // all others are at least what the heap says of them
		}
		l.heap[0].count = count
		l.down()
	}
}

// The heap has four children a node: half the depth of a binary one, and siblings share a cache line.

func (l *List[K]) up(i int) {
	h := l.heap
	for i > 0 && h[i].count < h[(i-1)/4].count {
		h[i], h[(i-1)/4] = h[(i-1)/4], h[i]
		i = (i - 1) / 4
	}
}

func (l *List[K]) down() {
	h, i := l.heap, 0
	n := h[0]
	for {
		c := 4*i + 1
		if c >= len(h) {
			break
		}
		best, count := c, h[c].count
		for j, m := range h[c+1 : min(c+4, len(h))] {
			if m.count < count {
				best, count = c+1+j, m.count
			}
		}
		if n.count <= count {
			break
		}
		h[i] = h[best]
		i = best
	}
	h[i] = n
}

// Get returns what is known of key. Of a key without a counter, Count and Error are both [List.Min].
func (l *List[K]) Get(hash uint64, key *K) Item[K] {
	if c := l.find(sketches.SlotTag(hash), key); c != nil {
		return c.Item
	}
	m := l.Min()
	return Item[K]{*key, m, m}
}

// Min is the largest weight that a key without a counter can have: the smallest count, or 0 as long as counters are free and
// no full list was merged.
func (l *List[K]) Min() uint64 {
	if len(l.items) < cap(l.items) {
		return l.floor
	}
	return l.items[l.smallest()].Count
}

// Len is the number of keys in the list.
func (l *List[K]) Len() int { return len(l.items) }

// Total is the weight of the stream.
func (l *List[K]) Total() uint64 { return l.total }

// Append appends the n heaviest keys to dst, heaviest first; of equal ones, the one with the smaller error.
func (l *List[K]) Append(dst []Item[K], n int) []Item[K] {
	from := len(dst)
	for i := range l.items {
		dst = append(dst, l.items[i].Item)
	}
	slices.SortStableFunc(dst[from:], func(a, b Item[K]) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error))
	})
	return dst[:min(len(dst), from+max(n, 0))]
}

// Merge adds the stream of o. The bounds of the package comment hold for both streams together, with the smaller
// number of counters (Agarwal et al., "Mergeable Summaries", PODS 2012). o keeps its content.
func (l *List[K]) Merge(o *List[K]) {
	type tagged struct {
		Item[K]
		tag uint32
	}
	all := make([]tagged, 0, len(l.items)+len(o.items))
	// A key that only one list has may have weighed up to the smallest count in the other.
	mine, theirs := l.Min(), o.Min()
	for i := range l.items {
		c := &l.items[i]
		it := c.Item
		if p := o.find(c.tag, &c.Key); p != nil {
			it.Count += p.Count
			it.Error += p.Error
		} else {
			it.Count += theirs
			it.Error += theirs
		}
		all = append(all, tagged{it, c.tag})
	}
	for i := range o.items {
		if c := &o.items[i]; l.find(c.tag, &c.Key) == nil {
			it := c.Item
			it.Count += mine
			it.Error += mine
			all = append(all, tagged{it, c.tag})
		}
	}
	slices.SortStableFunc(all, func(a, b tagged) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error))
	})
	total := l.total + o.total
	l.Reset()
	for _, t := range all[:min(len(all), cap(l.items))] {
		l.insert(t.tag, t.Item)
	}
	l.total, l.floor = total, mine+theirs
}

// Reset empties the list and keeps its memory.
func (l *List[K]) Reset() {
	clear(l.items)
	l.items, l.heap = l.items[:0], l.heap[:0]
	l.index.Clear()
	l.total, l.floor = 0, 0
}
