package shard

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// full reports whether n reports more fill the buffer.
func (f *flow) full(n uint8) bool { return f.buffered+n >= bufferReports[f.hops] }

// bufferReports is how many reports are buffered, by the length of the path: as many as there is room for.
var bufferReports = func() (n [maxPathLength + 1]uint8) {
	n[0] = 255
	for hops := 1; hops < len(n); hops++ {
		n[hops] = uint8(min(bufferCodes/hops, 240))
	}
	return n
}()

// countStack counts a report whose path is that of the flow.
func (s *State) countStack(f *flow, r *decode.Report) {
	u := units(r)
	kept := int(f.hops)
	if f.top != 0 {
		s.bufferQueues(f, r.Hops[:kept], u)
	}
	at := int(f.buffered) * kept
	codes := f.codes[at : at+kept]
	i := s.hops.plain(f, r.Hops, u, codes)
	gap, link := false, uint32(0)
	if i >= inline && kept > inline {
		link = f.block[inline-1]
	}
	for ; i < len(r.Hops); i++ {
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
			link = s.slab.at(link).next
			ref = s.slab.at(link).ref
		}
		latency, _ := s.hops.record(ref, u, h)
		if i < kept {
			codes[i] = latency
			gap = gap || latency == absent
		}
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

// skipped counts a hop record, the i-th of its path, that has no sketch in its flow.
func (s *State) skipped(i int) {
	if i < s.cfg.MaxPathLength {
		s.stats.Unsketched++
	} else {
		s.stats.LongPaths++
	}
}

// bufferQueues keeps the queues of a report of one of the busiest flows until the buffer is flushed.
func (s *State) bufferQueues(f *flow, hops []decode.Hop, u *decode.Units) {
	for i, codes := 0, s.top.places[f.top-1].next(len(hops)); i < len(codes); i++ {
		codes[i] = absent
		if bytes, ok := u.Queue(&hops[i]); ok {
			codes[i] = quantile.EncodeDense(bytes)
		}
	}
}

// next is the place in the buffer for the queues of one more report.
func (p *topFlow) next(hops int) []uint16 {
	at := int(p.queued) * hops
	p.queued++
	return p.queues[at : at+hops]
}

// add counts codes in the sketches of the i-th hop of a chain without going through the flow's buffer.
func (s *State) add(f *flow, chain []uint32, i int, latency, queue uint16) {
	var t *window.HopSketch
	if f.top != 0 {
		t = s.top.hop(f, s.slab.at(chain[i]).key())
	}
	if latency != absent {
		code := [1]uint16{latency}
		s.feed(f, chain, i, code[:], latency, latency)
		if t != nil {
			s.top.count(&t.Latency, quantile.Dense(latency))
		}
	}
	if queue != absent && t != nil {
		s.top.count(&t.Queue, quantile.Dense(queue))
	}
}

// flush moves the codes in the buffer to the sketches of the hops, and to the histograms of a candidate.
func (s *State) flush(f *flow) {
	if f.buffered == 0 {
		return
	}
	old := int(f.buffered) // how many of the reports are of earlier windows
	if f.window == s.window {
		old -= int(f.fresh)
	}
	var space [maxBlocks]uint32
	var memory [bufferCodes]uint16
	chain := s.slab.chain(&space, f)
	for i := range int(f.hops) {
		codes, lo, hi := f.column(&memory, i)
		if f.top != 0 && old < len(codes) { // a hop that was left before the window began is not in it
			s.top.flush(f, i, s.slab.at(chain[i]).key(), codes[old:])
		}
		if f.flags&gaps != 0 {
			if codes = f.present(codes); len(codes) == 0 {
				continue
			}
			lo, hi = slices.Min(codes), slices.Max(codes)
		}
		s.feed(f, chain, i, codes, lo, hi)
	}
	if f.top != 0 {
		s.top.places[f.top-1].queued = 0
	}
	f.buffered, f.fresh = 0, 0
	f.flags &^= gaps
}

// feed adds codes between lo and hi to the sketch of the i-th hop of a chain. The hop gets a whole block as soon as the sketch needs it,
// and half a one again where cells take less room than the list of codes before. If no flow can make place for the
// sketch, the codes are lost to it.
func (s *State) feed(f *flow, chain []uint32, i int, codes []uint16, lo, hi uint16) {
	b := chain[i]
	if b&whole != 0 {
		t := &s.slab.blocks[b&^whole/2].latency
		listed := t.Listed()
		t.AddRange(codes, lo, hi, &s.rng)
		if listed && !t.Listed() {
			var brief quantile.BriefTail
			if brief.Hold(t) {
				s.slab.replace(f, chain, i, s.slab.shrink(b, &brief))
			}
		}
		return
	}
	brief := &s.slab.brief(b).latency
	if brief.AddRange(codes, lo, hi) {
		return
	}
	t := brief.Tail()
	t.AddRange(codes, lo, hi, &s.rng)
	if brief.Hold(&t) {
		return
	}
	to := s.slab.grow(b)
	for range growTries {
		if to != 0 || !s.evictFlow(f) {
			break
		}
		to = s.slab.grow(b)
	}
	if to == 0 {
		s.stats.Unsketched += uint64(len(codes))
		return
	}
	s.slab.blocks[to&^whole/2].latency = t
	s.slab.replace(f, chain, i, to)
}

// growTries is how many flows make place for one block at most. What a flow leaves may be halves of blocks in use.
const growTries = 32

// flush counts the codes of the i-th hop of a candidate: those of latencies, and those of the queues that wait.
func (t *topFlows) flush(f *flow, i int, k inference.HopKey, latencies []uint16) {
	h := t.hop(f, k)
	for _, c := range latencies {
		if c != absent {
			t.count(&h.Latency, quantile.Dense(c))
		}
	}
	p := &t.places[f.top-1]
	for range p.queued {
		if c := p.queues[i]; c != absent {
			t.count(&h.Queue, c)
		}
		i += int(f.hops)
	}
}
