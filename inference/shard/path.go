package shard

import (
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// strikes of another hop at the same TTL that a hop of a path of postcards survives, and those after which its own
// return means that TTL says nothing about this path.
const (
	strikesOut  = 8
	strikesFlat = 3
)

// setPath makes the hops of r the path of f. Hops that were on a path of f before keep their sketches.
func (s *State) setPath(f *flow, slot uint32, r *decode.Report, id uint64) {
	s.flush(f)
	f.takeAll()
	var space [maxBlocks]uint32
	old := s.slab.chain(&space, f)
	kept := min(len(r.Hops), s.cfg.MaxPathLength)
	// A source-routed probe goes where its sender sends it: another way is no change of the network.
	if f.pathID != 0 && f.pathID != id && f.flags&(postcards|partial) == 0 && r.Kind != decode.KindProbe {
		if c := s.changed(f, r.Time, slot, id); c != nil {
			var to [maxPathLength]inference.HopKey
			for i := range r.Hops[:kept] {
				to[i] = hopKey(&r.Hops[i])
			}
			c.To = s.cut.changes.share(to[:kept])
		}
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
			if s.slab.blocks[b].key() == k {
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
			chain[i] = s.slab.take(k)
		}
		if chain[i] == 0 && len(former) > 0 {
			former = s.giveLast(former)
			chain[i] = s.slab.take(k)
		}
		if chain[i] == 0 {
			chain[i] = s.takeFromOthers(k)
		}
		if chain[i] == 0 { // no memory: the path is as long as its blocks
			for _, b := range chain[i:] {
				if b != 0 {
					s.slab.give(b)
				}
			}
			chain = chain[:i]
			break
		}
		ref := s.hops.find(k)
		s.slab.blocks[chain[i]].ref = ref
		if i < inline {
			f.refs[i] = ref
		}
	}
	f.hops = uint8(len(chain))
	s.slab.setChain(f, append(chain, former...))
}

// giveLast gives the last block of a list back.
func (s *State) giveLast(list []uint32) []uint32 {
	s.slab.give(list[len(list)-1])
	return list[:len(list)-1]
}

// changed notes that the path of f is not what it was, and gives the listed change with all but its new path, or nil
// if the list is full.
func (s *State) changed(f *flow, now int64, slot uint32, id uint64) *inference.PathChange {
	f.changes++
	c := s.cut.changes.count(inference.PathChange{
		Time: now, Flow: s.flows.At(slot).Key, PathID: id, Changes: f.changes, Packets: uint64(f.onPath),
	})
	if c != nil {
		c.From = s.sharePath(f)
	}
	return c
}

// sharePath gives the path of f in memory of the open window.
func (s *State) sharePath(f *flow) []inference.HopKey {
	var space [maxPathLength]inference.HopKey
	return s.cut.changes.share(s.hopKeys(space[:0], f))
}

// takeFromOthers takes a block when there is none any more, from the flow that was not seen for longest among a few. It
// gives 0 if all of those that it looks at are in use by the batch.
func (s *State) takeFromOthers(k inference.HopKey) uint32 {
	const sample = 8
	n := uint32(s.flows.Cap())
	victim, found := uint32(0), false
	for looked, tries := 0, uint32(0); looked < sample && tries < min(n, 4*batchSize); tries++ {
		slot := s.hand % n
		s.hand = slot + 1
		if !s.flows.Live(slot) {
			continue
		}
		e := s.flows.At(slot)
		if s.flows.InBatch(slot) || e.Value.blocks == 0 {
			continue
		}
		if looked++; !found || e.Seen < s.flows.At(victim).Seen {
			victim, found = slot, true
		}
	}
	if found {
		s.flows.Delete(victim)
	}
	return s.slab.take(k)
}

// countPostcard counts a report about a single hop. The path of the flow is put together from them: by falling TTL
// where it is known, and otherwise in the order in which the hops came first. One postcard never changes a known path:
// a hop leaves it when another one came strikesOut times at the same TTL and it did not. Where hops at the same TTL
// come in turn (devices that do not lower it), TTL is not used any more.
func (s *State) countPostcard(f *flow, slot uint32, r *decode.Report) {
	h := &r.Hops[0]
	k := hopKey(h)
	ref := s.hops.find(k)
	latency, queue := s.hops.record(ref, units(r), h)
	if f.pathID != 0 && f.flags&(postcards|partial) == 0 { // stacks tell more
		s.countKnown(f, k, latency, queue)
		return
	}
	s.flush(f) // of stacks, which told a part of the path
	f.takeAll()
	if f.onPath != ^uint32(0) {
		f.onPath++
	}
	var space [maxBlocks]uint32
	chain := s.slab.chain(&space, f)
	at := slices.IndexFunc(chain, func(b uint32) bool { return s.slab.blocks[b].key() == k })
	ttl := uint8(0)
	if r.Has&decode.HasTTL != 0 {
		ttl = r.TTL
	}
	if at < 0 {
		if len(chain) >= s.cfg.MaxPathLength {
			s.stats.LongPaths++
			return
		}
		b := s.slab.take(k)
		if b == 0 {
			b = s.takeFromOthers(k)
		}
		if b == 0 {
			s.stats.Unsketched++
			return
		}
		s.slab.blocks[b].ttl = ttl
		at = len(chain)
		chain = append(chain, b)
		at = s.order(f, chain, at)
	}
	p := &s.slab.blocks[chain[at]]
	s.add(f, p, latency, queue)
	if ttl == 0 || f.flags&flatTTL != 0 {
		return
	}
	if p.ttl == ttl {
		if p.strikes >= strikesFlat {
			f.flags |= flatTTL
		}
		p.strikes = 0
	} else {
		p.ttl = ttl
		s.order(f, chain, at)
	}
	for i, b := range chain {
		o := &s.slab.blocks[b]
		if o == p || o.ttl != ttl {
			continue
		}
		if o.strikes++; o.strikes >= strikesOut {
			s.leave(f, slot, r.Time, chain, i)
			break
		}
	}
}

func (s *State) countKnown(f *flow, k inference.HopKey, latency, queue uint16) {
	var space [maxBlocks]uint32
	for _, b := range s.slab.chain(&space, f)[:f.hops] {
		if p := &s.slab.blocks[b]; p.key() == k {
			s.add(f, p, latency, queue)
			return
		}
	}
	s.stats.Partial++
}

// order moves the hop at index i of the chain to its place by falling TTL; those of unknown TTL stay behind the others. It
// gives the new index.
func (s *State) order(f *flow, chain []uint32, i int) int {
	b := chain[i]
	ttl := s.slab.blocks[b].ttl
	for ; i > 0 && s.slab.blocks[chain[i-1]].ttl < ttl; i-- {
		chain[i] = chain[i-1]
	}
	for ; i < len(chain)-1 && s.slab.blocks[chain[i+1]].ttl > ttl; i++ {
		chain[i] = chain[i+1]
	}
	chain[i] = b
	s.setPostcardPath(f, chain)
	return i
}

// leave takes the hop at index i off the path of postcards.
func (s *State) leave(f *flow, slot uint32, now int64, chain []uint32, i int) {
	change := s.changed(f, now, slot, 0)
	gone := chain[i]
	chain = append(chain[:i], chain[i+1:]...)
	s.slab.give(gone)
	s.setPostcardPath(f, chain)
	f.onPath = 0
	if change != nil {
		change.PathID = f.pathID
		change.To = s.sharePath(f)
	}
}

func (s *State) setPostcardPath(f *flow, chain []uint32) {
	f.flags |= postcards
	f.hops = uint8(len(chain))
	s.slab.setChain(f, chain)
	const mul = 0xe7037ed1a0b428db
	id := uint64(len(chain))
	for _, b := range chain {
		p := &s.slab.blocks[b]
		hi, lo := bits.Mul64(id^uint64(p.node)<<32^uint64(p.egress), mul)
		id = hi ^ lo
	}
	f.pathID = max(id, 1)
}
