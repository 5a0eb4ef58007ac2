package cause

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// Map is the known topology: the nodes behind the interfaces of a node, as the paths of flows showed them.
type Map interface {
	// Peers returns the nodes behind an interface, usually one; none where they are unknown. Of a hop without an interface it returns
	// all neighbours of the node.
	Peers(h inference.HopKey) []uint32
	// Interfaces gives the interfaces of a node with a known neighbour.
	Interfaces(node uint32) []inference.HopKey
	// Ahead gives the interfaces that packets came to behind a hop in this window.
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

// price is what makes an element unlikely to be the cause of anything.
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

// Misfits. An interface is the best word for what is seen at it alone.
const (
	itself       = 0
	linkOfHop    = .25 // the link behind an interface explains what is seen at the interface
	nodeOfHop    = .35 // so does its node
	nodeBehind   = .7  // and the node behind the link
	hopOfNode    = .2  // values of a node without an interface may come from one of its interfaces
	linkOfNode   = .3  // or from the link behind it
	linkOfMoves  = .7  // but not where the node is known to send flows elsewhere
	nodeOfDrops  = .1
	endOfLink    = .5 // a node explains what happens on its link
	nodeOfReport = .5 // a node explains what its exporter does
	sameFlow     = .5
	movedHere    = .6 // flows that moved fill queues where they came to
	cameTo       = .6 // a flow that changed its path came to a link because of what happens there
	cameToNode   = .7 // or of what happens at a node on its old way or its new one
	sameMoment   = .6
	onTheWay     = .45 // packets of a flow with strange digests, or another latency, passed a node
	missing      = .5  // where traffic is missing is seldom where it went missing
	missingNode  = .35
	missingLink  = .55
	linkOfLoss   = .4   // an interface whose queue is full loses packets
	fewer        = .6   // packets behind a place where they queue or get lost
	bunched      = 1.05 // packets that waited together behind the place: two findings at one place are rather one of that place
	carried      = .5   // a link that carries more is seldom why
	followed     = .8   // what follows from losses and from other ways, wherever it is
	unheard      = .25  // hops that are known by the reports of an exporter which is silent
	queueAhead   = .55  // flows that queue at an interface come together there, and queue before it as well
	furtherAhead = .08
	byNode       = .1 // the interface of the node by which packets go on to it is unknown
	anyOnTheWay  = .5 // latencies in forged digests are those of no node
)

// Windows between two beginnings.
const (
	soon    = 10 // different things still have to do with each other
	longest = 60 // no things have, after that
)

// apart is what time adds to a misfit: windows between two beginnings.
func apart(windows uint64) float64 {
	switch {
	case windows <= 3:
		return 0
	case windows <= soon:
		return .4
	case windows <= 30:
		return .8
	}
	return 1.5
}

// stillThere is the most that time adds where packets come from a cause that lasts: it takes a while to see that they are fewer.
const stillThere = .1

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

// passes reports whether the hops that a finding names beside its element are those that packets pass, and not those that flows
// moved to.
func passes(f *inference.Finding) bool { return f.Kind == inference.StrangeDigests || ofFlow(f) }

// fits returns the elements that can explain a finding, in their order.
func fits(f *inference.Finding, s *Scene) []Fit {
	var out []Fit
	m := s.Map
	add := func(e inference.Element, misfit float64) {
		if e.Kind != inference.NoElement && len(out) < maxFits {
			out = append(out, Fit{e, misfit})
		}
	}
	add(f.Element, itself)
	switch e := f.Element; e.Kind {
	case inference.InterfaceElement:
		if lessens(f.Kind) {
			out[0].Misfit = missing
			for _, p := range first(m.Peers(e.Hop()), 8) {
				add(inference.ElementOfLink(e.Node, p), missingLink)
				if !s.Healthy(p) {
					add(inference.ElementOfNode(p), nodeBehind)
				}
			}
			add(inference.ElementOfNode(e.Node), missingNode)
			break
		}
		if f.Kind == inference.HighUtilization {
			out[0].Misfit = carried
		}
		for _, p := range first(m.Peers(e.Hop()), 8) {
			add(inference.ElementOfLink(e.Node, p), linkOfHop)
			if !s.Healthy(p) {
				add(inference.ElementOfNode(p), nodeBehind)
			}
		}
		add(inference.ElementOfNode(e.Node), nodeOfHop)
	case inference.NodeElement:
		if f.Kind == inference.PacketDrops || f.Kind == inference.RoutingLoop {
			out[0].Misfit = nodeOfDrops
		}
		// Full queues have findings of their own, and the node is what drops packets for another reason. So it is with the node that
		// sends flows another way.
		if f.Kind != inference.PacketDrops && f.Kind != inference.PathChanged {
			for _, h := range first(m.Interfaces(e.Node), maxFits/2) {
				add(inference.ElementOfHop(h), hopOfNode)
			}
		}
		if f.Kind == inference.PacketDrops { // towards a node that takes none
			for _, p := range first(m.Peers(inference.HopKey{Node: e.Node}), maxFits/4) {
				if s.Mute(p) {
					add(inference.ElementOfNode(p), nodeBehind)
				}
			}
		}
		toLink := linkOfNode
		if f.Kind == inference.PathChanged { // of a node where links would explain it less
			toLink = linkOfMoves
		}
		for _, p := range first(m.Peers(inference.HopKey{Node: e.Node}), maxFits/2) {
			add(inference.ElementOfLink(e.Node, p), toLink)
		}
		if f.FlowText() != "" && f.Kind != inference.PacketDrops { // which name the last flow of many
			add(inference.ElementOfFlow(f.Flow), sameFlow)
		}
	case inference.LinkElement:
		if e.EgressIf != 0 || e.PeerIf != 0 {
			add(inference.ElementOfLink(e.Node, e.Peer), itself)
		}
		toHop := linkOfHop
		if f.Kind == inference.PacketLoss { // drops of a node have findings of their own
			toHop = linkOfLoss
		} else {
			add(inference.ElementOfNode(e.Node), endOfLink)
			add(inference.ElementOfNode(e.Peer), endOfLink)
		}
		for _, n := range [2][2]uint32{{e.Node, e.Peer}, {e.Peer, e.Node}} {
			for _, h := range first(m.Interfaces(n[0]), 1024) {
				if slices.Contains(m.Peers(h), n[1]) && (h.Node != e.Node || e.EgressIf == 0 || h.EgressIf == e.EgressIf) && (h.Node != e.Peer || e.PeerIf == 0 || h.EgressIf == e.PeerIf) {
					add(inference.ElementOfHop(h), toHop)
				}
			}
		}
	case inference.ExporterElement:
		add(inference.ElementOfAddress(e.Addr), .05)
		if !e.Nameless {
			add(inference.ElementOfNode(e.Node), nodeOfReport)
		}
	}
	return tidy(out)
}

// first gives the first of a list.
func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

// tidy brings fits into the order of their elements and keeps the best of each.
func tidy(fits []Fit) []Fit {
	slices.SortStableFunc(fits, func(a, b Fit) int { return cmp.Or(a.Element.Compare(b.Element), cmp.Compare(a.Misfit, b.Misfit)) })
	return slices.CompactFunc(fits, func(a, b Fit) bool { return a.Element == b.Element })
}

// both gives the elements that explain what both explain, with the sum of their misfits.
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

// best gives the element that explains at the least cost, and that cost; the first of equal ones.
func (s *Scene) best(fits []Fit) (e inference.Element, cost float64) {
	for i, f := range fits {
		if c := s.price(f.Element) + f.Misfit; i == 0 || c < cost-1e-9 {
			e, cost = f.Element, c
		}
	}
	return e, cost
}

// nats are those of a misfit of 1.
const nats = 3.5

// price is what makes an element unlikely to be the cause of what is seen: it seldom is one, and what it would bring is not there.
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
