package main

import (
	"github.com/hopscope/hopscope/planner/querymix"
)

// readEarlier reads the earlier plan, if there is one. With a limit of changes, static queries keep the coding that they
// have, where the problem does not say another one.
func (o *queriesFlags) readEarlier(p *querymix.Problem) error {
	if o.replan == "" {
		return nil
	}
	o.earlier = new(querymix.Plan)
	if err := readPlan(o.replan, "queries", o.earlier); err != nil {
		return err
	}
	for i := range o.earlier.Queries {
		d := &o.earlier.Queries[i]
		for k := range p.Queries {
			q := &p.Queries[k]
			if o.churn >= 0 && q.Name == d.Name && q.Aggregation == querymix.Static && d.Aggregation == querymix.Static && q.Tau == 0 && q.XOR == nil {
				q.Tau, q.XOR = d.Tau, d.XOR
			}
		}
	}
	return p.Validate()
}
