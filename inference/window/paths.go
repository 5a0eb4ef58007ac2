package window

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// Two changes may be the same: what was merged twice is there twice.
var pathKind = kindOf[unkeyed, inference.PathChange]{
	one: "path", many: "paths", least: flowBytes + 13,
	in:      func(p *Partial) *table[unkeyed, inference.PathChange] { return &p.paths },
	limit:   func(l *Limits) int { return l.Paths },
	slice:   func(s *Slicer, c *inference.PathChange) int { return s.Flow(&c.Flow) },
	compare: comparePaths,
	rank:    comparePaths,
	own:     func(m *memory, c *inference.PathChange) { c.From, c.To = share(&m.hops, c.From), share(&m.hops, c.To) },
	leave:   func(p *Partial, _ *inference.PathChange) { p.OtherPaths++ },
	code: func(c *coder, m *memory, x *inference.PathChange) {
		c.time("path time", &x.Time)
		c.flow("path flow", &x.Flow)
		c.fixed64("path id", &x.PathID)
		c.id("path changes", &x.Changes)
		c.uint("path packets", &x.Packets)
		c.path("path before", &m.hops, &x.From)
		c.path("path after", &m.hops, &x.To)
	},
	rows: func(w *inference.Window) (*[]inference.PathChange, *uint64) { return &w.Paths, &w.OtherPaths },
}

// comparePaths orders path changes by time, then by flow and by how often the flow had changed. The rest of the fields
// only makes the order a total one.
func comparePaths(a, b *inference.PathChange) int {
	if c := cmp.Or(cmp.Compare(a.Time, b.Time), a.Flow.Compare(&b.Flow), cmp.Compare(a.Changes, b.Changes),
		cmp.Compare(a.PathID, b.PathID), cmp.Compare(a.Packets, b.Packets)); c != 0 {
		return c
	}
	return cmp.Or(slices.CompareFunc(a.From, b.From, inference.HopKey.Compare), slices.CompareFunc(a.To, b.To, inference.HopKey.Compare))
}

// AddPath lists a path change. The paths are copied.
//
//go:noinline
func (p *Partial) AddPath(c *inference.PathChange) { pathKind.add(p, c) }

// LengthenPath corrects the listed path change of c's flow with as many changes as c. It gets the path that c leads to,
// since its own was a part of that.
func (p *Partial) LengthenPath(c *inference.PathChange) {
	for i := len(p.paths.items) - 1; i >= 0; i-- {
		if x := &p.paths.items[i]; x.Changes == c.Changes && x.Flow == c.Flow {
			x.PathID, x.To = c.PathID, share(&p.paths.memory.hops, c.To)
			return
		}
	}
}

// PathChanges returns the path changes that are listed, in no order. The list belongs to p.
func (p *Partial) PathChanges() []inference.PathChange { return p.paths.items }

// SetPathChanges lists these path changes instead of those that are listed. It keeps nothing of them, which may not be
// those of p.
func (p *Partial) SetPathChanges(all []inference.PathChange) {
	pathKind.reset(p)
	for i := range all {
		p.AddPath(&all[i])
	}
}
