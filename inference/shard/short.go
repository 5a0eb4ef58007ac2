package shard

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// countShort counts a lazy report in its short form, if its flow is in the common state. The flow is on a known path
// that has not changed, its hops are in the table, and nothing else has to be examined. The effect is that of count.
// Nothing is changed if countShort returns false.
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
	*(*[inline]uint16)(f.codes[int(f.buffered)*n:]) = codes // the part behind the first n is overwritten by the next report
	f.buffered++
	f.fresh++
	if f.full(0) {
		s.flush(f)
	}
	return true
}

// readStack reads the stack of a lazy report whose flow has as many hops. It returns the codes of the latencies, and
// lists the counters of the window behind those that wait, without making them wait. It returns false if the stack is not
// that of the flow's path, or has a value that is absent or beyond the counters.
func (h *hops) readStack(r *decode.Lazy, f *flow, codes *[inline]uint16) bool {
	const (
		step, mul = 0x9e3779b97f4a7c15, 0xe7037ed1a0b428db // see inference.PathID
		max24     = 1<<24 - 1
		lastBlock = decode.StackBytes - 16
	)
	if h.n+2*inline > len(h.waiting) {
		h.settle()
	}
	n, stride := uint(r.Shape.Hops), uint(r.Shape.Stride)
	be := binary.BigEndian

	// The largest codes of values that are there. The value of an absent one is the largest that a field holds.
	latencyNS, queueBytes := r.Shape.Common.Units.LatencyNS, r.Shape.Common.Units.QueueBytes
	_, absentQueue := quantile.EncodeBoth(max24 * queueBytes)
	lastLatency, lastQueue := uint32(rowCodes-2), min(absentQueue, rowCodes)-1
	exceptional := uint32(0) // its highest bit is set if a value is absent, a code beyond the row, or a hop without a place
	waiting := (*[2 * inline]uint32)(h.waiting[h.n:])
	id, k, at := uint64(n), uint64(step), n*stride
	for i := range n {
		at -= stride
		if at > lastBlock {
			return false
		}
		block := (*[16]byte)(r.Stack[at : at+16])
		hi, lo := bits.Mul64(be.Uint64(block[:])^k, mul)
		id += hi ^ lo // terms do not wait for each other
		k += step
		values := be.Uint64(block[8:])
		fine, dense := quantile.EncodeBoth(values >> 32 * latencyNS)
		_, denseQueue := quantile.EncodeBoth(values & max24 * queueBytes)
		ref := uint32(f.refs[i%inline])
		exceptional |= (lastLatency - dense) | (lastQueue - denseQueue) | (ref - 1)
		codes[i%inline] = uint16(fine)
		j := 2 * i % (2 * inline)
		waiting[j] = ref*rowCounters + dense
		waiting[j+1] = ref*rowCounters + rowCodes + denseQueue
	}
	return exceptional>>31 == 0 && max(id, 1) == f.pathID
}

// bufferQueuesShort is bufferQueues for a lazy report, whose counters readStack listed.
func (s *State) bufferQueuesShort(f *flow, n int) {
	waiting := s.hops.waiting[s.hops.n:]
	for i, codes := 0, s.top.places[f.top-1].next(n); i < len(codes); i++ {
		codes[i] = uint16(waiting[2*i+1] - uint32(f.refs[i])*rowCounters - rowCodes)
	}
}
