package window

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Slicer distributes the entities of a network over a fixed number of slices, by a hash under a seed. Members of a
// fleet with the same seed and number put everything into the same slice.
type Slicer struct {
	key decode.HashKey
	n   uint64
}

// NewSlicer makes a slicer for n slices, of which there is at least one.
func NewSlicer(seed uint64, n int) Slicer {
	return Slicer{decode.NewHashKey(seed), uint64(max(n, 1))}
}

// Slices is the number of slices.
func (s *Slicer) Slices() int { return int(s.n) }

// Of returns the slice of a hash that was made with the slicer's seed, such as that of a flow.
func (s *Slicer) Of(hash uint64) int { return int(hash >> 32 * s.n >> 32) }

// Flow returns the slice of a flow. Its path changes, the faults of its digests, its contradictions of the map, its
// losses and its other paths are in the same slice.
func (s *Slicer) Flow(k *decode.FlowKey) int { return s.Of(s.key.Flow(k)) }

// Hop returns the slice of a place in the network, and of the values of links there. The hop called other belongs to
// slice 0.
func (s *Slicer) Hop(k inference.HopKey) int {
	if k.Other {
		return 0
	}
	return s.Of(s.key.Word(uint64(k.Node)<<32 | uint64(k.EgressIf)))
}

// Exporter returns the slice of an exporter. The one with no address, which stands for those that are folded, belongs
// to slice 0.
func (s *Slicer) Exporter(k inference.ExporterKey) int {
	if k == (inference.ExporterKey{}) {
		return 0
	}
	le := binary.LittleEndian
	return s.Of(s.key.Words(le.Uint64(k.Addr[:]), le.Uint64(k.Addr[8:]), uint64(k.Node), uint64(k.HWID)))
}

// Drops returns the slice of the drops of a node for a reason.
func (s *Slicer) Drops(node uint32, reason uint8) int {
	return s.Of(s.key.Words(uint64(node), uint64(reason), 1, 0))
}
