package window

import "github.com/hopscope/hopscope/inference"

var linkKind = kindOf[inference.LinkKey, inference.LinkStats]{
	one: "link", many: "links", least: 8,
	in:    func(p *Partial) *table[inference.LinkKey, inference.LinkStats] { return &p.links },
	limit: func(l *Limits) int { return l.Hops },
	slice: func(s *Slicer, l *inference.LinkStats) int {
		return s.Hop(inference.HopKey{Node: l.Node, EgressIf: l.EgressIf})
	},
	key:     func(l *inference.LinkStats) inference.LinkKey { return l.LinkKey },
	compare: func(a, b *inference.LinkStats) int { return a.LinkKey.Compare(b.LinkKey) },
	sum: func(_ *memory, to, from *inference.LinkStats) {
		to.Count += from.Count
		if from.Least < to.Least || from.Least == to.Least && from.At < to.At {
			to.Least, to.At = from.Least, from.At
		}
	},
	code: func(c *coder, _ *memory, l *inference.LinkStats) {
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
	rows: func(w *inference.Window) (*[]inference.LinkStats, *uint64) { return &w.Links, nil },
}

// AddLink adds what packets showed of a direction of a link. Count is above 0.
//
//go:noinline
func (p *Partial) AddLink(l *inference.LinkStats) { linkKind.add(p, l) }
