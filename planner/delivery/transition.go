package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner"
)

// Elements lists the points that a plan serves, as elements of a transition, with the capacity that each takes. The
// problem may be later than that of the plan. A point with a path that no longer exists covers nothing.
func Elements(p *Problem, plan *Plan) ([]planner.Element, error) {
	w, err := Wire(p, nil)
	if err != nil {
		return nil, err
	}
	kind := map[string]NodeKind{}
	for i := range p.Nodes {
		kind[p.Nodes[i].ID] = p.Nodes[i].Kind
	}
	added := map[[2]string]bool{}
	for _, l := range plan.AddedLinks {
		added[[2]string{l.A, l.B}] = true
	}
	var list []planner.Element
	at, forms := map[string]int{}, map[string][]string{}
	for i := range plan.Assignment {
		d := &plan.Assignment[i]
		k, ok := at[d.Point]
		if !ok {
			k = len(list)
			at[d.Point] = k
			list = append(list, planner.Element{ID: d.Point, Covers: []string{d.Point}, Uses: map[string]float64{}})
		}
		e := &list[k]
		forms[d.Point] = append(forms[d.Point], fmt.Sprintf("%s over %s by %v at %v", d.ID, strings.Join(d.Path, " "), d.Ports, d.Rate))
		if len(d.Path) < 2 || len(d.Ports) != len(d.Path)-1 {
			return nil, fmt.Errorf("path %s has %d nodes and %d ports", d.ID, len(d.Path), len(d.Ports))
		}
		for j, node := range d.Path[1:] {
			link, to, _, ok := w.Link(d.Path[j], d.Ports[j])
			switch {
			case ok && to == node:
				e.Uses[w.resource(link)] += d.Rate
			case !added[[2]string{d.Path[j], node}]:
				e.Covers = nil
			}
			switch kind[node] {
			case SwitchNode, ServerNode:
				if kind[node] == SwitchNode || j == len(d.Path)-2 {
					e.Uses["node "+node] += d.Rate
				}
			case "":
				e.Covers = nil
			}
		}
	}
	for k := range list { // in whatever order the plan has the paths
		parts := forms[list[k].ID]
		slices.Sort(parts)
		list[k].Form = strings.Join(parts, "; ")
	}
	return list, nil
}

// resource names a link by its ports, so that no two have the same name.
func (w *Wiring) resource(link int) string {
	l := w.links[link]
	return fmt.Sprintf("link %s:%d %s:%d", w.p.Nodes[l.node[0]].ID, l.port[0], w.p.Nodes[l.node[1]].ID, l.port[1])
}

// Capacities returns the free capacities of links, switches and servers, by the names of resources in [Elements].
func Capacities(p *Problem) (map[string]float64, error) {
	w, err := Wire(p, nil)
	if err != nil {
		return nil, err
	}
	of := map[string]float64{}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Kind != PointNode {
			of["node "+n.ID] = n.Residual() + rateTolerance
		}
	}
	for i := range p.Links {
		of[w.resource(i)] = p.Links[i].Residual() + rateTolerance
	}
	return of, nil
}

// Replace fills in the transition from an older plan to this one: which points begin to send, stop, change, or go on,
// in order. In between, no point that both plans serve is unserved, and no load exceeds the free capacity. Where there
// is no such order the plan has the reason and no steps.
//
// Before the first step the rules of all new paths are installed on the way, which no report meets yet, since their tags
// are new. A step changes the rules of one point, or what it sends where. After the last, old rules are taken away.
func (plan *Plan) Replace(p *Problem, old *Plan) error {
	return replacing(p, old, plan, plan.Replacement.Replace)
}

// CheckTransition applies the steps of a plan one by one to an older one. It returns an error where a point of both
// plans is unserved, or a load exceeds the free capacity.
func CheckTransition(p *Problem, old, plan *Plan) error {
	return replacing(p, old, plan, plan.CheckReplacement)
}

// replacing calls do with the elements of both plans.
func replacing(p *Problem, old, plan *Plan, do func(before, after []planner.Element, capacity map[string]float64) error) error {
	before, err := Elements(p, old)
	if err != nil {
		return fmt.Errorf("the plan before: %w", err)
	}
	after, err := Elements(p, plan)
	if err != nil {
		return err
	}
	capacity, err := Capacities(p)
	if err != nil {
		return err
	}
	return do(before, after, capacity)
}
