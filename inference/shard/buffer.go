package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// full reports whether n reports more fill the buffer.
func (f *flow) full(n uint8) bool { return f.buffered+n >= bufferReports[f.hops] }

// bufferReports is how many reports are buffered, by the length of the path: as many as there is room for, but whole
// batches of 16, which the sketches like best.
var bufferReports = func() (n [maxPathLength + 1]uint8) {
	n[0] = 255
	for hops := 1; hops < len(n); hops++ {
		n[hops] = uint8(min(bufferCodes/hops, 240))
		if n[hops] > 16 {
			n[hops] &^= 15
		}
	}
	return n
}()

// countStack counts a report whose path is that of the flow.
func (s *State) countStack(f *flow, r *decode.Report) {
	u := units(r)
	kept := int(f.hops)
	if f.top != 0 {
		s.countTopQueues(f, r.Hops[:min(kept, len(r.Hops))], u)
	}
	var codes []uint16
	if f.taken() {
		at := int(f.buffered) * kept
		codes = f.codes[at : at+kept]
	} else {
		codes = s.passed[:kept]
	}
	gap, link := false, uint32(0)
	for i := range r.Hops {
		h := &r.Hops[i]
		var ref uint16
		switch {
		case i >= kept:
			ref = s.hops.find(hopKey(h))
			s.skipped(i)
		case i < inline:
			ref = f.refs[i]
			link = f.block[i]
		default: // long paths go from block to block
			link = s.slab.blocks[link].next
			ref = s.slab.blocks[link].ref
		}
		latency, _ := s.hops.record(ref, u, h)
		if i < kept {
			codes[i] = latency
			gap = gap || latency == absent
		}
	}
	if f.shift != 0 {
		if !gap {
			s.countSampled(f, codes)
			return
		}
		s.flush(f)
		f.takeAll()
		copy(f.codes[:], codes)
	}
	if gap {
		f.flags |= gaps
	}
	f.buffered++
	f.fresh++
	if f.full(0) {
		s.flush(f)
	}
}

// countSampled counts a report of a flow that takes one of 2^shift. Codes that are above the limits of their sketches, which
// few are, are counted of every report: they are what the upper quantiles consist of.
func (s *State) countSampled(f *flow, codes []uint16) {
	if f.taken() {
		f.buffered++
	}
	for i, c := range codes {
		if c > f.limit[i%inline] {
			s.slab.blocks[f.block[i%inline]].latency.Above(c, &s.rng)
		}
	}
	if f.seen++; f.seen&f.mask() != 0 {
		return
	}
	f.pick = uint16(s.rng.Next()) & uint16(f.mask())
	if f.full(0) {
		s.flush(f)
	}
}

// skipped counts a hop record, the i-th of its path, that has no sketch in its flow.
func (s *State) skipped(i int) {
	if i < s.cfg.MaxPathLength {
		s.stats.Unsketched++
	} else {
		s.stats.LongPaths++
	}
}

// countTopQueues counts the queues of one of the busiest flows. Their latencies are counted when the buffer is flushed.
func (s *State) countTopQueues(f *flow, hops []decode.Hop, u *decode.Units) {
	for i := range hops {
		if bytes, ok := u.Queue(&hops[i]); ok {
			s.top.count(&s.top.hop(f, hopKey(&hops[i])).Queue, logcode.EncodeDense(bytes))
		}
	}
}

// add counts codes in the sketches of a hop without going through the flow's buffer.
func (s *State) add(f *flow, b *block, latency, queue uint16) {
	var t *inference.HopSketch
	if f.top != 0 {
		t = s.top.hop(f, b.key())
	}
	if latency != absent {
		b.latency.Update(latency, &s.rng)
		if t != nil {
			s.top.count(&t.Latency, logcode.Dense(latency))
		}
	}
	if queue != absent && t != nil {
		s.top.count(&t.Queue, logcode.Dense(queue))
	}
}

// flush moves the codes in the buffer to the sketches of the hops. From then on, the flow takes of its reports what the
// sketches would take of their codes: deciding for all hops at once spares most reports of a busy flow the way into the
// buffer. Flows with gaps are not sampled, for then the hops would not have the same number of values; nor are
// candidates for the busiest ones, whose histograms want every value.
func (s *State) flush(f *flow) {
	if f.buffered == 0 && f.seen == 0 {
		return
	}
	old := int(f.buffered) // how many of the reports are of earlier windows
	if f.window == s.window {
		old -= int(f.fresh)
	}
	var space [maxBlocks]uint32
	var memory [bufferCodes]uint16
	shift, limit := uint8(maxShift), [inline]uint16{}
	for i, b := range s.slab.chain(&space, f)[:f.hops] {
		p := &s.slab.blocks[b]
		codes := f.column(&memory, i)
		if f.top != 0 && old < len(codes) { // a hop that was left before the window began is not in it
			s.top.addDense(&s.top.hop(f, p.key()).Latency, codes[old:])
		}
		f.feed(&p.latency, codes, i, &s.rng)
		shift, limit[i%inline] = min(shift, p.latency.Base()), p.latency.Limit()
	}
	if f.top != 0 || f.hops == 0 || f.hops > inline || f.flags&gaps != 0 {
		shift = 0
	}
	f.buffered, f.fresh = 0, 0
	f.flags &^= gaps
	f.takeAll()
	if shift != 0 {
		f.shift, f.pick = shift, uint16(s.rng.Next())&(1<<shift-1)
		f.limit = limit
	}
}

func (t *topFlows) addDense(h *logcode.Histogram, codes []uint16) {
	for _, c := range codes {
		if c != absent {
			t.count(h, logcode.Dense(c))
		}
	}
}
