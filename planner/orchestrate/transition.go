package orchestrate

import (
	"maps"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Replace fills in the transition from an older plan of p to this one, an interface a step. It counts the interfaces
// whose flows change. In between, every interface that both plans serve has its flow, and no flow carries more than its
// capacity. An assignment waits until there is room. Where the network has already broken the old plan, a flow over its
// capacity gets no more. Items on a flow that is gone are not served.
//
// Where no such order of steps is found, there are no steps, and Deadlock names the interfaces that would have to swap
// places. It is then the operator's choice to leave one of them out for a moment.
func (plan *Plan) Replace(p *Problem, old *Plan) (changed int, err error) {
	before, after, capacity := replacing(p, old, plan)
	flows := make(map[string]map[string]float64, len(before))
	for _, e := range before {
		flows[e.ID] = e.Uses
	}
	for _, e := range after {
		if !sameKeys(flows[e.ID], e.Uses) {
			changed++
		}
		delete(flows, e.ID)
	}
	changed += len(flows)
	return changed, plan.Replacement.Replace(before, after, capacity)
}

// CheckTransition returns in what the transition of a plan does not lead from an older one to it, step by step.
func CheckTransition(p *Problem, old, plan *Plan) error {
	return plan.CheckReplacement(replacing(p, old, plan))
}

// replacing returns the elements of both plans. Those of the older one cover what the flows of p still allow.
func replacing(p *Problem, old, plan *Plan) (before, after []planner.Element, capacity map[string]float64) {
	capacity = make(map[string]float64, len(p.Flows))
	passes := make(map[string]map[string]bool, len(p.Flows))
	for _, f := range p.Flows {
		m := make(map[string]bool, len(f.Interfaces))
		for _, i := range f.Interfaces {
			m[p.Interfaces[i].ID] = true
		}
		capacity[f.ID], passes[f.ID] = float64(f.Capacity), m
	}
	before, after = Elements(p, old), Elements(p, plan)
	for k, e := range before {
		for f := range e.Uses {
			if !passes[f][e.ID] {
				before[k].Covers = nil
			}
		}
	}
	return before, after, capacity
}

func sameKeys(a, b map[string]float64) bool {
	for k := range a {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// Elements returns a plan as elements of a transition: for every interface that is served, its flows and the items that
// they carry. The elements are in the order of the problem. Interfaces that the problem lacks follow in the order of
// their names.
func Elements(p *Problem, plan *Plan) []planner.Element {
	uses := make(map[string]map[string]float64, len(plan.Assignment))
	demand := make(map[string]int64, len(p.Interfaces))
	for _, i := range p.Interfaces {
		demand[i.ID] = i.Demand
	}
	use := func(i, f string, items int64) {
		if uses[i] == nil {
			uses[i] = map[string]float64{}
		}
		uses[i][f] += float64(items)
	}
	for i, f := range plan.Assignment {
		use(i, f, demand[i])
	}
	for _, s := range plan.Shares {
		use(s.Interface, s.Flow, s.Items)
	}
	list := make([]planner.Element, 0, len(uses))
	add := func(i string) {
		list = append(list, planner.Element{ID: i, Covers: []string{i}, Uses: uses[i]})
		delete(uses, i)
	}
	for _, i := range p.Interfaces {
		if uses[i.ID] != nil {
			add(i.ID)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(uses)) {
		add(i)
	}
	return list
}
