package window

import (
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Partial is a mergeable summary of one window, from one shard, process or fleet. Partials of the
// same window are put together with [Partial.Merge], in any order and grouping, and [Partial.Window] makes the window
// of all of them. A partial has bytes ([Partial.AppendBinary], FORMAT.md), so that it can be sent and kept. The zero
// value is empty and ready.
//
// # What does not depend on the split
//
// Let the reports of a window be distributed over any number of shards. All reports of an exporter go to one of them,
// and so do all reports of a flow, in the order of their time. Then the partials of these shards can be merged in any
// order and grouping. They give the window that one shard would have made of all reports, bit for bit. This holds as
// long as no table of a shard is full and no window is longer than the time after which flows are forgotten. Beyond
// that:
//
//   - Busiest flows. A shard has places for some flows (see shard.Config) and keeps the busiest. As long as its window
//     has no more flows than that, all is exact. Beyond, FlowBound is the number of reports that a flow may have had
//     without being listed. A flow with more is listed, with the exact number. Its histograms lack at most that many
//     reports, the first ones of the window. Flows with just as many reports as the bound can stand in for each other.
//     The bound assumes that a flow has one owner. If its reports reach k of them, it is up to k times as high.
//   - Path changes, drops and faults. A shard lists as many as its limits allow and counts the rest. Of path changes and
//     faults those that came first stay, and of drops those with the least numbers of node and reason. That does not
//     depend on the split either, as long as the limits of the shards are not below those of the window.
//   - Hops. Which hops a full table folds into the one called other depends on the order in which they came. No record
//     is lost: the sum over all hops is exact.
//
// If the reports of an exporter or of a flow reach several collectors, none of that holds by itself. A cross.Crossing
// then corrects the merged partial, by its [Numbers] and [Arrival]s, and states how far.
//
// A Partial shares no memory with what was added to it, and has one user at a time.
type Partial struct {
	Start, End int64 // ns since 1970, of the earliest start and the latest end; both 0 if that is not known
	Reports    uint64
	FlowCount  uint64 // flows seen in the window, as Window.FlowCount
	FlowBound  uint64 // a flow that is not among the candidates had at most this many reports
	OtherHops  uint64 // as in Window, and so are the following
	OtherPaths uint64
	OtherDrops uint64
	OtherFlows uint64
	// OtherArrivals are arrivals that were counted and not listed.
	OtherArrivals uint64

	lists
	most  *Limits // of lists, see Bound; nil is no bound
	order []int32 // memory of sorted
}

// lists are the items of a partial, by kind.
type lists struct {
	hops       table[inference.HopKey, HopPart]
	flows      table[decode.FlowKey, FlowPart]
	paths      table[unkeyed, inference.PathChange]
	drops      table[dropKey, inference.DropStats]
	faults     table[faultKey, inference.DigestFault]
	exporters  table[inference.ExporterKey, inference.ExporterStats]
	numbers    table[unkeyed, Numbers]
	arrivals   table[unkeyed, Arrival]
	deviations table[unkeyed, inference.Deviation]
	losses     table[decode.FlowKey, inference.FlowLoss]
	spreads    table[decode.FlowKey, Spread]
	links      table[inference.LinkKey, inference.LinkStats]
	strays     table[inference.StrayKey, inference.Stray]
	buckets    table[inference.HopKey, BucketPart]
	interfaces table[inference.HopKey, inference.InterfaceStats]
	sights     table[decode.FlowKey, FlowSights]
	nameless   table[inference.NamelessKey, namelessPart]
	octets     table[inference.HopKey, interfaceOctets]
	gaps       table[unkeyed, Gap]
	sent       table[inference.HopKey, interfaceOctets]
	counts     table[inference.HopKey, InterfaceCounts]
	probes     table[inference.ProbeKey, probePart]
}

// unkeyed is the key of items that are not found by a key.
type unkeyed = struct{}

// Limits bounds lists: those of a window that is made, and those of a partial that is read, merged within limits, or
// bound.
type Limits struct {
	Hops       int // of a partial, and so many directions of links; a window has those of its parts
	Exporters  int // of a partial
	Flows      int // the busiest flows of a window, or the candidates for them
	Paths      int // path changes, and of a partial so many ways that rules are broken
	Drops      int // pairs of node and drop reason
	Faults     int // pairs of fault and flow
	Numbers    int // lists of an exporter's numbers, of a partial
	Arrivals   int // of flows, of a partial
	Deviations int // flows whose digests contradict the map
	Losses     int // flows whose losses are known
}

// NoLimits returns limits that nothing reaches.
func NoLimits() Limits {
	const n = math.MaxInt
	return Limits{n, n, n, n, n, n, n, n, n, n}
}

// Bound makes p list no more than so many of the items added from now on. Of path changes, faults and arrivals the
// first ones stay, of drops those with the least numbers. Of flows the busiest stay, and of other kinds those that were
// added first. The rest is counted.
func (p *Partial) Bound(most Limits) { p.most = &most }

// Reset makes p the empty partial and keeps its memory and its bound for the next window.
func (p *Partial) Reset() {
	for _, k := range partialKinds[1:] {
		k.reset(p)
	}
	*p = Partial{lists: p.lists, most: p.most, order: p.order}
}

// counters are the sums of a partial in the order of its bytes. FlowBound is the one that is no sum.
func (p *Partial) counters() [8]*uint64 {
	return [...]*uint64{&p.Reports, &p.FlowCount, &p.FlowBound, &p.OtherHops, &p.OtherPaths, &p.OtherDrops, &p.OtherFlows, &p.OtherArrivals}
}

// Merge adds q, of which it keeps nothing. Sums of counters wrap at 2⁶⁴, which only forged counts reach.
func (p *Partial) Merge(q *Partial) { p.merge(q, nil) }

// MergeWithin is [Partial.Merge] for a partial that others are added to again and again: p does not grow beyond the
// limits. Items that p has already are added to in full. Of new items, the first of each kind are taken as long as
// there is room, such as the busiest flows. The rest is folded as a shard with full tables does it. Hops go into the
// hop called other, exporters into the one with no address. Flows, path changes, drops, faults and arrivals are
// counted. Sums over all hops and over all exporters are those of Merge. No counter of p counts the items left out of
// the other kinds; left is their number.
func (p *Partial) MergeWithin(q *Partial, most Limits) (left int) { return p.merge(q, &most) }

func (p *Partial) merge(q *Partial, most *Limits) (left int) {
	p.Span(q.Start, q.End)
	for _, k := range partialKinds[1:] {
		left += k.merge(p, q, most)
	}
	bound, from := max(p.FlowBound, q.FlowBound), q.counters()
	for i, n := range p.counters() {
		*n += *from[i]
	}
	p.FlowBound = bound
	return left
}

// Split distributes p over the slices, of which into has one partial each. These become the slices, whatever they were
// before. Their merge is p again, bit for bit. Every slice has the times of the window and the bound of flows that are
// not listed. Counts that belong to no entity are in slice 0. The slices share no memory with p.
func (p *Partial) Split(s *Slicer, into []*Partial) {
	if len(into) != s.Slices() {
		panic("inference: a partial is split into another number of slices than the slicer has")
	}
	for i, to := range into {
		to.Reset()
		to.Start, to.End, to.FlowBound = p.Start, p.End, p.FlowBound
		if i == 0 {
			from := p.counters()
			for i, n := range to.counters() {
				*n = *from[i]
			}
		}
	}
	for _, k := range partialKinds[1:] {
		k.split(p, s, into)
	}
}

// Span widens the window to one from start to end. An end of 0 is one that is not known.
func (p *Partial) Span(start, end int64) {
	switch {
	case end == 0:
	case p.End == 0:
		p.Start, p.End = start, end
	default:
		p.Start, p.End = min(p.Start, start), max(p.End, end)
	}
}

// Window makes the window of p, with the lists that keep allows. These are the busiest flows, the first path changes
// and faults, and the drops with the least numbers of node and reason. The rest is counted. It shares no memory with p.
func (p *Partial) Window(keep Limits) inference.Window {
	w := inference.Window{
		Start: p.Start, End: p.End, Reports: p.Reports, FlowCount: int(min(p.FlowCount, math.MaxInt)), FlowBound: p.FlowBound,
		OtherHops: p.OtherHops, OtherPaths: p.OtherPaths, OtherDrops: p.OtherDrops, OtherFlows: p.OtherFlows,
	}
	for _, k := range partialKinds[1:] {
		k.window(p, &w, &keep)
	}
	return w
}
