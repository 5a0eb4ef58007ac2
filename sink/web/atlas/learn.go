package atlas

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// Adjacency is which node follows which hop, as flows and the clocks of links show it.
type Adjacency struct {
	max   int
	seen  map[Neighbour]uint64 // number of the last window that showed it
	grew  uint64               // counts what came and went
	swept uint64               // the oldest window when room was last looked for in vain
}

// NewAdjacency has room for max of them.
func NewAdjacency(max int) Adjacency { return Adjacency{max: max, seen: map[Neighbour]uint64{}} }

// Learn takes from window n what follows what. Oldest is the first window that is still of interest.
func (a *Adjacency) Learn(n, oldest uint64, w *inference.Window) {
	for i := range w.Links {
		if l := &w.Links[i]; l.EgressIf != 0 {
			a.add(n, oldest, Neighbour{inference.HopKey{Node: l.Node, EgressIf: l.EgressIf}, l.Peer})
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
			a.add(n, oldest, Neighbour{from.HopKey, to.Node})
		}
	}
}

// Neighbours lists what windows from oldest on show, in order, and a number that changes with the list.
func (a *Adjacency) Neighbours(oldest uint64) ([]Neighbour, uint64) {
	a.forget(oldest)
	list := make([]Neighbour, 0, len(a.seen))
	for k := range a.seen {
		list = append(list, k)
	}
	slices.SortFunc(list, Neighbour.compare)
	return list, a.grew
}

// Len is how many are kept.
func (a *Adjacency) Len() int { return len(a.seen) }

func (a *Adjacency) add(n, oldest uint64, key Neighbour) {
	if key.Hop.Node == key.Peer {
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
func (a *Adjacency) forget(oldest uint64) {
	for k, last := range a.seen {
		if last < oldest {
			delete(a.seen, k)
			a.grew++
		}
	}
}

// learned makes a map of the order of hops in flows. The interfaces of both directions between two nodes are paired in
// their order, because no report shows which belong together.
func learned(seen []Neighbour) *Map {
	m := &Map{}
	pairs := map[[2]uint32]*[2][]uint32{}
	nodes := map[uint32]bool{}
	for _, n := range seen {
		a, b, back := n.Hop.Node, n.Peer, 0
		if a > b {
			a, b, back = b, a, 1
		}
		ends := pairs[[2]uint32{a, b}]
		if ends == nil {
			ends = &[2][]uint32{}
			pairs[[2]uint32{a, b}] = ends
		}
		ends[back] = append(ends[back], n.Hop.EgressIf)
		nodes[a], nodes[b] = true, true
	}
	for id := range nodes {
		m.Nodes = append(m.Nodes, Node{ID: id})
	}
	slices.SortFunc(m.Nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
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
			l := Link{A: LinkEnd{Node: p[0]}, B: LinkEnd{Node: p[1]}}
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

// Neighbour is a node, peer, that packets reach right after hop.
type Neighbour struct {
	Hop  inference.HopKey
	Peer uint32
}

func (n Neighbour) compare(o Neighbour) int {
	return cmp.Or(n.Hop.Compare(o.Hop), cmp.Compare(n.Peer, o.Peer))
}
