package shard

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// Cut is what one shard saw in one window. It belongs to the caller of [State.Cut] until it is recycled.
type Cut struct {
	reports     uint64
	keys        []inference.HopKey // by reference
	hops        hopSet
	otherHops   uint64
	flows       []inference.FlowStats
	flowHops    []inference.FlowHop // memory of flows
	paths       []inference.PathChange
	pathHops    []inference.HopKey // memory of paths
	drops       []inference.DropStats
	dropIndex   map[dropKey]int
	faults      []inference.DigestFault
	faultIndex  map[faultKey]int
	otherFaults uint64
	otherPaths  uint64
	otherDrops  uint64
	flowCount   int
}

func (s *State) newCut() *Cut {
	return &Cut{hops: newHopSet(s.cfg.MaxHops + 1), dropIndex: map[dropKey]int{}, faultIndex: map[faultKey]int{}}
}

// Cut ends the open window at end, in ns since 1970, and starts the next one. It takes new memory for that unless an
// earlier cut was recycled.
func (s *State) Cut(end int64) *Cut {
	c := s.cut
	s.countHops()
	s.cutTop(c)
	c.flowCount = s.flows.Len()
	c.keys = append(c.keys[:0], s.hops.keys...)
	for i := range c.keys {
		if c.hops.hops[i].used {
			s.hops.seen[i] = end
		}
	}
	s.stats.OtherHops += c.otherHops
	if s.hops.crowded() {
		s.hops.forget(end - int64(s.cfg.IdleTimeout))
	}
	if s.cut, s.spare = s.spare, nil; s.cut == nil {
		s.cut = s.newCut()
	}
	s.window++
	return c
}

// Recycle takes a cut of this shard back, to use its memory for a later window.
func (s *State) Recycle(c *Cut) {
	c.hops.reset(len(c.keys))
	clear(c.dropIndex)
	clear(c.faultIndex)
	*c = Cut{
		keys: c.keys[:0], hops: c.hops, flows: c.flows[:0], flowHops: c.flowHops[:0], paths: c.paths[:0],
		pathHops: c.pathHops[:0], drops: c.drops[:0], dropIndex: c.dropIndex, faults: c.faults[:0], faultIndex: c.faultIndex,
	}
	s.spare = c
}

// Merge puts the cuts of all shards for one window together: histograms of the same hop are added, and of the busiest
// flows topFlows are kept. Start, End and Exporters are the caller's to fill in. The window shares no memory with the
// cuts and does not depend on their order.
func Merge(cuts []*Cut, topFlows int) inference.Window {
	var w inference.Window
	w.Hops = mergeHops(cuts)
	flows, hops, paths := 0, 0, 0
	for _, c := range cuts {
		w.Reports += c.reports
		w.OtherHops += c.otherHops
		w.OtherPaths += c.otherPaths
		w.OtherDrops += c.otherDrops
		w.FlowCount += c.flowCount
		w.Flows = append(w.Flows, c.flows...)
		w.Paths = append(w.Paths, c.paths...)
		w.Drops = append(w.Drops, c.drops...)
		w.Digests = append(w.Digests, c.faults...)
		w.OtherFlows += c.otherFaults
	}

	slices.SortFunc(w.Flows, func(a, b inference.FlowStats) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), compareFlows(&a.Key, &b.Key))
	})
	w.Flows = w.Flows[:min(topFlows, len(w.Flows))]
	for i := range w.Flows {
		flows += len(w.Flows[i].Hops)
	}
	flowHops := make([]inference.FlowHop, 0, flows)
	for i := range w.Flows {
		w.Flows[i].Hops = share(&flowHops, w.Flows[i].Hops)
	}

	// All changes of a flow come from one shard, so a stable sort keeps their order.
	slices.SortStableFunc(w.Paths, func(a, b inference.PathChange) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), compareFlows(&a.Flow, &b.Flow))
	})
	for i := range w.Paths {
		hops += len(w.Paths[i].From) + len(w.Paths[i].To)
	}
	pathHops := make([]inference.HopKey, 0, hops)
	for i := range w.Paths {
		p := &w.Paths[i]
		p.From, p.To = share(&pathHops, p.From), share(&pathHops, p.To)
	}

	slices.SortFunc(w.Drops, func(a, b inference.DropStats) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason), compareFlows(&a.Flow, &b.Flow))
	})
	for _, d := range w.Drops {
		if paths > 0 && w.Drops[paths-1].Node == d.Node && w.Drops[paths-1].Reason == d.Reason {
			w.Drops[paths-1].Count += d.Count
			w.Drops[paths-1].Flow = d.Flow
			continue
		}
		w.Drops[paths] = d
		paths++
	}
	w.Drops = w.Drops[:paths]

	// A flow belongs to one shard.
	slices.SortFunc(w.Digests, func(a, b inference.DigestFault) int {
		return cmp.Or(cmp.Compare(a.Fault, b.Fault), compareFlows(&a.Flow, &b.Flow))
	})
	return w
}

// share copies list to the end of memory and gives the copy.
func share[T any](memory *[]T, list []T) []T {
	n := len(*memory)
	*memory = append(*memory, list...)
	return (*memory)[n:len(*memory):len(*memory)]
}

func compareHops(a, b inference.HopKey) int {
	if a.Other != b.Other { // the last of all
		if a.Other {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.EgressIf, b.EgressIf))
}

// place is a hop in one of several cuts.
type place struct {
	key inference.HopKey
	cut *Cut
	ref int
}

func mergeHops(cuts []*Cut) []inference.HopStats {
	var all []place
	for _, c := range cuts {
		for i, k := range c.keys {
			if c.hops.hops[i].used {
				all = append(all, place{k, c, i})
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int { return compareHops(a.key, b.key) })
	out := make([]inference.HopStats, 0, len(all))
	var sum hopSum
	for i, p := range all {
		sum.add(&p.cut.hops, p.ref)
		if i+1 == len(all) || all[i+1].key != p.key {
			out = append(out, sum.stats(p.key))
			sum.reset()
		}
	}
	return out
}

// Totals adds up the hops of many windows, for the summary of a run.
type Totals struct {
	max  int
	hops map[inference.HopKey]*hopSum
}

// NewTotals returns empty totals for at most maxHops hops; further ones are folded into the hop "other".
func NewTotals(maxHops int) *Totals {
	return &Totals{max: maxHops, hops: map[inference.HopKey]*hopSum{}}
}

// Add adds the cuts of a window. It keeps nothing of them.
func (t *Totals) Add(cuts []*Cut) {
	for _, c := range cuts {
		for i, k := range c.keys {
			if !c.hops.hops[i].used {
				continue
			}
			sum := t.hops[k]
			if sum == nil {
				if len(t.hops) >= t.max {
					k = inference.HopKey{Other: true}
				}
				if sum = t.hops[k]; sum == nil {
					sum = &hopSum{}
					t.hops[k] = sum
				}
			}
			sum.add(&c.hops, i)
		}
	}
}

// Hops gives the sums, ordered by node and egress interface.
func (t *Totals) Hops() []inference.HopStats {
	out := make([]inference.HopStats, 0, len(t.hops))
	for k, w := range t.hops {
		out = append(out, w.stats(k))
	}
	slices.SortFunc(out, func(a, b inference.HopStats) int { return compareHops(a.HopKey, b.HopKey) })
	return out
}
