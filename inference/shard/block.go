package shard

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches"
	"github.com/hopscope/hopscope/sketches/tail"
)

// block is one hop of one flow.
type block struct {
	node, egress uint32
	next         uint32 // block of the next hop, from the last inline one on; of a free block the next free one
	ref          uint16 // into the hop table
	ttl          uint8  // postcards: of the packet as this hop saw it, 0 if unknown
	strikes      uint8  // postcards: how often another hop came in its place
	latency      tail.Sketch
}

func (b *block) key() inference.HopKey { return inference.HopKey{Node: b.node, EgressIf: b.egress} }

// slab is a fixed number of blocks. Block 0 belongs to no flow.
type slab struct {
	blocks []block
	used   uint32 // the rest was never touched
	freed  uint32
	live   int
}

func newSlab(n int) slab { return slab{blocks: sketches.MakeHuge[block](n + 1), used: 1} }

// allocate returns an empty block, or 0 if there is none.
func (s *slab) allocate(k inference.HopKey) uint32 {
	i := s.freed
	switch {
	case i != 0:
		s.freed = s.blocks[i].next
	case int(s.used) < len(s.blocks):
		i = s.used
		s.used++
	default:
		return 0
	}
	s.live++
	s.blocks[i] = block{node: k.Node, egress: k.EgressIf}
	return i
}

func (s *slab) release(i uint32) {
	s.blocks[i].next = s.freed
	s.freed = i
	s.live--
}

// chain writes the blocks of f into dst and returns them: hops first, in path order.
func (s *slab) chain(dst *[maxBlocks]uint32, f *flow) []uint32 {
	n := int(f.blocks)
	k := copy(dst[:n], f.block[:])
	for ; k < n; k++ {
		dst[k] = s.blocks[dst[k-1]].next
	}
	return dst[:n]
}

// setChain makes f refer to the blocks of chain.
func (s *slab) setChain(f *flow, chain []uint32) {
	f.blocks = uint8(len(chain))
	f.block = [inline]uint32{}
	copy(f.block[:], chain)
	for i := inline - 1; i < len(chain)-1; i++ {
		s.blocks[chain[i]].next = chain[i+1]
	}
}

const (
	maxPathLength = 64
	// maxBlocks bounds a chain: a path, and as much of former ones.
	maxBlocks = 2 * maxPathLength
)
