package ways

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// Wires are the links that flows were seen to pass: which node is behind which interface. It is learnt from the paths
// in the windows, so that no topology is needed.
type Wires struct {
	*subject.Table[wire, struct{}]
	peers      map[inference.HopKey][]uint32
	interfaces map[uint32][]inference.HopKey
	stale      bool // the maps are not those of the list

	flows []inference.FlowStats                   // of the present window
	ahead map[inference.HopKey][]inference.HopKey // made of them on demand
}

// wire is a direction of a link. EgressIf is 0 where the device did not name it.
type wire struct{ node, egressIf, peer uint32 }

func (k wire) compare(o wire) int {
	return cmp.Or(cmp.Compare(k.node, o.node), cmp.Compare(k.egressIf, o.egressIf), cmp.Compare(k.peer, o.peer))
}

func codeWire(c *subject.Coder, k *wire) {
	subject.Number(c, &k.node)
	subject.Number(c, &k.egressIf)
	subject.Number(c, &k.peer)
}

// NewWires makes the table of links.
func NewWires(j *subject.Journal) *Wires {
	return &Wires{Table: subject.NewTable(j, wire.compare, codeWire, func(*subject.Coder, *struct{}) {}), stale: true}
}

// Step learns the links of a window.
func (l *Wires) Step(w *inference.Window) {
	l.flows, l.ahead = w.Flows, nil
	for i := range w.Paths {
		l.path(w.Paths[i].From)
		l.path(w.Paths[i].To)
	}
	for i := range w.Flows {
		f := &w.Flows[i]
		for h := 1; h < len(f.Hops); h++ {
			if a, b := &f.Hops[h-1], &f.Hops[h]; !f.Partial && !a.Unknown && !b.Unknown {
				l.pass(a.HopKey, b.Node)
			}
		}
	}
	l.ForEachAbsent(func(_ wire, _ *struct{}, windows int) bool {
		forget := windows >= l.Cfg.ForgetAfter
		l.stale = l.stale || forget
		return forget
	})
}

func (l *Wires) path(hops []inference.HopKey) {
	for i := 1; i < len(hops); i++ {
		l.pass(hops[i-1], hops[i].Node)
	}
}

func (l *Wires) pass(h inference.HopKey, peer uint32) {
	if h.Other || h.Node == peer {
		return
	}
	n := len(l.List)
	l.Observe(wire{h.Node, h.EgressIf, peer}, 2*l.Cfg.MaxHops)
	l.stale = l.stale || len(l.List) > n
}

// refresh makes the maps anew if a link came or went.
func (l *Wires) refresh() {
	if !l.stale {
		return
	}
	l.Order()
	l.peers, l.interfaces, l.stale = map[inference.HopKey][]uint32{}, map[uint32][]inference.HopKey{}, false
	add := func(h inference.HopKey, peer uint32) { l.peers[h] = append(l.peers[h], peer) }
	for _, s := range l.List {
		k := s.Key
		h := inference.HopKey{Node: k.node, EgressIf: k.egressIf}
		add(inference.HopKey{Node: k.node}, k.peer)
		add(inference.HopKey{Node: k.peer}, k.node)
		if k.egressIf != 0 {
			add(h, k.peer)
			if list := l.interfaces[k.node]; len(list) == 0 || list[len(list)-1] != h {
				l.interfaces[k.node] = append(list, h)
			}
		}
	}
	for h, peers := range l.peers {
		slices.Sort(peers)
		l.peers[h] = slices.Compact(peers)
	}
}

// Finish lets go of the flows of the window.
func (l *Wires) Finish() { l.flows, l.ahead = nil, nil }

// Peers returns the nodes behind an interface, or all neighbours of a node.
func (l *Wires) Peers(h inference.HopKey) []uint32 {
	l.refresh()
	return l.peers[h]
}

// Interfaces returns the interfaces of a node with a known neighbour.
func (l *Wires) Interfaces(node uint32) []inference.HopKey {
	l.refresh()
	return l.interfaces[node]
}

// Ahead returns the interfaces that packets of the window came to behind a hop; behind a node, if it has no interface.
func (l *Wires) Ahead(h inference.HopKey) []inference.HopKey {
	if l.ahead == nil {
		l.look()
	}
	return l.ahead[h]
}

// mostAhead bounds the interfaces behind one hop that are remembered.
const mostAhead = 256

func (l *Wires) look() {
	l.ahead = map[inference.HopKey][]inference.HopKey{}
	add := func(h, to inference.HopKey) {
		if list := l.ahead[h]; len(list) < mostAhead && !slices.Contains(list, to) {
			l.ahead[h] = append(list, to)
		}
	}
	leaves := map[decode.Addr][]inference.HopKey{} // where packets to a host leave the network, which not all flows show
	for i := range l.flows {
		f := &l.flows[i]
		if n := len(f.Hops); n > 1 && !f.Partial && f.Hops[n-1].EgressIf != 0 && len(leaves[f.Key.Dst]) < 4 {
			if h := f.Hops[n-1].HopKey; !h.Other && !slices.Contains(leaves[f.Key.Dst], h) {
				leaves[f.Key.Dst] = append(leaves[f.Key.Dst], h)
			}
		}
	}
	for i := range l.flows {
		f := &l.flows[i]
		for k := range f.Hops {
			from := f.Hops[k].HopKey
			behind := func(to inference.HopKey) {
				if to.EgressIf != 0 && !from.Other && !to.Other && from.Node != to.Node {
					add(from, to)
					add(inference.HopKey{Node: from.Node}, to)
				}
			}
			for _, to := range f.Hops[k+1:] {
				behind(to.HopKey)
			}
			for _, to := range leaves[f.Key.Dst] {
				behind(to)
			}
		}
	}
}
