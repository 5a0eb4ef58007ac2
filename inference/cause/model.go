package cause

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// where is the place of a symptom, relative to the element that causes it.
type where uint8

// The places.
const (
	AtIt      where = iota // the element itself
	ports                  // each interface of a node; both interfaces of a link
	towards                // each interface of its neighbours that leads to a node
	links                  // each link of a node; the link behind an interface
	Ends                   // both nodes of a link; the node of an interface
	reports                // the exporter of a node
	NumWheres = iota
)

// Signs is a set of sorts of symptoms, which kinds of findings show.
type Signs uint16

// The signs.
const (
	Slow Signs = 1 << iota
	Queues
	More
	Drops
	Vanish
	OtherWays
	Fewer
	Silent
	Unreported
	ReportsLost
	Unexplained
	Loops
	NumSigns = iota
)

var signNames = [NumSigns]string{"slow", "queue", "carries more", "drops", "loses packets", "other ways", "carries less", "no packets", "no reports", "reports lost", "strange digests", "loop"}

// String returns the name of one sign.
func (s Signs) String() string {
	for i, name := range signNames {
		if s == 1<<i {
			return name
		}
	}
	return ""
}

// signOf returns the sign that a kind of finding is.
func signOf(k inference.Kind) Signs {
	switch k {
	case inference.HighLatency:
		return Slow
	case inference.HighQueue:
		return Queues
	case inference.HighUtilization:
		return More
	case inference.PacketDrops, inference.InterfaceDiscards:
		return Drops
	case inference.PacketLoss, inference.BlackHole, inference.InterfaceErrors:
		return Vanish
	case inference.PathChanged:
		return OtherWays
	case inference.LowUtilization, inference.LowLatency:
		return Fewer
	case inference.HopSilence:
		return Silent
	case inference.ExporterSilence:
		return Unreported
	case inference.ExporterLoss:
		return ReportsLost
	case inference.StrangeDigests, inference.InventoryError:
		return Unexplained
	case inference.RoutingLoop:
		return Loops
	}
	return 0
}

// place is an element at which the symptoms of another one are.
type place struct {
	Where   where
	Element inference.Element
}

// reportsOf is the place of a node's reports, whatever the address of its exporter is.
func reportsOf(node uint32) inference.Element {
	return inference.Element{Kind: inference.ExporterElement, Node: node}
}

// mostPlaces bounds the places of one element.
const mostPlaces = 128

// places returns the places at which an element shows symptoms.
func places(e inference.Element, m Map) []place {
	out := []place{{AtIt, e}}
	add := func(w where, e inference.Element) {
		if len(out) < mostPlaces && !slices.Contains(out, place{w, e}) {
			out = append(out, place{w, e})
		}
	}
	switch e.Kind {
	case inference.NodeElement:
		add(reports, reportsOf(e.Node))
		for _, h := range first(m.Interfaces(e.Node), mostPlaces/3) {
			add(ports, inference.ElementOfHop(h))
		}
		for _, p := range first(m.Peers(inference.HopKey{Node: e.Node}), mostPlaces/3) {
			add(links, inference.ElementOfLink(e.Node, p))
			for _, h := range first(m.Interfaces(p), 1024) {
				if slices.Contains(m.Peers(h), e.Node) {
					add(towards, inference.ElementOfHop(h))
				}
			}
		}
	case inference.LinkElement:
		for _, h := range hops(e, m) {
			add(ports, inference.ElementOfHop(h))
		}
		add(Ends, inference.ElementOfNode(e.Node))
		add(Ends, inference.ElementOfNode(e.Peer))
	case inference.InterfaceElement:
		for _, p := range first(m.Peers(e.Hop()), 8) {
			add(links, inference.ElementOfLink(e.Node, p))
		}
		add(Ends, inference.ElementOfNode(e.Node))
	}
	return out
}

// Scene is the set of signs at elements in one window.
type Scene struct {
	Map   Map
	Shown map[inference.Element]Signs // of open findings, and of those that ended a short time ago
	// Seen returns the signs that an element could show in this window: an interface with packets that was judged, the
	// reports of a node.
	Seen func(inference.Element) Signs
	// offered is given each element that is thought of for a finding, once for each way; nil where nothing counts them.
	offered func(f *inference.Finding, o Offer)

	against map[inference.Element]float64
}

