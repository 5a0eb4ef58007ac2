package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/planner/querymix"
)

// queriesReplan are the flags of a plan that follows another one.
type queriesReplan struct {
	file     string
	churn    int
	previous *querymix.Plan // nil without --replan
}

func (r *queriesReplan) add(f *pflag.FlagSet) {
	f.StringVar(&r.file, "replan", "", "JSON of the plan that the network has now, to say what is different")
	f.IntVar(&r.churn, "churn", -1, "with --replan, the most queries that are new, gone or coded in another way, or those that have to be if they are more; -1 for any number")
}

// read reads the earlier plan. With a limit of changes, static queries keep the coding that they have, where the problem
// does not say another one.
func (r *queriesReplan) read(f *pflag.FlagSet, p *querymix.Problem) error {
	switch {
	case r.file == "" && f.Changed("churn"):
		return usagef("--churn limits what changes after an earlier plan: --replan is missing")
	case r.file == "":
		return nil
	case r.churn < -1:
		return usagef("--churn %d is below -1", r.churn)
	}
	r.previous = new(querymix.Plan)
	if err := readPlan(r.file, "queries", r.previous); err != nil {
		return err
	}
	for i := range r.previous.Queries {
		d := &r.previous.Queries[i]
		for k := range p.Queries {
			q := &p.Queries[k]
			if r.churn >= 0 && q.Name == d.Name && q.Aggregation == querymix.Static && d.Aggregation == querymix.Static && q.Tau == 0 && q.XOR == nil {
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
