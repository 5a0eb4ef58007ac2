package events

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// PathConfig are the settings of the detector of path changes.
type PathConfig struct {
	PathGroup  int `yaml:"path_group" doc:"Flows that leave the same link, or come to it, that make their finding a warning." range:"2..1000000"`
	PathStable int `yaml:"path_stable" doc:"Windows without a change that end the finding of a flow's path." range:"1..1000"`
	PathFlaps  int `yaml:"path_flaps" doc:"Changes during one finding that make it a warning." range:"2..1000000"`
}

var defaultPathConfig = PathConfig{PathGroup: 5, PathStable: 3, PathFlaps: 4}

// paths finds flows that take another path than before. Flows that leave the same link in one window share a finding, and so
// do flows that come to one, flows that are sent over several paths in turn, and all flows for which there is no place.
type paths struct {
	groups groups
	flows  *lifecycle[decode.FlowKey, ways]
	spread *lifecycle[all, spread]
	others *lifecycle[all, tally]
}

// all is the key of what is followed as one.
type all struct{}

// ways is the state of a flow that changes its path.
type ways struct {
	tally
	recent []uint64 // hashes of its last paths
	turns  bool     // it is sent over several paths in turn
}

func (c *coder) ways(w *ways) {
	number(c, &w.count)
	c.finding(&w.finding)
	list(c, &w.recent, func(h *uint64) { number(c, h) })
	c.flag(&w.turns)
	c.Check("finding of a flow", w.turns || w.finding != nil)
}

// spread is the state of all flows that are sent over several paths in turn.
type spread struct {
	tally
	windows int  // since its finding started
	learnt  bool // its finding lasted long enough
}

func (c *coder) spread(s *spread) {
	number(c, &s.count)
	c.finding(&s.finding)
	number(c, &s.windows)
	c.flag(&s.learnt)
}

func newPaths(j *journal, l *wires) paths {
	one := func(all, all) int { return 0 }
	none := func(*coder, *all) {}
	return paths{
		groups: newGroups(j, l),
		flows:  newLifecycle(j, func(a, b decode.FlowKey) int { return a.Compare(&b) }, (*coder).flow, (*coder).ways),
		spread: newLifecycle(j, one, none, (*coder).spread),
		others: newLifecycle(j, one, none, (*coder).tally),
	}
}

func (p paths) step(w *inference.Window) {
	others := w.OtherPaths
	if len(w.Paths) > 0 {
		others += p.changes(w)
	}
	if others > 0 {
		t := p.others.observe(all{}, 1)
		t.count += others
		publishPath(p.others, &t.finding, t.count, inference.Finding{Text: fmt.Sprintf("%d changes of path in flows that are not listed one by one", t.count)})
	}
	p.end(w)
}

