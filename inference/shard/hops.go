package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// maxCounts is how many counters are counted together.
const maxCounts = 1024

// hops observes every hop record, whatever else is known of its report. It numbers the places of the network and counts
// the values of each of them in the open window.
type hops struct {
	hopTable
	open    *hopCut
	waiting [maxCounts]uint32 // counters of the open window that wait to be counted
	n       int               // how many
	folded  uint64            // records of hops that had no place, in earlier windows
}

// settle counts what waits for it. It runs once a batch, so that the cache misses of a batch's counters overlap.
func (s *hops) settle() {
	s.open.set.count(s.waiting[:s.n])
	s.n = 0
}

// plain counts the first hops of a path as long as they are what most hops are: one of the flow's first ones, in
// the table, with a latency and a queue occupancy and nothing more to count, of an octave that has its page. It does
// what record does, and gives the number of hops that it did it for.
func (s *hops) plain(f *flow, list []decode.Hop, u *decode.Units, codes []uint16) (i int) {
	const want, not = decode.HopLatency | decode.HopQueueOccupancy, decode.HopTxUtilization
	n := s.n
	if n+2*inline > len(s.waiting) {
		s.settle()
		n = 0
	}
	list = list[:min(len(list), len(codes), inline)]
	set := s.open.set.hops
	for i = range list {
		h, ref := &list[i], f.refs[i%inline]
		if h.Has&(want|not) != want || ref == other {
			s.n = n
			return i
		}
		ns, bytes := uint64(h.Latency)*u.LatencyNS, uint64(h.QueueOccupancy)*u.QueueBytes
		codes[i] = logcode.Encode(ns)
		l, q := logcode.EncodeDense(ns), logcode.EncodeDense(bytes)
		w := &set[ref]
		lp, qp := uint32(w.page[l/pageCounters][latencyPages]), uint32(w.page[q/pageCounters][queuePages])
		if lp == 0 || qp == 0 {
			s.n = n
			return i
		}
		group := uint32(ref) / groupHops << groupBits
		s.waiting[n%maxCounts] = group | lp*pageCounters | uint32(l%pageCounters)
		s.waiting[(n+1)%maxCounts] = group | qp*pageCounters | uint32(q%pageCounters)
		n += 2
	}
	s.n = n
	return len(list)
}

// record counts one hop record in the window and gives the codes of latency and queue.
func (s *hops) record(ref uint16, u *decode.Units, h *decode.Hop) (latency, queue uint16) {
	if s.n+2 > len(s.waiting) {
		s.settle()
	}
	set := &s.open.set
	w := &set.hops[ref]
	latency, queue = absent, absent
	ns, ok := uint64(h.Latency)*u.LatencyNS, true
	if h.Has&decode.HopLatency == 0 {
		ns, ok = u.Latency(h)
	}
	n := s.n
	if ok {
		latency = logcode.Encode(ns)
		s.waiting[n%maxCounts] = set.counter(ref, w, latencyPages, logcode.EncodeDense(ns))
		n++
	} else {
		w.noLatency++
		w.used = true
	}
	if h.Has&decode.HopQueueOccupancy != 0 {
		bytes := uint64(h.QueueOccupancy) * u.QueueBytes
		queue = logcode.Encode(bytes)
		s.waiting[n%maxCounts] = set.counter(ref, w, queuePages, logcode.EncodeDense(bytes))
		n++
	}
	s.n = n
	if h.Has&decode.HopTxUtilization != 0 {
		if v, ok := u.Utilization(h); ok {
			w.utilization, w.hasUtilization = max(w.utilization, v), true
		}
	}
	if ref == other {
		s.open.other++
	}
	return latency, queue
}

// cut hands the open window over, which ends at end, and goes on in another one.
func (s *hops) cut(next *hopCut, end int64, idle int64) {
	s.settle()
	c := s.open
	c.keys = append(c.keys[:0], s.keys...)
	for i := range c.keys {
		if c.set.hops[i].used {
			s.seen[i] = end
		}
	}
	s.folded += c.other + c.set.folded
	if s.nearlyFull() {
		s.forget(end - idle)
	}
	s.open = next
}
