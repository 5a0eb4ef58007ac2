package inference

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// Deviation is a flow whose digests contradict the map, and all errors of the map, in order, that would explain that.
type Deviation struct {
	Flow    decode.FlowKey
	Ingress uint32 // the node at the first hop; NoNode if it is not known
	Digests uint64 // that were looked at
	Last    int64  // time of the latest of them
	Errors  []MapError
}

// MaxMapErrors is the greatest number of errors that a Deviation lists.
const MaxMapErrors = 16

// compareDeviations is a total order, by flow first; of the same flow the one that was looked at last comes first.
func compareDeviations(a, b *Deviation) int {
	if c := cmp.Or(a.Flow.Compare(&b.Flow), cmp.Compare(b.Last, a.Last), cmp.Compare(b.Digests, a.Digests), cmp.Compare(a.Ingress, b.Ingress)); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Errors, b.Errors, MapError.Compare)
}

var deviationKind = kindOf[unkeyed, Deviation]{
	one: "deviation", many: "deviations", least: flowBytes + 4,
	in:      func(p *Partial) *table[unkeyed, Deviation] { return &p.deviations },
	limit:   func(l *Limits) int { return l.Deviations },
	slice:   func(s *Slicer, d *Deviation) int { return s.Flow(&d.Flow) },
	compare: compareDeviations,
	own:     func(m *memory, d *Deviation) { d.Errors = share(&m.errors, d.Errors) },
	code: func(c *coder, m *memory, d *Deviation) {
		c.flow("deviation flow", &d.Flow)
		c.id("deviation ingress", &d.Ingress)
		c.uint("deviation digests", &d.Digests)
		c.time("deviation time", &d.Last)
		codeList(c, c.count("map errors", MaxMapErrors, 4, len(d.Errors)), &m.errors, &d.Errors, codeMapError)
		for i := 1; i < len(d.Errors); i++ {
			c.check("map error", c.at, d.Errors[i-1].Compare(d.Errors[i]) < 0)
		}
	},
	rows: func(w *Window) (*[]Deviation, *uint64) { return &w.Deviations, &w.OtherDeviations },
	same: func(a, b *Deviation) bool { return a.Flow == b.Flow },
}

func codeMapError(c *coder, e *MapError) {
	at := c.at
	c.byte("map error", (*uint8)(&e.Kind))
	c.check("map error", at, e.Kind < NumMapErrors)
	c.id("map error node", &e.Node)
	c.id("map error node", &e.A)
	c.id("map error node", &e.B)
}

// AddDeviation lists a flow whose digests contradict the map. The errors are copied.
func (p *Partial) AddDeviation(d *Deviation) { deviationKind.add(p, d) }
