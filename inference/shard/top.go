package shard

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// topFlows finds the busiest flows of a window exactly, and collects the distributions of their hops.
//
// Every flow counts its reports of the window in its own line, which is in the cache anyway. A flow whose count passes
// the threshold becomes a candidate. If there is no place for another one, the candidates below the median leave and
// the threshold rises to their count. So a flow that is no candidate at the end has at most the threshold, and the
// places/2 busiest are there. Other flows need no work, unlike in a Space-Saving list, whose every update is a second
// look-up. Nor is there a pass over the table at the end of the window.
//
// A candidate has histograms of its own. They miss the values that were flushed to the flow's sketches before it became
// one. The reported flows of a window stay candidates in the next, so that flows which are busy for longer miss
// nothing.
//
// Probes of agents are candidates whatever their count, up to half as many as flows are reported
// (inference.ProbesAmong). They have few reports, and the control of probes needs them.
type topFlows struct {
	places      []topFlow
	used        int
	free        []uint16
	threshold   uint32
	octaves     int    // of the window's histograms, that may still take memory
	missed      uint64 // values that were not counted because none was left
	scratch     []uint32
	probePlaces int // places that probes hold
	most        int // of these
}

// topFlow is the place of one candidate.
type topFlow struct {
	f     *flow // nil if the place is free
	slot  uint32
	probe bool            // the flow is a probe, and has its place whatever its count
	part  window.FlowPart // its hops, until the end of the window

	// queues holds the dense codes of the queues of the last reports. They wait like those of the latencies in the
	// flow: counting many values of a histogram together costs one cache miss.
	queues [bufferCodes]uint16
	queued uint8 // reports in queues

	sights *window.FlowSights // from samples and flow records; nil for a place whose flows had none
}

func newTopFlows(n int) topFlows {
	if n == 0 {
		return topFlows{threshold: ^uint32(0)}
	}
	places := min(max(4*n, 16), 1<<16-1)
	return topFlows{
		places: make([]topFlow, places), free: make([]uint16, 0, places), scratch: make([]uint32, 0, places),
		octaves: topOctaves(places), most: inference.ProbesAmong(n),
	}
}

// topOctaves returns how many octaves of values the candidates have memory for together. On average these are five for
// latency and queue of each hop of a path of ten, and the hops themselves. Few candidates have as much as 256.
func topOctaves(places int) int { return max(places, 256) * 128 }

// count counts a dense code in a histogram of a candidate, as long as there is memory. Only values that no device
// measured spread so far that there is none.
func (t *topFlows) count(h *quantile.Histogram, code uint16) {
	if !h.AddWithin(code, &t.octaves) {
		t.missed++
	}
}

