package shard

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/logcode"
)

const (
	pageCounters = 32 // of one octave
	octaves      = logcode.DenseCodes / pageCounters

	// Hops share the memory of their counters in groups that are small enough for 16-bit page numbers: twice 60 pages
	// for each of 256 hops.
	groupHops   = 256
	groupBits   = 21
	groupOffset = 1<<groupBits - 1
)

// hopSet is the hops of one window: for each of them two histograms of dense log codes, like [logcode.Histogram], but
// laid out for batches. The counters of many hops lie in one slice, in pages of an octave, so that counting a batch is
// a list of indexes first and a tight loop over it then: its cache misses overlap, where histogram after histogram they
// would be waited for one by one. And a counter is a byte, whose every overflow goes to a wide one: the bytes of
// hundreds of hops fit a core's own cache.
type hopSet struct {
	hops   []hopPages // by reference
	groups []counters // of 256 hops each
}

// counters are the pages of a group of hops; the first page is nobody's.
type counters struct {
	low  []uint8
	high []uint32 // how often the low counter overflowed
}

// hopPages says where the counters of a hop are: by octave the number of the page, 0 for none, latency and queue side by
// side, so that a record needs one cache line as long as neither is above 2²¹. How many records there were is the sum
// of the latency counters and of noLatency.
type hopPages struct {
	page           [octaves][2]uint16
	utilization    float64
	noLatency      uint32
	hasUtilization bool
	used           bool
}

// The two histograms of a hop.
const (
	latencyPages = iota
	queuePages
)

func newHopSet(n int) hopSet {
	return hopSet{hops: make([]hopPages, n), groups: make([]counters, (n+groupHops-1)/groupHops)}
}

// counter gives the index of the counter of a code of a hop.
func (s *hopSet) counter(ref uint16, h *hopPages, kind int, code uint16) uint32 {
	page := uint32(h.page[code/pageCounters][kind])
	if page == 0 {
		page = s.grow(ref, kind, code/pageCounters)
	}
	return uint32(ref)/groupHops<<groupBits | page*pageCounters | uint32(code%pageCounters)
}

// grow takes a page for an octave.
//
//go:noinline
func (s *hopSet) grow(ref uint16, kind int, octave uint16) uint32 {
	g := &s.groups[ref/groupHops]
	if len(g.low) == 0 {
		g.grow()
	}
	page := len(g.low) / pageCounters
	g.grow()
	h := &s.hops[ref]
	h.page[octave][kind] = uint16(page)
	h.used = true
	return uint32(page)
}

func (g *counters) grow() {
	g.low = append(g.low, make([]uint8, pageCounters)...)
	g.high = append(g.high, make([]uint32, pageCounters)...)
}

// at gives the value of a counter. It wraps after 2⁴⁰ records of a window.
func (g *counters) at(i int) uint64 { return uint64(g.high[i])<<8 + uint64(g.low[i]) }

// count adds one to each counter of the list.
func (s *hopSet) count(list []uint32) {
	groups := s.groups
	for _, i := range list {
		g := &groups[i>>groupBits]
		p := &g.low[i&groupOffset]
		if *p++; *p == 0 {
			g.high[i&groupOffset]++
		}
	}
}

// reset empties the first n hops and keeps all memory.
func (s *hopSet) reset(n int) {
	clear(s.hops[:n])
	for i := range s.groups {
		g := &s.groups[i]
		clear(g.low)
		clear(g.high)
		g.low, g.high = g.low[:0], g.high[:0]
	}
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
func (s *hopSum) add(set *hopSet, ref int) {
	h, g := &set.hops[ref], &set.groups[ref/groupHops]
	for octave, page := range h.page {
		for kind, to := range [...]*logcode.Histogram{latencyPages: &s.latency, queuePages: &s.queue} {
			at := int(page[kind]) * pageCounters
			if at == 0 {
				continue
			}
			for i := range pageCounters {
				if n := g.at(at + i); n != 0 {
					to.AddN(uint16(octave*pageCounters+i), n)
				}
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
