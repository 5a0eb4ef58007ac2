package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// carried is the load of a flow in a plan.
type carried struct {
	flow   *orchestrate.Flow
	ifaces []string
	items  []int64
	load   int64
}

// carriers lists the flows used, in the order of the problem, with what they carry.
func carriers(p *orchestrate.Problem, plan *orchestrate.Plan) []carried {
	by := make(map[string]*carried, len(p.Flows))
	add := func(i, f string, items int64) {
		c := by[f]
		if c == nil {
			c = new(carried)
			by[f] = c
		}
		c.ifaces, c.items, c.load = append(c.ifaces, i), append(c.items, items), c.load+items
	}
	shares := make(map[string][]orchestrate.NamedShare)
	for _, s := range plan.Shares {
		shares[s.Interface] = append(shares[s.Interface], s)
	}
	for _, i := range p.Interfaces {
		if f, ok := plan.Assignment[i.ID]; ok {
			add(i.ID, f, i.Demand)
		}
		for _, s := range shares[i.ID] {
			add(s.Interface, s.Flow, s.Items)
		}
	}
	var list []carried
	for k := range p.Flows {
		if c := by[p.Flows[k].ID]; c != nil {
			c.flow = &p.Flows[k]
			list = append(list, *c)
		}
	}
	return list
}

// OrchestrateTable writes a plan as a table of text: a flow a line, the fullest first, then the figures of the plan.
func OrchestrateTable(w io.Writer, p *orchestrate.Problem, plan *orchestrate.Plan) error {
	return write(w, func(x *text) {
		x.row("FLOW\tITEMS\tCAPACITY\tINTERFACES")
		list := carriers(p, plan)
		slices.SortStableFunc(list, func(x, y carried) int { return cmp.Compare(y.load, x.load) })
		for _, c := range list {
			names := make([]string, len(c.ifaces))
			for k, i := range c.ifaces {
				names[k] = i
				if plan.Split {
					names[k] = fmt.Sprintf("%s (%d)", i, c.items[k])
				}
			}
			x.row("%s\t%d\t%d\t%s", c.flow.ID, c.load, c.flow.Capacity, strings.Join(names, ", "))
		}
		s := plan.Stats
		x.line("\n%d interfaces, %d flows: %d used, coverage %.1f %%, correlation %.1f %%", s.Interfaces, s.Flows, s.FlowsUsed, 100*s.Coverage, 100*s.Correlation)
		x.line("load of a flow: %d to %d items, mean %.1f of %.1f interfaces, %.0f %% full", s.LoadMin, s.LoadMax, s.LoadMean, s.PerFlow, 100*s.Fill)
		x.line("freshness: items are carried over %.1f hops, at most %d", s.Freshness.Mean, s.Freshness.Max)
		if r := s.Renewal; r != nil {
			x.line("renewal: an interface is renewed at least %.3g times a second, %.3g on average", r.Min, r.Mean)
		}
		how := howGood(&s.Stats, fmt.Sprintf("the best there is has at least %g", s.LowerBound))
		x.line("%s, objective %g: %s; %.3f s", plan.Algorithm, s.Objective, how, s.Seconds)
		for _, u := range plan.Unserved {
			x.line("not served: %s: %s", u.Interface, u.Reason)
		}
		if plan.Partial {
			least := "no less can be"
			if s.LeftOut > s.LeftOutBound {
				least = fmt.Sprintf("at least %g has to be", s.LeftOutBound)
			}
			x.line("This plan is partial: it does not serve every interface. A weight of %g is left out, %s;\nthe objective is held against plans that leave out no more.", s.LeftOut, least)
		}
		x.churn(plan)
	})
}

// churn writes what changes, and the way there.
func (x *text) churn(plan *orchestrate.Plan) {
	h, t := plan.Churn, plan.Transition
	if h == nil || t == nil {
		return
	}
	note := ""
	switch {
	case h.Limit >= 0 && h.Forced > h.Limit:
		note = fmt.Sprintf(", more than the %d of --churn: only these were changed", h.Limit)
	case h.Proven:
		note = "; no plan with so few changes is better"
	}
	x.line("churn: %d changed, %d had to%s", h.Changed, h.Forced, note)
	x.steps(t, plan.Deadlock)
}
