package attention

import "github.com/hopscope/hopscope/planner"

// Check says in what a plan does not do what the problem asks, or tells untruths about itself.
func Check(p *Problem, plan *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var bad planner.Errors
	traces := make(map[string]*Trace, len(p.Probes))
	reachable := map[string]bool{}
	for k := range p.Probes {
		t := &p.Probes[k]
		traces[t.ID] = t
		for _, l := range t.Links {
			reachable[l] = true
		}
	}
	suspicious, listed := nameSet(p.Suspicious), nameSet(plan.OnNoProbe)
	chosen, seen, cost := map[string]bool{}, map[string]bool{}, 0.0
	for _, d := range plan.Probes {
		t := traces[d.ID]
		if t == nil || chosen[d.ID] {
			bad.Add("probe %q is listed, but is not there, or a second time", d.ID)
			continue
		}
		chosen[d.ID] = true
		cost += t.Cost
		on := nameSet(t.Links)
		for l := range on {
			seen[l] = true
		}
		for _, l := range d.Suspicious {
			if !on[l] || !suspicious[l] {
				bad.Add("probe %q is listed for link %s, which is not on it or not suspicious", d.ID, l)
			}
		}
	}
	missing, left := 0, 0.0
	for l := range suspicious {
		switch {
		case seen[l]:
		case reachable[l]:
			bad.Add("suspicious link %s is on no probe that measures in detail", l)
		case !plan.Partial || !listed[l]:
			bad.Add("suspicious link %s is on no probe, and the plan does not say so", l)
		default:
			missing++
			left += p.Weight(l)
		}
	}
	for l := range listed {
		if !suspicious[l] || reachable[l] {
			bad.Add("link %s is listed as suspicious and on no probe, but is not", l)
		}
	}
	if plan.Partial != (missing > 0) {
		bad.Add("the plan says partial %v, and misses %d links", plan.Partial, missing)
	}
	changes, now := len(chosen), nameSet(p.Detailed)
	for id := range now {
		if chosen[id] {
			changes--
		} else {
			changes++
		}
	}
	s := &plan.Stats
	if s.Changes != changes || len(plan.TurnedOn)+len(plan.TurnedOff) != changes {
		bad.Add("%d probes change, the plan says %d and lists %d", changes, s.Changes, len(plan.TurnedOn)+len(plan.TurnedOff))
	}
	for _, id := range plan.TurnedOn {
		if !chosen[id] || now[id] {
			bad.Add("probe %q is not turned on", id)
		}
	}
	for _, id := range plan.TurnedOff {
		if chosen[id] || !now[id] {
			bad.Add("probe %q is not turned off", id)
		}
	}
	if !planner.Near(s.LeftOut, left) {
		bad.Add("links of weight %v are left out, the plan says %v", left, s.LeftOut)
	}
	if c := plan.Churn; c != nil {
		if c.Changed != changes {
			bad.Add("%d probes change, the plan says %d", changes, c.Changed)
		}
		c.Check(&bad, "probes")
	}
	if want := cost + p.SwitchCost*float64(changes); !planner.Near(s.Objective, want) || !planner.Near(s.Cost, cost) {
		bad.Add("the plan costs %v, with changes %v, and says %v and %v", cost, want, s.Cost, s.Objective)
	}
	s.CheckBound(&bad)
	return bad.Join()
}

func nameSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
