package window

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

var lossKind = kindOf[decode.FlowKey, inference.FlowLoss]{
	one: "loss", many: "losses", least: flowBytes + 3,
	in:      func(p *Partial) *table[decode.FlowKey, inference.FlowLoss] { return &p.losses },
	limit:   func(l *Limits) int { return l.Losses },
	slice:   func(s *Slicer, l *inference.FlowLoss) int { return s.Flow(&l.Flow) },
	key:     func(l *inference.FlowLoss) decode.FlowKey { return l.Flow },
	compare: func(a, b *inference.FlowLoss) int { return a.Flow.Compare(&b.Flow) },
	// Of several paths the one with more hops stays, and then the greater one.
	sum: func(m *memory, to, from *inference.FlowLoss) {
		to.Packets += from.Packets
		to.Lost += from.Lost
		if len(from.Path) > len(to.Path) || len(from.Path) == len(to.Path) && slices.CompareFunc(from.Path, to.Path, inference.HopKey.Compare) > 0 {
			m.keep(&to.Path, from.Path)
		}
	},
	own: func(m *memory, l *inference.FlowLoss) { l.Path = share(&m.hops, l.Path) },
	code: func(c *coder, m *memory, l *inference.FlowLoss) {
		c.flow("loss flow", &l.Flow)
		c.uint("loss packets", &l.Packets)
		c.uint("losses", &l.Lost)
		c.path("loss path", &m.hops, &l.Path)
	},
	rows:   func(w *inference.Window) (*[]inference.FlowLoss, *uint64) { return &w.Losses, &w.OtherLosses },
	weight: func(l *inference.FlowLoss) uint64 { return l.Packets },
}

// AddLoss adds what was compared of a flow. The path is copied.
func (p *Partial) AddLoss(l *inference.FlowLoss) { lossKind.add(p, l) }
