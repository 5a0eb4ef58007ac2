package schedule

import (
	"cmp"

	"github.com/hopscope/hopscope/planner"
)

// Complete derives the rest of a plan from intervals and phases, for [planner.ReadDecisions]. Probes that the problem
// lacks, and times that fit into no slot, are left to [Check].
func (p *Problem) Complete(plan *Plan, given planner.Given) error {
	r, err := p.Resolve()
	if err != nil {
		return err
	}
	t := Times{make([]int, len(r.Probes)), make([]int, len(r.Probes))}
	index := r.byID()
	for _, x := range plan.Probes {
		k, ok := index[x.ID]
		interval, whole := r.slots(x.Interval)
		phase, start := r.slots(x.Phase)
		if ok && whole && start && interval > 0 && interval%r.Base == 0 && r.Hyper%interval == 0 {
			t.Interval[k], t.Phase[k] = interval, phase%interval
		}
	}
	full := NewPlan(r, plan.Algorithm, t)
	derived := make(map[string]*Timed, len(full.Probes))
	for k := range full.Probes {
		derived[full.Probes[k].ID] = &full.Probes[k]
	}
	for k := range plan.Probes {
		x := &plan.Probes[k]
		f := derived[x.ID]
		if f == nil {
			continue
		}
		if x.BytesPerSecond == 0 {
			x.BytesPerSecond = f.BytesPerSecond
		}
		if x.Class == "" {
			x.Class = f.Class
		}
		x.Agent, x.Collector = cmp.Or(x.Agent, f.Agent), cmp.Or(x.Collector, f.Collector)
	}
	if !given["slot_ms"] {
		plan.Slot = full.Slot
	}
	if !given["hyperperiod_ms"] {
		plan.Hyperperiod = full.Hyperperiod
	}
	if !given["not_sent"] {
		plan.NotSent = full.NotSent
	}
	if plan.Partial && !given["not_seen"] {
		plan.NotSeen = full.NotSeen
	}
	plan.Stats = full.Stats
	return nil
}
