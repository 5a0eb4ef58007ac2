package delivery

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Complete derives the rest of a plan from points, servers, paths and rates, for [planner.ReadDecisions]. A path
// without a rate gets an equal part of what the other paths of its point leave. Nodes that the problem lacks are left
// to [Check].
func (p *Problem) Complete(plan *Plan, given planner.Given) error {
	w, err := Wire(p, plan.AddedLinks)
	if err != nil {
		return err
	}
	if plan.AddedLinks == nil {
		plan.AddedLinks = []AddedLink{}
	}
	for k := range plan.AddedLinks {
		if l := &plan.AddedLinks[k]; l.PortA == 0 && l.PortB == 0 {
			l.PortA, l.PortB = w.Port(len(p.Links)+k, l.A), w.Port(len(p.Links)+k, l.B)
		}
	}
	var bad planner.Errors
	for i := range plan.Assignment {
		d := &plan.Assignment[i]
		if d.Point == "" && len(d.Path) > 0 {
			d.Point = d.Path[0]
		}
		if d.Server == "" && len(d.Path) > 0 {
			d.Server = d.Path[len(d.Path)-1]
		}
		if d.Ports == nil {
			if d.Ports, err = w.ports(d.Path); err != nil {
				bad.Add("point %s, server %s: %w", d.Point, d.Server, err)
			}
		}
	}
	if err := bad.Join(); err != nil {
		return err
	}
	plan.spreadRates(p)
	if !slices.ContainsFunc(plan.Assignment, func(d Assignment) bool { return d.ID != "" || d.Tag != 0 }) {
		plan.tag(nil)
	}
	whole := !slices.ContainsFunc(plan.Assignment, func(d Assignment) bool { return len(d.Path) < 2 || len(d.Ports) != len(d.Path)-1 })
	if whole && !given["switches"] {
		plan.Switches = configurations(p, w, plan.Assignment)
	}
	if plan.Partial && !given["unserved"] {
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Kind == PointNode && !slices.ContainsFunc(plan.Assignment, func(d Assignment) bool { return d.Point == n.ID }) {
				plan.Unserved = append(plan.Unserved, Unserved{Point: n.ID, Constraint: "unstated", Detail: "the plan does not say why"})
			}
		}
	}
	partial := plan.Partial
	bound, links := plan.Stats.Stats, plan.Stats.LinkBound
	plan.Stats = Stats{LinkBound: links}
	plan.Stats.LowerBound, plan.Stats.LeftOutBound = bound.LowerBound, bound.LeftOutBound
	plan.count(p)
	if bound.Optimal && !given["stats.links_lower_bound"] { // as with planner.Stats.Claim
		plan.Stats.LinkBound = plan.Stats.Links
	}
	plan.Partial = partial
	return nil
}

// spreadRates sets the rates of paths without one to equal parts of what is left of their point's.
func (plan *Plan) spreadRates(p *Problem) {
	left, without := map[string]float64{}, map[string]int{}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Kind == PointNode {
			left[n.ID] = p.Reserved(n.Rate)
		}
	}
	for i := range plan.Assignment {
		d := &plan.Assignment[i]
		if left[d.Point] -= d.Rate; d.Rate == 0 {
			without[d.Point]++
		}
	}
	for i := range plan.Assignment {
		if d := &plan.Assignment[i]; d.Rate == 0 {
			d.Rate = left[d.Point] / float64(without[d.Point])
		}
	}
}

// ports finds the ports by which a path leaves its nodes; nil where a node is not there.
func (w *Wiring) ports(path []string) (ports []int, err error) {
	for k := 1; k < len(path); k++ {
		v, ok := w.node[path[k-1]]
		if _, there := w.node[path[k]]; !ok || !there {
			return nil, nil
		}
		found := 0
		for port := range w.at[v] {
			if _, to, _, _ := w.Link(path[k-1], port); to != path[k] {
				continue
			}
			if found > 0 {
				return nil, fmt.Errorf("several links join %q and %q: give the ports of the path", path[k-1], path[k])
			}
			found = port
		}
		if found == 0 {
			return nil, fmt.Errorf("no link leads from %q to %q", path[k-1], path[k])
		}
		ports = append(ports, found)
	}
	return ports, nil
}
