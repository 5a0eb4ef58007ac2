package shard

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/logcode"
)

const (
	pageCounters = logcode.OctaveCodes
	octaves      = logcode.Octaves

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
	left   int        // pages that may still be taken
	folded uint64     // records that count for "other" because none was left
}

// hopOctaves is how many octaves of latencies and queues a hop has memory for, on average over all hops.
const hopOctaves = 16

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
	return hopSet{hops: make([]hopPages, n), groups: make([]counters, (n+groupHops-1)/groupHops), left: n * hopOctaves}
}

// counter gives the index of the counter of a code of a hop. Once all pages are taken, what a hop has no page for counts for
// the hop "other": values that somebody made up are spread like that, measured ones are not.
func (s *hopSet) counter(ref uint16, h *hopPages, kind int, code uint16) uint32 {
	page := uint32(h.page[code/pageCounters][kind])
	if page == 0 {
		if s.left <= 0 && ref != other {
			if kind == latencyPages {
				s.folded++
			}
			return s.counter(other, &s.hops[other], kind, code)
		}
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
	s.left--
	h := &s.hops[ref]
	h.page[octave][kind] = uint16(page)
	h.used = true
	return uint32(page)
}

func (g *counters) grow() {
	g.low = append(g.low, make([]uint8, pageCounters)...)
	g.high = append(g.high, make([]uint32, pageCounters)...)
}

// read gives the values of the counters of a page. They wrap after 2⁴⁰ records of a window.
func (g *counters) read(n *[pageCounters]uint64, at int) {
	low, high := g.low[at:at+pageCounters], g.high[at:at+pageCounters]
	for i := range n {
		n[i] = uint64(high[i])<<8 + uint64(low[i])
	}
}

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
	s.left, s.folded = len(s.hops)*hopOctaves, 0
	held := 0
	for i := range s.groups {
		g := &s.groups[i]
		clear(g.low)
		clear(g.high)
		held += cap(g.low)
		g.low, g.high = g.low[:0], g.high[:0]
	}
	// Groups may take all pages in turn, and would keep them.
	if held > 2*(s.left+2*octaves)*pageCounters {
		clear(s.groups)
	}
}

// hopCut is the hops of a window that was handed over, or of the open one.
type hopCut struct {
	keys  []inference.HopKey // by reference
	set   hopSet
	other uint64 // records of hops that had no place in the table
}

func (c *hopCut) reset() {
	c.set.reset(len(c.keys))
	c.keys, c.other = c.keys[:0], 0
}

func (c *hopCut) addTo(p *inference.Partial) {
	p.OtherHops += c.other + c.set.folded
	var n [logcode.OctaveCodes]uint64
	for ref, k := range c.keys {
		h := &c.set.hops[ref]
		if !h.used {
			continue
		}
		to, g := p.Hop(k), &c.set.groups[ref/groupHops]
		for octave, page := range h.page {
			if at := int(page[latencyPages]) * pageCounters; at != 0 {
				g.read(&n, at)
				to.Latency.AddOctave(octave, &n)
			}
			if at := int(page[queuePages]) * pageCounters; at != 0 {
				g.read(&n, at)
				to.Queue.AddOctave(octave, &n)
			}
		}
		to.NoLatency += uint64(h.noLatency)
		if h.hasUtilization {
			to.Utilization, to.HasUtilization = max(to.Utilization, h.utilization), true
		}
	}
}
