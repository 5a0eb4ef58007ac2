package shard

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/flowtable"
)

// Inferred is the paths of flows by their digests.
type Inferred struct {
	Known     int // flows whose path is known
	Marked    int // those of them with hops that no digest confirms
	Undecided int // flows whose path is not known
	Sprayed   int // flows that use several paths at once; they are none of the others
	Flows     []InferredFlow
}

// InferredFlow is one flow of them.
type InferredFlow struct {
	inference.FlowStats
	Needed int // digests that an undecided path still takes, about; 0 where that is not known
}

// Compare puts first the flows most worth a look: undecided flows, those with more digests first, then those with hops that no digest
// confirms or whose path digests contradict, then those that use several paths, then those whose path is least certain.
func (f *InferredFlow) Compare(o *InferredFlow) int {
	rank := func(f *InferredFlow) int {
		switch {
		case f.Sprayed():
			return 2
		case f.Partial:
			return 0
		case f.Unsettled, slices.ContainsFunc(f.Hops, func(h inference.FlowHop) bool { return h.Inferred }):
			return 1
		}
		return 3
	}
	if c := cmp.Compare(rank(f), rank(o)); c != 0 {
		return c
	}
	if f.Partial && !f.Sprayed() {
		return cmp.Or(cmp.Compare(o.Digests, f.Digests), f.Key.Compare(&o.Key))
	}
	return cmp.Or(cmp.Compare(f.Confidence, o.Confidence), f.Key.Compare(&o.Key))
}

// Add adds the flows of another shard, and keeps the first n.
func (i *Inferred) Add(o *Inferred, n int) {
	i.Known += o.Known
	i.Marked += o.Marked
	i.Undecided += o.Undecided
	i.Sprayed += o.Sprayed
	i.Flows = append(i.Flows, o.Flows...)
	i.trim(n)
}

func (i *Inferred) trim(n int) {
	slices.SortFunc(i.Flows, func(a, b InferredFlow) int { return a.Compare(&b) })
	i.Flows = i.Flows[:min(max(n, 0), len(i.Flows))]
}

// Inferred returns the paths of flows with digests, and the n of them that need a look most. It changes nothing, but reads the whole
// table: it is for queries of operators.
func (s *State) Inferred(n int) (out Inferred) {
	d := s.digests
	if d == nil {
		return out
	}
	for slot, e := range s.flows.All() {
		if d.slots[slot] == 0 || d.flows[d.slots[slot]].tracer == nil {
			continue
		}
		f := s.inferred(slot, e)
		switch {
		case f.Sprayed():
			out.Sprayed++
		case f.Partial && f.Confidence == 0:
			out.Undecided++
		case slices.ContainsFunc(f.Hops, func(h inference.FlowHop) bool { return h.Inferred }):
			out.Marked++
			out.Known++
		default:
			out.Known++
		}
		if out.Flows = append(out.Flows, f); len(out.Flows) >= 2*n+64 {
			out.trim(n)
		}
	}
	out.trim(n)
	return out
}

// InferredOf returns those of some flows that have digests.
func (s *State) InferredOf(keys []decode.FlowKey) (out []InferredFlow) {
	d := s.digests
	if d == nil {
		return nil
	}
	for i := range keys {
		slot := s.flows.Get(tableHash(s.key.Flow(&keys[i])), &keys[i])
		if slot != flowtable.None && d.slots[slot] != 0 && d.flows[d.slots[slot]].tracer != nil {
			out = append(out, s.inferred(slot, s.flows.At(slot)))
		}
	}
	return out
}

// inferred returns the path of a flow with digests.
func (s *State) inferred(slot uint32, e *entry) InferredFlow {
	d := s.digests
	f := InferredFlow{FlowStats: s.flowStats(slot, e)}
	if f.Partial && f.Confidence == 0 && !f.Sprayed() {
		f.Needed = needed(f.Hops, d.maps[d.flows[d.slots[slot]].tracer].Instances())
	}
	return f
}

// needed estimates how many packets it takes until each unknown hop has a digest of its own, if all have equally many. What is known
// of links makes it fewer.
func needed(hops []inference.FlowHop, instances int) int {
	sum, unknown := 0.0, 0
	for i := range hops {
		if hops[i].Unknown {
			unknown++
			sum += 1 / float64(unknown)
		}
	}
	if unknown == 0 {
		return 1
	}
	return int(math.Ceil(sum * float64(len(hops)) / float64(max(instances, 1))))
}
