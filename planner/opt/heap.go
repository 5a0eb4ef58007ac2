package opt

// Heap is a binary heap whose least item is Items[0] (J. Williams, "Algorithm 232: Heapsort", CACM 7(6), 1964). Push, Pop
// and FixTop take O(log n), Init O(n). Items are exchanged as in container/heap, so that equal items leave in the same order.
//
// Less must be set before the first call. Items may be filled by hand before Init, and emptied at any time.
type Heap[T any] struct {
	Items []T
	Less  func(a, b *T) bool
}

// Init makes a heap of items in any order.
func (h *Heap[T]) Init() {
	for i := len(h.Items)/2 - 1; i >= 0; i-- {
		h.down(i, len(h.Items))
	}
}

// Push adds an item.
func (h *Heap[T]) Push(x T) {
	h.Items = append(h.Items, x)
	for j := len(h.Items) - 1; j > 0; {
		i := (j - 1) / 2
		if !h.Less(&h.Items[j], &h.Items[i]) {
			return
		}
		h.Items[i], h.Items[j] = h.Items[j], h.Items[i]
		j = i
	}
}

// Pop takes out the least item.
func (h *Heap[T]) Pop() T {
	n := len(h.Items) - 1
	h.Items[0], h.Items[n] = h.Items[n], h.Items[0]
	h.down(0, n)
	x := h.Items[n]
	clear(h.Items[n:]) // its memory can be freed
	h.Items = h.Items[:n]
	return x
}

// FixTop moves Items[0], which has changed, to its place.
func (h *Heap[T]) FixTop() { h.down(0, len(h.Items)) }

// down moves item i below smaller ones of the first n.
func (h *Heap[T]) down(i, n int) {
	for {
		j := 2*i + 1
		if j >= n {
			return
		}
		if right := j + 1; right < n && h.Less(&h.Items[right], &h.Items[j]) {
			j = right
		}
		if !h.Less(&h.Items[j], &h.Items[i]) {
			return
		}
		h.Items[i], h.Items[j] = h.Items[j], h.Items[i]
		i = j
	}
}
