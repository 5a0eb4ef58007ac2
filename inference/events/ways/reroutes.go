package ways

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// Reroutes finds flows that take another path than before. Flows that leave the same link in one window share a
// finding, and so do flows that come to one. So do flows that are sent over several paths in turn, and all flows for
// which there is no place.
type Reroutes struct {
	groups groups
	flows  *subject.Table[decode.FlowKey, ways]
	spread *subject.Table[subject.All, spread]
	others *subject.Table[subject.All, subject.Tally]
}

// ways is the state of a flow that changes its path.
type ways struct {
	subject.Tally
	recent []uint64 // hashes of its last paths
	turns  bool     // it is sent over several paths in turn
}

func codeWays(c *subject.Coder, w *ways) {
	subject.Number(c, &w.Count)
	c.Finding(&w.Finding)
	subject.List(c, &w.recent, func(h *uint64) { subject.Number(c, h) })
	c.Flag(&w.turns)
	c.Check("finding of a flow", w.turns || w.Finding != nil)
}

// spread is the state of all flows that are sent over several paths in turn.
type spread struct {
	subject.Tally
	windows int  // since its finding started
	learnt  bool // its finding lasted long enough
}

func codeSpread(c *subject.Coder, s *spread) {
	subject.Number(c, &s.Count)
	c.Finding(&s.Finding)
	subject.Number(c, &s.windows)
	c.Flag(&s.learnt)
}

// NewReroutes makes the detector.
func NewReroutes(j *subject.Journal, l *Wires) Reroutes {
	one := func(subject.All, subject.All) int { return 0 }
	none := func(*subject.Coder, *subject.All) {}
	return Reroutes{
		groups: newGroups(j, l),
		flows:  subject.NewTable(j, func(a, b decode.FlowKey) int { return a.Compare(&b) }, (*subject.Coder).Flow, codeWays),
		spread: subject.NewTable(j, one, none, codeSpread),
		others: subject.NewTable(j, one, none, (*subject.Coder).Tally),
	}
}

// Step takes the next window, behind the wires.
func (p Reroutes) Step(w *inference.Window) {
	others := w.OtherPaths
	if len(w.Paths) > 0 {
		others += p.changes(w)
	}
	if others > 0 {
		t := p.others.Observe(subject.All{}, 1)
		t.Count += others
		publishPath(p.others, &t.Finding, t.Count, inference.Finding{Text: fmt.Sprintf("%d changes of path in flows that are not listed one by one", t.Count)})
	}
	p.end(w)
}

// changes publishes the flows that changed their paths, and returns the number of changes of flows without a place.
func (p Reroutes) changes(w *inference.Window) (others uint64) {
	flows, turns := split(movedFlows(w.Paths), func(m *moved) bool { return !m.sprayed() && !p.turning(m) })
	others += p.sprayed(turns)
	for _, m := range p.groups.publishGroups(w, flows) {
		t := p.flows.Observe(m.flow, p.flows.Cfg.MaxFlows)
		if t == nil {
			p.flows.Unlisted += m.changes
			others += m.changes
			continue
		}
		p.publishChange(t, &m)
	}
	return others
}

// recentWays bounds the paths that are remembered of one flow.
const recentWays = 8

// publishChange publishes the change of one flow's path that no group explains.
func (p Reroutes) publishChange(t *ways, m *moved) {
	back := slices.Contains(t.recent, pathHash(m.now)) || m.returns > 0
	for _, path := range [][]inference.HopKey{m.from, m.to, m.now} {
		if h := pathHash(path); !slices.Contains(t.recent, h) {
			if len(t.recent) == recentWays {
				t.recent = t.recent[1:]
			}
			t.recent = append(t.recent, h)
		}
	}
	t.Count += m.changes
	f := inference.Finding{Flow: m.flow}
	f.Text = fmt.Sprintf("%s left %s for %s after %d packets", m.flow, inference.HopPath(m.from), inference.HopPath(m.now), m.packets)
	if t.Count > 1 {
		f.Text += fmt.Sprintf(", change %d", t.Count)
		if back {
			f.Text += fmt.Sprintf(": it goes back and forth between %d paths", len(t.recent))
		}
	}
	r, ok := round(m.now)
	if !ok {
		r, ok = round(m.to)
	}
	if ok {
		f.Element = inference.ElementOfLink(r.a, r.b)
		f.Text += fmt.Sprintf("; packets went round between nodes %d and %d", r.a, r.b)
	}
	publishPath(p.flows, &t.Finding, t.Count, f)
	p.flows.Moved[t.Finding.ID] = m.changedHops()
}

