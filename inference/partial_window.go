package inference

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// Limits bounds lists: those of a window that is made, and those of a partial that is read.
type Limits struct {
	Hops       int // of a partial that is read, and so many directions of links; those of a window are those of its parts
	Exporters  int // of a partial that is read
	Flows      int // the busiest flows of a window, or the candidates for them
	Paths      int // path changes, and of a partial that is read so many ways that rules are broken
	Drops      int // pairs of node and drop reason
	Faults     int // pairs of fault and flow
	Numbers    int // lists of an exporter's numbers, of a partial that is read
	Arrivals   int // of flows, of a partial that is read
	Deviations int // flows whose digests contradict the map
	Losses     int // flows whose losses are known
}

// Window makes the window of all that p saw, with the lists that keep allows: the busiest flows, the first path changes and
// faults, and the drops with the least numbers of node and reason; the rest is counted. It shares no memory with p.
func (p *Partial) Window(keep Limits) Window {
	w := Window{
		Start: p.Start, End: p.End, Reports: p.Reports, FlowCount: int(min(p.FlowCount, math.MaxInt)), FlowBound: p.FlowBound,
		OtherHops: p.OtherHops, OtherPaths: p.OtherPaths, OtherDrops: p.OtherDrops, OtherFlows: p.OtherFlows,
		Exporters: slices.Clone(p.exporters.items),
	}
	slices.SortFunc(w.Exporters, func(a, b ExporterStats) int { return a.ExporterKey.Compare(b.ExporterKey) })
	w.Hops = make([]HopStats, 0, len(p.hops.items))
	for _, i := range sorted(&p.order, p.hops.items, (*HopPart).order) {
		w.Hops = append(w.Hops, p.hops.items[i].stats())
	}
	p.busiest(&w, keep.Flows)
	p.changes(&w, keep.Paths)
	p.lost(&w, keep.Losses)
	w.Links = make([]LinkStats, 0, len(p.links.items))
	for _, i := range sorted(&p.order, p.links.items, (*LinkStats).order) {
		w.Links = append(w.Links, p.links.items[i])
	}
	p.wandering(&w)

	order := sorted(&p.order, p.drops.items, compareDrops)
	for n, i := range order {
		if d := &p.drops.items[i]; n < keep.Drops {
			w.Drops = append(w.Drops, *d)
		} else {
			w.OtherDrops += d.Count
		}
	}
	order = sorted(&p.order, p.faults.items, firstFaults)
	for n, i := range order {
		if d := &p.faults.items[i]; n < keep.Faults {
			w.Digests = append(w.Digests, *d)
		} else {
			w.OtherFlows += d.Count
		}
	}
	slices.SortFunc(w.Digests, func(a, b DigestFault) int { return compareFaults(&a, &b) })
	w.Deviations, w.OtherDeviations = p.listDeviations(max(keep.Deviations, 0))
	return w
}

// busiest lists the n busiest flows, among them probes.
func (p *Partial) busiest(w *Window, n int) {
	order := sorted(&p.order, p.flows.items, compareBusiest)
	order, bound := PreferProbes(order, max(n, 0), func(i int32) *decode.FlowKey { return &p.flows.items[i].Key }, func(i int32) uint64 { return p.flows.items[i].Packets })
	w.FlowBound = max(w.FlowBound, bound)
	hops := 0
	for _, i := range order {
		hops += len(p.flows.items[i].Path)
	}
	memory := make([]FlowHop, 0, hops)
	w.Flows = slices.Grow(w.Flows, len(order))
	for _, i := range order {
		f := &p.flows.items[i]
		from := len(memory)
		for _, k := range f.Path {
			hop := FlowHop{HopKey: k}
			if h := f.find(k); h != nil {
				hop.Latency, hop.Queue = summary(&h.Latency), summary(&h.Queue)
			}
			memory = append(memory, hop)
		}
		w.Flows = append(w.Flows, FlowStats{
			Key: f.Key, Packets: f.Packets, PathID: f.PathID, Changes: f.Changes, Last: f.Last, Partial: f.Partial,
			Hops: memory[from:len(memory):len(memory)],
		})
		p.spread(&w.Flows[len(w.Flows)-1])
	}
}

// changes lists the first n path changes.
func (p *Partial) changes(w *Window, n int) {
	order := sorted(&p.order, p.paths, comparePaths)
	if n = max(n, 0); len(order) > n {
		w.OtherPaths += uint64(len(order) - n)
		order = order[:n]
	}
	hops := 0
	for _, i := range order {
		hops += len(p.paths[i].From) + len(p.paths[i].To)
	}
	memory := make([]HopKey, 0, hops)
	w.Paths = slices.Grow(w.Paths, len(order))
	for _, i := range order {
		c := p.paths[i]
		c.From, c.To = share(&memory, c.From), share(&memory, c.To)
		w.Paths = append(w.Paths, c)
	}
}

func (h *HopPart) order(o *HopPart) int { return h.HopKey.Compare(o.HopKey) }

func (h *HopPart) stats() HopStats {
	return HopStats{
		HopKey: h.HopKey, Count: h.Latency.Count() + h.NoLatency, Latency: summary(&h.Latency), Queue: summary(&h.Queue),
		Utilization: h.Utilization, HasUtilization: h.HasUtilization,
	}
}

// summary reads the quantiles of a histogram.
func summary(h *logcode.Histogram) Summary {
	var q [3]uint64
	h.Quantiles(q[:0], 0.5, 0.9, 0.99)
	return Summary{Count: h.Count(), P50: q[0], P90: q[1], P99: q[2], Max: h.Max()}
}

// Totals adds up the hops of many windows, for the summary of a run.
type Totals struct {
	max  int
	hops keyed[HopKey, HopPart]
}

// NewTotals returns empty totals for at most maxHops hops; further ones are folded into the hop "other".
func NewTotals(maxHops int) *Totals { return &Totals{max: maxHops} }

// Add adds the hops of a window. It keeps nothing of p.
func (t *Totals) Add(p *Partial) {
	for i := range p.hops.items {
		h, k := &p.hops.items[i], p.hops.items[i].HopKey
		if _, known := t.hops.index[k]; !known && len(t.hops.items) >= t.max {
			k = HopKey{Other: true}
		}
		to, _ := t.hops.at(k)
		to.HopKey = k
		to.merge(h)
	}
}

// Hops gives the sums, ordered by node and egress interface.
func (t *Totals) Hops() []HopStats {
	out := make([]HopStats, 0, len(t.hops.items))
	for i := range t.hops.items {
		out = append(out, t.hops.items[i].stats())
	}
	slices.SortFunc(out, func(a, b HopStats) int { return a.HopKey.Compare(b.HopKey) })
	return out
}
