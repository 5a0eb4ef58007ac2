package planner

import (
	"cmp"
	"slices"
)

// NewDeliveryPlan puts a plan together. Bounds, optimality and time are left to the caller, and so is what depends on all
// usable paths.
func NewDeliveryPlan(p *DeliveryProblem, algorithm string, assignment []Delivery, added []AddedLink) *DeliveryPlan {
	plan := &DeliveryPlan{Algorithm: algorithm, Assignment: assignment, AddedLinks: added, Switches: []Reporting{}}
	if plan.Assignment == nil {
		plan.Assignment = []Delivery{}
	}
	if plan.AddedLinks == nil {
		plan.AddedLinks = []AddedLink{}
	}
	order := map[string]int{}
	for i := range p.Nodes {
		order[p.Nodes[i].ID] = i
	}
	slices.SortStableFunc(plan.Assignment, func(a, b Delivery) int {
		return cmp.Or(cmp.Compare(order[a.Point], order[b.Point]), cmp.Compare(b.Rate, a.Rate), cmp.Compare(order[a.Server], order[b.Server]))
	})
	slices.SortStableFunc(plan.AddedLinks, func(a, b AddedLink) int { return cmp.Compare(order[a.A], order[b.A]) })
	s := &plan.Stats
	servers := map[string]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Kind != PointNode {
			continue
		}
		s.Points++
		r := Reporting{Switch: n.ID}
		sum, largest := 0.0, []float64{}
		for _, d := range plan.Assignment {
			if d.Point != n.ID {
				continue
			}
			sum += d.Rate
			servers[d.Server] = true
			k := slices.IndexFunc(r.Collectors, func(c Collector) bool { return c.Collector == d.Server })
			if k < 0 {
				k = len(r.Collectors)
				r.Collectors = append(r.Collectors, Collector{Collector: d.Server})
				largest = append(largest, 0)
			}
			r.Collectors[k].Rate += d.Rate
			if d.Rate > largest[k] {
				largest[k], r.Collectors[k].NextHop = d.Rate, d.Path[1]
			}
		}
		if sum == 0 {
			plan.Partial = true
			continue
		}
		for k := range r.Collectors {
			r.Collectors[k].Share = r.Collectors[k].Rate / sum
		}
		slices.SortStableFunc(r.Collectors, func(a, b Collector) int { return cmp.Compare(b.Rate, a.Rate) })
		plan.Switches = append(plan.Switches, r)
		s.Served++
	}
	s.Links, s.Servers, s.Objective = len(plan.AddedLinks), len(servers), float64(len(servers))
	s.Acceptance = float64(s.Served) / float64(max(1, s.Points))
	return plan
}
