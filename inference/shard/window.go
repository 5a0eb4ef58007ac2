package shard

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/logcode"
)

const (
	pageCounters = 32 // of one octave
	pages        = logcode.DenseCodes / pageCounters
)

// hopSet is the hops of one window: for each of them two histograms of dense log codes, like [logcode.Histogram], but
// laid out for batches. Counters of all hops lie in one slice, in pages of an octave, so that counting a batch is a
// list of indexes first and a tight loop over it then: its cache misses overlap, where histogram after histogram they
// would be waited for one by one.
type hopSet struct {
	hops     []hopPages // by reference
	counters []uint32   // the first page is nobody's
}

// hopPages says where the counters of a hop are: by octave the index of the page, 0 for none. How many records there
// were is the sum of the latency counters and of noLatency.
type hopPages struct {
	latency, queue [pages]uint32
	utilization    float64
	noLatency      uint32
	hasUtilization bool
	used           bool
}

func newHopSet(n int) hopSet {
	return hopSet{hops: make([]hopPages, n), counters: make([]uint32, pageCounters)}
}

// grow takes a page for an octave.
func (s *hopSet) grow(page *uint32) uint32 {
	*page = uint32(len(s.counters))
	s.counters = append(s.counters, make([]uint32, pageCounters)...)
	return *page
}

// count adds one to each counter of the list, which stops at its largest value.
func (s *hopSet) count(list []uint32) {
	counters := s.counters
	for _, i := range list {
		if p := &counters[i]; *p != ^uint32(0) {
			*p++
		}
	}
}

// reset empties the first n hops and keeps all memory.
func (s *hopSet) reset(n int) {
	clear(s.hops[:n])
	clear(s.counters)
	s.counters = s.counters[:pageCounters]
}

// hopSum is a hop of one or more windows, put together.
type hopSum struct {
	latency, queue logcode.Histogram
	noLatency      uint64
	utilization    float64
	hasUtilization bool
}

func (s *hopSum) reset() {
	s.latency.Reset()
	s.queue.Reset()
	s.noLatency, s.utilization, s.hasUtilization = 0, 0, false
}

// add adds a hop of a set.
func (s *hopSum) add(set *hopSet, h *hopPages) {
	for _, m := range []struct {
		from *[pages]uint32
		to   *logcode.Histogram
	}{{&h.latency, &s.latency}, {&h.queue, &s.queue}} {
		for o, page := range m.from {
			if page == 0 {
				continue
			}
			for i, n := range set.counters[page : page+pageCounters] {
				m.to.AddN(uint16(o*pageCounters+i), uint64(n))
			}
		}
	}
	s.noLatency += uint64(h.noLatency)
	if h.hasUtilization {
		s.utilization, s.hasUtilization = max(s.utilization, h.utilization), true
	}
}

func (s *hopSum) stats(k inference.HopKey) inference.HopStats {
	return inference.HopStats{
		HopKey: k, Count: s.latency.Count() + s.noLatency, Latency: summary(&s.latency), Queue: summary(&s.queue),
		Utilization: s.utilization, HasUtilization: s.hasUtilization,
	}
}

// summary reads the quantiles of a histogram.
func summary(h *logcode.Histogram) inference.Summary {
	var q [3]uint64
	h.Quantiles(q[:0], 0.5, 0.9, 0.99)
	return inference.Summary{Count: h.Count(), P50: q[0], P90: q[1], P99: q[2], Max: h.Max()}
}
