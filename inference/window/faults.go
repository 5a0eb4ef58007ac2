package window

import (
	"cmp"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

type faultKey struct {
	fault inference.Fault
	flow  decode.FlowKey
}

var faultKind = kindOf[faultKey, inference.DigestFault]{
	one: "fault", many: "faults", least: flowBytes + 5,
	in:      func(p *Partial) *table[faultKey, inference.DigestFault] { return &p.faults },
	limit:   func(l *Limits) int { return l.Faults },
	slice:   func(s *Slicer, d *inference.DigestFault) int { return s.Flow(&d.Flow) },
	key:     func(d *inference.DigestFault) faultKey { return faultKey{d.Fault, d.Flow} },
	compare: compareFaults,
	rank: func(a, b *inference.DigestFault) int {
		return cmp.Or(cmp.Compare(a.First, b.First), compareFaults(a, b))
	},
	sum: func(_ *memory, to, from *inference.DigestFault) {
		to.Count += from.Count
		to.First = min(to.First, from.First)
		if from.Last > to.Last || from.Last == to.Last && from.Node > to.Node {
			to.Last, to.Node = from.Last, from.Node
		}
	},
	leave: func(p *Partial, d *inference.DigestFault) { p.OtherFlows += d.Count },
	code: func(c *coder, _ *memory, d *inference.DigestFault) {
		c.byte("fault", (*uint8)(&d.Fault))
		c.flow("fault flow", &d.Flow)
		c.id("fault node", &d.Node)
		c.uint("faults", &d.Count)
		c.time("fault time", &d.First)
		c.time("fault time", &d.Last)
	},
	rows:   func(w *inference.Window) (*[]inference.DigestFault, *uint64) { return &w.Digests, &w.OtherFlows },
	weight: func(d *inference.DigestFault) uint64 { return d.Count },
}

func compareFaults(a, b *inference.DigestFault) int {
	return cmp.Or(cmp.Compare(a.Fault, b.Fault), a.Flow.Compare(&b.Flow))
}

// AddFault counts digests of a flow that have a fault.
//
//go:noinline
func (p *Partial) AddFault(d *inference.DigestFault) { faultKind.add(p, d) }
