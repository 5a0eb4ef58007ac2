package window

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// FlowPart is a candidate for the busiest flows. It holds the reports of a window, the path at its end, and the
// distributions of the hops.
type FlowPart struct {
	Key     decode.FlowKey
	Packets uint64
	PathID  uint64
	Changes uint32
	Partial bool
	Last    int64
	Path    []inference.HopKey // in order
	Hops    []HopSketch        // of every place on the path and perhaps of others, each once, in any order
}

var flowKind = kindOf[decode.FlowKey, FlowPart]{
	one: "flow", many: "flows", least: flowBytes + 14,
	in:      func(p *Partial) *table[decode.FlowKey, FlowPart] { return &p.flows },
	limit:   func(l *Limits) int { return l.Flows },
	slice:   func(s *Slicer, f *FlowPart) int { return s.Flow(&f.Key) },
	key:     func(f *FlowPart) decode.FlowKey { return f.Key },
	compare: func(a, b *FlowPart) int { return a.Key.Compare(&b.Key) },
	rank:    compareBusiest,
	sum:     func(_ *memory, to, from *FlowPart) { to.Merge(from) },
	empty:   (*FlowPart).Reset,
	leave:   func(p *Partial, f *FlowPart) { p.FlowBound = max(p.FlowBound, f.Packets) },
	code: func(c *coder, m *memory, f *FlowPart) {
		c.flow("flow", &f.Key)
		codeFlow(c, &m.hops, f)
		c.count("flow hops", 0, 0, len(f.Hops))
		for _, i := range sorted(&c.order, f.Hops, func(a, b *HopSketch) int { return a.HopKey.Compare(b.HopKey) }) {
			c.place(&f.Hops[i].HopKey)
			c.sketch("flow hop", &f.Hops[i])
		}
	},
	readAll: readFlows,
	view:    listBusiest,
}

// codeFlow codes the fields between the key of a flow and its hops.
func codeFlow(c *coder, path *[]inference.HopKey, f *FlowPart) {
	c.flags("flow flags", &f.Partial)
	at := c.at
	c.uint("flow packets", &f.Packets)
	c.check("flow packets", at, f.Packets > 0)
	c.fixed64("flow path id", &f.PathID)
	c.id("flow changes", &f.Changes)
	c.time("flow time", &f.Last)
	c.path("flow path", path, &f.Path)
}

// readFlows adds n flows to t.
func readFlows(c *coder, t *table[decode.FlowKey, FlowPart], n int) {
	var key decode.FlowKey
	var path []inference.HopKey
	for i := range n {
		var one FlowPart
		at := c.at
		c.flow("flow", &one.Key)
		if !c.check("flow", at, i == 0 || key.Compare(&one.Key) < 0) {
			return
		}
		path, key = path[:0], one.Key
		codeFlow(c, &path, &one)
		hops := c.count("flow hops", math.MaxInt, 4, 0)
		if c.err != nil {
			return
		}
		f, known := t.at(key)
		f.Merge(&one)
		for i, last := 0, (inference.HopKey{}); i < hops; i++ {
			at, k, h := c.at, inference.HopKey{}, (*HopSketch)(nil)
			c.place(&k)
			if !c.check("flow hop", at, i == 0 || last.Compare(k) < 0) {
				return
			}
			if known {
				h = f.Hop(k)
			} else {
				h = f.add(k)
			}
			c.sketch("flow hop", h)
			last = k
		}
	}
}

// listBusiest lists the busiest flows, among them probes.
func listBusiest(p *Partial, w *inference.Window, keep *Limits) {
	order := sorted(&p.order, p.flows.items, compareBusiest)
	order, bound := inference.PreferProbes(order, max(keep.Flows, 0), func(i int32) *decode.FlowKey { return &p.flows.items[i].Key }, func(i int32) uint64 { return p.flows.items[i].Packets })
	w.FlowBound = max(w.FlowBound, bound)
	hops := 0
	for _, i := range order {
		hops += len(p.flows.items[i].Path)
	}
	memory := make([]inference.FlowHop, 0, hops)
	w.Flows = slices.Grow(w.Flows, len(order))
	for _, i := range order {
		f := &p.flows.items[i]
		from := len(memory)
		for _, k := range f.Path {
			hop := inference.FlowHop{HopKey: k}
			if h := f.find(k); h != nil {
				hop.Latency, hop.Queue = summary(&h.Latency), summary(&h.Queue)
			}
			memory = append(memory, hop)
		}
		w.Flows = append(w.Flows, inference.FlowStats{
			Key: f.Key, Packets: f.Packets, PathID: f.PathID, Changes: f.Changes, Last: f.Last, Partial: f.Partial,
			Hops: memory[from:len(memory):len(memory)],
		})
		p.spread(&w.Flows[len(w.Flows)-1])
		p.sight(&w.Flows[len(w.Flows)-1])
	}
}

