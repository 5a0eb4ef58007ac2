package inference

import (
	"cmp"

	"github.com/hopscope/hopscope/decode"
)

type faultKey struct {
	fault Fault
	flow  decode.FlowKey
}

var faultKind = kindOf[faultKey, DigestFault]{
	one: "fault", many: "faults", least: flowBytes + 5,
	in:      func(p *Partial) *table[faultKey, DigestFault] { return &p.faults },
	limit:   func(l *Limits) int { return l.Faults },
	slice:   func(s *Slicer, d *DigestFault) int { return s.Flow(&d.Flow) },
	key:     func(d *DigestFault) faultKey { return faultKey{d.Fault, d.Flow} },
	compare: compareFaults,
	rank: func(a, b *DigestFault) int {
		return cmp.Or(cmp.Compare(a.First, b.First), compareFaults(a, b))
	},
	sum: func(_ *memory, to, from *DigestFault) {
		to.Count += from.Count
		to.First = min(to.First, from.First)
		if from.Last > to.Last || from.Last == to.Last && from.Node > to.Node {
			to.Last, to.Node = from.Last, from.Node
		}
	},
	leave: func(p *Partial, d *DigestFault) { p.OtherFlows += d.Count },
	code: func(c *coder, _ *memory, d *DigestFault) {
		c.byte("fault", (*uint8)(&d.Fault))
		c.flow("fault flow", &d.Flow)
		c.id("fault node", &d.Node)
		c.uint("faults", &d.Count)
		c.time("fault time", &d.First)
		c.time("fault time", &d.Last)
	},
	rows:   func(w *Window) (*[]DigestFault, *uint64) { return &w.Digests, &w.OtherFlows },
	weight: func(d *DigestFault) uint64 { return d.Count },
}

func compareFaults(a, b *DigestFault) int {
	return cmp.Or(cmp.Compare(a.Fault, b.Fault), a.Flow.Compare(&b.Flow))
}

// AddFault counts digests of a flow that have a fault.
//
//go:noinline
func (p *Partial) AddFault(d *DigestFault) { faultKind.add(p, d) }
