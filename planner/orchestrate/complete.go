package orchestrate

import "github.com/hopscope/hopscope/planner"

// Complete derives the rest of a plan from its assignment, for [planner.ReadDecisions]. Names that the problem lacks
// are left to [Check].
func (p *Problem) Complete(plan *Plan, given planner.Given) {
	var bad planner.Errors
	full := NewPlan(p, plan.Algorithm, readShares(p, plan, &bad))
	full.SetBound(int64(plan.Stats.LowerBound), plan.Stats.LeftOutBound)
	plan.Stats = full.Stats
	if !given["objective"] {
		plan.Objective = p.Objective
	}
	if !given["split"] {
		plan.Split = p.Split
	}
	if !given["redundancy"] {
		plan.Redundancy = full.Redundancy
	}
	if plan.Partial && !given["unserved"] {
		plan.Unserved = full.Unserved
	}
}