// compareBusiest orders flows by reports, the busiest first, and by key where they have the same number.
func compareBusiest(a, b *FlowPart) int {
	return cmp.Or(cmp.Compare(b.Packets, a.Packets), a.Key.Compare(&b.Key))
}

// AddFlow adds a candidate for the busiest flows, as [FlowPart.Merge] does.
func (p *Partial) AddFlow(f *FlowPart) { flowKind.put(p, f) }

// MoveFlow is AddFlow of the content of f, without a copy if p does not list the flow yet. Then f is empty, and has
// other memory.
func (p *Partial) MoveFlow(f *FlowPart) {
	t := &p.flows
	if _, known := t.index[f.Key]; known || p.most != nil && !flowKind.room(p, t, f) {
		p.AddFlow(f)
		f.Reset()
		return
	}
	to := t.next()
	t.index[f.Key] = int32(len(t.items) - 1)
	*to, *f = *f, *to
}

// Flows returns the candidates for the busiest flows, in no order. The list belongs to p; all but keys may be changed
// in it.
func (p *Partial) Flows() []FlowPart { return p.flows.items }

// Hop returns the distributions of a place on the way of f, to be added to.
func (f *FlowPart) Hop(k inference.HopKey) *HopSketch {
	if h := f.find(k); h != nil {
		return h
	}
	return f.add(k)
}

// Touch reads the cache lines of the first n distributions, whether they are in use or will be. It serves callers that
// need many of them at once: their misses overlap.
func (f *FlowPart) Touch(n int) (sum uint64) {
	all := f.Hops[:min(n, cap(f.Hops))]
	for i := range all {
		sum += all[i].Latency.Touch() + all[i].Queue.Touch()
	}
	return sum
}

// find returns the distributions of a place, or nil if it has none.
func (f *FlowPart) find(k inference.HopKey) *HopSketch {
	for i := range f.Hops {
		if f.Hops[i].HopKey == k {
			return &f.Hops[i]
		}
	}
	return nil
}

// add returns empty distributions of a place that has none yet.
func (f *FlowPart) add(k inference.HopKey) *HopSketch {
	n := len(f.Hops)
	if n < cap(f.Hops) { // Reset left the parts there empty
		f.Hops = f.Hops[:n+1]
	} else {
		f.Hops = append(f.Hops, HopSketch{})
	}
	f.Hops[n].HopKey = k
	return &f.Hops[n]
}

// Merge adds another owner's part of the same flow, or makes an empty f a copy of o. Reports and distributions are
// added up. The rest is taken from the owner that saw the flow last. It keeps nothing of o. A part has at least one
// report unless it is empty.
func (f *FlowPart) Merge(o *FlowPart) {
	if f.Packets == 0 || f.compare(o) < 0 {
		f.Key, f.PathID, f.Changes, f.Partial, f.Last = o.Key, o.PathID, o.Changes, o.Partial, o.Last
		f.Path = append(f.Path[:0], o.Path...)
	}
	f.Packets += o.Packets
	for i := range o.Hops {
		h := &o.Hops[i]
		f.Hop(h.HopKey).merge(h)
	}
}

// keptHops is how many hops' distributions an empty part keeps the memory of.
const keptHops = 32

// Reset makes f empty and keeps the memory that a usual path takes.
func (f *FlowPart) Reset() {
	if cap(f.Hops) > keptHops {
		f.Hops = nil
	}
	for i := range f.Hops {
		f.Hops[i].reset()
	}
	*f = FlowPart{Path: f.Path[:0], Hops: f.Hops[:0]}
}

// SizeBytes is the memory that f holds beside itself.
func (f *FlowPart) SizeBytes() int {
	n := cap(f.Path) * int(unsafe.Sizeof(inference.HopKey{}))
	all := f.Hops[:cap(f.Hops)]
	for i := range all {
		n += int(unsafe.Sizeof(inference.HopKey{})) + 8 + all[i].Latency.SizeBytes() + all[i].Queue.SizeBytes()
	}
	return n
}

// compare orders two owners' parts of the same flow, by the time of its last report. The other fields only make the
// order a total one.
func (f *FlowPart) compare(o *FlowPart) int {
	return cmp.Or(cmp.Compare(f.Last, o.Last), cmp.Compare(f.Changes, o.Changes), cmp.Compare(f.PathID, o.PathID),
		compareBools(o.Partial, f.Partial), slices.CompareFunc(f.Path, o.Path, inference.HopKey.Compare))
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
