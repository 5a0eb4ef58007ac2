package cover

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Replan covers p again after a change, a failed link or a new one, and keeps every probe of the old plan that is still
// whole, as it is and in its place. What the others covered, and what is new, is planned afresh: with the fewest further
// probes there can be for it, or with depots, with ways from and to the nearest depots. All in all this may be more
// than a new plan would need; the lower bound says how many.
func Replan(p *planner.CoverProblem, old []planner.Walk, o Options) (*planner.CoverPlan, error) {
	c, err := newCoverer(p, &o)
	if err != nil {
		return nil, err
	}
	if p.Redundant {
		return nil, fmt.Errorf("cover: %w: of two covers none is kept in a new plan", ErrMethod)
	}
	covered := make([]bool, p.Graph.NumInterfaces())
	var walks []planner.Walk
	for _, w := range old {
		if c.whole(w, covered) {
			walks = append(walks, w)
			for _, i := range w {
				covered[i] = true
				if !p.Directed {
					covered[p.Graph.Peer(int(i))] = true
				}
			}
		}
	}
	kept := len(walks)
	n := newNet(p, func(i int) bool { return c.want(i) && !covered[i] })
	if p.Depots == nil {
		walks = append(walks, c.cover(n)...)
		c.bound = newNet(p, c.want).bound(p.MaxHops)
	} else {
		trails := n.euler(true)
		n.balance(trails, o.Stop)
		walks = append(walks, c.ways.attach(n, trails, n.edges(), p.MaxHops)...)
		c.bound = c.edges
	}
	plan := c.plan(walks, nil)
	plan.Kept = kept
	return plan, nil
}

// whole reports whether a probe can stay: it passes nothing that must not be passed, keeps to limit and depots, and in
// problems where nothing is passed twice nothing that another covers.
func (c *coverer) whole(w planner.Walk, covered []bool) bool {
	p, g := c.p, c.p.Graph
	if len(w) == 0 || p.MaxHops > 0 && len(w) > p.MaxHops {
		return false
	}
	for k, i := range w {
		if int(i) >= g.NumInterfaces() || i < 0 || g.Link(int(i)) < 0 || !p.Usable(int(i)) || !p.Directed && !p.Usable(g.Peer(int(i))) {
			return false
		}
		if k > 0 && g.Neighbor(int(w[k-1])) != g.Node(int(i)) {
			return false
		}
		if p.Depots == nil && covered[i] {
			return false
		}
	}
	return p.Depots == nil || slices.Contains(p.Depots, g.Node(int(w[0]))) && slices.Contains(p.Depots, g.Neighbor(int(w[len(w)-1])))
}
