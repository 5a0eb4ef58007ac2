package inference

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// FlowLoss compares what the first and the last switch on a flow's way reported of its packets, as far as it was settled
// in a window. A packet that a switch dropped and reported is not lost in this sense.
type FlowLoss struct {
	Flow    decode.FlowKey
	Packets uint64   // that the first switch reported
	Lost    uint64   // of these, the ones that the last switch did not report
	Path    []HopKey // at the end of the window; empty while it is not known
}

var lossKind = kindOf[decode.FlowKey, FlowLoss]{
	one: "loss", many: "losses", least: flowBytes + 3,
	in:      func(p *Partial) *table[decode.FlowKey, FlowLoss] { return &p.losses },
	limit:   func(l *Limits) int { return l.Losses },
	slice:   func(s *Slicer, l *FlowLoss) int { return s.Flow(&l.Flow) },
	key:     func(l *FlowLoss) decode.FlowKey { return l.Flow },
	compare: func(a, b *FlowLoss) int { return a.Flow.Compare(&b.Flow) },
	// Of several paths the one with more hops stays, and then the greater one.
	sum: func(m *memory, to, from *FlowLoss) {
		to.Packets += from.Packets
		to.Lost += from.Lost
		if len(from.Path) > len(to.Path) || len(from.Path) == len(to.Path) && slices.CompareFunc(from.Path, to.Path, HopKey.Compare) > 0 {
			m.keep(&to.Path, from.Path)
		}
	},
	own: func(m *memory, l *FlowLoss) { l.Path = share(&m.hops, l.Path) },
	code: func(c *coder, m *memory, l *FlowLoss) {
		c.flow("loss flow", &l.Flow)
		c.uint("loss packets", &l.Packets)
		c.uint("losses", &l.Lost)
		c.path("loss path", &m.hops, &l.Path)
	},
	rows:   func(w *Window) (*[]FlowLoss, *uint64) { return &w.Losses, &w.OtherLosses },
	weight: func(l *FlowLoss) uint64 { return l.Packets },
}

// AddLoss adds what was compared of a flow. The path is copied.
func (p *Partial) AddLoss(l *FlowLoss) { lossKind.add(p, l) }
