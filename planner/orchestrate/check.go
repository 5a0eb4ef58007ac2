package orchestrate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/opt"
)

// Check returns where a plan does not answer its problem. It trusts only the problem.
func Check(p *Problem, plan *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if plan.Objective != p.Objective || plan.Split != p.Split || max(plan.Redundancy, 1) != p.Copies() {
		return fmt.Errorf("the plan is for %s, redundancy %d, split %t", plan.Objective, max(plan.Redundancy, 1), plan.Split)
	}
	var bad planner.Errors
	shares := readShares(p, plan, &bad)
	if err := bad.Join(); err != nil {
		return err
	}
	load, got := make([]int64, len(p.Flows)), make([]int64, len(p.Interfaces))
	for _, s := range shares {
		load[s.Flow] += s.Items
		got[s.Interface] += s.Items
	}
	for k, f := range p.Flows {
		if load[k] > f.Capacity {
			bad.Add("flow %q carries %d items, its capacity is %d", f.ID, load[k], f.Capacity)
		}
	}
	short := 0
	for k, i := range p.Interfaces {
		want := i.Demand * int64(p.Copies())
		if got[k] > want {
			bad.Add("interface %q: %d of %d items are carried", i.ID, got[k], want)
		}
		if got[k] < want {
			short++
			if !plan.Partial {
				bad.Add("interface %q: %d of %d items are carried", i.ID, got[k], want)
			}
		}
	}
	if plan.Partial != (short > 0) || len(plan.Unserved) != short {
		bad.Add("partial: %t with %d named, %d interfaces are not served whole", plan.Partial, len(plan.Unserved), short)
	}
	if err := checkOrchestrateStats(p, plan, shares); err != nil {
		bad.Add("%w", err)
	}
	checkTables(p, plan, &bad)
	if plan.Rates != nil && !maps.Equal(plan.Rates, p.Rates(plan)) {
		bad.Add("rates: not those of the flows used; without rates a plan gets those that are")
	}
	return bad.Join()
}

// checkTables compares the tables of a plan that has some with those that follow from what it assigns.
func checkTables(p *Problem, plan *Plan, bad *planner.Errors) {
	if plan.Tables == nil {
		return
	}
	given := map[string][]Entry{}
	for _, t := range plan.Tables {
		if _, twice := given[t.Interface]; twice {
			bad.Add("interface %q has two tables", t.Interface)
		}
		given[t.Interface] = t.Entries
	}
	for _, want := range p.Tables(plan) {
		if !slices.Equal(given[want.Interface], want.Entries) {
			bad.Add("interface %q: its table is not what is assigned to it; without tables a plan gets those that are", want.Interface)
		}
		delete(given, want.Interface)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		bad.Add("interface %q has a table, and no flow", name)
	}
}

// readShares finds what the names of a plan stand for.
func readShares(p *Problem, plan *Plan, bad *planner.Errors) []Share {
	iface := opt.Index[Interface, int32](p.Interfaces, func(i *Interface) string { return i.ID })
	flow := opt.Index[Flow, int32](p.Flows, func(f *Flow) string { return f.ID })
	type pair struct{ i, f int32 }
	passes := make(map[pair]bool) // used pairs only: whether the flow passes the interface
	var shares []Share
	add := func(id, on string, items int64) {
		i, ok := iface[id]
		if !ok {
			bad.Add("no interface %q", id)
			return
		}
		f, ok := flow[on]
		if !ok {
			bad.Add("interface %q: no flow %q", id, on)
			return
		}
		if items == 0 {
			items = p.Interfaces[i].Demand
		}
		switch _, twice := passes[pair{i, f}]; {
		case twice:
			bad.Add("interface %q has two shares on flow %q", id, on)
		case items < 0 || items > p.Interfaces[i].Demand:
			bad.Add("interface %q: %d items on flow %q, its demand is %d", id, items, on, p.Interfaces[i].Demand)
		case !p.Split && items != p.Interfaces[i].Demand:
			bad.Add("interface %q: %d of %d items on flow %q, but demands are not to be split", id, items, p.Interfaces[i].Demand, on)
		}
		passes[pair{i, f}] = false
		shares = append(shares, Share{i, f, items})
	}
	for i, f := range plan.Assignment {
		add(i, f, 0)
	}
	for _, s := range plan.Shares {
		if s.Items <= 0 {
			bad.Add("interface %q: %d items on flow %q", s.Interface, s.Items, s.Flow)
			continue
		}
		if _, twice := plan.Assignment[s.Interface]; twice {
			bad.Add("interface %q has an assignment and shares", s.Interface)
		}
		add(s.Interface, s.Flow, s.Items)
	}
	for k, f := range p.Flows {
		for _, i := range f.Interfaces {
			if _, used := passes[pair{i, int32(k)}]; used {
				passes[pair{i, int32(k)}] = true
			}
		}
	}
	for _, s := range shares {
		if !passes[pair{s.Interface, s.Flow}] {
			bad.Add("flow %q does not pass interface %q", p.Flows[s.Flow].ID, p.Interfaces[s.Interface].ID)
		}
	}
	return shares
}

// checkOrchestrateStats recomputes the statistics.
func checkOrchestrateStats(p *Problem, plan *Plan, shares []Share) error {
	want, got := p.stats(shares), plan.Stats
	var wantNew, gotNew Renewal
	if want.Renewal != nil {
		wantNew = *want.Renewal
	}
	if got.Renewal != nil {
		gotNew = *got.Renewal
	}
	for _, v := range [...]struct {
		name      string
		got, want float64
	}{
		{"objective", got.Objective, want.Objective},
		{"interfaces", float64(got.Interfaces), float64(want.Interfaces)},
		{"flows", float64(got.Flows), float64(want.Flows)},
		{"flows_used", float64(got.FlowsUsed), float64(want.FlowsUsed)},
		{"left_out", got.LeftOut, want.LeftOut},
		{"coverage", got.Coverage, want.Coverage},
		{"assigned", got.Assigned, want.Assigned},
		{"load_min", float64(got.LoadMin), float64(want.LoadMin)},
		{"load_mean", got.LoadMean, want.LoadMean},
		{"load_max", float64(got.LoadMax), float64(want.LoadMax)},
		{"fill", got.Fill, want.Fill},
		{"per_flow", got.PerFlow, want.PerFlow},
		{"correlation", got.Correlation, want.Correlation},
		{"freshness: mean", got.Freshness.Mean, want.Freshness.Mean},
		{"freshness: max", float64(got.Freshness.Max), float64(want.Freshness.Max)},
		{"renewal: min", gotNew.Min, wantNew.Min},
		{"renewal: mean", gotNew.Mean, wantNew.Mean},
		{"gap", got.Gap, got.Objective - got.LowerBound},
	} {
		if !(math.Abs(v.got-v.want) <= 1e-9*(1+math.Abs(v.want))) {
			return fmt.Errorf("statistics: %s is %v, the assignment says %v", v.name, v.got, v.want)
		}
	}
	var bad planner.Errors
	got.Stats.CheckBound(&bad)
	plan.CheckClaims(&bad, "interfaces")
	return bad.Join()
}
