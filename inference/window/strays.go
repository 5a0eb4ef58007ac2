package window

import (
	"slices"

	"github.com/hopscope/hopscope/inference"
)

var strayKind = kindOf[inference.StrayKey, inference.Stray]{
	one: "stray", many: "strays", least: flowBytes + 6,
	in:      func(p *Partial) *table[inference.StrayKey, inference.Stray] { return &p.strays },
	limit:   func(l *Limits) int { return l.Paths },
	slice:   func(s *Slicer, x *inference.Stray) int { return s.Flow(&x.Flow) },
	key:     func(x *inference.Stray) inference.StrayKey { return x.StrayKey },
	compare: func(a, b *inference.Stray) int { return a.StrayKey.Compare(b.StrayKey) },
	sum: func(m *memory, to, from *inference.Stray) {
		to.Flows += from.Flows
		if c := from.Flow.Compare(&to.Flow); c < 0 || c == 0 && slices.CompareFunc(from.Path, to.Path, inference.HopKey.Compare) < 0 {
			to.Flow = from.Flow
			m.keep(&to.Path, from.Path)
		}
	},
	own: func(m *memory, x *inference.Stray) { x.Path = share(&m.hops, x.Path) },
	code: func(c *coder, m *memory, x *inference.Stray) {
		at := c.at
		rule := []byte(x.Rule)
		n := c.count("stray rule", inference.MaxRuleName, 1, len(rule))
		if c.reading {
			rule = c.nextBytes("stray rule", n)
		} else {
			c.b = append(c.b, rule...)
		}
		x.Rule = string(rule)
		c.byte("stray reason", (*uint8)(&x.Reason))
		c.id("stray node", &x.Node)
		c.uint("stray flows", &x.Flows)
		c.flow("stray flow", &x.Flow)
		c.path("stray path", &m.hops, &x.Path)
		c.check("stray", at, x.Rule != "" && x.Reason < inference.NumStrayReasons && x.Flows > 0)
	},
	rows: func(w *inference.Window) (*[]inference.Stray, *uint64) { return &w.Strays, nil },
}

// AddStray adds flows. The path is copied. Flows is above 0.
//
//go:noinline
func (p *Partial) AddStray(s *inference.Stray) { strayKind.add(p, s) }
