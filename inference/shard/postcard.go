package shard

import (
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// A hop of a path of postcards leaves it after strikesOut reports of another hop at the same TTL. If the hop returns
// after strikesFlat of them, TTL has no meaning for this path.
const (
	strikesOut  = 8
	strikesFlat = 3
)

// countPostcard counts a report about a single hop. The path of the flow is combined from them by falling TTL. Where
// that is not known, it is in the order in which the hops came first. One postcard never changes a known path. A hop
// leaves it when another one came strikesOut times at the same TTL and it did not. Where hops at the same TTL come in
// turn (devices that do not lower it), TTL is not used any more.
func (s *State) countPostcard(f *flow, slot uint32, r *decode.Report) {
	h := &r.Hops[0]
	k := hopKey(h)
	ref := s.hops.find(k)
	latency, queue := s.hops.record(ref, units(r), h)
	if f.pathID != 0 && f.flags&(postcards|partial) == 0 { // stacks hold more
		s.countKnown(f, k, latency, queue)
		return
	}
	s.flush(f) // of stacks, which held a part of the path
	if f.onPath != ^uint32(0) {
		f.onPath++
	}
	var space [maxBlocks]uint32
	chain := s.slab.chain(&space, f)
	at := slices.IndexFunc(chain, func(b uint32) bool { return s.slab.at(b).key() == k })
	ttl := uint8(0)
	if r.Has&decode.HasTTL != 0 {
		ttl = r.TTL
	}
	if at < 0 {
		if len(chain) >= s.cfg.MaxPathLength {
			s.stats.LongPaths++
			return
		}
		b := s.slab.allocate(k)
		if b == 0 {
			b = s.evictBlock(k)
		}
		if b == 0 {
			s.stats.Unsketched++
			return
		}
		s.slab.at(b).ttl = ttl
		at = len(chain)
		chain = append(chain, b)
		at = s.order(f, chain, at)
	}
	s.add(f, chain, at, latency, queue)
	p := s.slab.at(chain[at])
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
		o := s.slab.at(b)
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
	chain := s.slab.chain(&space, f)
	for i, b := range chain[:f.hops] {
		if s.slab.at(b).key() == k {
			s.add(f, chain, i, latency, queue)
			return
		}
	}
	s.stats.Partial++
}

// order moves the hop at index i of the chain to its place by falling TTL; those of unknown TTL stay behind the others.
// It returns the new index.
func (s *State) order(f *flow, chain []uint32, i int) int {
	b := chain[i]
	ttl := s.slab.at(b).ttl
	for ; i > 0 && s.slab.at(chain[i-1]).ttl < ttl; i-- {
		chain[i] = chain[i-1]
	}
	for ; i < len(chain)-1 && s.slab.at(chain[i+1]).ttl > ttl; i++ {
		chain[i] = chain[i+1]
	}
	chain[i] = b
	s.setPostcardPath(f, chain)
	return i
}

// leave takes the hop at index i off the path of postcards.
func (s *State) leave(f *flow, slot uint32, now int64, chain []uint32, i int) {
	s.former = s.hopKeys(s.former[:0], f)
	gone := chain[i]
	chain = append(chain[:i], chain[i+1:]...)
	s.slab.release(gone)
	s.setPostcardPath(f, chain)
	s.path = s.hopKeys(s.path[:0], f)
	s.changed(f, now, slot, f.pathID)
	f.onPath = 0
}

func (s *State) setPostcardPath(f *flow, chain []uint32) {
	f.flags |= postcards
	f.hops = uint8(len(chain))
	s.slab.setChain(f, chain)
	const mul = 0xe7037ed1a0b428db
	id := uint64(len(chain))
	for _, b := range chain {
		p := s.slab.at(b)
		hi, lo := bits.Mul64(id^uint64(p.node)<<32^uint64(p.egress), mul)
		id = hi ^ lo
	}
	f.pathID = max(id, 1)
}
