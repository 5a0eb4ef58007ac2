package window

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Arrival is a flow that is new to a collector, or that returns after a window without it, and its path. Arrivals are
// there only where that is asked for (shard.State.ListArrivals).
type Arrival struct {
	Time    int64
	Flow    decode.FlowKey
	PathID  uint64
	Changes uint32 // of its path that the collector saw before
	Path    []inference.HopKey
}

var arrivalKind = kindOf[unkeyed, Arrival]{
	one: "arrival", many: "arrivals", least: flowBytes + 11,
	in:      func(p *Partial) *table[unkeyed, Arrival] { return &p.arrivals },
	limit:   func(l *Limits) int { return l.Arrivals },
	slice:   func(s *Slicer, a *Arrival) int { return s.Flow(&a.Flow) },
	compare: compareArrivals,
	rank:    compareArrivals,
	own:     func(m *memory, a *Arrival) { a.Path = share(&m.hops, a.Path) },
	leave:   func(p *Partial, _ *Arrival) { p.OtherArrivals++ },
	code: func(c *coder, m *memory, a *Arrival) {
		c.time("arrival time", &a.Time)
		c.flow("arrival flow", &a.Flow)
		c.fixed64("arrival path id", &a.PathID)
		c.id("arrival changes", &a.Changes)
		c.path("arrival path", &m.hops, &a.Path)
	},
}

// compareArrivals is a total order.
func compareArrivals(a, b *Arrival) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), a.Flow.Compare(&b.Flow), cmp.Compare(a.PathID, b.PathID), cmp.Compare(a.Changes, b.Changes),
		slices.CompareFunc(a.Path, b.Path, inference.HopKey.Compare))
}

// AddArrival lists a flow. It keeps nothing of a.
//
//go:noinline
func (p *Partial) AddArrival(a *Arrival) { arrivalKind.add(p, a) }

// Arrivals returns all that AddArrival listed. The list belongs to p.
func (p *Partial) Arrivals() []Arrival { return p.arrivals.items }

// DropAcross forgets numbers, gaps and arrivals, which have no use once the partials of all collectors are put together.
func (p *Partial) DropAcross() {
	numbersKind.reset(p)
	gapKind.reset(p)
	arrivalKind.reset(p)
	p.OtherArrivals = 0
}
