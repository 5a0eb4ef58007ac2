package shard

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Judge makes the shard check the path of every flow against a policy, from now on. It does so once in each window in
// which the flow is seen, with its first report that has the path. A policy of nil is none.
func (s *State) Judge(p *inference.Policy) {
	if p.Len() == 0 {
		p = nil
	}
	s.policy = p
}

// manyPostcards is how many postcards of each hop there are, on average, before a path that is put together from them
// counts as whole.
const manyPostcards = 16

// conform judges the path of a flow, if report r of it or an earlier one has it.
func (s *State) conform(slot uint32, r *decode.Report) {
	e := s.flows.At(slot)
	f := &e.Value
	if f.judged == uint16(s.window) || r.Kind == decode.KindProbe { // a probe goes where its sender sends it
		return
	}
	path := s.path[:0]
	switch _, whole := reportsPath(r); {
	case whole:
		for i := range r.Hops[:min(len(r.Hops), maxPathLength)] {
			path = append(path, hopKey(&r.Hops[i]))
		}
	case r.Has&decode.HasDigest != 0:
		path = s.certainPath(path, slot, f)
	case f.flags&postcards != 0 && f.packets >= manyPostcards*uint64(f.hops) && int(f.hops) < s.cfg.MaxPathLength:
		path = s.hopKeys(path, f)
	}
	if s.path = path; len(path) == 0 {
		return
	}
	f.judged = uint16(s.window)
	if key, astray := s.policy.Judge(&e.Key, path); astray {
		s.cut.partial.AddStray(&inference.Stray{StrayKey: key, Flows: 1, Flow: e.Key, Path: path})
	}
}

// certainPath appends the path of a flow by its digests. It appends nothing as long as anything is not certain. Paths
// that rest on the topology alone, that digests contradict, and several paths of a flow break no rule.
func (s *State) certainPath(dst []inference.HopKey, slot uint32, f *flow) []inference.HopKey {
	if f.pathID == 0 || !s.digests.Has(slot) {
		return dst
	}
	st := inference.FlowStats{Last: f.last}
	for _, k := range s.hopKeys(dst, f) {
		st.Hops = append(st.Hops, inference.FlowHop{HopKey: k})
	}
	s.digests.Describe(slot, &st)
	if st.Partial || st.Unsettled || st.Sprayed() || st.Confidence == 0 || slices.ContainsFunc(st.Hops, func(h inference.FlowHop) bool { return h.Inferred || h.Unknown }) {
		return dst
	}
	for i := range st.Hops[:min(len(st.Hops), maxPathLength)] {
		dst = append(dst, st.Hops[i].HopKey)
	}
	return dst
}
