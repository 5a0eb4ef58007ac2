package shard

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// topFlows finds the busiest flows of a window exactly, and collects the distributions of their hops.
//
// Every flow counts its reports of the window in its own line, which is in the cache anyway. A flow whose count passes
// the threshold becomes a candidate; when there is no place for another one, the candidates below the median leave and
// the threshold rises to what they had. So whoever is not a candidate at the end has at most the threshold, and the
// places/2 busiest are there. This needs no work for the other flows, unlike a Space-Saving list, whose every update
// is a second look-up, and no pass over the table at the end of the window.
//
// A candidate has histograms of its own. They miss what was flushed to the flow's sketches before it became one; the
// reported flows of a window stay candidates in the next, so that those that are busy for longer miss nothing.
type topFlows struct {
	places    []topFlow
	used      int
	free      []uint16
	threshold uint32
	scratch   []uint32
}

// topFlow is the place of one candidate.
type topFlow struct {
	f    *flow // nil if the place is free
	slot uint32
	hops []topHop // in use up to n
	n    int
}

type topHop struct {
	key            inference.HopKey
	latency, queue logcode.Histogram
}

func newTopFlows(n int) topFlows {
	if n == 0 {
		return topFlows{threshold: ^uint32(0)}
	}
	places := min(max(4*n, 16), 1<<16-1)
	return topFlows{places: make([]topFlow, places), free: make([]uint16, 0, places), scratch: make([]uint32, 0, places)}
}

// admit makes f a candidate.
func (s *State) admit(f *flow, slot uint32) {
	t := &s.top
	if len(t.free) == 0 && t.used == len(t.places) {
		t.halve(s.window)
		if f.inWindow <= t.threshold {
			return
		}
	}
	i := t.used
	if n := len(t.free); n > 0 {
		i = int(t.free[n-1])
		t.free = t.free[:n-1]
	} else {
		t.used++
	}
	if f.shift != 0 {
		s.flush(f)
		f.takeAll()
	}
	p := &t.places[i]
	p.f, p.slot, p.n = f, slot, 0
	f.top = uint16(i + 1)
}

// halve lets the less busy half of the candidates go.
func (t *topFlows) halve(window uint32) {
	counts := t.scratch[:0]
	for i := range t.places {
		counts = append(counts, t.places[i].count(window))
	}
	slices.Sort(counts)
	half := len(counts) / 2
	t.threshold = counts[half]
	ties := half // of those with as many reports as the threshold, how many leave
	for _, n := range counts[:half] {
		if n < t.threshold {
			ties--
		}
	}
	for i := range t.places {
		p := &t.places[i]
		switch n := p.count(window); {
		case n < t.threshold:
			t.release(p.f)
		case n == t.threshold && ties > 0:
			ties--
			t.release(p.f)
		}
	}
}

func (p *topFlow) count(window uint32) uint32 {
	if p.f == nil || p.f.window != window {
		return 0
	}
	return p.f.inWindow
}

// release takes the place of f away.
func (t *topFlows) release(f *flow) {
	i := f.top - 1
	p := &t.places[i]
	p.clear()
	p.f = nil
	f.top = 0
	t.free = append(t.free, i)
}

func (p *topFlow) clear() {
	for i := range p.hops[:p.n] {
		p.hops[i].latency.Reset()
		p.hops[i].queue.Reset()
	}
	p.n = 0
}

// hop gives the histograms of a hop of f, which must be a candidate.
func (t *topFlows) hop(f *flow, k inference.HopKey) *topHop {
	p := &t.places[f.top-1]
	for i := range p.hops[:p.n] {
		if p.hops[i].key == k {
			return &p.hops[i]
		}
	}
	if p.n == len(p.hops) {
		p.hops = append(p.hops, topHop{})
	}
	h := &p.hops[p.n]
	h.key = k
	p.n++
	return h
}

// cutTop writes the busiest flows of the window into c, and lets all other candidates go.
func (s *State) cutTop(c *Cut) {
	t := &s.top
	order := t.scratch[:0]
	for i := range t.places[:t.used] {
		if p := &t.places[i]; p.f != nil && p.count(s.window) > 0 {
			order = append(order, uint32(i))
		}
	}
	slices.SortFunc(order, func(a, b uint32) int {
		p, q := &t.places[a], &t.places[b]
		return cmp.Or(cmp.Compare(q.f.inWindow, p.f.inWindow), compareFlows(&s.flows.At(p.slot).Key, &s.flows.At(q.slot).Key))
	})
	order = order[:min(len(order), s.cfg.TopFlows)]
	for _, i := range order {
		p := &t.places[i]
		s.flush(p.f)
		from := len(c.flowHops)
		c.flowHops = s.appendTopHops(c.flowHops, p)
		c.flows = append(c.flows, inference.FlowStats{
			Key: s.flows.At(p.slot).Key, Packets: uint64(p.f.inWindow), PathID: p.f.pathID, Changes: p.f.changes, Last: p.f.last, Partial: p.f.flags&partial != 0,
			Hops: c.flowHops[from:len(c.flowHops):len(c.flowHops)],
		})
		p.f.inWindow = 0 // marks it as reported
	}
	for i := range t.places[:t.used] {
		if p := &t.places[i]; p.f != nil {
			if p.f.window == s.window && p.f.inWindow == 0 {
				p.clear()
			} else {
				t.release(p.f)
			}
		}
	}
	t.threshold = 0
	if len(t.places) == 0 {
		t.threshold = ^uint32(0)
	}
}

// appendTopHops appends what the window saw of the hops on the present path of a candidate.
func (s *State) appendTopHops(dst []inference.FlowHop, p *topFlow) []inference.FlowHop {
	var space [maxBlocks]uint32
	for _, b := range s.slab.chain(&space, p.f)[:p.f.hops] {
		h := s.top.hop(p.f, s.slab.blocks[b].key())
		dst = append(dst, inference.FlowHop{HopKey: h.key, Latency: summary(&h.latency), Queue: summary(&h.queue)})
	}
	return dst
}

func compareFlows(a, b *decode.FlowKey) int {
	if c := bytes.Compare(a.Src[:], b.Src[:]); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Dst[:], b.Dst[:]); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.SrcPort, b.SrcPort), cmp.Compare(a.DstPort, b.DstPort),
		cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.IPVersion, b.IPVersion))
}
