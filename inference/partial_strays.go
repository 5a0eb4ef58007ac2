package inference

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode"
)

// StrayReason says in what the way of a flow breaks a rule.
type StrayReason uint8

// The reasons.
const (
	Missed    StrayReason = iota // it does not pass Node, nor what may stand for it
	Forbidden                    // it passes Node
	Elsewhere                    // it is none of the paths that are allowed, which it leaves behind Node
	numStrayReasons
)

// MaxRuleName bounds the name of a rule, in bytes.
const MaxRuleName = 64

// StrayKey says which rule is broken, in what, and where.
type StrayKey struct {
	Rule   string
	Reason StrayReason
	Node   uint32
}

// Compare orders by rule, reason and node.
func (k StrayKey) Compare(o StrayKey) int {
	return cmp.Or(strings.Compare(k.Rule, o.Rule), cmp.Compare(k.Reason, o.Reason), cmp.Compare(k.Node, o.Node))
}

// String returns what is wrong, such as "rule web: node 7 is not passed".
func (k StrayKey) String() string {
	switch k.Reason {
	case Missed:
		return fmt.Sprintf("rule %s: node %d is not passed", k.Rule, k.Node)
	case Forbidden:
		return fmt.Sprintf("rule %s: node %d is passed", k.Rule, k.Node)
	}
	return fmt.Sprintf("rule %s: the way leaves those that are allowed behind node %d", k.Rule, k.Node)
}

// Stray counts the flows of a window that take a way which their policy does not allow. One of them is the example: the one with the
// least key.
type Stray struct {
	StrayKey
	Flows uint64
	Flow  decode.FlowKey
	Path  []HopKey
}

var strayKind = kindOf[StrayKey, Stray]{
	one: "stray", many: "strays", least: flowBytes + 6,
	in:      func(p *Partial) *table[StrayKey, Stray] { return &p.strays },
	limit:   func(l *Limits) int { return l.Paths },
	slice:   func(s *Slicer, x *Stray) int { return s.Flow(&x.Flow) },
	key:     func(x *Stray) StrayKey { return x.StrayKey },
	compare: func(a, b *Stray) int { return a.StrayKey.Compare(b.StrayKey) },
	sum: func(m *memory, to, from *Stray) {
		to.Flows += from.Flows
		if c := from.Flow.Compare(&to.Flow); c < 0 || c == 0 && slices.CompareFunc(from.Path, to.Path, HopKey.Compare) < 0 {
			to.Flow = from.Flow
			m.keep(&to.Path, from.Path)
		}
	},
	own: func(m *memory, x *Stray) { x.Path = share(&m.hops, x.Path) },
	code: func(c *coder, m *memory, x *Stray) {
		at := c.at
		rule := []byte(x.Rule)
		n := c.count("stray rule", MaxRuleName, 1, len(rule))
		if c.reading {
			rule = c.take("stray rule", n)
		} else {
			c.b = append(c.b, rule...)
		}
		x.Rule = string(rule)
		c.byte("stray reason", (*uint8)(&x.Reason))
		c.id("stray node", &x.Node)
		c.uint("stray flows", &x.Flows)
		c.flow("stray flow", &x.Flow)
		c.path("stray path", &m.hops, &x.Path)
		c.check("stray", at, x.Rule != "" && x.Reason < numStrayReasons && x.Flows > 0)
	},
	rows: func(w *Window) (*[]Stray, *uint64) { return &w.Strays, nil },
}

// AddStray adds flows. The path is copied. Flows is above 0.
//
//go:noinline
func (p *Partial) AddStray(s *Stray) { strayKind.add(p, s) }
