package main

import (
	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/planner/attention"
)

// after reads the earlier plan, if there is one, and gives the problem after it.
func (o *attentionFlags) after(f *pflag.FlagSet, p *attention.Problem) (*attention.Problem, error) {
	switch {
	case o.replan == "":
		return p, nil
	case f.Changed("detailed"):
		return nil, usagef("--replan says which probes measure in detail now: --detailed does not go with it")
	}
	o.earlier = new(attention.Plan)
	if err := readPlan(o.replan, "attention", o.earlier); err != nil {
		return nil, err
	}
	return p.After(o.earlier), nil
}

// holdsAfter checks a plan, and the steps to it from the earlier one, if there is one.
func (o *attentionFlags) holdsAfter(p *attention.Problem, plan *attention.Plan) error {
	if err := attention.Check(p, plan); err != nil || o.earlier == nil {
		return err
	}
	return attention.CheckTransition(p, o.earlier, plan)
}
