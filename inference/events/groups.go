package events

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// groups finds hops that many flows left in the same window: one cause, most likely a link, told as one finding.
type groups struct {
	*lifecycle[inference.HopKey, tally]
}

func newGroups(j *journal) groups {
	return groups{follow(j, inference.HopKey.Compare, (*coder).hop, (*coder).tally)}
}

// take tells of the changes that have a hop in common which their flows left, as long as there are enough of them, and
// returns the others. The hop that most flows left comes first: it explains most.
func (g groups) take(changes []inference.PathChange) []inference.PathChange {
	for len(changes) >= g.cfg.PathGroup && len(g.list) < g.cfg.MaxFlows {
		hop, n := mostLeft(changes)
		if n < g.cfg.PathGroup {
			break
		}
		var rest []inference.PathChange
		var example *inference.PathChange
		for i := range changes {
			switch c := &changes[i]; {
			case !leaves(c, hop):
				rest = append(rest, *c)
			case example == nil:
				example = c
			}
		}
		t := g.see(hop, g.cfg.MaxFlows)
		t.count += uint64(n)
		g.tell(&t.finding, inference.Finding{
			Kind: inference.PathChanged, Severity: inference.Warning, Node: hop.Node, EgressIf: hop.EgressIf, Value: float64(t.count),
			Text: fmt.Sprintf("%d flows no longer pass %s; one of them, %s, went %s and now goes %s",
				t.count, hop.Place(), example.Flow, inference.HopPath(example.From), inference.HopPath(example.To)),
		})
		changes = rest
	}
	return changes
}

// mostLeft gives the hop that most flows left, and how often it is on paths that they left.
func mostLeft(changes []inference.PathChange) (best inference.HopKey, n int) {
	flows := map[inference.HopKey]int{}
	for i := range changes {
		for _, h := range changes[i].From {
			if leaves(&changes[i], h) {
				flows[h]++
			}
		}
	}
	for h, count := range flows {
		if count > n || count == n && h.Compare(best) < 0 {
			best, n = h, count
		}
	}
	return best, n
}

// leaves reports whether the flow passed h before and does not any more.
func leaves(c *inference.PathChange, h inference.HopKey) bool {
	return slices.Contains(c.From, h) && !slices.Contains(c.To, h)
}
