package inference

import "cmp"

// LinkKey is one direction of a link, as two switches on the path of a packet reported it.
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

// LinkStats holds the times of packets on a direction of a link in a window: the time at which they came to the peer by its clock,
// less that at which they left the node by its own. The clocks of switches differ, so that the difference alone says nothing; a
// change of it does, and so does the sum of both directions, in which what the clocks differ by is not.
type LinkStats struct {
	LinkKey
	Count uint64 // packets that were looked at
	Least int64  // least difference, ns, modulo Period around 0
	At    int64  // time of the report that has it; of several the first
}

var linkKind = kindOf[LinkKey, LinkStats]{
	one: "link", many: "links", least: 8,
	in:      func(p *Partial) *table[LinkKey, LinkStats] { return &p.links },
	limit:   func(l *Limits) int { return l.Hops },
	slice:   func(s *Slicer, l *LinkStats) int { return s.Hop(HopKey{Node: l.Node, EgressIf: l.EgressIf}) },
	key:     func(l *LinkStats) LinkKey { return l.LinkKey },
	compare: func(a, b *LinkStats) int { return a.LinkKey.Compare(b.LinkKey) },
	sum: func(_ *memory, to, from *LinkStats) {
		to.Count += from.Count
		if from.Least < to.Least || from.Least == to.Least && from.At < to.At {
			to.Least, to.At = from.Least, from.At
		}
	},
	code: func(c *coder, _ *memory, l *LinkStats) {
		at := c.at
		c.id("link node", &l.Node)
		c.id("link interface", &l.EgressIf)
		c.id("link peer", &l.Peer)
		c.id("link interface", &l.PeerIf)
		c.uint("link period", &l.Period)
		c.uint("link packets", &l.Count)
		c.int("link difference", &l.Least)
		c.time("link time", &l.At)
		c.check("link", at, l.Count > 0)
	},
	rows: func(w *Window) (*[]LinkStats, *uint64) { return &w.Links, nil },
}

// AddLink adds what packets showed of a direction of a link. Count is above 0.
//
//go:noinline
func (p *Partial) AddLink(l *LinkStats) { linkKind.add(p, l) }
