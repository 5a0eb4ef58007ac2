package shard

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/sketches/flowtable"
	"github.com/hopscope/hopscope/sketches/logcode"
	"github.com/hopscope/hopscope/sketches/tail"
)

// Flows returns the n flows with most packets over their whole life in the table, busiest first. It changes nothing, but reads the
// whole table: it is for summaries and queries of operators.
func (s *State) Flows(n int) []inference.FlowStats {
	type candidate struct {
		packets uint64
		slot    uint32
		e       *entry
	}
	if n <= 0 {
		return nil
	}
	var best []candidate
	trim := func() {
		slices.SortFunc(best, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.packets, a.packets), a.e.Key.Compare(&b.e.Key))
		})
		best = best[:min(n, len(best))]
	}
	for slot, e := range s.flows.All() {
		if best = append(best, candidate{e.Value.packets, slot, e}); len(best) >= 2*n+64 {
			trim()
		}
	}
	trim()
	out := make([]inference.FlowStats, 0, len(best))
	for _, c := range best {
		out = append(out, s.flowStats(c.slot, c.e))
	}
	return out
}

// Flow returns one flow, if it is in the table.
func (s *State) Flow(key decode.FlowKey) (inference.FlowStats, bool) {
	slot := s.flows.Get(tableHash(s.key.Flow(&key)), &key)
	if slot == flowtable.None {
		return inference.FlowStats{}, false
	}
	return s.flowStats(slot, s.flows.At(slot)), true
}

func (s *State) flowStats(slot uint32, e *entry) inference.FlowStats {
	f := &e.Value
	out := inference.FlowStats{Key: e.Key, Packets: f.packets, PathID: f.pathID, Changes: f.changes, Last: f.last, Partial: f.flags&partial != 0}
	var space [maxBlocks]uint32
	var memory [bufferCodes]uint16
	for i, b := range s.slab.chain(&space, f)[:f.hops] {
		p := &s.slab.blocks[b]
		latency, rng := p.latency, s.rng // copies: a look must not change what comes later
		f.feed(&latency, f.column(&memory, i), &rng)
		out.Hops = append(out.Hops, inference.FlowHop{HopKey: p.key(), Latency: summary(&latency)})
	}
	s.digestStats(slot, &out)
	return out
}

// summary reads the quantiles of a sketch.
func summary(t *tail.Sketch) inference.Summary {
	if t.Count() == 0 {
		return inference.Summary{}
	}
	var q [3]uint64
	t.Quantiles(q[:0], 0.5, 0.9, 0.99)
	return inference.Summary{
		Count: t.Count(), P50: q[0], P90: q[1], P99: q[2], Max: logcode.Decode(t.Max()),
	}
}

// digestStats adds to the statistics of a flow those of its digests.
func (s *State) digestStats(slot uint32, out *inference.FlowStats) {
	if s.digests == nil || slot == flowtable.None {
		return
	}
	if s.digests.slots[slot] == 0 {
		return
	}
	x := s.digests.shown(slot)
	if x.load != nil {
		if w, ok := x.load.Window(&x.use, out.Last); ok {
			out.Load = inference.Load{Digests: w.Count, Last: w.Last, Mean: w.Mean, Max: w.Max}
		}
	}
	if q := &x.paths; q.pool != nil {
		if h, ok := q.pool.Hop(&q.flow, 1, out.Last); ok {
			out.Path = inference.PathValue{Of: x.whole, Summary: quantilesOf(&h)}
		}
	}
	if x.tracer == nil {
		return
	}
	if x.spray != 0 && s.digests.sprays.flows[x.spray].describe(out, s.digests.base) {
		return
	}
	out.Unsettled = x.spray != 0
	st, _ := x.tracer.Path(&x.trace, 0, nil)
	shown := 0
	for i := 1; st.Complete; i++ {
		other, ok := x.tracer.Path(&x.trace, i, nil)
		if !ok {
			break
		}
		if !s.digests.leads(st.Nodes, out.Hops) && s.digests.leads(other.Nodes, out.Hops) { // the one that is shown
			st, other, shown = other, st, i
		}
		out.Others = append(out.Others, inference.FlowPath{Nodes: based(s.digests.base, other.Nodes), Confidence: other.Confidence})
	}
	out.Digests, out.Confidence, out.Partial = uint64(x.needed), st.Confidence, !st.Complete || bits.OnesCount64(st.Known) < len(st.Nodes)
	for i := len(out.Hops); st.Complete && i < len(st.Nodes); i++ { // longer than what is kept of other flows
		out.Hops = append(out.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: s.digests.base | st.Nodes[i]}})
	}
	if st.Complete {
		certainty(out.Hops, x, &st, shown)
	}
	if !st.Complete {
		out.Digests = uint64(st.Digests)
		out.Hops = out.Hops[:0]
		for i, n := range st.Nodes {
			out.Hops = append(out.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: s.digests.base | n}, Unknown: st.Known>>i&1 == 0})
		}
	}
	if q := &x.quantiles; q.pool != nil {
		for n := range out.Hops {
			if h, ok := q.pool.Hop(&q.flow, n+1, out.Last); ok {
				out.Hops[n].Latency = quantilesOf(&h)
			}
		}
	}
	if q := &x.frequent; q.pool != nil {
		out.Frequent = x.often
		for n := range out.Hops {
			if h, ok := q.pool.Hop(&q.flow, n+1, out.Last); ok {
				out.Hops[n].Frequent = frequentValues(&h, q.pool.Complete())
			}
		}
	}
}

