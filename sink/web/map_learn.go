package web

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// adjacency is which node follows which hop, as flows and the clocks of links show it.
type adjacency struct {
	max   int
	seen  map[neighbour]uint64 // number of the last window that showed it
	grew  uint64               // counts what came and went
	swept uint64               // the oldest window when room was last looked for in vain
}

// learnLinks takes from window n what follows what.
func (h *history) learnLinks(n uint64, w *inference.Window) {
	a := &h.links
	for i := range w.Links {
		if l := &w.Links[i]; l.EgressIf != 0 {
			a.add(n, h.oldest(), neighbour{inference.HopKey{Node: l.Node, EgressIf: l.EgressIf}, l.Peer})
		}
	}
	for i := range w.Flows {
		f := &w.Flows[i]
		if f.Partial {
			continue
		}
		for k := 1; k < len(f.Hops); k++ {
			from, to := &f.Hops[k-1], &f.Hops[k]
			if from.Other || to.Other || from.Unknown || to.Unknown || from.Inferred || to.Inferred || from.Node == to.Node {
				continue
			}
			a.add(n, h.oldest(), neighbour{from.HopKey, to.Node})
		}
	}
}

func (a *adjacency) add(n, oldest uint64, key neighbour) {
	if key.hop.Node == key.peer {
		return
	}
	last, known := a.seen[key]
	if !known {
		if len(a.seen) >= a.max && a.swept != oldest {
			a.forget(oldest)
			a.swept = oldest // each window of many strange hops would go through all that there is again and again
		}
		if len(a.seen) >= a.max {
			return
		}
		a.grew++
	}
	a.seen[key] = max(last, n)
}

// forget removes what no kept window shows.
func (a *adjacency) forget(oldest uint64) {
	for k, last := range a.seen {
		if last < oldest {
			delete(a.seen, k)
			a.grew++
		}
	}
}

// neighbours lists what kept windows show, in order, and a number that changes with the list.
func (h *history) neighbours() ([]neighbour, uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.links.forget(h.oldest())
	list := make([]neighbour, 0, len(h.links.seen))
	for k := range h.links.seen {
		list = append(list, k)
	}
	slices.SortFunc(list, neighbour.compare)
	return list, h.links.grew
}

// dropCell counts the packets that a node dropped in the last window in which it dropped any.
type dropCell struct {
	window, count uint64
}

// addDrops keeps what nodes dropped, of as many nodes as there may be hops.
func (h *history) addDrops(n uint64, w *inference.Window) {
	swept := false
	for i := range w.Drops {
		d := &w.Drops[i]
		cell, known := h.drops[d.Node]
		if !known && len(h.drops) >= h.hops.max {
			if !swept {
				h.forgetDrops()
				swept = true
			}
			if len(h.drops) >= h.hops.max {
				continue
			}
		}
		switch {
		case cell.window == n:
			cell.count += d.Count
		case cell.window < n:
			cell = dropCell{n, d.Count}
		}
		h.drops[d.Node] = cell
	}
}

// forgetDrops removes those of windows that are not kept any more.
func (h *history) forgetDrops() {
	for node, old := range h.drops {
		if old.window < h.oldest() {
			delete(h.drops, node)
		}
	}
}

// learned makes a map of what flows showed. The interfaces of both directions between two nodes are joined in their order: no report
// says which belongs to which.
func learned(seen []neighbour) *Map {
	m := &Map{}
	pairs := map[[2]uint32]*[2][]uint32{}
	nodes := map[uint32]bool{}
	for _, n := range seen {
		a, b, back := n.hop.Node, n.peer, 0
		if a > b {
			a, b, back = b, a, 1
		}
		ends := pairs[[2]uint32{a, b}]
		if ends == nil {
			ends = &[2][]uint32{}
			pairs[[2]uint32{a, b}] = ends
		}
		ends[back] = append(ends[back], n.hop.EgressIf)
		nodes[a], nodes[b] = true, true
	}
	for id := range nodes {
		m.Nodes = append(m.Nodes, MapNode{ID: id})
	}
	slices.SortFunc(m.Nodes, func(a, b MapNode) int { return cmp.Compare(a.ID, b.ID) })
	order := make([][2]uint32, 0, len(pairs))
	for p := range pairs {
		order = append(order, p)
	}
	slices.SortFunc(order, func(a, b [2]uint32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, p := range order {
		ends := pairs[p]
		for k := range ends { // an interface that no report names is one of the others, where there are others
			if len(ends[k]) > 1 && ends[k][0] == 0 {
				ends[k] = ends[k][1:]
			}
		}
		for i := range max(len(ends[0]), len(ends[1])) {
			l := MapLink{A: LinkEnd{Node: p[0]}, B: LinkEnd{Node: p[1]}}
			if i < len(ends[0]) {
				l.A.Port = ends[0][i]
			}
			if i < len(ends[1]) {
				l.B.Port = ends[1][i]
			}
			m.Links = append(m.Links, l)
		}
	}
	return m
}
