package digest

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
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

// Compare puts first the flows most worth a look. The order is: undecided flows, those with more digests first; flows
// with hops that no digest confirms or with a path that digests contradict; flows that use several paths; flows whose
// path is least certain.
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
	i.Trim(n)
}

// AddFlow adds a flow. It keeps some more than the first n, until [Inferred.Trim].
func (i *Inferred) AddFlow(f *InferredFlow, n int) {
	switch {
	case f.Sprayed():
		i.Sprayed++
	case f.Partial && f.Confidence == 0:
		i.Undecided++
	case slices.ContainsFunc(f.Hops, func(h inference.FlowHop) bool { return h.Inferred }):
		i.Marked++
		i.Known++
	default:
		i.Known++
	}
	if i.Flows = append(i.Flows, *f); len(i.Flows) >= 2*n+64 {
		i.Trim(n)
	}
}

// Trim keeps the first n flows.
func (i *Inferred) Trim(n int) {
	slices.SortFunc(i.Flows, func(a, b InferredFlow) int { return a.Compare(&b) })
	i.Flows = i.Flows[:min(max(n, 0), len(i.Flows))]
}

// Traces reports whether digests of the flow in a slot are traced.
func (d *Reader) Traces(slot uint32) bool { return d.Has(slot) && d.flows[d.slots[slot]].tracer != nil }

// Infer returns the path of the flow in a slot, whose digests are traced, with the statistics that [Reader.Describe]
// has added to.
func (d *Reader) Infer(slot uint32, st inference.FlowStats) InferredFlow {
	f := InferredFlow{FlowStats: st}
	if f.Partial && f.Confidence == 0 && !f.Sprayed() {
		s := d.flows[d.slots[slot]].tracer.Model().Config.Scheme
		f.Needed = needed(f.Hops, s.Instances(), s.Fragments())
	}
	return f
}

// needed estimates how many packets it takes until each unknown hop has a digest of its own with each fragment of its id,
// if all have equally many. Known links reduce the number.
func needed(hops []inference.FlowHop, instances, fragments int) int {
	sum, unknown := 0.0, 0
	for i := range hops {
		if hops[i].Unknown {
			for range fragments {
				unknown++
				sum += 1 / float64(unknown)
			}
		}
	}
	if unknown == 0 {
		return 1
	}
	return int(math.Ceil(sum * float64(len(hops)*fragments) / float64(max(instances, 1))))
}
