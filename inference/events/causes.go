package events

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/cause"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/events/ways"
)

// causes puts the findings of a window together that have one cause.
type causes struct {
	*subject.Journal
	wires   *ways.Wires
	hops    *hops
	heard   map[uint32]bool // nodes that reported in the present window
	grouper cause.Grouper
	window  cause.Window
	late    []inference.Finding // what it publishes besides
}

func newCauses(j *subject.Journal, l *ways.Wires, h *hops) *causes {
	x := &causes{Journal: j, wires: l, hops: h, heard: map[uint32]bool{}}
	x.window = cause.Window{
		Map:   l,
		Moved: func(id uint64) []inference.HopKey { return j.Moved[id] },
		Late:  func(id uint64) uint64 { return j.Late[id] },
		Open:  j.Find,
		Start: func(f inference.Finding) *inference.Finding {
			j.ID++
			f.ID = j.ID
			j.Open = append(j.Open, &f)
			return &f
		},
		Publish: func(f inference.Finding) { x.late = append(x.late, f) },
		Seen:    x.seen,
	}
	j.States = append(j.States, x)
	return x
}

// Step runs behind all detectors.
func (x *causes) Step(w *inference.Window) {
	clear(x.heard)
	for i := range w.Exporters {
		if e := &w.Exporters[i]; !e.Nameless && e.Reports > e.Events {
			x.heard[e.Node] = true
		}
	}
	c := &x.window
	c.Now, c.Length, c.Settle, c.Published = x.Now, max(w.End-w.Start, 0), x.Cfg.CauseSettle, x.Published
	x.grouper.Step(c)
	x.Published, x.late = append(x.Published, x.late...), x.late[:0]
	clear(x.Moved)
	clear(x.Late)
	x.wires.Finish()
}

// seen returns the signs that an element could show in the present window: an interface that was judged, the reports of
// a node.
func (x *causes) seen(e inference.Element) (signs cause.Signs) {
	switch e.Kind {
	case inference.InterfaceElement:
		h := x.hops.Index[e.Hop()]
		if h == nil || h.Last != x.Windows || h.State.judgement != inference.Judged {
			return 0
		}
		signs = cause.Silent
		for i, of := range [statistics]cause.Signs{cause.Slow, cause.Queues, cause.More | cause.Fewer} {
			if h.State.series[i].used {
				signs |= of
			}
		}
	case inference.ExporterElement:
		if !e.Nameless && x.heard[e.Node] {
			signs = cause.Unreported | cause.ReportsLost
		}
	}
	return signs
}

// Offered calls a function with each element that is thought of as the cause of a finding.
func (d *Detector) Offered(each func(*inference.Finding, cause.Offer)) {
	for _, x := range d.detectors {
		if x, ok := x.(*causes); ok {
			x.window.Offered = each
		}
	}
}

// Scene returns the scene of the last window, to which the caller adds the signs that are shown.
func (d *Detector) Scene() *cause.Scene {
	for _, x := range d.detectors {
		if x, ok := x.(*causes); ok {
			return &cause.Scene{Map: x.wires, Shown: map[inference.Element]cause.Signs{}, Seen: x.seen}
		}
	}
	return nil
}

// The state of a grouper: windows<n> last id<n> findings without a cause<n> { finding as one that is open, end<n>,
// born<n>, late<n> (from version 14), quiet<n>, hops }. Then causes<n> { finding, fits, last<n> quiet<n> born<n>, open
// evidence, kinds, flows, hops, signs of elements (from version 5) }.

func (x *causes) Code(c *subject.Coder) {
	g := &x.grouper
	subject.Number(c, &g.Windows)
	subject.Number(c, &g.Last)
	c.Check("id of evidence", g.Last <= c.ID)
	subject.List(c, &g.Alone, func(a **cause.Alone) {
		if c.Reading() {
			*a = &cause.Alone{}
		}
		c.Copied(&(*a).Finding)
		subject.Number(c, &(*a).Born)
		if c.Version >= 14 {
			subject.Number(c, &(*a).Late)
		}
		subject.Number(c, &(*a).Quiet)
		subject.List(c, &(*a).Moved, c.Hop)
		c.Check("begin of a finding", (*a).Late <= (*a).Born && (*a).Born <= g.Windows)
	})
	subject.List(c, &g.Causes, func(p **cause.Cause) {
		if c.Reading() {
			*p = &cause.Cause{}
		}
		x := *p
		c.Finding(&x.Finding)
		c.Check("finding of a cause", x.Finding != nil)
		subject.List(c, &x.Fits, func(f *cause.Fit) {
			c.Element(&f.Element)
			c.Float(&f.Misfit)
		})
		subject.Number(c, &x.Last)
		subject.Number(c, &x.Quiet)
		subject.Number(c, &x.Born)
		subject.List(c, &x.Open, func(id *uint64) { subject.Number(c, id) })
		subject.List(c, &x.Kinds, func(k *cause.Tally) {
			c.Kind(&k.Kind)
			subject.Number(c, &k.Count)
			subject.Number(c, &k.Severity)
			c.Check("severity", k.Severity <= inference.Critical)
			c.Copied(&k.Lead)
		})
		subject.List(c, &x.Flows, c.Flow)
		subject.List(c, &x.Moved, c.Hop)
		if c.Version >= 5 {
			subject.List(c, &x.Shown, func(s *cause.Showing) {
				c.Element(&s.Element)
				subject.Number(c, &s.Signs)
			})
		}
		c.Check("evidence of a cause", len(x.Fits) > 0 && len(x.Kinds) > 0 && x.Born <= x.Last && x.Last <= g.Windows)
		if c.Reading() && c.OK() {
			x.Restore()
		}
	})
}
