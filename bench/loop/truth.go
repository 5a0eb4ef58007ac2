package loop

import (
	"slices"
	"time"

	"github.com/hopscope/hopscope/bench/findings"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/loss"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/planner/topo"
)

// places says which links elements touch. A link is an interface that packets leave a switch by.
type places struct {
	network *emu.Network
	graph   *topo.Graph
	first   uint32
	known   map[decode.FlowKey][]inference.HopKey // ways of flows, as windows tell them
}

func newPlaces(n *emu.Network) *places {
	return &places{network: n, graph: n.Graph(), first: n.NodeID(0), known: map[decode.FlowKey][]inference.HopKey{}}
}

func (p *places) node(id uint32) int {
	if n := int(id) - int(p.first); n >= 0 && n < p.graph.NumNodes() {
		return n
	}
	return -1
}

// hop gives the link of an interface, or -1.
func (p *places) hop(node, port uint32) int32 {
	if n := p.node(node); n >= 0 {
		return int32(p.graph.ByPort(n, int(port)))
	}
	return -1
}

// all appends the links of a switch, in both directions.
func (p *places) all(to []int32, node uint32) []int32 {
	n := p.node(node)
	if n < 0 {
		return to
	}
	lo, hi := p.graph.Interfaces(n)
	for i := lo; i < hi; i++ {
		to = append(to, int32(i))
		if back := p.graph.Peer(i); back >= 0 {
			to = append(to, int32(back))
		}
	}
	return to
}

// Links is that of suspicion.Places.
func (p *places) Links(to []int32, f *inference.Finding) []int32 {
	add := func(l int32) {
		if l >= 0 {
			to = append(to, l)
		}
	}
	switch e := f.Element; e.Kind {
	case inference.InterfaceElement:
		add(p.hop(e.Node, e.EgressIf))
	case inference.NodeElement:
		return p.all(to, e.Node)
	case inference.LinkElement:
		a, b := p.node(e.Node), p.node(e.Peer)
		if a < 0 || b < 0 {
			return to
		}
		if i := p.graph.Between(a, b); i >= 0 {
			add(int32(i))
			add(int32(p.graph.Peer(i)))
		}
	case inference.FlowElement:
		way := p.known[e.Flow]
		for k, h := range way {
			if h.EgressIf != 0 {
				add(p.hop(h.Node, h.EgressIf))
			} else if a := p.node(h.Node); a >= 0 && k+1 < len(way) {
				if b := p.node(way[k+1].Node); b >= 0 {
					add(int32(p.graph.Between(a, b)))
				}
			}
		}
	}
	return to
}

// flows remembers the ways of flows.
func (p *places) flows(w *inference.Window) {
	for i := range w.Flows {
		f := &w.Flows[i]
		if f.Partial || len(f.Hops) == 0 || len(p.known) > 10_000 {
			continue
		}
		way := p.known[f.Key][:0]
		for _, h := range f.Hops {
			way = append(way, h.HopKey)
		}
		p.known[f.Key] = way
	}
	for i := range w.Losses {
		if l := &w.Losses[i]; len(l.Path) > 0 {
			p.known[l.Flow] = append(p.known[l.Flow][:0], l.Path...)
		}
	}
}

// touched gives the links that the element of a fault touches: both directions of a link, all links of a switch, the one behind
// a port, and those on the way of a flow. Reports that get lost touch none.
func (p *places) touched(h *emu.Happening) (links []int32) {
	switch h.At {
	case emu.OnLink:
		return []int32{p.hop(h.Node, h.Port), p.hop(h.Peer, h.PeerPort)}
	case emu.AtSwitch:
		return p.all(nil, h.Node)
	case emu.AtPort:
		return []int32{p.hop(h.Node, h.Port)}
	case emu.InFlow:
		way, _ := p.network.Route(h.Flow)
		for _, i := range way {
			links = append(links, int32(i))
		}
	}
	return links
}

// losing notes how much of what crossed a link got lost silently, of probes and of flows that were compared, since a fault began.
type losing struct{ probes, flows rounds }

type rounds struct{ sent, lost uint64 }

// silent reports whether a fault loses packets that nobody reports.
func silent(f *Fault) bool {
	return f.Name == "gray-failure-1" || f.Name == "gray-failure-0.1" || f.Name == "black-hole"
}

// journey notes what became of a probe, as it truly was.
func (d *detection) journey(j *emu.Journey) {
	if !j.Probe || d.network == nil || len(j.Hops) == 0 {
		return
	}
	if j.Outcome == emu.Spoilt {
		d.receiver.spoilt(j)
		return
	}
	for _, f := range d.out.Faults {
		if now := d.network.Now(); now < f.From || now > f.Until {
			continue
		}
		for k := range j.Hops {
			h := &j.Hops[k]
			if f.At != emu.OnLink || h.NodeID != f.Node || uint32(h.EgressPort) != f.Port {
				continue
			}
			f.touched = f.touched || h.QueueBytes >= 16_000
			f.losing.probes.sent++
			if j.Outcome == emu.Vanished && k == len(j.Hops)-1 {
				f.losing.probes.lost++
			}
		}
		if j.Outcome == emu.QueueFull {
			f.touched = true
		}
	}
}

// window notes what was compared of flows, and from which cycle on it is enough to find the loss: more than chance gives once
// in three million fits, at the most unlucky of all candidates.
func (x *losing) window(f *Fault, w *inference.Window, cycle, flows int) {
	if !silent(f) || w.End-w.Start <= 0 || time.Duration(cycle)*time.Duration(w.End-w.Start) > f.For {
		return
	}
	for i := range w.Losses {
		l := &w.Losses[i]
		at := slices.IndexFunc(l.Path, func(h inference.HopKey) bool { return h.Node == f.Node && h.EgressIf == f.Port })
		if f.Name == "black-hole" {
			at = slices.IndexFunc(l.Path, func(h inference.HopKey) bool { return h.Node == f.Node })
		}
		if at >= 0 {
			x.flows.sent += l.Packets
			x.flows.lost += l.Lost
		}
	}
	floor := findings.EventsConfig().SilentLoss
	enough := func(r rounds, candidates int) bool {
		return r.sent > 0 && r.lost >= loss.Needed(r.sent, floor, candidates)
	}
	if f.Enough == 0 && (enough(x.probes, 100) || enough(x.flows, 80+flows)) {
		f.Enough = cycle
	}
}
