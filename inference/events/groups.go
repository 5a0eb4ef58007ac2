package events

import (
	"fmt"

	"github.com/hopscope/hopscope/inference"
)

// group is a hop that many flows left in the same window: one cause, most likely a link, told as one finding.
type group struct {
	changes uint64 // since the finding started
	last    uint64 // window of the last change
	finding *inference.Finding
}

// groupPaths takes the changes that have a hop in common which their flows left, as long as there are enough of them,
// and returns the others. The hop that most flows left comes first: it explains most.
func (d *Detector) groupPaths(changes []inference.PathChange) []inference.PathChange {
	for len(changes) >= d.cfg.PathGroup && len(d.groups) < d.cfg.MaxFlows {
		flows := map[inference.HopKey]int{}
		for i := range changes {
			for _, h := range changes[i].From {
				if leaves(&changes[i], h) {
					flows[h]++
				}
			}
		}
		best, n := inference.HopKey{}, 0
		for h, count := range flows {
			if count > n || count == n && compareHops(h, best) < 0 {
				best, n = h, count
			}
		}
		if n < d.cfg.PathGroup {
			break
		}
		var rest []inference.PathChange
		var example *inference.PathChange
		for i := range changes {
			if c := &changes[i]; leaves(c, best) {
				if example == nil {
					example = c
				}
			} else {
				rest = append(rest, *c)
			}
		}
		d.tellGroup(best, n, example)
		changes = rest
	}
	return changes
}

// leaves reports whether the flow passed h before and does not any more.
func leaves(c *inference.PathChange, h inference.HopKey) bool {
	before := false
	for _, k := range c.From {
		before = before || k == h
	}
	for _, k := range c.To {
		if k == h {
			return false
		}
	}
	return before
}

func (d *Detector) tellGroup(h inference.HopKey, n int, example *inference.PathChange) {
	g := d.groups[h]
	if g == nil {
		g = &group{}
		d.groups[h] = g
	}
	g.changes += uint64(n)
	g.last = d.windows
	text := fmt.Sprintf("%d flows no longer pass %s; one of them, %s, went %s and now goes %s",
		g.changes, placeText(h), example.Flow, pathText(example.From), pathText(example.To))
	if g.finding == nil {
		g.finding = d.start(inference.Finding{
			Kind: inference.PathChanged, Severity: inference.Warning, Node: h.Node, EgressIf: h.EgressIf, Value: float64(g.changes), Text: text,
		})
		return
	}
	d.update(g.finding, inference.Warning, float64(g.changes), 0, text)
}

// endGroups ends the findings of hops that nobody left for some time.
func (d *Detector) endGroups() {
	if len(d.groups) == 0 {
		return
	}
	for _, h := range ordered(d.groups, compareHops) {
		if g := d.groups[h]; d.windows-g.last >= uint64(d.cfg.PathStable) {
			d.end(g.finding, fmt.Sprintf("no further flow left %s, after %s", placeText(h), plural(g.changes, "flow")))
			delete(d.groups, h)
		}
	}
}

// plural gives "1 flow" or "3 flows".
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
