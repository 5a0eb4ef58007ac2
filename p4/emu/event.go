package emu

// event is something that happens at a virtual time. Events at the same time happen in the order in which they were
// scheduled. An id of 0 or more is a packet, the complement of an id below 0 a timer.
type event struct {
	at  int64
	seq uint32
	id  int32
}

// events is a heap with four children a node: half the levels of a binary one, and the children share a cache line.
type events struct {
	heap []event
	seq  uint32
}

// before compares sequence numbers modulo 2^32; they are only compared at equal times, where they are near each other.
func (a event) before(b event) bool { return a.at < b.at || a.at == b.at && int32(a.seq-b.seq) < 0 }

// add schedules and gives the event's number, which is never 0.
func (q *events) add(at int64, id int32) uint32 {
	q.seq++
	if q.seq == 0 {
		q.seq++
	}
	e := event{at, q.seq, id}
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	return e.seq
}

// next removes and returns the earliest event. There must be one.
func (q *events) next() event {
	h := q.heap
	top, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
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
