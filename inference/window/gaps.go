package window

import (
	"cmp"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Gap is a stretch of sequence numbers of an exporter that a run of a collector did not receive because it was not
// there. It reaches from the first number that the run before had not accounted for to the last one before its own
// first. Some may have been received all the same, by that run or by another collector. Gaps are there only where
// [Numbers] are.
type Gap struct {
	inference.ExporterKey
	To    uint64 // as in Numbers
	Width uint8  // likewise
	First uint32
	Count uint32 // of numbers, above 0
}

// Two may be the same, as two lists of numbers may.
var gapKind = kindOf[unkeyed, Gap]{
	one: "gap", many: "gaps", least: len(decode.Addr{}) + 17,
	in:      func(p *Partial) *table[unkeyed, Gap] { return &p.gaps },
	limit:   func(l *Limits) int { return l.Numbers },
	slice:   func(s *Slicer, g *Gap) int { return s.Exporter(g.ExporterKey) },
	compare: (*Gap).Compare,
	code: func(c *coder, _ *memory, g *Gap) {
		node0 := g.OfNode0()
		c.flags("gap flags", &node0)
		c.late = node0
		c.exporter("gap", &g.ExporterKey)
		c.late = false
		at := c.at
		c.byte("gap width", &g.Width)
		c.check("gap width", at, g.Width > 0 && g.Width <= 32)
		c.fixed64("gap destination", &g.To)
		at = c.at
		c.fixed32("gap first", &g.First)
		c.id("gap count", &g.Count)
		c.check("gap", at, uint64(g.First)>>g.Width == 0 && g.Count > 0 && uint64(g.Count)>>g.Width == 0)
	},
}

// AddGap lists a gap. It keeps nothing of g.
func (p *Partial) AddGap(g *Gap) { gapKind.add(p, g) }

// Gaps returns all that AddGap listed, also of partials that were merged. The list belongs to p.
func (p *Partial) Gaps() []Gap { return p.gaps.items }

// Compare orders by exporter, width, destination, first number and count.
func (g *Gap) Compare(o *Gap) int {
	return cmp.Or(g.ExporterKey.Compare(o.ExporterKey), cmp.Compare(g.Width, o.Width), cmp.Compare(g.To, o.To), cmp.Compare(g.First, o.First), cmp.Compare(g.Count, o.Count))
}