// turning reports whether the flow is known to be sent over several paths in turn.
func (p Reroutes) turning(m *moved) bool {
	s := p.flows.Index[m.flow]
	return s != nil && s.State.turns
}

// sprayed publishes flows that are sent over several paths in turn: nothing changed, and they share one finding, until
// that is the usual state. It returns the number of changes of those for which it has no place.
func (p Reroutes) sprayed(flows []moved) (others uint64) {
	var example *moved
	n := 0
	for i := range flows {
		t := p.flows.Observe(flows[i].flow, p.flows.Cfg.MaxFlows)
		if t == nil {
			p.flows.Unlisted += flows[i].changes
			others += flows[i].changes
			continue
		}
		if !t.turns && t.Finding != nil {
			p.flows.End(&t.Finding, fmt.Sprintf("%s is sent over several paths in turn", flows[i].flow))
		}
		t.turns = true
		if n++; example == nil {
			example = &flows[i]
		}
	}
	if n == 0 {
		return others
	}
	s := p.spread.Observe(subject.All{}, 1)
	if s.learnt {
		return others
	}
	s.Count = max(s.Count, uint64(n))
	if s.windows++; s.windows > p.spread.Cfg.LearnAfter {
		s.learnt = true
		p.spread.End(&s.Finding, fmt.Sprintf("%s sent over several paths in turn, which is taken for load balancing", are(s.Count, "flow")))
		return others
	}
	f := inference.Finding{
		Kind: inference.PathChanged, Severity: inference.Info, Value: float64(s.Count),
		Text: fmt.Sprintf("%s sent over several paths in turn, packet by packet; one of them, %s, by %s and %s", are(s.Count, "flow"), example.flow,
			inference.HopPath(example.from), inference.HopPath(example.to)),
	}
	if s.Count == 1 {
		f.Flow = example.flow
	}
	p.spread.Publish(&s.Finding, f)
	return others
}

// are returns "1 flow is" or "3 flows are".
func are(n uint64, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return subject.Plural(n, what) + " are"
}

// end ends what did not change for some time.
func (p Reroutes) end(w *inference.Window) {
	endPaths(p.others, func(_ subject.All, n uint64) string {
		return fmt.Sprintf("no more changes of path after %d in flows that are not listed one by one", n)
	})
	p.groups.end(w)
	p.flows.ForEachAbsent(func(k decode.FlowKey, t *ways, windows int) bool {
		if windows < p.flows.Cfg.PathStable {
			return false
		}
		p.flows.End(&t.Finding, fmt.Sprintf("path of %s is stable after %s", k, subject.Plural(t.Count, "change")))
		return !t.turns || windows >= lingers
	})
	p.spread.ForEachAbsent(func(_ subject.All, s *spread, windows int) bool {
		if windows < p.spread.Cfg.PathStable {
			return false
		}
		p.spread.End(&s.Finding, fmt.Sprintf("no flow is sent over several paths in turn any more, after %s", subject.Plural(s.Count, "flow")))
		return windows >= lingers
	})
}

// publishPath publishes a finding about the path of one flow, or about those of all flows without a place.
func publishPath[K comparable, S any](l *subject.Table[K, S], open **inference.Finding, count uint64, f inference.Finding) {
	f.Kind, f.Severity, f.Value = inference.PathChanged, inference.Info, float64(count)
	if count >= uint64(l.Cfg.PathFlaps) {
		f.Severity = inference.Warning
	}
	l.Publish(open, f)
}

// endPaths ends what did not change for some time.
func endPaths[K comparable](l *subject.Table[K, subject.Tally], text func(key K, changes uint64) string) {
	l.ForEachAbsent(func(k K, t *subject.Tally, windows int) bool {
		if windows < l.Cfg.PathStable {
			return false
		}
		l.End(&t.Finding, text(k, t.Count))
		return true
	})
}
