package window

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// MaxMapErrors is the greatest number of errors that a Deviation lists.
const MaxMapErrors = 16

// compareDeviations is a total order, by flow first. Of the same flow the one that was examined last comes first.
func compareDeviations(a, b *inference.Deviation) int {
	if c := cmp.Or(a.Flow.Compare(&b.Flow), cmp.Compare(b.Last, a.Last), cmp.Compare(b.Digests, a.Digests), cmp.Compare(a.Ingress, b.Ingress)); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Errors, b.Errors, inference.MapError.Compare)
}

var deviationKind = kindOf[unkeyed, inference.Deviation]{
	one: "deviation", many: "deviations", least: flowBytes + 4,
	in:      func(p *Partial) *table[unkeyed, inference.Deviation] { return &p.deviations },
	limit:   func(l *Limits) int { return l.Deviations },
	slice:   func(s *Slicer, d *inference.Deviation) int { return s.Flow(&d.Flow) },
	compare: compareDeviations,
	own:     func(m *memory, d *inference.Deviation) { d.Errors = share(&m.errors, d.Errors) },
	code: func(c *coder, m *memory, d *inference.Deviation) {
		c.flow("deviation flow", &d.Flow)
		c.id("deviation ingress", &d.Ingress)
		c.uint("deviation digests", &d.Digests)
		c.time("deviation time", &d.Last)
		codeList(c, c.count("map errors", MaxMapErrors, 4, len(d.Errors)), &m.errors, &d.Errors, codeMapError)
		for i := 1; i < len(d.Errors); i++ {
			c.check("map error", c.at, d.Errors[i-1].Compare(d.Errors[i]) < 0)
		}
	},
	rows: func(w *inference.Window) (*[]inference.Deviation, *uint64) { return &w.Deviations, &w.OtherDeviations },
	same: func(a, b *inference.Deviation) bool { return a.Flow == b.Flow },
}

func codeMapError(c *coder, e *inference.MapError) {
	at := c.at
	c.byte("map error", (*uint8)(&e.Kind))
	c.check("map error", at, e.Kind < inference.NumMapErrors)
	c.id("map error node", &e.Node)
	c.id("map error node", &e.A)
	c.id("map error node", &e.B)
}

// AddDeviation lists a flow whose digests contradict the map. The errors are copied.
func (p *Partial) AddDeviation(d *inference.Deviation) { deviationKind.add(p, d) }
