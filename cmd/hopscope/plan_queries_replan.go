package main

import (
	"fmt"
	"io"

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

// queriesSteps writes what is different from an earlier plan.
func queriesSteps(w io.Writer, plan *querymix.Plan) {
	t, c := plan.Transition, plan.Churn
	if t == nil || c == nil {
		return
	}
	fmt.Fprintf(w, "after the earlier plan: new %s; gone %s; coded in another way %s; as before %s\n",
		shortenList(t.Add), shortenList(t.Remove), shortenList(t.Change), shortenList(t.Keep))
	if c.Limit >= 0 && c.Forced > c.Limit {
		fmt.Fprintf(w, "more than --churn %d have to change: %d do\n", c.Limit, c.Forced)
	}
}
