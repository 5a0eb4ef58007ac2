package shard

import (
	"unsafe"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// head is one hop of one flow, without the sketch of its latencies.
type head struct {
	node, egress uint32
	next         uint32 // block of the next hop, from the last inline one on; of a free block the next free one
	ref          uint16 // into the hop table
	ttl          uint8  // postcards: of the packet as this hop saw it, 0 if unknown
	strikes      uint8  // postcards: how often another hop came in its place; of a free half, freed
}

func (h *head) key() inference.HopKey { return inference.HopKey{Node: h.node, EgressIf: h.egress} }

// block is a hop with a sketch of its own size, or two halves.
type block struct {
	head
	latency quantile.Tail
}

// half is a hop whose sketch is brief.
type half struct {
	head
	latency quantile.BriefTail
}

// Both halves fill a block.
var _ = [1]struct{}{}[unsafe.Sizeof(block{})-2*unsafe.Sizeof(half{})]

const (
	// whole marks the number of a block that is not halved. Otherwise the lowest bit is the number of the half.
	whole = 1 << 31
	freed = 0xff // strikes of a free half whose block is in use
)

// slab is a fixed number of blocks, whole or in halves. Block 0 belongs to no flow.
//
// Free halves of blocks in use are a list in both directions (node is the one before), so that a block becomes whole
// again as soon as its other half is free. Hops take the halves of few blocks first.
type slab struct {
	blocks []block
	used   uint32 // the rest was never touched
	freed  uint32 // first free block
	half   uint32 // first free half of a block in use
	live   int    // hops
	halves int    // halves in use
}

func newSlab(n int) slab {
	return slab{blocks: sketches.MakeHuge[block](min(n, whole/2-1) + 1), used: 1}
}

// room is the number of free halves.
func (s *slab) room() int { return 2*(len(s.blocks)-1) - s.halves }

// at returns the hop of a block or a half.
func (s *slab) at(b uint32) *head { return &s.brief(b).head }

// brief returns a half.
func (s *slab) brief(b uint32) *half {
	return &(*[2]half)(unsafe.Pointer(&s.blocks[b&^whole/2]))[b%2]
}

// sketch returns the latencies of a hop.
func (s *slab) sketch(b uint32) quantile.Tail {
	if b&whole != 0 {
		return s.blocks[b&^whole/2].latency
	}
	return s.brief(b).latency.Tail()
}

// touch reads the cache lines of a hop.
func (s *slab) touch(b uint32) uint64 {
	if b&whole != 0 {
		return s.blocks[b&^whole/2].latency.Touch()
	}
	return uint64(s.brief(b).node) + s.brief(b).latency.Touch()
}

// allocate returns half a block for a hop, or 0 if there is none.
func (s *slab) allocate(k inference.HopKey) uint32 {
	b := s.half
	if b != 0 {
		s.unlist(b)
	} else if b = s.freeBlock(); b != 0 {
		s.list(b + 1)
	} else {
		return 0
	}
	s.live++
	s.halves++
	*s.brief(b) = half{head: head{node: k.Node, egress: k.EgressIf}}
	return b
}

// freeBlock returns the first half of a free block, or 0 if there is none.
func (s *slab) freeBlock() uint32 {
	i := s.freed
	switch {
	case i != 0:
		s.freed = s.blocks[i].next
	case int(s.used) < len(s.blocks):
		i = s.used
		s.used++
	}
	return 2 * i
}

func (s *slab) release(b uint32) {
	s.live--
	s.give(b)
}

// give makes a block or a half free.
func (s *slab) give(b uint32) {
	switch {
	case b&whole != 0:
		s.halves -= 2
	case s.at(b^1).strikes == freed:
		s.halves--
		s.unlist(b ^ 1)
	default:
		s.halves--
		s.list(b)
		return
	}
	i := b &^ whole / 2
	s.blocks[i].next = s.freed
	s.freed = i
}

// list adds the free half of a block in use.
func (s *slab) list(b uint32) {
	h := s.at(b)
	h.next, h.node, h.strikes = s.half, 0, freed
	if s.half != 0 {
		s.at(s.half).node = b
	}
	s.half = b
}

func (s *slab) unlist(b uint32) {
	h := s.at(b)
	if h.strikes = 0; h.next != 0 {
		s.at(h.next).node = h.node
	}
	if h.node != 0 {
		s.at(h.node).next = h.next
	} else {
		s.half = h.next
	}
}

// grow returns a whole block in place of a half, with its hop, or 0 if there is none.
func (s *slab) grow(b uint32) uint32 {
	h := *s.at(b)
	to := b &^ 1
	if s.at(b^1).strikes == freed {
		s.unlist(b ^ 1)
		s.halves++
	} else {
		if to = s.freeBlock(); to == 0 {
			return 0
		}
		s.halves += 2
		s.give(b)
	}
	s.blocks[to/2].head = h
	return to | whole
}

// shrink makes the first half of a whole block its hop, with a brief sketch.
func (s *slab) shrink(b uint32, t *quantile.BriefTail) uint32 {
	b &^= whole
	s.brief(b).latency = *t
	s.list(b + 1)
	s.halves--
	return b
}

// chain writes the blocks of f into dst and returns them: hops first, in path order.
func (s *slab) chain(dst *[maxBlocks]uint32, f *flow) []uint32 {
	n := int(f.blocks)
	k := copy(dst[:n], f.block[:])
	for ; k < n; k++ {
		dst[k] = s.at(dst[k-1]).next
	}
	return dst[:n]
}

// setChain makes f refer to the blocks of chain.
func (s *slab) setChain(f *flow, chain []uint32) {
	f.blocks = uint8(len(chain))
	f.block = [inline]uint32{}
	copy(f.block[:], chain)
	for i := inline - 1; i < len(chain)-1; i++ {
		s.at(chain[i]).next = chain[i+1]
	}
}

// replace makes b the i-th block of f.
func (s *slab) replace(f *flow, chain []uint32, i int, b uint32) {
	if chain[i] = b; i < inline {
		f.block[i] = b
	} else {
		s.at(chain[i-1]).next = b
	}
}

const (
	maxPathLength = 64
	// maxBlocks bounds a chain: a path, and as much of former ones.
	maxBlocks = 2 * maxPathLength
)
