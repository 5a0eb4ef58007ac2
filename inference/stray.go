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

// String says what is wrong, such as "rule web: node 7 is not passed".
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

func (s *Stray) order(o *Stray) int { return s.StrayKey.Compare(o.StrayKey) }

// AddStray adds flows. The path is copied. Flows is above 0.
func (p *Partial) AddStray(s *Stray) {
	to, known := p.strays.at(s.StrayKey)
	if !known {
		path := to.Path[:0]
		*to = *s
		to.Path = append(path, s.Path...)
		return
	}
	to.Flows += s.Flows
	if c := s.Flow.Compare(&to.Flow); c < 0 || c == 0 && slices.CompareFunc(s.Path, to.Path, HopKey.Compare) < 0 {
		to.Flow = s.Flow
		to.Path = append(to.Path[:0], s.Path...)
	}
}

// wandering lists what flows of the window break.
func (p *Partial) wandering(w *Window) {
	for _, i := range sorted(&p.order, p.strays.items, (*Stray).order) {
		s := p.strays.items[i]
		s.Path = append([]HopKey(nil), s.Path...)
		w.Strays = append(w.Strays, s)
	}
}

// straySection is that of [Stray]. Readers that do not know it pass over it.
const straySection = 13

func (p *Partial) writeStrays(w *writer) {
	at := w.open(straySection, len(p.strays.items))
	for _, i := range sorted(&p.order, p.strays.items, (*Stray).order) {
		s := &p.strays.items[i]
		w.uint(uint64(len(s.Rule)))
		w.b = append(append(w.b, s.Rule...), byte(s.Reason))
		w.uint(uint64(s.Node))
		w.uint(s.Flows)
		w.flow(&s.Flow)
		w.path(s.Path)
	}
	w.close(at)
}

func (p *Partial) readStrays(r *reader, limits *Limits) {
	n := r.items("strays", limits.Paths, flowBytes+6)
	p.strays.grow(n)
	for before := (*Stray)(nil); n > 0 && r.err == nil; n-- {
		at := r.at
		s := Stray{StrayKey: StrayKey{Rule: string(r.bytes("stray rule", r.count("stray rule", MaxRuleName, 1)))}}
		s.Reason, s.Node, s.Flows, s.Flow = StrayReason(r.byte("stray reason")), r.id("stray node"), r.uint("stray flows"), r.flow("stray flow")
		s.Path = r.path("stray path", nil)
		if r.ordered("stray", at, s.Rule != "" && s.Reason < numStrayReasons && s.Flows > 0 && (before == nil || before.order(&s) < 0)) {
			before, _ = p.strays.at(s.StrayKey)
			*before = s
		}
	}
}
