package digest

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace"
)

// Describe adds to the statistics of the flow in a slot, which have its hops, those of its digests.
func (d *Reader) Describe(slot uint32, out *inference.FlowStats) {
	if !d.Has(slot) {
		return
	}
	x := d.shown(slot)
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
	if x.spray != 0 && d.sprays.flows[x.spray].describe(out, d.base) {
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
		if !d.leads(st.Nodes, out.Hops) && d.leads(other.Nodes, out.Hops) { // the one that is shown
			st, other, shown = other, st, i
		}
		out.Others = append(out.Others, inference.FlowPath{Nodes: based(d.base, other.Nodes), Confidence: other.Confidence})
	}
	out.Digests, out.Confidence, out.Partial = uint64(x.needed), st.Confidence, !st.Complete || bits.OnesCount64(st.Known) < len(st.Nodes)
	for i := len(out.Hops); st.Complete && i < len(st.Nodes); i++ { // longer than the kept paths of other flows
		out.Hops = append(out.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: d.base | st.Nodes[i]}})
	}
	if st.Complete {
		certainty(out.Hops, x, &st, shown)
	}
	if !st.Complete {
		out.Digests = uint64(st.Digests)
		out.Hops = out.Hops[:0]
		for i, n := range st.Nodes {
			out.Hops = append(out.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: d.base | n}, Unknown: st.Known>>i&1 == 0})
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

// shown returns the part of a flow's state that is displayed. A new plan has less evidence than the one before.
func (d *Reader) shown(slot uint32) *flow {
	x := &d.flows[d.slots[slot]]
	if y := &d.flows[x.next]; x.next != 0 && !x.trace.Known() && y.trace.Known() {
		return y
	}
	return x
}

// certainty sets for each hop of a known path how far digests confirm it. If they contradict a hop, its node is not
// known.
func certainty(hops []inference.FlowHop, x *flow, st *pathtrace.Status, shown int) {
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
func (d *Reader) leads(path []uint32, hops []inference.FlowHop) bool {
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
