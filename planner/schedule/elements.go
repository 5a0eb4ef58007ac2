package schedule

import (
	"fmt"

	"github.com/hopscope/hopscope/planner"
)

// Elements are the probes that a plan sends, for [planner.NewTransition], and what limits leave room for. A probe covers
// the links that it sees in time alone. Links for which probes take turns are covered by none of them, so a transition
// promises nothing about these. Probes that the problem has not cover nothing.
func Elements(r *Resolved, plan *Plan) (list []planner.Element, capacity map[string]float64) {
	index := r.byID()
	capacity = map[string]float64{}
	limited := func(uses map[string]float64, what, name string, bps, limit float64) {
		if limit <= maxLimit {
			capacity[what+" "+name] = limit
			uses[what+" "+name] = bps
		}
	}
	for i := range plan.Probes {
		x := &plan.Probes[i]
		e := planner.Element{ID: x.ID, Form: fmt.Sprintf("every %v ms from %v ms", x.Interval, x.Phase), Uses: map[string]float64{}}
		if k, ok := index[x.ID]; ok && x.Interval > 0 {
			p, perSecond := &r.Probes[k], 8000/x.Interval
			for n, l := range p.Links {
				link := &r.Links[l]
				if x.Interval <= r.Millis(link.Period)+r.Slot/2 && link.Period > 0 {
					e.Covers = append(e.Covers, link.Name)
				}
				limited(e.Uses, "link", link.Name, perSecond*float64(p.Bytes[n]), link.Limit)
			}
			if p.Agent >= 0 {
				limited(e.Uses, "send", r.Agents[p.Agent].Name, perSecond*float64(p.Sent), r.Agents[p.Agent].Send)
			}
			if p.Collector >= 0 {
				limited(e.Uses, "receive", r.Agents[p.Collector].Name, perSecond*float64(p.Received), r.Agents[p.Collector].Receive)
			}
		}
		list = append(list, e)
	}
	return list, capacity
}

// CheckTransition returns in what the transition of a plan does not lead from an older one to it, step by step.
func CheckTransition(p *Problem, old, plan *Plan) error {
	r, err := p.Resolve()
	if err != nil {
		return err
	}
	before, _ := Elements(r, old)
	after, capacity := Elements(r, plan)
	return plan.CheckReplacement(before, after, capacity)
}

// Outline is the probes of a plan, each with its interval and phase, as far as the plan alone states them.
func (p *Plan) Outline() (list []planner.Element) {
	for _, t := range p.Probes {
		list = append(list, planner.Element{ID: t.ID, Covers: []string{t.ID}, Form: fmt.Sprint(t.Interval, t.Phase)})
	}
	return list
}
