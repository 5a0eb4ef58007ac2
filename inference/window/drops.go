package window

import (
	"cmp"

	"github.com/hopscope/hopscope/inference"
)

type dropKey struct {
	node   uint32
	reason uint8
}

// If there are too many pairs of node and reason, those with the least numbers stay. The order of arrival depends on
// the shard, because drops of one node reach several shards.
var dropKind = kindOf[dropKey, inference.DropStats]{
	one: "drop", many: "drops", least: flowBytes + 4,
	in:      func(p *Partial) *table[dropKey, inference.DropStats] { return &p.drops },
	limit:   func(l *Limits) int { return l.Drops },
	slice:   func(s *Slicer, d *inference.DropStats) int { return s.Drops(d.Node, d.Reason) },
	key:     func(d *inference.DropStats) dropKey { return dropKey{d.Node, d.Reason} },
	compare: compareDrops,
	rank:    compareDrops,
	sum: func(_ *memory, to, from *inference.DropStats) {
		to.Count += from.Count
		if from.Last > to.Last || from.Last == to.Last && from.Flow.Compare(&to.Flow) > 0 {
			to.Last, to.Flow = from.Last, from.Flow
		}
	},
	leave: func(p *Partial, d *inference.DropStats) { p.OtherDrops += d.Count },
	code: func(c *coder, _ *memory, d *inference.DropStats) {
		c.id("drop node", &d.Node)
		c.byte("drop reason", &d.Reason)
		c.uint("drops", &d.Count)
		c.time("drop time", &d.Last)
		c.flow("drop flow", &d.Flow)
	},
	rows:   func(w *inference.Window) (*[]inference.DropStats, *uint64) { return &w.Drops, &w.OtherDrops },
	weight: func(d *inference.DropStats) uint64 { return d.Count },
}

func compareDrops(a, b *inference.DropStats) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason))
}

// AddDrops counts drops of a node for a reason.
//
//go:noinline
func (p *Partial) AddDrops(d *inference.DropStats) { dropKind.add(p, d) }
