package attention

import (
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Check returns where a plan does not answer its problem, or makes false claims about itself.
func Check(p *Problem, plan *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var bad planner.Errors
	traces, all := make(map[string]*Trace, len(p.Probes)), 0.0
	for k := range p.Probes {
		traces[p.Probes[k].ID] = &p.Probes[k]
		all += p.Probes[k].Cost
	}
	seen := make(map[string]bool, len(p.Suspicious)) // of the suspicious links, whether a probe looks at them in detail
	for _, l := range p.Suspicious {
		seen[l] = false
	}
	listed := nameSet(plan.OnNoProbe)
	chosen, cost := make(map[string]bool, len(plan.Probes)), 0.0
	for k := range plan.Probes {
		d := &plan.Probes[k]
		t := traces[d.ID]
		if t == nil || chosen[d.ID] {
			bad.Add("probe %q is listed, but is not there, or a second time", d.ID)
			continue
		}
		chosen[d.ID] = true
		cost += t.Cost
		var on []string // suspicious links
		for _, l := range t.Links {
			if _, suspicious := seen[l]; suspicious && !slices.Contains(on, l) {
				seen[l] = true
				on = append(on, l)
			}
		}
		for _, l := range d.Suspicious {
			if !slices.Contains(on, l) {
				bad.Add("probe %q is listed for link %s, which is not on it or not suspicious", d.ID, l)
			}
		}
		slices.Sort(on)
		if listed := slices.Sorted(slices.Values(d.Suspicious)); !slices.Equal(on, listed) || !planner.Near(d.Cost, t.Cost) {
			bad.Add("probe %q costs %v and has the suspicious links %v, the plan says %v and %v", d.ID, t.Cost, on, d.Cost, listed)
		}
	}
	reachable := p.reachable(seen, listed)
	missing, left := 0, 0.0
	for l, looked := range seen {
		switch {
		case looked:
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
		if _, suspicious := seen[l]; !suspicious || reachable[l] {
			bad.Add("link %s is listed as suspicious and on no probe, but is not", l)
		}
	}
	if len(listed) != len(plan.OnNoProbe) {
		bad.Add("of %d links that are listed as on no probe, some are there twice", len(plan.OnNoProbe))
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
	if s.Suspicious != len(seen) || s.Probes != len(p.Probes) || s.Detailed != len(chosen) || !planner.Near(s.AllCost, all) {
		bad.Add("%d suspicious links, %d of %d probes, which cost %v; the plan says %d, %d of %d, and %v",
			len(seen), len(chosen), len(p.Probes), all, s.Suspicious, s.Detailed, s.Probes, s.AllCost)
	}
	if !planner.Near(s.LeftOut, left) {
		bad.Add("links of weight %v are left out, the plan says %v", left, s.LeftOut)
	}
	if c := plan.Churn; c != nil && c.Changed != changes {
		bad.Add("%d probes change, the plan says %d", changes, c.Changed)
	}
	plan.CheckClaims(&bad, "probes")
	if want := cost + p.SwitchCost*float64(changes); !planner.Near(s.Objective, want) || !planner.Near(s.Cost, cost) {
		bad.Add("the plan costs %v, with changes %v, and says %v and %v", cost, want, s.Cost, s.Objective)
	}
	s.CheckBound(&bad)
	return bad.Join()
}

// reachable returns the links that are unseen by all chosen probes, or listed as without a probe, and yet lie on a
// probe.
func (p *Problem) reachable(seen, listed map[string]bool) map[string]bool {
	on := map[string]bool{}
	for l, looked := range seen {
		if !looked {
			on[l] = false
		}
	}
	for l := range listed {
		on[l] = false
	}
	if len(on) == 0 {
		return on
	}
	for k := range p.Probes {
		for _, l := range p.Probes[k].Links {
			if _, asked := on[l]; asked {
				on[l] = true
			}
		}
	}
	return on
}

func nameSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
