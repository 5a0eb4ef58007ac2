package shard

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// countShort counts a lazy report in its short form, if its flow is in the state that nearly all are in: on a path that is known
// and has not changed, whose hops are in the table, with nothing else to be looked at. It does what count does and changes
// nothing where it gives false.
func (s *State) countShort(r *decode.Lazy, slot uint32) bool {
	shape := r.Shape
	if shape.Common.Postcard() {
		return false
	}
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
	*(*[inline]uint16)(f.codes[int(f.buffered)*n:]) = codes // what is behind the first n is overwritten by the next report
	f.buffered++
	f.fresh++
	if f.full(0) {
		s.flush(f)
	}
	return true
}

// readStack reads the stack of a lazy report whose flow has as many hops. It gives the codes of the latencies, and lists the counters of the
// window behind those that wait, without making them wait. It gives false if the stack is not that of the flow's path, or
// has a value that is absent or beyond the counters.
func (h *hops) readStack(r *decode.Lazy, f *flow, codes *[inline]uint16) bool {
	const (
		step, mul = 0x9e3779b97f4a7c15, 0xe7037ed1a0b428db // see inference.PathID
		max24     = 1<<24 - 1
	)
	if h.n+2*inline > len(h.waiting) {
		h.settle()
	}
	waiting := (*[2 * inline]uint32)(h.waiting[h.n:])
	n, stride := r.Shape.Hops&(2*inline-1), r.Shape.Stride
	stack := r.Stack[:n*stride]
	be := binary.BigEndian

	latencyNS, queueBytes := r.Shape.Common.Units.LatencyNS, r.Shape.Common.Units.QueueBytes
	id, k, at := uint64(n), uint64(step), len(stack)
	exceptional := uint64(0) // not 0 if a value is absent, a code beyond the row, or a hop without a place
	for i := range n {
		at -= stride
		block := (*[16]byte)(stack[at:])
		hi, lo := bits.Mul64(be.Uint64(block[:])^k, mul)
		id += hi ^ lo // terms do not wait for each other
		k += step
		values := be.Uint64(block[8:])
		latency, queue := values>>32, values&max24
		fine, dense := logcode.EncodeBoth(latency * latencyNS)
		_, denseQueue := logcode.EncodeBoth(queue * queueBytes)
		ref := uint32(f.refs[i%inline])
		exceptional |= (latency+1)>>32 | (queue+1)>>24 | uint64((rowCodes-1-dense)|(rowCodes-1-denseQueue)|(ref-1))>>31
		codes[i%inline] = uint16(fine)
		waiting[2*i%len(waiting)] = ref*rowCounters + dense
		waiting[(2*i+1)%len(waiting)] = ref*rowCounters + rowCodes + denseQueue
	}
	return exceptional == 0 && max(id, 1) == f.pathID
}

// bufferQueuesShort is bufferQueues for a lazy report, whose counters readStack listed.
func (s *State) bufferQueuesShort(f *flow, n int) {
	waiting := s.hops.waiting[s.hops.n:]
	for i, codes := 0, s.top.places[f.top-1].next(n); i < len(codes); i++ {
		codes[i] = uint16(waiting[2*i+1] - uint32(f.refs[i])*rowCounters - rowCodes)
	}
}