// Show notes a finding.
func (s *Scene) Show(f *inference.Finding) {
	e, sign := f.Element, signOf(f.Kind)
	if sign == 0 || e.Kind == inference.NoElement {
		return
	}
	s.Shown[e] |= sign
	if e.Kind == inference.ExporterElement && !e.Nameless {
		s.Shown[reportsOf(e.Node)] |= sign
	}
}

// mute reports whether none of the known interfaces of a node reports.
func (s *Scene) mute(node uint32) bool {
	if s.Seen == nil {
		return false
	}
	all := s.Map.Interfaces(node)
	return len(all) > 0 && !slices.ContainsFunc(first(all, mostPlaces), func(h inference.HopKey) bool { return s.Seen(inference.ElementOfHop(h)) != 0 })
}

// Observation counts the places of one sort: those that show a sign, all of them, and those that do not show it
// although they would.
type Observation struct{ Shown, Of, absent int }

// Observe counts the signs at the places of an element. An interface counts if it reports or shows something. The signs
// of a node or a link can be absent only at the element itself, and if they are reported of nodes and links.
func (s *Scene) Observe(e inference.Element) (out [NumWheres][NumSigns]Observation) {
	for _, p := range places(e, s.Map) {
		shown := s.Shown[p.Element]
		seen := s.seen(p.Element)
		if p.Where == AtIt && p.Element.Kind != inference.InterfaceElement {
			seen = ofPlaces
		}
		counts := shown != 0 || seen != 0 || p.Where == links || p.Where == Ends
		for i := range NumSigns {
			o := &out[p.Where][i]
			switch {
			case shown&(1<<i) != 0:
				o.Shown++
				o.Of++
			case counts:
				o.Of++
				if seen&(1<<i) != 0 {
					o.absent++
				}
			}
		}
	}
	return out
}

// fault is a kind of cause: what it happens to, and how often its symptoms were there.
type fault struct {
	Name     string
	on       inference.ElementKind
	happened int // in the worlds that were counted
	symptoms []symptom
}

// symptom is the number of places that showed a sign, of those that reported.
type symptom struct {
	Where     where
	sign      Signs
	shown, of int
}

// p is the probability that the cause brings the symptom to one place. It is the share of the places that showed it,
// with half a place added to both sides, so that nothing is certain.
func (s *symptom) p() float64 { return (float64(s.shown) + .5) / (float64(s.of) + 1) }

// Against returns the evidence of absent symptoms against an element, in nats. It is that of the kind of cause that
// best explains the present and absent ones. It is 0 if no kind of cause brings the present ones.
func (s *Scene) Against(e inference.Element) float64 {
	o := s.Observe(e)
	against, most := 0.0, 0.0
	for i := range faults {
		f := &faults[i]
		if f.on != e.Kind {
			continue
		}
		if present, absent := f.weigh(&o); present > 0 && (most == 0 || present-absent > most) {
			most, against = present-absent, absent
		}
	}
	return against
}

// ofPlaces are the signs of nodes, links and flows that an observer of the network would report of them.
const ofPlaces = OtherWays | Vanish | Drops | Loops | Unexplained

func (s *Scene) seen(e inference.Element) Signs {
	if s.Seen == nil {
		return 0
	}
	return s.Seen(e)
}

// healthy reports whether a node reports and has no symptoms. It is no cause of symptoms of its neighbours.
func (s *Scene) healthy(node uint32) bool {
	if s == nil || s.Seen == nil {
		return false
	}
	well := false
	for _, p := range places(inference.ElementOfNode(node), s.Map) {
		if p.Where == AtIt || p.Where == ports || p.Where == reports {
			if s.Shown[p.Element] != 0 {
				return false
			}
			well = well || p.Where == ports && s.Seen(p.Element) != 0
		}
	}
	return well
}

// weigh returns the logarithms of the odds of the present symptoms, and of the absent ones, against chance.
func (f *fault) weigh(o *[NumWheres][NumSigns]Observation) (present, absent float64) {
	var p [NumWheres][NumSigns]float64
	for k := range f.symptoms {
		s := &f.symptoms[k]
		for i := range NumSigns {
			if s.sign == 1<<i {
				p[s.Where][i] = s.p()
			}
		}
	}
	for w := range p {
		for i := range p[w] {
			x := o[w][i]
			present += float64(x.Shown) * math.Log((leak+p[w][i]*(1-leak))/leak)
			absent -= float64(x.absent) * math.Log(1-p[w][i])
		}
	}
	return present, absent
}
