package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches/quantile"
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

// plain counts the first hops of a path as long as they are common ones. Such a hop is one of the flow's first ones and
// is in the table. Its latency and its queue occupancy have counters in its row. It has nothing more to count. plain
// does the same as record, and returns the number of hops that it counted.
func (s *hops) plain(f *flow, list []decode.Hop, u *decode.Units, codes []uint16) (i int) {
	const want, not = decode.HopLatency | decode.HopQueueOccupancy, decode.HopTxUtilization
	if s.n+2*inline > len(s.waiting) {
		s.settle()
	}
	list = list[:min(len(list), len(codes), inline)]
	waiting := (*[2 * inline]uint32)(s.waiting[s.n:])
	for i = range list {
		h, ref := &list[i], uint32(f.refs[i%inline])
		fine, dense := quantile.EncodeBoth(uint64(h.Latency) * u.LatencyNS)
		_, denseQueue := quantile.EncodeBoth(uint64(h.QueueOccupancy) * u.QueueBytes)
		if h.Has&(want|not) != want || ref == other || dense >= rowCodes || denseQueue >= rowCodes {
			s.n += 2 * i
			return i
		}
		codes[i] = uint16(fine)
		s.open.set.hops[ref].used = true
		waiting[2*i%len(waiting)] = ref*rowCounters + dense
		waiting[(2*i+1)%len(waiting)] = ref*rowCounters + rowCodes + denseQueue
	}
	s.n += 2 * len(list)
	return len(list)
}

// record counts one hop record in the window and returns the codes of latency and queue.
func (s *hops) record(ref uint16, u *decode.Units, h *decode.Hop) (latency, queue uint16) {
	if s.n+2 > len(s.waiting) {
		s.settle()
	}
	w := &s.open.set.hops[ref]
	w.used = true
	latency, queue = absent, absent
	ns, ok := uint64(h.Latency)*u.LatencyNS, true
	if h.Has&decode.HopLatency == 0 || h.Latency >= decode.LeastReckoned {
		ns, ok = u.Latency(h)
	}
	if ok {
		latency = quantile.Encode(ns)
		s.count(ref, latencyRow, quantile.EncodeDense(ns))
	} else {
		w.noLatency++
	}
	if h.Has&decode.HopQueueOccupancy != 0 {
		bytes := uint64(h.QueueOccupancy) * u.QueueBytes
		queue = quantile.Encode(bytes)
		s.count(ref, queueRow, quantile.EncodeDense(bytes))
	}
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

// histogram counts the values of a hop that came in buckets: at their upper bounds, and beside that in p at their lower
// ones. The hop called other has no bounds.
func (s *hops) histogram(p *window.Partial, k inference.HopKey, g *decode.Histogram) {
	if len(g.Buckets) == 0 {
		return // no value is no record
	}
	ref := s.find(k)
	s.open.set.hops[ref].used = true
	if ref == other {
		k = inference.HopKey{Other: true}
		s.open.other++
	}
	h, bounds := p.Hop(k), &window.BucketCounts{}
	at := &h.Latency
	if ref != other {
		b := p.Buckets(k)
		bounds = &b.Latency
		if g.Of == decode.HopQueueOccupancy {
			bounds = &b.Queue
		}
	}
	if g.Of == decode.HopQueueOccupancy {
		at = &h.Queue
		h.NoLatency++
	}
	for _, x := range g.Buckets {
		at.AddN(quantile.EncodeDense(x.High), x.Count)
		bounds.Low.AddN(quantile.EncodeDense(x.Low), x.Count)
		if x.Open {
			bounds.Open += x.Count
		}
	}
}

// count lists a code of a hop to be counted. Few are beyond the counters of a row.
func (s *hops) count(ref uint16, kind uint32, code uint16) {
	if code >= rowCodes {
		s.open.set.countFar(ref, kind, code)
		return
	}
	s.waiting[s.n%maxCounts] = uint32(ref)*rowCounters + kind*rowCodes + uint32(code)
	s.n++
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
	if len(s.keys)-1 >= cap(s.keys)*3/4 { // in use
		s.forget(end - idle)
	}
	next.set.fit(len(s.keys))
	s.open = next
}

// find is [hopTable.find], and makes counters for a new hop.
func (s *hops) find(k inference.HopKey) uint16 {
	ref := s.hopTable.find(k)
	s.open.set.fit(len(s.keys))
	return ref
}
