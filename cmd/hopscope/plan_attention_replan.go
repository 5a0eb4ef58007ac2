package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/planner/attention"
)

// attentionReplan are the flags of a plan that follows another one.
type attentionReplan struct {
	file     string
	churn    int
	previous *attention.Plan // nil without --replan
}

func (r *attentionReplan) add(f *pflag.FlagSet) {
	f.StringVar(&r.file, "replan", "", "JSON of the plan that the network has now: its probes measure in detail now, and the steps from there are told")
	f.IntVar(&r.churn, "churn", -1, "with --replan, the most probes to turn on or off; -1 for any number")
}

// read reads the earlier plan and gives the problem after it.
func (r *attentionReplan) read(f *pflag.FlagSet, p *attention.Problem) (*attention.Problem, error) {
	switch {
	case r.file == "" && f.Changed("churn"):
		return nil, usagef("--churn limits what changes after an earlier plan: --replan is missing")
	case r.file == "":
		return p, nil
	case f.Changed("detailed"):
		return nil, usagef("--replan says which probes measure in detail now: --detailed does not go with it")
	case r.churn < -1:
		return nil, usagef("--churn %d is below -1", r.churn)
	}
	r.previous = new(attention.Plan)
	if err := readPlan(r.file, "attention", r.previous); err != nil {
		return nil, err
	}
	return p.After(r.previous), nil
}

// check checks a plan, and the steps to it from the earlier one, if there is one.
func (r *attentionReplan) check(p *attention.Problem, plan *attention.Plan) error {
	if err := attention.Check(p, plan); err != nil || r.previous == nil {
		return err
	}
	return attention.CheckTransition(p, r.previous, plan)
}

// attentionSteps writes what changes after an earlier plan.
func attentionSteps(w io.Writer, plan *attention.Plan) {
	t, c := plan.Transition, plan.Churn
	if t == nil {
		return
	}
	fmt.Fprintf(w, "steps: %d (turn on %s, then off %s), %d stay\n", len(t.Steps), shortenList(t.Add), shortenList(t.Remove), len(t.Keep))
	if c != nil && c.Limit >= 0 && c.Forced > c.Limit {
		fmt.Fprintf(w, "more than --churn %d have to change: %d do\n", c.Limit, c.Forced)
	}
}
