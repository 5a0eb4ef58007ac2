package cause

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// Map is the known topology: the nodes behind the interfaces of a node, as the paths of flows showed them.
type Map interface {
	// Peers returns the nodes behind an interface, usually one; none where they are unknown. Of a hop without an
	// interface it returns all neighbours of the node.
	Peers(h inference.HopKey) []uint32
	// Interfaces returns the interfaces of a node with a known neighbour.
	Interfaces(node uint32) []inference.HopKey
	// Ahead returns the interfaces that packets came to behind a hop in this window.
	Ahead(h inference.HopKey) []inference.HopKey
}

// Fit is an element that can explain a finding, or all evidence of a cause, and how badly it does.
type Fit struct {
	Element inference.Element
	Misfit  float64
}

func (f Fit) compare(e inference.Element) int { return f.Element.Compare(e) }

// maxFits bounds how many elements are thought of for one finding: a node with hundreds of interfaces is named itself.
const maxFits = 64

// price returns the cost of blaming an element, higher for a less probable one. It was chosen by hand. How often nodes,
// links and interfaces fail is a property of the watched network. It cannot be counted in simulated networks in which
// all faults are equally frequent.
func price(e inference.Element) float64 {
	switch e.Kind {
	case inference.NodeElement:
		return 2.4
	case inference.LinkElement:
		return 2.1
	case inference.RouteElement:
		return 2.2
	}
	return 2
}

// Windows between two beginnings.
const (
	soon    = 10 // different things still have to do with each other
	longest = 60 // no things have, after that
)

// apart returns the addition of time to a misfit, by the windows between two beginnings.
func apart(windows uint64) float64 {
	sum := 0.0
	for i := range later {
		if l := &later[i]; windows > l.after {
			sum = misfit(l.Right, l.Of)
		}
	}
	return sum
}

// family is the number that kinds about similar things share.
func family(k inference.Kind) int {
	switch {
	case rises(k):
		return 1
	case lessens(k):
		return 2
	case k == inference.ExporterLoss || k == inference.ExporterSilence:
		return 3
	case k == inference.PathChanged || k == inference.RoutingLoop:
		return 4
	case k == inference.PacketLoss || k == inference.BlackHole || k == inference.InterfaceErrors:
		return 5
	case k == inference.StrangeDigests || k == inference.InventoryError:
		return 6
	}
	return 0
}

// lessens reports whether a kind is about missing traffic.
func lessens(k inference.Kind) bool {
	return k == inference.LowUtilization || k == inference.LowLatency || k == inference.HopSilence
}

// rises reports whether a kind is about queued traffic.
func rises(k inference.Kind) bool {
	return k == inference.HighQueue || k == inference.HighLatency || k == inference.HighUtilization || k == inference.PacketDrops || k == inference.InterfaceDiscards
}

// ofFlow reports whether a finding is about the latency of a flow, which comes from hops on its path.
func ofFlow(f *inference.Finding) bool {
	return f.Element.Kind == inference.FlowElement && (f.Kind == inference.HighLatency || f.Kind == inference.LowLatency)
}

// passes reports whether the hops that a finding names beside its element are those that packets pass, and not those
// that flows moved to.
func passes(f *inference.Finding) bool { return f.Kind == inference.StrangeDigests || ofFlow(f) }

