package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// setPath makes the hops of r the path of f. Hops that were on a path of f before keep their sketches.
func (s *State) setPath(f *flow, slot uint32, r *decode.Report, id uint64) {
	s.flush(f)
	var space [maxBlocks]uint32
	old := s.slab.chain(&space, f)
	kept := min(len(r.Hops), s.cfg.MaxPathLength)
	// A source-routed probe goes where its sender sends it: another way is no change of the network.
	if f.pathID != 0 && f.pathID != id && f.flags&(postcards|partial) == 0 && r.Kind != decode.KindProbe {
		s.former, s.path = s.hopKeys(s.former[:0], f), s.path[:0]
		for i := range r.Hops[:kept] {
			s.path = append(s.path, hopKey(&r.Hops[i]))
		}
		s.changed(f, r.Time, slot, id)
	}
	if f.pathID != id {
		f.onPath = 0
	}
	f.flags &^= postcards | flatTTL
	f.pathID, f.gen = id, s.hops.gen

	var next [maxBlocks]uint32
	chain := next[:kept]
	former := old
	for i := range chain {
		k := hopKey(&r.Hops[i])
		for j, b := range former {
			if s.slab.at(b).key() == k {
				chain[i] = b
				former = append(former[:j], former[j+1:]...)
				break
			}
		}
	}
	for len(former) > kept { // of former paths, as much is kept as the path itself has
		former = s.giveLast(former)
	}
	f.blocks, f.hops = 0, 0 // while blocks are taken, f owns none
	for i := range chain {
		k := hopKey(&r.Hops[i])
		if chain[i] == 0 {
			chain[i] = s.slab.allocate(k)
		}
		if chain[i] == 0 && len(former) > 0 {
			former = s.giveLast(former)
			chain[i] = s.slab.allocate(k)
		}
		if chain[i] == 0 {
			chain[i] = s.evictBlock(k)
		}
		if chain[i] == 0 { // no memory: the path is as long as its blocks
			for _, b := range chain[i:] {
				if b != 0 {
					s.slab.release(b)
				}
			}
			chain = chain[:i]
			break
		}
		ref := s.hops.find(k)
		s.slab.at(chain[i]).ref = ref
		if i < inline {
			f.refs[i] = ref
		}
	}
	f.hops = uint8(len(chain))
	s.slab.setChain(f, append(chain, former...))
}

// giveLast frees the last block of a list.
func (s *State) giveLast(list []uint32) []uint32 {
	s.slab.release(list[len(list)-1])
	return list[:len(list)-1]
}

// changed lists that the path of f, which has the given number from now on, is s.path and was s.former.
func (s *State) changed(f *flow, now int64, slot uint32, id uint64) {
	f.changes++
	s.cut.partial.AddPath(&inference.PathChange{
		Time: now, Flow: s.flows.At(slot).Key, PathID: id, Changes: f.changes, Packets: uint64(f.onPath), From: s.former, To: s.path,
	})
}

// evictBlock takes a block when there is none any more, from another flow. It returns 0 if none can be evicted.
func (s *State) evictBlock(k inference.HopKey) uint32 {
	s.evictFlow(nil)
	return s.slab.allocate(k)
}

// evictFlow evicts the flow that was not seen for longest among a few. It reports whether there was one among them that
// the batch does not use. Where it is for flow f, which may have its turn at the end of a window, f and the candidates
// for the busiest flows stay.
func (s *State) evictFlow(f *flow) bool {
	const sample = 8
	n := uint32(s.flows.Used())
	victim, found := uint32(0), false
	for looked, tries := 0, uint32(0); looked < sample && tries < min(n, 4*batchSize); tries++ {
		slot := s.hand % n
		s.hand = slot + 1
		if !s.flows.Live(slot) {
			continue
		}
		e := s.flows.At(slot)
		if s.flows.InBatch(slot) || e.Value.blocks == 0 || f != nil && (f == &e.Value || e.Value.top != 0) {
			continue
		}
		if looked++; !found || e.Seen < s.flows.At(victim).Seen {
			victim, found = slot, true
		}
	}
	if found {
		s.flows.Delete(victim)
	}
	return found
}
