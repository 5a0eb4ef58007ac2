package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/sketches"
)

// ReadDigests makes the shard read PINT digests. It is called before the first Update.
func (s *State) ReadDigests(c digest.Config, seed uint64) (err error) {
	s.digests, err = digest.New(c, s.flows.Cap(), seed)
	return err
}

// countDigest counts a report that carries a digest.
func (s *State) countDigest(f *flow, slot uint32, r *decode.Report) {
	var part digest.Parts
	for s.digests.Begin(&part, slot, r); part.Next(f.pathID, &s.cut.partial); {
		if part.Path != nil {
			s.setDigestPath(f, slot, r.Time, part.Path)
		}
		if part.OnPath && f.onPath != ^uint32(0) {
			f.onPath++
		}
		if f.hops != r.Digest.Hops {
			continue
		}
		for i := range part.Values {
			s.countValue(f, &part.Values[i])
		}
	}
}

// setDigestPath makes the nodes that digests agree with the path of a flow.
func (s *State) setDigestPath(f *flow, slot uint32, at int64, nodes []decode.Hop) {
	s.setPath(f, slot, &decode.Report{Time: at, Kind: decode.KindStack, Hops: nodes}, inference.PathID(nodes))
	f.flags &^= partial
}

// countValue counts what a hop of the path of f wrote into a digest.
func (s *State) countValue(f *flow, v *digest.Value) {
	var space [maxBlocks]uint32
	chain, i := s.slab.chain(&space, f), int(v.Hop-1)
	k := s.slab.at(chain[i]).key()
	h := decode.Hop{Has: decode.HopNodeID | v.Field, NodeID: k.Node}
	switch v.Field {
	case decode.HopLatency:
		h.Latency = v.Value
	case decode.HopQueueOccupancy:
		h.QueueOccupancy = v.Value
	}
	latency, queue := s.hops.record(s.hops.find(k), &decode.DefaultUnits, &h)
	s.add(f, chain, i, latency, queue)
}

// cutDigests ends the window of the digests.
func (s *State) cutDigests() {
	if s.digests != nil {
		s.digests.Cut(&s.cut.partial, func(slot uint32, at int64, nodes []decode.Hop) {
			s.setDigestPath(&s.flows.At(slot).Value, slot, at, nodes)
		})
	}
}

// Inferred returns the paths of flows with digests, and the n of them that need a look most. It changes nothing, but
// reads the whole table: it is for queries of operators.
func (s *State) Inferred(n int) (out digest.Inferred) {
	if s.digests == nil {
		return out
	}
	for slot, e := range s.flows.All() {
		if s.digests.Traces(slot) {
			f := s.digests.Infer(slot, s.flowStats(slot, e))
			out.AddFlow(&f, n)
		}
	}
	out.Trim(n)
	return out
}

// InferredOf returns those of some flows that have digests.
func (s *State) InferredOf(keys []decode.FlowKey) (out []digest.InferredFlow) {
	for i := range keys {
		slot := s.flows.Get(tableHash(s.key.Flow(&keys[i])), &keys[i])
		if slot != sketches.NoSlot && s.digests.Traces(slot) {
			out = append(out, s.digests.Infer(slot, s.flowStats(slot, s.flows.At(slot))))
		}
	}
	return out
}
