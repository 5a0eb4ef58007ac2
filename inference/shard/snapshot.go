package shard

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// Flows returns the n flows with most packets over their whole life in the table, busiest first. It changes nothing,
// but reads the whole table: it is for summaries and queries of operators.
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
	if slot == sketches.NoSlot {
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
		latency, rng := s.slab.sketch(b), s.rng // copies: a look must not change what comes later
		codes, _, _ := f.column(&memory, i)
		latency.Add(f.present(codes), &rng)
		out.Hops = append(out.Hops, inference.FlowHop{HopKey: s.slab.at(b).key(), Latency: summary(&latency)})
	}
	s.digests.Describe(slot, &out)
	return out
}

// summary reads the quantiles of a sketch.
func summary(t *quantile.Tail) inference.Summary {
	if t.Count() == 0 {
		return inference.Summary{}
	}
	var q [3]uint64
	t.Quantiles(q[:0], 0.5, 0.9, 0.99)
	return inference.Summary{
		Count: t.Count(), P50: q[0], P90: q[1], P99: q[2], Max: quantile.Decode(t.Max()),
	}
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
			switch t := s.slab.sketch(b); {
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
