package events

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/cause"
	"github.com/hopscope/hopscope/inference/state"
)

// CauseConfig are the settings of causes.
type CauseConfig struct {
	CauseSettle int `yaml:"cause_settle" doc:"Windows after the last evidence of a cause has ended until the cause ends, and in which what comes again belongs to it." range:"0..1000"`
}

var defaultCauseConfig = CauseConfig{CauseSettle: 10}

// causes puts the findings of a window together that have one cause.
type causes struct {
	*journal
	wires   *wires
	hops    *hops
	heard   map[uint32]bool // nodes that reported in the present window
	grouper cause.Grouper
	window  cause.Window
	late    []inference.Finding // what it publishes besides
}

func newCauses(j *journal, l *wires, h *hops) *causes {
	x := &causes{journal: j, wires: l, hops: h, heard: map[uint32]bool{}}
	x.window = cause.Window{
		Map:   l,
		Moved: func(id uint64) []inference.HopKey { return j.moved[id] },
		Open:  j.find,
		Start: func(f inference.Finding) *inference.Finding {
			j.id++
			f.ID = j.id
			j.open = append(j.open, &f)
			return &f
		},
		Publish: func(f inference.Finding) { x.late = append(x.late, f) },
		Seen:    x.seen,
	}
	j.states = append(j.states, x)
	return x
}

// step runs behind all detectors.
func (x *causes) step(w *inference.Window) {
	clear(x.heard)
	for i := range w.Exporters {
		if e := &w.Exporters[i]; !e.Nameless && e.Reports > e.Events {
			x.heard[e.Node] = true
		}
	}
	c := &x.window
	c.Now, c.Length, c.Settle, c.Published = x.now, max(w.End-w.Start, 0), x.cfg.CauseSettle, x.published
	x.grouper.Step(c)
	x.published, x.late = append(x.published, x.late...), x.late[:0]
	clear(x.moved)
	x.wires.flows, x.wires.ahead = nil, nil // they are those of the window
}

// seen returns the signs that an element could show in the present window: an interface that was judged, the reports of a node.
func (x *causes) seen(e inference.Element) (signs cause.Signs) {
	switch e.Kind {
	case inference.InterfaceElement:
		h := x.hops.index[e.Hop()]
		if h == nil || h.last != x.windows || h.state.judgement != inference.Judged {
			return 0
		}
		signs = cause.Silent
		for i, of := range [statistics]cause.Signs{cause.Slow, cause.Queues, cause.More | cause.Fewer} {
			if h.state.series[i].used {
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

// Scene returns the scene of the last window, to which the caller adds the signs that are shown.
func (d *Detector) Scene() *cause.Scene {
	for _, x := range d.detectors {
		if x, ok := x.(*causes); ok {
			return &cause.Scene{Map: x.wires, Shown: map[inference.Element]cause.Signs{}, Seen: x.seen}
		}
	}
	return nil
}

// find gives an open finding by its id, nil for one that is not open.
func (j *journal) find(id uint64) *inference.Finding {
	i, ok := slices.BinarySearchFunc(j.open, id, func(f *inference.Finding, id uint64) int { return cmp.Compare(f.ID, id) })
	if !ok || j.open[i].End != 0 {
		return nil
	}
	return j.open[i]
}

// elementOf says what has to be looked at where a detector does not.
func elementOf(f *inference.Finding) inference.Element {
	switch {
	case f.Exporter != (decode.Addr{}):
		return inference.ElementOfExporter(inference.ExporterKey{Addr: f.Exporter, Node: f.Node, HWID: f.HWID, Nameless: f.Nameless})
	case f.Kind == inference.PathChanged && f.FlowText() != "", f.Kind == inference.StrangeDigests && f.FlowText() != "",
		f.Node == 0 && f.FlowText() != "" && f.Kind != inference.PacketDrops:
		return inference.ElementOfFlow(f.Flow)
	case f.Kind == inference.PathChanged: // of several flows that have no element in common
		return inference.Element{}
	}
	return inference.ElementOfHop(inference.HopKey{Node: f.Node, EgressIf: f.EgressIf})
}

// The state of a grouper: windows<n> last id<n> findings without a cause<n> { finding as one that is open, end<n>, born<n>,
// quiet<n>, hops } causes<n> { finding, fits, last<n> quiet<n> born<n>, open evidence, kinds, flows, hops, signs
// of elements (from version 5) }.

func (x *causes) code(c *coder) {
	g := &x.grouper
	number(c, &g.Windows)
	number(c, &g.Last)
	c.Check("id of evidence", g.Last <= c.id)
	list(c, &g.Alone, func(a **cause.Alone) {
		if c.Reading() {
			*a = &cause.Alone{}
		}
		c.copied(&(*a).Finding)
		number(c, &(*a).Born)
		number(c, &(*a).Quiet)
		list(c, &(*a).Moved, c.hop)
		c.Check("begin of a finding", (*a).Born <= g.Windows)
	})
	list(c, &g.Causes, func(p **cause.Cause) {
		if c.Reading() {
			*p = &cause.Cause{}
		}
		x := *p
		c.finding(&x.Finding)
		c.Check("finding of a cause", x.Finding != nil)
		list(c, &x.Fits, func(f *cause.Fit) {
			c.element(&f.Element)
			c.float(&f.Misfit)
		})
		number(c, &x.Last)
		number(c, &x.Quiet)
		number(c, &x.Born)
		list(c, &x.Open, func(id *uint64) { number(c, id) })
		list(c, &x.Kinds, func(k *cause.Tally) {
			c.kind(&k.Kind)
			number(c, &k.Count)
			number(c, &k.Severity)
			c.Check("severity", k.Severity <= inference.Critical)
			c.copied(&k.Lead)
		})
		list(c, &x.Flows, c.flow)
		list(c, &x.Moved, c.hop)
		if c.version >= 5 {
			list(c, &x.Shown, func(s *cause.Showing) {
				c.element(&s.Element)
				number(c, &s.Signs)
			})
		}
		c.Check("evidence of a cause", len(x.Fits) > 0 && len(x.Kinds) > 0 && x.Born <= x.Last && x.Last <= g.Windows)
	})
}

// list is a number of things, one after the other.
func list[T any](c *coder, p *[]T, each func(*T)) {
	n := len(*p)
	if number(c, &n); c.Reading() && n > c.Left()/8 {
		c.Fail("list", state.ErrShort)
		n = 0
	}
	state.Repeat(c.Coder, n, p, func(item *T, _ *state.Coder) { each(item) })
}

// copied is a finding that is kept beside the one that its detector has open.
func (c *coder) copied(f *inference.Finding) {
	open := len(c.open)
	p := f
	if c.Reading() {
		p = nil
	}
	c.finding(&p)
	if c.Reading() && c.OK() {
		c.Check("id of a finding", p != nil)
		if p == nil {
			return
		}
		*f = *p
		c.open = c.open[:open]
	}
	number(c, &f.End)
}
