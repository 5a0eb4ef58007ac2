package solve

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
)

// Replan covers p again after a change, such as a failed or a new link. It keeps every probe of the old plan that is
// still whole: its way, its id and its place in the order. The links of the others, and new links, are planned afresh
// under new ids. This takes the fewest further probes possible, or with depots, ways from and to the nearest depots. Of
// a redundant plan both covers are kept so, and links keep the directions in which they are passed. The plan may be
// larger than one made from scratch; the lower bound gives that size.
//
// Probes of the old plan that name nodes, links or ports which are gone are not whole either.
//
// With a churn, probes that are whole are given up or made longer too, where that makes the plan better. The plan has a
// transition from the old one, in which nothing that both cover is ever uncovered.
func Replan(p *cover.Problem, old *cover.Plan, o Options) (*cover.Plan, error) {
	c, err := newCoverer(p, &o)
	if err != nil {
		return nil, err
	}
	if p.Redundant && p.Depots != nil {
		return nil, fmt.Errorf("cover: %w: of two covers between depots none is kept in a new plan", ErrMethod)
	}
	if (p.Redundant || p.Agents != nil) && o.Churn != nil {
		return nil, fmt.Errorf("cover: %w: two covers, and probes of agents, keep every probe that is whole, and no churn is chosen", ErrMethod)
	}
	first, lost := c.keep(old.Probes, nil)
	var second kept
	forced := 0
	if p.Redundant {
		second = c.replanBoth(&first, lost, old.Second)
	} else {
		c.replanRest(&first)
		if o.Churn != nil {
			forced = c.improve(&first, old, *o.Churn)
		}
	}
	if p.Depots == nil {
		c.bound = c.boundLimits(newNet(p, c.want))
	} else {
		_, sum := c.weights(newNet(p, c.want))
		c.bound = int(sum)
	}
	c.keptFirst, c.keptSecond = len(first.ids)-first.changed, len(second.ids)
	walks, others, err := c.assign(first.walks, second.walks)
	if err != nil {
		return nil, err
	}
	for _, k := range c.lost {
		first.ids = slices.Delete(first.ids, k, k+1)
	}
	plan := c.plan(walks, others)
	plan.Kept, plan.KeptSecond = c.keptFirst, c.keptSecond
	taken, before := map[string]bool{}, map[string]*planner.Probe{}
	for _, probes := range [...][]planner.Probe{old.Probes, old.Second} {
		for k := range probes {
			taken[probes[k].ID] = true
			before[probes[k].ID] = &probes[k]
		}
	}
	first.name(plan.Probes, "p", taken)
	second.name(plan.Second, "q", taken)
	c.nameAgents(plan, before)
	if err := plan.Replace(p, old); err != nil {
		return nil, err
	}
	if o.Churn != nil {
		plan.Count(*o.Churn, forced)
	}
	return plan, nil
}

// kept is a cover in which the first walks are probes of an older plan.
type kept struct {
	ids     []string // of those
	changed int      // the last so many of those are longer than they were
	walks   []cover.Walk
	covered []bool // by interface; in undirected problems both of a link
}

// name assigns their ids to kept probes, and unused ones to all others.
func (k *kept) name(probes []planner.Probe, prefix string, taken map[string]bool) {
	next := 1
	for i := range probes {
		if i < len(k.ids) {
			probes[i].ID = k.ids[i]
			continue
		}
		for taken[prefix+strconv.Itoa(next)] {
			next++
		}
		probes[i].ID = prefix + strconv.Itoa(next)
		next++
	}
}

// keep keeps the probes that are still whole and, where way is given, pass links only as it allows. It also returns the
// walks of those that could be read, but are not whole.
func (c *coverer) keep(probes []planner.Probe, way func(i int32) bool) (k kept, lost []cover.Walk) {
	p := c.p
	k.covered = make([]bool, p.Graph.NumInterfaces())
	seen := map[string]bool{}
	for n := range probes {
		read, err := cover.Walks(p.Graph, probes[n:n+1])
		if err != nil {
			continue
		}
		w := read[0]
		if id := probes[n].ID; id == "" || seen[id] || !c.whole(w, k.covered) || way != nil && slices.ContainsFunc(w, func(i int32) bool { return !way(i) }) {
			lost = append(lost, w)
			continue
		}
		seen[probes[n].ID] = true
		k.ids, k.walks = append(k.ids, probes[n].ID), append(k.walks, w)
		for _, i := range w {
			k.covered[i] = true
			if !p.Directed {
				k.covered[p.Graph.Peer(int(i))] = true
			}
		}
	}
	return k, lost
}

// replanRest covers what k does not.
func (c *coverer) replanRest(k *kept) {
	n := newNet(c.p, func(i int) bool { return c.want(i) && !k.covered[i] })
	if c.p.Depots == nil {
		k.walks = append(k.walks, c.cover(n)...)
		return
	}
	trails := n.Euler(true)
	n.Balance(trails, c.o.Stop)
	trails = n.Split(trails, c.p.Hosts)
	k.walks = append(k.walks, c.ways.walksBetween(n, trails, n.Edges(), c.p.MaxHops)...)
}

// replanBoth covers what first does not, and again in the opposite directions what the old second cover has lost.
func (c *coverer) replanBoth(first *kept, lost []cover.Walk, old []planner.Probe) (second kept) {
	g := c.p.Graph
	way := slices.Repeat([]int32{-1}, g.NumLinks()) // interface by which the first cover passes a link, or -1
	pass := func(i int32) {
		if l := g.Link(int(i)); way[l] < 0 {
			way[l] = i
		}
	}
	for _, w := range first.walks {
		for _, i := range w {
			pass(i)
		}
	}
	second, _ = c.keep(old, func(i int32) bool { return way[g.Link(int(i))] != i })
	for _, w := range second.walks {
		for _, i := range w {
			pass(int32(g.Peer(int(i))))
		}
	}
	for _, w := range lost {
		for _, i := range w {
			pass(i)
		}
	}
	var forth, back []int32
	for l := range way {
		x, _ := g.Ends(l)
		pass(int32(x))
		if wanted, _ := c.p.Wanted(l); !wanted {
			continue
		}
		if !first.covered[x] {
			forth = append(forth, way[l])
		}
		if !second.covered[x] {
			back = append(back, int32(g.Peer(int(way[l]))))
		}
	}
	walks, _ := c.along(c.oriented(forth))
	first.walks = append(first.walks, walks...)
	walks, _ = c.along(c.oriented(back))
	second.walks = append(second.walks, walks...)
	return second
}

// whole reports whether a probe can stay. It passes nothing unusable and no host, and keeps to limit and depots. Where
// nothing may be passed twice, it passes no link of another probe, and none of its own twice.
func (c *coverer) whole(w cover.Walk, covered []bool) bool {
	p, g := c.p, c.p.Graph
	if len(w) == 0 || !p.Within(w) {
		return false
	}
	items := make([]int32, 0, len(w))
	for k, i := range w {
		if !p.Usable(int(i)) || !p.Directed && !p.Usable(g.Peer(int(i))) || p.Depots == nil && covered[i] || k > 0 && !p.Transit(g.Node(int(i))) {
			return false
		}
		if !p.Directed {
			i = min(i, int32(g.Peer(int(i))))
		}
		items = append(items, i)
	}
	if p.Depots == nil {
		slices.Sort(items)
		return len(slices.Compact(items)) == len(w)
	}
	return slices.Contains(p.Depots, g.Node(int(w[0]))) && slices.Contains(p.Depots, g.Neighbor(int(w[len(w)-1])))
}
