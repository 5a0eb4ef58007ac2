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

	codes := (*[inline]uint16)(f.codes[int(f.buffered)*n:]) // the part behind the first n is overwritten by the next report
	if !s.hops.readStack(r, f, codes) {
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
	f.buffered++
	f.fresh++
	if f.full(0) {
		s.flush(f)
	}
	return true
}

// readStack reads the stack of a lazy report whose flow has as many hops. It writes the codes of the latencies, and
// lists the counters of the window behind those that wait, without making them wait. It returns false if the stack is not
// that of the flow's path, or has a value that is absent or beyond the counters.
func (h *hops) readStack(r *decode.Lazy, f *flow, codes *[inline]uint16) bool {
	if h.n+2*inline > len(h.waiting) {
		h.settle()
	}
	u := r.Shape.Common.Units
	_, absentQueue := quantile.EncodeBoth(max24 * u.QueueBytes)
	counters, queueLimit := (*[2 * inline]uint32)(h.waiting[h.n:]), uint64(min(absentQueue, rowCodes))
	if n := r.Shape.Hops; hasAVX512 && r.Shape.Stride == 16 && n <= inline {
		return stackCodes(&r.Stack[0], &f.refs[0], &codes[0], &counters[0], n, u.LatencyNS, u.QueueBytes, queueLimit, f.pathID)
	}
	return stackCodesGo(r, &f.refs, codes, counters, queueLimit, f.pathID)
}

const max24 = 1<<24 - 1 // the queue of a hop that has none

// stackCodesGo writes the codes of the latencies in the stack of r, and 0 behind them, and lists the counters of its
// hops. Codes of queues count below queueLimit. It returns false if the stack does not have the id of the path, or has a
// value that is absent, a code beyond the row, or a hop without a place.
func stackCodesGo(r *decode.Lazy, refs, codes *[inline]uint16, counters *[2 * inline]uint32, queueLimit, id uint64) bool {
	const step, mul = 0x9e3779b97f4a7c15, 0xe7037ed1a0b428db // see inference.PathID
	be := binary.BigEndian
	n, stride := uint(r.Shape.Hops), uint(r.Shape.Stride)
	u := r.Shape.Common.Units
	*codes = [inline]uint16{}
	sum, k, at := uint64(n), uint64(step), n*stride
	for i := range n {
		at -= stride
		if at > decode.StackBytes-16 {
			return false
		}
		block := (*[16]byte)(r.Stack[at : at+16])
		hi, lo := bits.Mul64(be.Uint64(block[:])^k, mul)
		sum += hi ^ lo // terms do not wait for each other
		k += step
		values := be.Uint64(block[8:])
		fine, dense := quantile.EncodeBoth(values >> 32 * u.LatencyNS)
		_, denseQueue := quantile.EncodeBoth(values & max24 * u.QueueBytes)
		ref := uint32(refs[i%inline])
		if ref == other || dense >= rowCodes-1 || uint64(denseQueue) >= queueLimit { // the largest latency is absent
			return false
		}
		codes[i%inline] = uint16(fine)
		counters[2*i%(2*inline)] = ref*rowCounters + dense
		counters[(2*i+1)%(2*inline)] = ref*rowCounters + rowCodes + denseQueue
	}
	return max(sum, 1) == id
}

// bufferQueuesShort is bufferQueues for a lazy report, whose counters readStack listed.
func (s *State) bufferQueuesShort(f *flow, n int) {
	waiting := s.hops.waiting[s.hops.n:]
	for i, codes := 0, s.top.places[f.top-1].next(n); i < len(codes); i++ {
		codes[i] = uint16(waiting[2*i+1] - uint32(f.refs[i])*rowCounters - rowCodes)
	}
}
