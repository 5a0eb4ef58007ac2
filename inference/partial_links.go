package inference

import (
	"cmp"
	"encoding/binary"
)

// LinkKey is one direction of a link, as two switches on the way of a packet told it.
type LinkKey struct {
	Node, EgressIf uint32 // where packets leave; 0 where the device did not say by which interface
	Peer, PeerIf   uint32 // where they come to
	Period         uint64 // after which the clocks begin again, ns; 0 for 2⁶⁴
}

// Reverse is the other direction of the same link.
func (k LinkKey) Reverse() LinkKey {
	return LinkKey{Node: k.Peer, EgressIf: k.PeerIf, Peer: k.Node, PeerIf: k.EgressIf, Period: k.Period}
}

// Compare orders by node, interface, peer, its interface and period.
func (k LinkKey) Compare(o LinkKey) int {
	return cmp.Or(cmp.Compare(k.Node, o.Node), cmp.Compare(k.EgressIf, o.EgressIf), cmp.Compare(k.Peer, o.Peer),
		cmp.Compare(k.PeerIf, o.PeerIf), cmp.Compare(k.Period, o.Period))
}

// LinkStats is what some packets showed of a direction of a link in a window: the time at which they came to the peer by its clock, less
// that at which they left the node by its own. The clocks of switches differ, so that the difference alone says nothing; a
// change of it does, and so does the sum of both directions, in which what the clocks differ by is not.
type LinkStats struct {
	LinkKey
	Count uint64 // packets that were looked at
	Least int64  // least difference, ns, modulo Period around 0
	At    int64  // time of the report that told it; of several the first
}

func (l *LinkStats) order(o *LinkStats) int { return l.LinkKey.Compare(o.LinkKey) }

// AddLink adds what packets showed of a direction of a link. Count is above 0.
func (p *Partial) AddLink(l *LinkStats) {
	to, known := p.links.at(l.LinkKey)
	if !known {
		*to = *l
		return
	}
	to.Count += l.Count
	if l.Least < to.Least || l.Least == to.Least && l.At < to.At {
		to.Least, to.At = l.Least, l.At
	}
}

// linkSection is that of [LinkStats]. Readers that do not know it pass over it.
const linkSection = 12

func (p *Partial) writeLinks(w *writer) {
	at := w.open(linkSection, len(p.links.items))
	for _, i := range sorted(&p.order, p.links.items, (*LinkStats).order) {
		l := &p.links.items[i]
		for _, n := range [...]uint64{uint64(l.Node), uint64(l.EgressIf), uint64(l.Peer), uint64(l.PeerIf), l.Period, l.Count} {
			w.uint(n)
		}
		w.b = binary.AppendVarint(w.b, l.Least)
		w.time(l.At)
	}
	w.close(at)
}

func (p *Partial) readLinks(r *reader, limits *Limits) {
	n := r.items("links", limits.Hops, 8)
	p.links.grow(n)
	for before := (*LinkStats)(nil); n > 0 && r.err == nil; n-- {
		at := r.at
		l := LinkStats{LinkKey: LinkKey{
			Node: r.id("link node"), EgressIf: r.id("link interface"), Peer: r.id("link peer"), PeerIf: r.id("link interface"), Period: r.uint("link period"),
		}}
		l.Count = r.uint("link packets")
		l.Least, l.At = r.int("link difference"), r.time("link time")
		if r.ordered("link", at, l.Count > 0 && (before == nil || before.order(&l) < 0)) {
			before, _ = p.links.at(l.LinkKey)
			*before = l
		}
	}
}