// fits returns the elements that can explain a finding of a sort, in their order.
func fits(f *inference.Finding, s *Scene, of Sort) []Fit {
	var out []Fit
	m := s.Map
	add := func(e inference.Element, w Way) {
		if e.Kind != inference.NoElement && len(out) < maxFits {
			out = append(out, Fit{e, w.misfit(of)})
			s.offer(f, e, w, of)
		}
	}
	add(f.Element, Itself)
	switch e := f.Element; e.Kind {
	case inference.InterfaceElement:
		for _, p := range first(m.Peers(e.Hop()), 8) {
			add(inference.ElementOfLink(e.Node, p), LinkOfHop)
			if !s.healthy(p) {
				add(inference.ElementOfNode(p), NodeBehind)
			}
		}
		if f.Kind != inference.PacketLoss && f.Kind != inference.PacketDrops { // what all of a node lose has a finding of its own
			add(inference.ElementOfNode(e.Node), NodeOfHop)
		}
	case inference.NodeElement:
		// Full queues have findings of their own, and for other reasons the node itself drops packets. The same holds
		// for a node that sends flows another way.
		if f.Kind != inference.PacketDrops && f.Kind != inference.PathChanged {
			for _, h := range first(m.Interfaces(e.Node), maxFits/2) {
				add(inference.ElementOfHop(h), HopOfNode)
			}
		}
		if f.Kind == inference.PacketDrops { // towards a node that takes none
			for _, p := range first(m.Peers(inference.HopKey{Node: e.Node}), maxFits/4) {
				if s.mute(p) {
					add(inference.ElementOfNode(p), NodeBehind)
				}
			}
		}
		for _, p := range first(m.Peers(inference.HopKey{Node: e.Node}), maxFits/2) {
			add(inference.ElementOfLink(e.Node, p), LinkOfNode)
		}
		if f.FlowText() != "" && f.Kind != inference.PacketDrops { // which name the last flow of many
			add(inference.ElementOfFlow(f.Flow), SameFlow)
		}
	case inference.LinkElement:
		if e.EgressIf != 0 || e.PeerIf != 0 {
			add(inference.ElementOfLink(e.Node, e.Peer), Itself)
		}
		if f.Kind != inference.PacketLoss { // drops of a node have findings of their own
			add(inference.ElementOfNode(e.Node), EndOfLink)
			add(inference.ElementOfNode(e.Peer), EndOfLink)
		}
		for _, n := range [2][2]uint32{{e.Node, e.Peer}, {e.Peer, e.Node}} {
			for _, h := range first(m.Interfaces(n[0]), 1024) {
				if slices.Contains(m.Peers(h), n[1]) && (h.Node != e.Node || e.EgressIf == 0 || h.EgressIf == e.EgressIf) && (h.Node != e.Peer || e.PeerIf == 0 || h.EgressIf == e.PeerIf) {
					add(inference.ElementOfHop(h), HopOfLink)
				}
			}
		}
	case inference.ExporterElement:
		add(inference.ElementOfAddress(e.Addr), AddressOfExporter)
		if !e.Nameless {
			add(inference.ElementOfNode(e.Node), NodeOfExporter)
		}
	}
	return tidy(out)
}

// first returns the first of a list.
func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

// tidy brings fits into the order of their elements and keeps the best of each.
func tidy(fits []Fit) []Fit {
	slices.SortStableFunc(fits, func(a, b Fit) int { return cmp.Or(a.Element.Compare(b.Element), cmp.Compare(a.Misfit, b.Misfit)) })
	return slices.CompactFunc(fits, func(a, b Fit) bool { return a.Element == b.Element })
}

// both returns the elements that are in both lists, with the sum of their misfits.
func both(a, b []Fit, more float64) []Fit {
	var out []Fit
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].Element.Compare(b[0].Element); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			out = append(out, Fit{a[0].Element, a[0].Misfit + b[0].Misfit + more})
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// best returns the element with the least cost, the first of equal ones, and that cost.
func (s *Scene) best(fits []Fit) (e inference.Element, cost float64) {
	for i, f := range fits {
		if c := s.price(f.Element) + f.Misfit; i == 0 || c < cost-1e-9 {
			e, cost = f.Element, c
		}
	}
	return e, cost
}

// price returns the cost of blaming an element for the findings. It is high if the element seldom fails, and if the
// symptoms that it would bring are absent.
func (s *Scene) price(e inference.Element) float64 {
	against, known := s.against[e]
	if !known {
		against = s.Against(e) / nats
		if s.against == nil {
			s.against = map[inference.Element]float64{}
		}
		s.against[e] = against
	}
	return price(e) + against
}
