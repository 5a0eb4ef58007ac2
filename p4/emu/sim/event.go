package sim

// event is something that happens at a virtual time. Events at the same time happen in the order in which they were
// scheduled. An id of 0 or more is a packet, the complement of an id below 0 a timer.
type event struct {
	At  int64
	Seq uint32
	Id  int32
}

// Events is a heap with four children a node: half the levels of a binary one, and the children share a cache line.
type Events struct {
	Heap []event
	seq  uint32
}

// before compares sequence numbers modulo 2^32; they are only compared at equal times, where they are near each other.
func (a event) before(b event) bool { return a.At < b.At || a.At == b.At && int32(a.Seq-b.Seq) < 0 }

// Add schedules an event and returns its number, which is never 0.
func (q *Events) Add(at int64, id int32) uint32 {
	q.seq++
	if q.seq == 0 {
		q.seq++
	}
	e := event{at, q.seq, id}
	q.Heap = append(q.Heap, e)
	h, i := q.Heap, len(q.Heap)-1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	return e.Seq
}

// Next removes and returns the earliest event. There must be one.
func (q *Events) Next() event {
	h := q.Heap
	top, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.Heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(h)); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if !h[least].before(e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
	return top
}
