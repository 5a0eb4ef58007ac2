package window

import (
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// partialKinds are the kinds of items of a partial, by the number of their section in its bytes (FORMAT.md). Every
// operation on all kinds walks this table. A new kind is a file with its entry, a list in [Partial], and a line here.
var partialKinds = [...]partialKind{
	1: &hopKind, 2: &flowKind, 3: &pathKind, 4: &dropKind, 5: &faultKind, 6: &exporterKind, firstOfVersion3: &numbersKind,
	8: &arrivalKind, 9: &deviationKind, 10: &lossKind, 11: &spreadKind, 12: &linkKind, 13: &strayKind,
	14: &bucketKind, 15: &interfaceKind, 16: &sightKind, 17: &namelessKind,
	18: lateKind[inference.ExporterKey, inference.ExporterStats]{&exporterKind}, 19: lateKind[unkeyed, Numbers]{&numbersKind},
	20: &octetKind, 21: &gapKind, 22: &sentKind, 23: &countsKind, 24: &probeKind,
}

// firstOfVersion3 is the first section that version 2 of the layout does not have.
const firstOfVersion3 = 7

// partialKind is a kind of items, whatever their type is.
type partialKind interface {
	reset(p *Partial)
	merge(p, q *Partial, most *Limits) (left int)
	split(p *Partial, s *Slicer, into []*Partial)
	write(p *Partial, c *coder, section byte)
	read(p, into *Partial, c *coder)
	window(p *Partial, w *inference.Window, keep *Limits)
}

// kindOf is the entry of a kind whose items are V and are found by K.
type kindOf[K comparable, V any] struct {
	one, many string // in errors
	least     int    // size of the smallest item, in bytes: it bounds their number before anything is allocated
	in        func(*Partial) *table[K, V]
	limit     func(*Limits) int
	slice     func(*Slicer, *V) int

	// key is nil for kinds of which equal items are listed several times.
	key func(*V) K
	// compare is the order of the items in bytes, and in a window.
	compare func(a, b *V) int
	// rank is the order in which items find room. Where it is nil they do in the order of compare, and those that a
	// partial with a bound lists stay.
	rank func(a, b *V) int
	// sum adds an item to the one with its key. An item of its own is a sum, too, where items keep memory
	// ([kindOf.empty]).
	sum func(m *memory, to, from *V)
	// own moves what an item refers to into memory; nil for items that refer to nothing that may change.
	own func(m *memory, v *V)
	// empty makes an item empty that keeps its memory; nil for others.
	empty func(*V)
	// fits reports whether an item belongs to what a partial lists within a limit; nil for all.
	fits func(p *Partial, v *V, most int) bool
	// leave counts an item without room, or folds it into another one; nil where no counter of the partial does.
	leave func(*Partial, *V)

	// late reports whether an item is in the second section of the kind. Readers of the release before would refuse it
	// or take it for another one, and pass over that section. Such items come last in the order of compare. nil for
	// none.
	late func(*V) bool

	// code writes or reads an item. Kinds that are added up while they are read have readAll beside it.
	code    func(c *coder, m *memory, v *V)
	readAll func(c *coder, t *table[K, V], n int)

	// rows returns the list of the window, and the counter of the items that it leaves out. The counter is nil where
	// none are left out. Kinds without rows are in no window.
	rows func(*inference.Window) (list *[]V, left *uint64)
	// weight is the count of an item that the window leaves out; nil for 1.
	weight func(*V) uint64
	// same makes the window list only the first of several items; nil for all.
	same func(a, b *V) bool
	// view takes the place of rows for kinds that a window lists in another form.
	view func(p *Partial, w *inference.Window, keep *Limits)
}

// put adds an item, of which nothing is kept.
func (k *kindOf[K, V]) put(p *Partial, v *V) {
	t := k.in(p)
	if k.key != nil {
		if i, known := t.index[k.key(v)]; known {
			k.sum(&t.memory, &t.items[i], v)
			return
		}
	}
	if p.most != nil && !k.room(p, t, v) {
		k.leaveOut(p, v)
		return
	}
	to := t.next()
	if k.key != nil {
		t.index[k.key(v)] = int32(len(t.items) - 1)
	}
	if k.empty != nil {
		k.sum(&t.memory, to, v)
		return
	}
	*to = *v
	if k.own != nil {
		k.own(&t.memory, to)
	}
	if t.grew {
		t.greatest, t.grew = *to, false
	}
}

// add is put for an item that need not be in the heap. Exported methods that call it on the path of a report are not
// inlined. In another package the compiler would not see that the item does not escape.
func (k *kindOf[K, V]) add(p *Partial, v *V) {
	t := k.in(p)
	t.added = *v
	k.put(p, &t.added)
}

// leaveOut counts an item that is not listed, and returns 1 if no counter of p does.
func (k *kindOf[K, V]) leaveOut(p *Partial, v *V) int {
	if k.leave == nil {
		return 1
	}
	k.leave(p, v)
	return 0
}

// room reports whether a partial with a bound lists another item. A list may hold twice as many as the bound for a
// while, so that it is sorted once for each bound that came. The kept items do not depend on how items were distributed
// over lists, nor on their order of arrival. An item among the first of all of them is among the first of its own list
// from then on.
func (k *kindOf[K, V]) room(p *Partial, t *table[K, V], v *V) bool {
	n := k.limit(p.most)
	if k.rank == nil {
		return len(t.items) < n
	}
	if len(t.items) >= 2*n {
		k.trim(p)
	}
	if len(t.items) > 0 && k.rank(v, &t.greatest) <= 0 {
		return true
	}
	t.grew = len(t.items) < n
	return t.grew
}

// trim leaves out what is beyond the bound of p.
func (k *kindOf[K, V]) trim(p *Partial) {
	t := k.in(p)
	if p.most == nil || k.rank == nil || len(t.items) <= k.limit(p.most) {
		return
	}
	n, all := k.limit(p.most), t.items
	order := sorted(&p.order, all, k.rank)
	for _, i := range order[n:] {
		k.leaveOut(p, &all[i])
	}
	t.items, t.memory = make([]V, 0, cap(all)), memory{}
	clear(t.index)
	for _, i := range order[:n] {
		t.items = append(t.items, all[i])
		v := &t.items[len(t.items)-1]
		if k.own != nil {
			k.own(&t.memory, v)
		}
		if k.key != nil {
			t.index[k.key(v)] = int32(len(t.items) - 1)
		}
		t.greatest = *v
	}
}

func (k *kindOf[K, V]) reset(p *Partial) {
	t := k.in(p)
	if k.empty == nil {
		clear(t.items)
	} else {
		for i := range t.items {
			k.empty(&t.items[i])
		}
	}
	t.items = t.items[:0]
	clear(t.index)
	t.memory.reset()
}

// merge adds the items of q, without limits those of all kinds. Within limits the items of p stay. It returns the
// number of items that found no room and that no counter of p counts.
func (k *kindOf[K, V]) merge(p, q *Partial, most *Limits) (left int) {
	k.trim(q)
	items := k.in(q).items
	if most == nil {
		for i := range items {
			k.put(p, &items[i])
		}
		return 0
	}
	t, n := k.in(p), k.limit(most)
	for _, i := range k.first(&p.order, items) {
		v := &items[i]
		known := false
		if k.key != nil {
			_, known = t.index[k.key(v)]
		}
		if (known || len(t.items) < n) && (k.fits == nil || k.fits(p, v, n)) {
			k.put(p, v)
		} else {
			left += k.leaveOut(p, v)
		}
	}
	return left
}

// first returns the indexes of items in the order in which they find room.
func (k *kindOf[K, V]) first(order *[]int32, items []V) []int32 {
	if k.rank == nil {
		return sorted(order, items, k.compare)
	}
	return sorted(order, items, k.rank)
}

func (k *kindOf[K, V]) split(p *Partial, s *Slicer, into []*Partial) {
	items := k.in(p).items
	for i := range items {
		k.put(into[k.slice(s, &items[i])], &items[i])
	}
}

func (k *kindOf[K, V]) write(p *Partial, c *coder, section byte) { k.writeSome(p, c, section, false) }

// writeSome writes the items of one of the sections of the kind.
func (k *kindOf[K, V]) writeSome(p *Partial, c *coder, section byte, late bool) {
	t := k.in(p)
	n := len(t.items)
	if k.late != nil {
		n = 0
		for i := range t.items {
			if k.late(&t.items[i]) == late {
				n++
			}
		}
	}
	if n == 0 {
		return
	}
	order := sorted(&p.order, t.items, k.compare)
	if late {
		order = order[len(order)-n:]
	}
	at := c.open(section, n)
	for _, i := range order[:n] {
		k.code(c, &t.memory, &t.items[i])
	}
	c.close(at)
}

// lateKind is the second section of a kind.
type lateKind[K comparable, V any] struct{ *kindOf[K, V] }

func (k lateKind[K, V]) reset(*Partial)                              {}
func (k lateKind[K, V]) merge(_, _ *Partial, _ *Limits) int          { return 0 }
func (k lateKind[K, V]) split(*Partial, *Slicer, []*Partial)         {}
func (k lateKind[K, V]) window(*Partial, *inference.Window, *Limits) {}
func (k lateKind[K, V]) write(p *Partial, c *coder, section byte)    { k.writeSome(p, c, section, true) }
func (k lateKind[K, V]) read(p, into *Partial, c *coder) {
	c.late = true
	k.kindOf.read(p, into, c)
	c.late = false
}

// read reads the items of a section into p, or adds them up in another partial. Of these items p has only those of the
// first section of the kind.
func (k *kindOf[K, V]) read(p, into *Partial, c *coder) {
	n := c.count(k.many, k.limit(c.limits)-len(k.in(p).items), k.least, 0)
	c.check(k.many, c.at, n > 0) // a section without any is not written
	if k.readAll != nil {
		t := k.in(into)
		t.grow(n)
		k.readAll(c, t, n)
		return
	}
	t := k.in(p)
	t.grow(len(t.items) + n)
	for range n {
		at := c.at
		v := t.next()
		k.code(c, &t.memory, v)
		if last := len(t.items) - 1; last > 0 {
			order := k.compare(&t.items[last-1], v)
			c.check(k.one, at, order < 0 || order == 0 && k.key == nil)
		}
		if c.err != nil {
			return
		}
		if k.key != nil {
			t.index[k.key(v)] = int32(len(t.items) - 1)
		}
	}
}

func (k *kindOf[K, V]) window(p *Partial, w *inference.Window, keep *Limits) {
	switch {
	case k.view != nil:
		k.view(p, w, keep)
		return
	case k.rows == nil:
		return
	}
	t := k.in(p)
	if len(t.items) == 0 {
		return
	}
	items, m := t.items, memory{hops: make([]inference.HopKey, 0, len(t.memory.hops))}
	list, left := k.rows(w)
	order := k.first(&p.order, items)
	if k.same != nil {
		order = slices.CompactFunc(order, func(a, b int32) bool { return k.same(&items[a], &items[b]) })
	}
	if n := max(k.limit(keep), 0); left != nil && n < len(order) {
		for _, i := range order[n:] {
			if k.weight == nil {
				*left++
			} else {
				*left += k.weight(&items[i])
			}
		}
		order = order[:n]
	}
	if k.rank != nil {
		slices.SortFunc(order, func(a, b int32) int { return k.compare(&items[a], &items[b]) })
	}
	*list = slices.Grow(*list, len(order))
	for _, i := range order {
		*list = append(*list, items[i])
		if k.own != nil {
			k.own(&m, &(*list)[len(*list)-1])
		}
	}
}

// table is the items of a kind in a partial, which are found by their keys if the kind has any.
type table[K comparable, V any] struct {
	items  []V
	index  map[K]int32
	memory memory

	// Of a partial with a bound: none of the items is greater, except the one that is being added.
	greatest V
	grew     bool
	added    V // memory of add
}

// memory holds the slices that items refer to.
type memory struct {
	hops   []inference.HopKey
	runs   []Run
	errors []inference.MapError
}

func (m *memory) reset() { m.hops, m.runs, m.errors = m.hops[:0], m.runs[:0], m.errors[:0] }

// keep makes the path of an item another one, which is copied. It takes more memory only if the path is longer than
// those before.
func (m *memory) keep(to *[]inference.HopKey, path []inference.HopKey) {
	if cap(*to) >= len(path) {
		*to = append((*to)[:0], path...)
	} else {
		*to = share(&m.hops, path)
	}
}

// share copies list to the end of memory and returns the copy.
func share[T any](memory *[]T, list []T) []T {
	n := len(*memory)
	*memory = append(*memory, list...)
	return (*memory)[n:len(*memory):len(*memory)]
}

// at returns the item of a key. If it is not known yet, the item is a new one: what reset left there, or zero.
func (t *table[K, V]) at(k K) (v *V, known bool) {
	if i, ok := t.index[k]; ok {
		return &t.items[i], true
	}
	v = t.next()
	t.index[k] = int32(len(t.items) - 1)
	return v, false
}

// find returns the item of a key, or nil.
func (t *table[K, V]) find(k K) *V {
	if i, ok := t.index[k]; ok {
		return &t.items[i]
	}
	return nil
}

// next returns a new item, which at finds only when it is in the index.
func (t *table[K, V]) next() *V {
	if t.index == nil {
		t.index = map[K]int32{}
	}
	n := len(t.items)
	if n < cap(t.items) {
		t.items = t.items[:n+1]
	} else {
		var zero V
		t.items = append(t.items, zero)
	}
	return &t.items[n]
}

// grow makes room for n items in all. The caller has bounded n.
func (t *table[K, V]) grow(n int) {
	t.items = slices.Grow(t.items, max(n-len(t.items), 0))
	if t.index == nil {
		t.index = make(map[K]int32, n)
	}
}

// sorted returns the indexes of items in an order, in memory.
func sorted[V any](memory *[]int32, items []V, compare func(a, b *V) int) []int32 {
	order := (*memory)[:0]
	for i := range items {
		order = append(order, int32(i))
	}
	slices.SortFunc(order, func(a, b int32) int { return compare(&items[a], &items[b]) })
	*memory = order
	return order
}