func quantilesOf(h *aggregation.Hop) inference.Summary {
	return inference.Summary{Count: h.Count, P50: uint64(h.Smooth(.5)), P90: uint64(h.Smooth(.9)), P99: uint64(h.Smooth(.99)), Max: uint64(h.Max)}
}

// mostFrequent bounds the values that are listed of a hop.
const mostFrequent = 8

// frequentValues lists the values of more than a share of a hop's digests.
func frequentValues(h *aggregation.Hop, share float64) (out []inference.FrequentValue) {
	all := h.Frequent(nil, share)
	for _, v := range all[:min(len(all), mostFrequent)] {
		out = append(out, inference.FrequentValue{Value: v.Value, Least: float64(v.Count-v.Error) / float64(h.Count), Most: float64(v.Count) / float64(h.Count)})
	}
	return out
}

// shown returns the part of a flow's state that is displayed: a plan that is new knows less than the one before.
func (d *digests) shown(slot uint32) *digestFlow {
	x := &d.flows[d.slots[slot]]
	if y := &d.flows[x.next]; x.next != 0 && !x.trace.Known() && y.trace.Known() {
		return y
	}
	return x
}

// certainty says of each hop of a known path how far digests bear it out. Of a hop that they contradict it is not known which
// node it is.
func certainty(hops []inference.FlowHop, x *digestFlow, st *pathtrace.Status, shown int) {
	var space [pint.MaxHops]float64
	for i, c := range x.tracer.HopConfidence(&x.trace, shown, space[:0]) {
		if i < len(hops) {
			hops[i].Confidence = c
			hops[i].Inferred = st.Marked>>i&1 != 0
			hops[i].Unknown = st.Known>>i&1 == 0
		}
	}
}

// leads reports whether a path leads over hops, of which the last ones may not be kept.
func (d *digests) leads(path []uint32, hops []inference.FlowHop) bool {
	for i := range hops {
		if i >= len(path) || hops[i].Node != d.base|path[i] {
			return false
		}
	}
	return true
}

// based returns nodes as they are published. The nodes of a mixture are never changed.
func based(base uint32, nodes []uint32) []uint32 {
	if base == 0 {
		return nodes
	}
	out := make([]uint32, len(nodes))
	for i, n := range nodes {
		out[i] = base | n
	}
	return out
}

// SketchStates counts the sketches of the flows' hops by the form in which they hold values.
type SketchStates struct {
	Listed  int `json:"listed"`  // every value as it is
	Counted int `json:"counted"` // in cells, every value
	Sampled int `json:"sampled"` // in cells, a sample of those below the upper quantiles
}

// SketchStates reads the sketches of all flows.
func (s *State) SketchStates() (n SketchStates) {
	var space [maxBlocks]uint32
	for _, e := range s.flows.All() {
		for _, b := range s.slab.chain(&space, &e.Value) {
			switch t := &s.slab.blocks[b].latency; {
			case t.Listed():
				n.Listed++
			case t.Base() == 0:
				n.Counted++
			default:
				n.Sampled++
			}
		}
	}
	return n
}
