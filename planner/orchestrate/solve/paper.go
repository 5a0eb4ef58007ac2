package solve

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// none marks an interface, or a copy of one, that no flow carries.
const none = -1

// concentrateHeuristic is the paper's heuristic for Concentrate (algorithm 1), with every tie decided. The flow with
// the most uncovered interfaces comes next (then the larger capacity, then the lower number). It takes those of them
// that fit, those with the fewest flows first (then the smaller demand, then the lower number). Every flow is tried
// once.
//
// Counts only fall, so one pass over the flows by capacity for every count finds them in that order: O(L F + P) for F
// flows that pass at most L interfaces, P together, against O(F) scanned for every flow used.
func (p *problem) concentrateHeuristic() (at []int32) {
	at = slices.Repeat([]int32{none}, p.ifaces)
	uncovered, order, most := make([]int32, p.flows), opt.Ascending[int32](p.flows), int32(0)
	for f := range p.flows {
		uncovered[f] = int32(len(p.path(int32(f))))
		most = max(most, uncovered[f])
	}
	slices.SortStableFunc(order, func(f, g int32) int { return cmp.Compare(p.room[g], p.room[f]) })
	var path []int32
	for count := most; count > 0; count-- {
		kept := order[:0]
		for _, f := range order {
			if uncovered[f] < count {
				if uncovered[f] > 0 {
					kept = append(kept, f)
				}
				continue
			}
			path = path[:0]
			for _, i := range p.path(f) {
				if at[i] == none {
					path = append(path, i)
				}
			}
			slices.SortFunc(path, func(a, b int32) int {
				return cmp.Or(cmp.Compare(len(p.through(a)), len(p.through(b))), cmp.Compare(p.demand[a], p.demand[b]), cmp.Compare(a, b))
			})
			room := p.room[f]
			for _, i := range path {
				if p.demand[i] > room {
					continue
				}
				room -= p.demand[i]
				at[i] = f
				for _, g := range p.through(i) {
					uncovered[g]--
				}
			}
		}
		order = kept
	}
	return at
}

// balanceHeuristic is the paper's heuristic for Balance (algorithm 2), with every tie decided. The interface with the
// fewest flows that are not full comes first (then the larger demand, then the lower number). It goes to the least
// loaded of its flows that have room (then the one with fewer uncovered interfaces, then the lower number). One that
// fits nowhere stays uncovered.
func (p *problem) balanceHeuristic() (at []int32) {
	at = slices.Repeat([]int32{none}, p.ifaces)
	h := opt.Heap[ifaceEntry]{Less: func(x, y *ifaceEntry) bool {
		return cmp.Or(cmp.Compare(x.flows, y.flows), cmp.Compare(p.demand[y.iface], p.demand[x.iface]), cmp.Compare(x.iface, y.iface)) < 0
	}}
	flows := make([]int32, p.ifaces) // that are not exactly full
	for i := range flows {
		flows[i] = int32(len(p.through(int32(i))))
		h.Items = append(h.Items, ifaceEntry{int32(i), flows[i]})
	}
	uncovered, load := make([]int32, p.flows), make([]int64, p.flows)
	for f := range p.flows {
		uncovered[f] = int32(len(p.path(int32(f))))
	}
	h.Init()
	done := make([]bool, p.ifaces)
	for len(h.Items) > 0 {
		top := h.Pop()
		i := top.iface
		if done[i] || top.flows != flows[i] {
			continue
		}
		done[i] = true
		best := int32(none)
		for _, f := range p.through(i) {
			if p.room[f]-load[f] < p.demand[i] {
				continue
			}
			if best == none || load[f] < load[best] || load[f] == load[best] && uncovered[f] < uncovered[best] {
				best = f
			}
		}
		if best == none {
			continue
		}
		at[i] = best
		load[best] += p.demand[i]
		for _, f := range p.through(i) {
			uncovered[f]--
		}
		if load[best] == p.room[best] {
			for _, j := range p.path(best) {
				if flows[j]--; !done[j] {
					h.Push(ifaceEntry{j, flows[j]})
				}
			}
		}
	}
	return at
}

type ifaceEntry struct{ iface, flows int32 }
