package orchestrate

import (
	"maps"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Replace fills in the transition from an older plan of p to this one, an interface a step, and counts the interfaces whose flows
// change. In between no interface that both plans serve is without its flow, and no flow carries more than its capacity:
// what a flow is given waits until there is room. Where the network has broken the old plan already, a flow over its
// capacity gets no more, and what travels on a flow that is gone is not served.
//
// Where there is no such order of steps, or none is found, there are no steps, and Deadlock says what blocks them: the
// interfaces that would have to swap places. To leave one of them out for a moment is then up to the operator.
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

// replacing gives the elements of both plans, of which those of the older one cover what the flows of p still let them.
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

// Elements returns what a transition has to know of a plan: of every interface that is served, the flows and the items of it that
// they carry. They are in the order of the problem; interfaces that it has not follow in the order of their names.
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
