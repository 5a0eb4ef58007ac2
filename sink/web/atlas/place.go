package atlas

import (
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// Placing finds the directions of hops. The interface numbers in reports may differ from those of the topology. If
// flows show which node follows a hop, that overrides the numbers.
type Placing struct {
	*Atlas
	next   map[inference.HopKey]uint32 // the one node that follows a hop
	rank   map[inference.HopKey]int    // of a hop among those of its node that the same node follows
	belied map[uint32]bool             // nodes whose interfaces are not those of the topology
}

// Place prepares the search for hops. The nodes that follow some of them are known.
func (a *Atlas) Place(seen []Neighbour) *Placing {
	p := &Placing{a, map[inference.HopKey]uint32{}, map[inference.HopKey]int{}, map[uint32]bool{}}
	several := map[inference.HopKey]bool{}
	for _, n := range seen {
		if before, ok := p.next[n.Hop]; ok && before != n.Peer {
			several[n.Hop] = true
		}
		p.next[n.Hop] = n.Peer
	}
	for h := range several {
		delete(p.next, h)
	}
	count := map[[2]uint32]int{}
	for _, n := range seen { // by hop, so that ranks follow the numbers of interfaces
		if several[n.Hop] || n.Hop.EgressIf == 0 {
			continue
		}
		pair := [2]uint32{n.Hop.Node, n.Peer}
		p.rank[n.Hop] = count[pair]
		count[pair]++
		if d := p.direction(LinkEnd{n.Hop.Node, n.Hop.EgressIf}); len(p.toward[pair]) > 0 && (d < 0 || p.peer(d) != n.Peer) {
			p.belied[n.Hop.Node] = true
		}
	}
	return p
}

// Direction returns the direction that packets take after a hop, or -1 if the map has none or it is not known.
func (p *Placing) Direction(h inference.HopKey) int {
	if h.Other {
		return -1
	}
	d := p.direction(LinkEnd{h.Node, h.EgressIf})
	peer, known := p.next[h]
	if !known {
		if p.belied[h.Node] {
			return -1
		}
		return d
	}
	to := p.toward[[2]uint32{h.Node, peer}]
	switch {
	case len(to) == 0:
		return -1
	case d >= 0 && p.peer(d) == peer && !p.belied[h.Node]:
		return d
	case h.EgressIf == 0 && len(to) > 1:
		return -1
	}
	return to[p.rank[h]%len(to)]
}

// FindingDoc is the place of a finding as the API has it.
type FindingDoc struct {
	ID       string `json:"id"`
	Severity string `json:"severity"`
	Links    []int  `json:"links,omitempty"` // directions
	Node     *int   `json:"node,omitempty"`
}

// Finding returns the place of a finding on the map. It returns false for a finding without one.
func (a *Placing) Finding(f *inference.Finding) (out FindingDoc, ok bool) {
	out = FindingDoc{ID: f.IDText(), Severity: f.Severity.String()}
	hop := inference.HopKey{Node: f.Node, EgressIf: f.EgressIf}
	e := f.Element
	switch {
	case e.Kind == inference.LinkElement:
		out.Links = a.link(e)
		return out, len(out.Links) > 0
	case e.Kind == inference.RouteElement:
		return out, false
	case e.Kind == inference.NodeElement || e.Kind == inference.InterfaceElement:
		hop = inference.HopKey{Node: e.Node, EgressIf: e.EgressIf}
	case e.Kind == inference.FlowElement && f.Node == 0:
		return out, false
	}
	if hop.EgressIf != 0 {
		if d := a.Direction(hop); d >= 0 {
			out.Links = []int{d}
			return out, true
		}
	}
	if node, there := a.nodes[hop.Node]; there {
		out.Node = &node
		return out, true
	}
	return out, false
}

// link returns the directions of a link: those between two nodes with these interfaces, as far as they are known.
func (a *Placing) link(e inference.Element) []int {
	all := a.between(e.Node, e.Peer)
	slices.Sort(all)
	for _, h := range [2]inference.HopKey{{Node: e.Node, EgressIf: e.EgressIf}, {Node: e.Peer, EgressIf: e.PeerIf}} {
		if h.EgressIf == 0 {
			continue
		}
		if d := a.Direction(h); d >= 0 && slices.Contains(all, d) {
			return []int{d &^ 1, d | 1}
		}
	}
	return all
}