// admit makes f a candidate, if it is busy enough or a probe that finds a place.
func (s *State) admit(f *flow, slot uint32) {
	t := &s.top
	held := f.flags&probe != 0 && t.probePlaces < t.most
	if !held && f.inWindow <= t.threshold {
		return
	}
	if len(t.free) == 0 && t.used == len(t.places) {
		t.halve(s.window)
		if !held && f.inWindow <= t.threshold {
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
	p := &t.places[i]
	p.part.Reset() // here, since many are released at the end of a window
	if p.sights != nil {
		p.sights.Count = 0
	}
	p.f, p.slot, p.probe = f, slot, held
	if held {
		t.probePlaces++
	}
	f.top = uint16(i + 1)
}

// halve lets the less busy half of the candidates go.
func (t *topFlows) halve(window uint32) {
	counts, gone := t.scratch[:0], false
	for i := range t.places {
		switch n := t.places[i].count(window); {
		case n == 0: // those of the last window that did not come again make place
			t.release(t.places[i].f)
			gone = true
		case !t.places[i].probe:
			counts = append(counts, n)
		}
	}
	if gone {
		return
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
		case p.probe:
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
	if p.probe {
		t.probePlaces--
	}
	p.f, p.probe, p.queued = nil, false, 0
	f.top = 0
	t.free = append(t.free, i)
}

// hop returns the histograms of a hop of f, which must be a candidate. A flow that came by more places in one window
// than a path and its former ones can have begins anew.
func (t *topFlows) hop(f *flow, k inference.HopKey) *window.HopSketch {
	p := &t.places[f.top-1].part
	n := len(p.Hops)
	h := p.Hop(k)
	if len(p.Hops) > maxBlocks {
		p.Reset()
		h = p.Hop(k)
	}
	if len(p.Hops) != n { // the hop itself takes as much as some octaves
		t.octaves = max(t.octaves-hopOctaveSize, 0)
	}
	return h
}

// see counts a sample or a flow record of a candidate.
func (t *topFlows) see(f *flow, r *decode.Report) {
	if r.Kind == decode.KindDrop || r.Rare == nil || !r.Rare.Traffic.Known() {
		return
	}
	p, x := &t.places[f.top-1], inference.SightOf(r)
	if p.sights == nil {
		p.sights = new(window.FlowSights)
	}
	p.sights.Add(&x)
}

// octaveBytes is the size of the counters of an octave.
const octaveBytes = 4 * quantile.OctaveCodes

// hopOctaveSize is how many octaves' counters take as much memory as the rest of a hop's distributions.
const hopOctaveSize = 3

// cutTop adds the busiest flows of the window and their spreads to p, and lets all other candidates go.
func (s *State) cutTop(p *window.Partial) {
	t := &s.top
	order := t.scratch[:0]
	for i := range t.places[:t.used] {
		if p := &t.places[i]; p.f != nil && p.count(s.window) > 0 {
			order = append(order, uint32(i))
		}
	}
	slices.SortFunc(order, func(a, b uint32) int {
		p, q := &t.places[a], &t.places[b]
		return cmp.Or(cmp.Compare(q.f.inWindow, p.f.inWindow), s.flows.At(p.slot).Key.Compare(&s.flows.At(q.slot).Key))
	})
	order, bound := inference.PreferProbes(order, s.cfg.TopFlows, func(i uint32) *decode.FlowKey { return &s.flows.At(t.places[i].slot).Key },
		func(i uint32) uint64 { return uint64(t.places[i].f.inWindow) })
	p.FlowBound = max(uint64(t.threshold), bound)
	for _, i := range order {
		top := &t.places[i]
		s.flush(top.f)
		s.describe(top, p)
		if x := top.sights; x != nil && x.Count > 0 {
			x.Flow = top.part.Key
			p.AddSights(x)
			x.Count = 0
		}
		p.MoveFlow(&top.part)
		top.f.inWindow = 0 // marks it as reported
	}
	for i := range t.places[:t.used] {
		if p := &t.places[i]; p.f != nil && (p.f.window != s.window || p.f.inWindow != 0) {
			t.release(p.f)
		}
	}
	t.trim()
	t.threshold, t.octaves = 0, topOctaves(len(t.places))
	if len(t.places) == 0 {
		t.threshold = ^uint32(0)
	}
}

// trim releases the histograms of free places, once they hold more than a window may take. Otherwise different
// candidates could take it in turn, and would keep it.
func (t *topFlows) trim() {
	held := 0
	for i := range t.places[:t.used] {
		held += t.places[i].part.SizeBytes()
	}
	if held <= topOctaves(len(t.places))*octaveBytes {
		return
	}
	for i := range t.places[:t.used] {
		if t.places[i].f == nil {
			t.places[i].part = window.FlowPart{}
		}
	}
}

// describe writes down what is known of a candidate beside its histograms.
func (s *State) describe(p *topFlow, seen *window.Partial) {
	f, to := p.f, &p.part
	to.Key, to.Packets, to.PathID, to.Changes, to.Last, to.Partial = s.flows.At(p.slot).Key, uint64(f.inWindow), f.pathID, f.changes, f.last, f.flags&partial != 0
	to.Path = s.hopKeys(to.Path[:0], f)
	s.digests.Spread(p.slot, to, seen, s.cfg.MaxPathLength)
	for _, k := range to.Path {
		to.Hop(k)
	}
}
