package solve

import (
	"fmt"
	"maps"

	"github.com/hopscope/hopscope/planner/delivery"
)

// Measured returns a plan for what was measured, after the plan before, nil for none. It searches up to six times; each
// search asks a function of its own whether to stop.
//
// Suspicious links are left out, unless more points are left out then. A point that the plan before serves, and that has no
// place with its measured rate, keeps what it has, as do others whose rates have risen where that is not enough; m.Held
// has the reasons.
func Measured(p *delivery.Problem, m *delivery.Measured, before *delivery.Plan, search func() (stop func() bool)) (*delivery.Plan, error) {
	plan, err := around(p, m, before, search)
	for _, all := range []bool{false, true} {
		if err != nil {
			return nil, err
		}
		held := *m
		held.Rates, held.Held = maps.Clone(m.Rates), maps.Clone(m.Held)
		if !held.HoldUnserved(plan, before, all) {
			continue
		}
		kept, kerr := around(p, &held, before, search)
		if kerr == nil && kept.Stats.LeftOut < plan.Stats.LeftOut {
			plan, *m = kept, held
		}
	}
	return plan, err
}

// around plans around suspicious links where all points that can be served are served then, too.
func around(p *delivery.Problem, m *delivery.Measured, before *delivery.Plan, search func() (stop func() bool)) (*delivery.Plan, error) {
	all := *m
	all.Avoid = nil
	plan, err := once(p, &all, before, search)
	if m.Avoid == nil || err != nil {
		return plan, err
	}
	if less, err := once(p, m, before, search); err == nil && less.Stats.LeftOut <= plan.Stats.LeftOut {
		return less, nil
	}
	return plan, nil
}

func once(p *delivery.Problem, m *delivery.Measured, before *delivery.Plan, search func() (stop func() bool)) (*delivery.Plan, error) {
	q, err := m.Apply(p, before)
	if err != nil {
		return nil, err
	}
	plan, err := Plan(q, Options{NoLinks: true, Partial: true, Previous: before, Churn: -1, Stop: search()})
	if err != nil {
		return nil, err
	}
	if err := delivery.Check(q, plan); err != nil {
		return nil, fmt.Errorf("the plan of delivery fails its check: %w", err)
	}
	return plan, nil
}
