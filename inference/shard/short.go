package shard

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// countShort counts a record in its short form, if its flow is in the state that nearly all are in: on a path that is known
// and has not changed, whose hops are in the table, with nothing else to be looked at. It does what count does and changes
// nothing where it gives false.
func (s *State) countShort(r *decode.Record, slot uint32) bool {
	shape := r.Shape
	f := &s.flows.At(slot).Value
	n := shape.Hops
	if int(f.hops) != n || n > inline || f.gen != s.hops.gen || f.flags != 0 && f.flags != gaps {
		return false
	}
	begins := f.window != s.window
	inWindow := f.inWindow + 1
	if begins {
		inWindow = 1
		if f.packets == 0 || r.Time-f.last > s.idle || s.listArrivals && s.window-f.window > 1 {
			return false
		}
	}
	if shape.Timed && timed(inWindow) || s.policy != nil && f.judged != uint16(s.window) {
		return false
	}

	var codes [inline]uint16
	if !s.hops.readStack(r, f, &codes) {
		return false
	}

	if begins {
		s.enter(f, slot, r.Time)
		for _, ref := range f.refs[:n] {
			s.hops.open.set.hops[ref].used = true
		}
	}
	f.packets++
	f.last = max(f.last, r.Time)
	f.inWindow = inWindow
	if f.top == 0 && inWindow > s.top.threshold {
		s.admit(f, slot)
	}
	if f.onPath != ^uint32(0) {
		f.onPath++
	}
	if f.top != 0 {
		s.bufferQueuesShort(f, n)
	}
	s.hops.n += 2 * n
	copy(f.codes[int(f.buffered)*n:][:n], codes[:])
	f.buffered++
	f.fresh++
	if f.full(0) {
		s.flush(f)
	}
	return true
}

// readStack reads the stack of a record whose flow has as many hops. It gives the codes of the latencies, and lists the counters of the
// window behind those that wait, without making them wait. It gives false if the stack is not that of the flow's path, or
// has a value that is absent or beyond the counters.
func (h *hops) readStack(r *decode.Record, f *flow, codes *[inline]uint16) bool {
	const (
		step, mul = 0x9e3779b97f4a7c15, 0xe7037ed1a0b428db // see pathID
		max24     = 1<<24 - 1
	)
	shape := r.Shape
	u := shape.Common.Units
	n := shape.Hops
	if h.n+2*inline > len(h.waiting) {
		h.settle()
	}
	waiting := h.waiting[h.n : h.n+2*inline : h.n+2*inline]
	stride, latencyAt, queueAt := shape.Stride, shape.Latency, shape.Queue
	stack := r.Stack[:n*stride]
	be := binary.BigEndian
	id, k, strange := uint64(n), uint64(step), false
	for i := range n & (2*inline - 1) {
		at := (n - 1 - i) * stride
		block := stack[at : at+stride]
		latency, queue := be.Uint32(block[latencyAt:]), be.Uint32(block[queueAt:])&max24
		hi, lo := bits.Mul64(be.Uint64(block)^k, mul)
		id += hi ^ lo
		k += step
		fine, dense := logcode.EncodeBoth(uint64(latency) * u.LatencyNS)
		_, denseQueue := logcode.EncodeBoth(uint64(queue) * u.QueueBytes)
		ref := f.refs[i%inline]
		strange = strange || latency == math.MaxUint32 || queue == max24 || dense >= rowCodes || denseQueue >= rowCodes || ref == other
		codes[i%inline] = uint16(fine)
		row := uint32(ref) * rowCounters
		waiting[2*i%len(waiting)] = row + dense
		waiting[(2*i+1)%len(waiting)] = row + rowCodes + denseQueue
	}
	return !strange && max(id, 1) == f.pathID
}

// bufferQueuesShort is bufferQueues for a record, whose counters readStack listed.
func (s *State) bufferQueuesShort(f *flow, n int) {
	waiting := s.hops.waiting[s.hops.n:]
	for i, codes := 0, s.top.places[f.top-1].next(n); i < len(codes); i++ {
		codes[i] = uint16(waiting[2*i+1] - uint32(f.refs[i])*rowCounters - rowCodes)
	}
}