// changes publishes the flows that changed their paths, and returns the number of changes of flows without a place.
func (p paths) changes(w *inference.Window) (others uint64) {
	flows, turns := split(movedFlows(w.Paths), func(m *moved) bool { return !m.sprayed() && !p.turning(m) })
	others += p.sprayed(turns)
	for _, m := range p.groups.publishGroups(w, flows) {
		t := p.flows.observe(m.flow, p.flows.cfg.MaxFlows)
		if t == nil {
			p.flows.unlisted += m.changes
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
func (p paths) publishChange(t *ways, m *moved) {
	back := slices.Contains(t.recent, pathHash(m.now)) || m.returns > 0
	for _, path := range [][]inference.HopKey{m.from, m.to, m.now} {
		if h := pathHash(path); !slices.Contains(t.recent, h) {
			if len(t.recent) == recentWays {
				t.recent = t.recent[1:]
			}
			t.recent = append(t.recent, h)
		}
	}
	t.count += m.changes
	f := inference.Finding{Flow: m.flow}
	f.Text = fmt.Sprintf("%s left %s for %s after %d packets", m.flow, inference.HopPath(m.from), inference.HopPath(m.now), m.packets)
	if t.count > 1 {
		f.Text += fmt.Sprintf(", change %d", t.count)
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
	publishPath(p.flows, &t.finding, t.count, f)
	p.flows.moved[t.finding.ID] = m.changedHops()
}

// turning reports whether the flow is known to be sent over several paths in turn.
func (p paths) turning(m *moved) bool {
	s := p.flows.index[m.flow]
	return s != nil && s.state.turns
}

// sprayed publishes flows that are sent over several paths in turn: nothing changed, and they share one finding, until that is the
// usual state. It returns the number of changes of those for which it has no place.
func (p paths) sprayed(flows []moved) (others uint64) {
	var example *moved
	n := 0
	for i := range flows {
		t := p.flows.observe(flows[i].flow, p.flows.cfg.MaxFlows)
		if t == nil {
			p.flows.unlisted += flows[i].changes
			others += flows[i].changes
			continue
		}
		if !t.turns && t.finding != nil {
			p.flows.end(&t.finding, fmt.Sprintf("%s is sent over several paths in turn", flows[i].flow))
		}
		t.turns = true
		if n++; example == nil {
			example = &flows[i]
		}
	}
	if n == 0 {
		return others
	}
	s := p.spread.observe(all{}, 1)
	if s.learnt {
		return others
	}
	s.count = max(s.count, uint64(n))
	if s.windows++; s.windows > p.spread.cfg.LearnAfter {
		s.learnt = true
		p.spread.end(&s.finding, fmt.Sprintf("%s sent over several paths in turn: that is taken to be as it should", are(s.count, "flow")))
		return others
	}
	f := inference.Finding{
		Kind: inference.PathChanged, Severity: inference.Info, Value: float64(s.count),
		Text: fmt.Sprintf("%s sent over several paths in turn, packet by packet; one of them, %s, by %s and %s", are(s.count, "flow"), example.flow,
			inference.HopPath(example.from), inference.HopPath(example.to)),
	}
	if s.count == 1 {
		f.Flow = example.flow
	}
	p.spread.publish(&s.finding, f)
	return others
}

// are gives "1 flow is" or "3 flows are".
func are(n uint64, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return plural(n, what) + " are"
}

// end ends what did not change for some time.
func (p paths) end(w *inference.Window) {
	endPaths(p.others, func(_ all, n uint64) string {
		return fmt.Sprintf("no more changes of path after %d in flows that are not listed one by one", n)
	})
	p.groups.end(w)
	p.flows.forEachAbsent(func(k decode.FlowKey, t *ways, windows int) bool {
		if windows < p.flows.cfg.PathStable {
			return false
		}
		p.flows.end(&t.finding, fmt.Sprintf("path of %s is stable after %s", k, plural(t.count, "change")))
		return !t.turns || windows >= lingers
	})
	p.spread.forEachAbsent(func(_ all, s *spread, windows int) bool {
		if windows < p.spread.cfg.PathStable {
			return false
		}
		p.spread.end(&s.finding, fmt.Sprintf("no flow is sent over several paths in turn any more, after %s", plural(s.count, "flow")))
		return windows >= lingers
	})
}

// publishPath publishes a finding about the path of one flow, or about those of all flows without a place.
func publishPath[K comparable, S any](l *lifecycle[K, S], open **inference.Finding, count uint64, f inference.Finding) {
	f.Kind, f.Severity, f.Value = inference.PathChanged, inference.Info, float64(count)
	if count >= uint64(l.cfg.PathFlaps) {
		f.Severity = inference.Warning
	}
	l.publish(open, f)
}

// endPaths ends what did not change for some time.
func endPaths[K comparable](l *lifecycle[K, tally], text func(key K, changes uint64) string) {
	l.forEachAbsent(func(k K, t *tally, windows int) bool {
		if windows < l.cfg.PathStable {
			return false
		}
		l.end(&t.finding, text(k, t.count))
		return true
	})
}
