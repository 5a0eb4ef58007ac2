package attention

import "github.com/hopscope/hopscope/planner"

// Complete derives the rest of a plan from the ids of the detailed probes, for [planner.ReadDecisions]. Ids that the
// problem lacks are left to [Check].
func (p *Problem) Complete(plan *Plan, given planner.Given) {
	index := make(map[string]int32, len(p.Probes))
	for k := range p.Probes {
		index[p.Probes[k].ID] = int32(k)
	}
	var chosen []int32
	for _, d := range plan.Probes {
		if k, ok := index[d.ID]; ok {
			chosen = append(chosen, k)
		}
	}
	full := NewPlan(p, plan.Algorithm, chosen)
	derived := make(map[string]*DetailProbe, len(full.Probes))
	for k := range full.Probes {
		derived[full.Probes[k].ID] = &full.Probes[k]
	}
	for k := range plan.Probes {
		d := &plan.Probes[k]
		f := derived[d.ID]
		if f == nil {
			continue
		}
		if d.Suspicious == nil {
			d.Suspicious = f.Suspicious
		}
		if d.Cost == 0 {
			d.Cost = f.Cost
		}
	}
	if !given["turned_on"] && !given["turned_off"] {
		plan.TurnedOn, plan.TurnedOff = full.TurnedOn, full.TurnedOff
	}
	if !given["on_no_probe"] {
		plan.OnNoProbe = p.onNoProbe()
	}
	if !given["partial"] {
		plan.Partial = len(plan.OnNoProbe) > 0
	}
	for _, l := range plan.OnNoProbe {
		full.Stats.LeftOut += p.Weight(l)
	}
	full.Stats.LeftOutBound = full.Stats.LeftOut
	plan.Stats = full.Stats
}

// onNoProbe lists the suspicious links that no probe passes, each once.
func (p *Problem) onNoProbe() (list []string) {
	seen := make(map[string]bool, len(p.Suspicious))
	for _, l := range p.Suspicious {
		seen[l] = false
	}
	on := p.reachable(seen, nil)
	for _, l := range p.Suspicious {
		if !on[l] && !seen[l] {
			seen[l] = true
			list = append(list, l)
		}
	}
	return list
}
