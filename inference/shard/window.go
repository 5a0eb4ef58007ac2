package shard

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches/quantile"
)

const (
	// rowCodes are the dense codes that a hop has counters for in its row: those of values below 2³², such as four
	// seconds.
	rowCodes = 28 * octaveCodes
	// rowCounters is the length of a row: latencies, then queues, and as much behind as makes it an odd number of cache
	// lines. So the lines that are hot in every row do not share a few sets of the cache.
	rowCounters = 2*rowCodes + 64

	octaveCodes = quantile.OctaveCodes
	rowOctaves  = rowCounters / octaveCodes
	// hopOctaves is the average number of octaves of a hop, over all hops, that have room for more than 255 of a code.
	// The number of codes beyond the rows with counters is farCodes.
	hopOctaves = 16
	farCodes   = 16
)

// The two parts of a row.
const (
	latencyRow = iota
	queueRow
)

// hopSet holds the hops of one window. Each has two histograms of dense log codes, like [quantile.Histogram], but laid
// out for batches. The counters of a hop are a row at a fixed place. So counting a batch is a list of indexes first and
// a tight loop over it then, whose cache misses overlap. Histogram after histogram they would be waited for one by one.
// A counter is a byte, whose overflows are counted elsewhere: the bytes of hundreds of hops fit a core's own cache.
type hopSet struct {
	hops  []hopRest // by reference
	low   []uint8   // rows by reference, of as many hops as the table had
	page  []uint32  // by octave of low: its page in high, 0 for none
	high  []uint32  // how often counters overflowed; the first page is not used
	pages int       // how many more may be taken

	far    map[farCode]uint64 // counters of codes beyond the rows
	left   int                // of these, how many more may be taken
	folded uint64             // records that count for "other" because none was left
}

// farCode is a code beyond the row of a hop.
type farCode struct {
	ref, code uint16
	kind      uint8
}

// hopRest is the knowledge about a hop beside its counters. How many records there were is the sum of the latency
// counters and of noLatency.
type hopRest struct {
	utilization    float64
	noLatency      uint32
	hasUtilization bool
	used           bool
}

func newHopSet(n int) hopSet {
	s := hopSet{hops: make([]hopRest, n), high: make([]uint32, octaveCodes), far: map[farCode]uint64{}}
	s.fit(1)
	s.reset(0)
	return s
}

// fit makes rows for the first n hops.
func (s *hopSet) fit(n int) {
	if n*rowCounters > len(s.low) {
		s.grow(n)
	}
}

//go:noinline
func (s *hopSet) grow(n int) {
	n = min(max(n+n/4, 16), len(s.hops))
	low, page := make([]uint8, n*rowCounters), make([]uint32, n*rowOctaves)
	copy(low, s.low)
	copy(page, s.page)
	s.low, s.page = low, page
}

// count adds one to each counter of the list.
func (s *hopSet) count(list []uint32) {
	low := s.low
	for _, i := range list {
		p := &low[i]
		if *p++; *p == 0 {
			s.overflow(i)
		}
	}
}

// overflow counts 256 of a counter. Once there are too many pages, they count for the hop "other": made-up values
// are spread like that, measured ones are not.
func (s *hopSet) overflow(i uint32) {
	page := &s.page[i/octaveCodes]
	if *page == 0 {
		if s.pages <= 0 && i >= rowCounters {
			if i %= rowCounters; i < rowCodes {
				s.folded += 256
			}
			s.hops[other].used = true
			s.overflow(i)
			return
		}
		s.pages--
		*page = uint32(len(s.high) / octaveCodes)
		s.high = append(s.high, make([]uint32, octaveCodes)...)
	}
	s.high[*page*octaveCodes+i%octaveCodes]++
}

// countFar counts a code beyond the row of a hop. Once there are too many of them, codes without a counter count for
// the hop "other".
func (s *hopSet) countFar(ref uint16, kind uint32, code uint16) {
	k := farCode{ref, code, uint8(kind)}
	if _, ok := s.far[k]; !ok {
		if s.left <= 0 && ref != other {
			if kind == latencyRow {
				s.folded++
			}
			s.hops[other].used = true
			s.countFar(other, kind, code)
			return
		}
		s.left--
	}
	s.far[k]++
}

// octave returns the counters of an octave of a row, and whether one of them counted. They wrap after 2⁴⁰ records of a
// window.
func (s *hopSet) octave(n *[octaveCodes]uint64, at uint32) bool {
	low := (*[octaveCodes]uint8)(s.low[at:])
	page := s.page[at/octaveCodes]
	if *low == [octaveCodes]uint8{} && page == 0 {
		return false
	}
	high := s.high[page*octaveCodes:][:octaveCodes]
	for i, v := range low {
		n[i] = uint64(v) + uint64(high[i])<<8
	}
	return true
}

// reset empties the first n hops and keeps all memory.
func (s *hopSet) reset(n int) {
	clear(s.hops[:n])
	n = min(n, len(s.low)/rowCounters)
	clear(s.low[:n*rowCounters])
	clear(s.page[:n*rowOctaves])
	s.high = s.high[:octaveCodes]
	clear(s.far)
	s.pages, s.left, s.folded = len(s.hops)*hopOctaves, len(s.hops)*farCodes, 0
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

func (c *hopCut) addTo(p *window.Partial) {
	p.OtherHops += c.other + c.set.folded
	var n [octaveCodes]uint64
	for ref, k := range c.keys {
		h := &c.set.hops[ref]
		if !h.used {
			continue
		}
		to := p.Hop(k)
		for octave := range rowCodes / octaveCodes {
			at := uint32(ref*rowCounters + octave*octaveCodes)
			if c.set.octave(&n, at) {
				to.Latency.AddOctave(octave, &n)
			}
			if c.set.octave(&n, at+rowCodes) {
				to.Queue.AddOctave(octave, &n)
			}
		}
		to.NoLatency += uint64(h.noLatency)
		if h.hasUtilization {
			to.Utilization, to.HasUtilization = max(to.Utilization, h.utilization), true
		}
	}
	for k, count := range c.set.far {
		n = [octaveCodes]uint64{}
		n[k.code%octaveCodes] = count
		to := &p.Hop(c.keys[k.ref]).Latency
		if k.kind == queueRow {
			to = &p.Hop(c.keys[k.ref]).Queue
		}
		to.AddOctave(int(k.code/octaveCodes), &n)
	}
}
