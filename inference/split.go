package inference

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// Slicer shares out what there is in a network over a fixed number of slices, by a hash under a seed: members of a fleet
// that have the seed and the number in common put everything into the same slice.
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

// Of gives the slice of a hash that was made with the slicer's seed, such as that of a flow.
func (s *Slicer) Of(hash uint64) int { return int(hash >> 32 * s.n >> 32) }

// Flow gives the slice of a flow, of its path changes, of the faults of its digests, of what contradicts the map, of its losses
// and of its other paths.
func (s *Slicer) Flow(k *decode.FlowKey) int { return s.Of(s.key.Flow(k)) }

// Hop gives the slice of a place in the network, and of what is seen of links there. The hop called other belongs to slice 0.
func (s *Slicer) Hop(k HopKey) int {
	if k.Other {
		return 0
	}
	return s.Of(s.key.Word(uint64(k.Node)<<32 | uint64(k.EgressIf)))
}

// Exporter gives the slice of an exporter. The one with no address, which stands for those that are folded, belongs to
// slice 0.
func (s *Slicer) Exporter(k ExporterKey) int {
	if k == (ExporterKey{}) {
		return 0
	}
	le := binary.LittleEndian
	return s.Of(s.key.Words(le.Uint64(k.Addr[:]), le.Uint64(k.Addr[8:]), uint64(k.Node), uint64(k.HWID)))
}

// Drops gives the slice of the drops of a node for a reason.
func (s *Slicer) Drops(node uint32, reason uint8) int {
	return s.Of(s.key.Words(uint64(node), uint64(reason), 1, 0))
}

// Split shares out what p saw over the slices, of which into has one partial each: these become the slices, whatever they
// were before. Their merge is p again, bit for bit. Every slice has the times of the window and the bound of flows that
// are not listed; counts that belong to no entity are in slice 0. The slices share no memory with p.
func (p *Partial) Split(s *Slicer, into []*Partial) {
	if len(into) != s.Slices() {
		panic("inference: a partial is split into another number of slices than the slicer has")
	}
	for _, to := range into {
		to.Reset()
		to.Start, to.End, to.FlowBound = p.Start, p.End, p.FlowBound
	}
	first := into[0]
	first.Reports, first.FlowCount = p.Reports, p.FlowCount
	first.OtherHops, first.OtherPaths, first.OtherDrops = p.OtherHops, p.OtherPaths, p.OtherDrops
	first.OtherFlows, first.OtherArrivals = p.OtherFlows, p.OtherArrivals
	for i := range p.hops.items {
		h := &p.hops.items[i]
		into[s.Hop(h.HopKey)].Hop(h.HopKey).merge(h)
	}
	for i := range p.flows.items {
		f := &p.flows.items[i]
		into[s.Flow(&f.Key)].AddFlow(f)
	}
	for i := range p.paths {
		c := &p.paths[i]
		into[s.Flow(&c.Flow)].AddPath(c)
	}
	for i := range p.drops.items {
		d := &p.drops.items[i]
		into[s.Drops(d.Node, d.Reason)].AddDrops(d)
	}
	for i := range p.faults.items {
		d := &p.faults.items[i]
		into[s.Flow(&d.Flow)].AddFault(d)
	}
	for i := range p.exporters.items {
		e := p.exporters.items[i : i+1]
		into[s.Exporter(e[0].ExporterKey)].AddExporters(e)
	}
	for i := range p.numbers {
		n := &p.numbers[i]
		into[s.Exporter(n.ExporterKey)].AddNumbers(n)
	}
	for i := range p.arrivals {
		a := &p.arrivals[i]
		into[s.Flow(&a.Flow)].AddArrival(a)
	}
	for i := range p.deviations {
		d := &p.deviations[i]
		into[s.Flow(&d.Flow)].AddDeviation(d)
	}
	for i := range p.losses.items {
		l := &p.losses.items[i]
		into[s.Flow(&l.Flow)].AddLoss(l)
	}
	for i := range p.spreads.items {
		x := &p.spreads.items[i]
		into[s.Flow(&x.Flow)].AddSpread(x)
	}
	for i := range p.links.items {
		l := &p.links.items[i]
		into[s.Hop(HopKey{Node: l.Node, EgressIf: l.EgressIf})].AddLink(l)
	}
	for i := range p.strays.items {
		x := &p.strays.items[i]
		into[s.Flow(&x.Flow)].AddStray(x)
	}
}
