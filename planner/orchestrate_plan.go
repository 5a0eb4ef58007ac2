package planner

import (
	"errors"
	"fmt"
	"math"
)

// Share is items of one interface on one flow, both as indices into an OrchestrateProblem.
type Share struct {
	Interface, Flow int32
	Items           int64
}

// OrchestratePlan says which flow carries the items of which interface.
type OrchestratePlan struct {
	Algorithm  string `json:"algorithm"`
	Topology   string `json:"topology,omitempty"`
	Objective  string `json:"objective"`
	Redundancy int    `json:"redundancy,omitempty"` // where more than 1
	Split      bool   `json:"split,omitempty"`
	Partial    bool   `json:"partial,omitempty"` // interfaces are left out or not served whole

	// Assignment gives the flow of every interface that has its items on one flow. With redundancy or splitting Shares
	// holds the others.
	Assignment map[string]string `json:"assignment"`
	Shares     []NamedShare      `json:"shares,omitempty"`
	Unserved   []Unservable      `json:"unserved,omitempty"` // of a partial plan
	Stats      OrchestrateStats  `json:"stats"`
}

// NamedShare is items of one interface on one flow.
type NamedShare struct {
	Interface string `json:"interface"`
	Flow      string `json:"flow"`
	Items     int64  `json:"items"`
}

// OrchestrateStats describes a plan. The objective is the number of flows used, or the largest load.
type OrchestrateStats struct {
	Stats
	Gap         float64 `json:"gap"` // objective less lower bound
	Interfaces  int     `json:"interfaces"`
	Flows       int     `json:"flows"`
	FlowsUsed   int     `json:"flows_used"`
	Coverage    float64 `json:"coverage"`    // share of the interfaces that are served whole
	Assigned    float64 `json:"assigned"`    // share of the items, counted as often as they are to be carried
	LoadMin     int64   `json:"load_min"`    // items of the flow used that carries fewest
	LoadMean    float64 `json:"load_mean"`   // over the flows used
	LoadMax     int64   `json:"load_max"`    //
	Fill        float64 `json:"fill"`        // load by capacity, mean over the flows used
	PerFlow     float64 `json:"per_flow"`    // interfaces with items on a flow, mean over the flows used
	Correlation float64 `json:"correlation"` // those by the interfaces that the flow passes, mean over the flows used

	Freshness *Freshness `json:"freshness,omitempty"` // where a flow used has a rate
}

// Freshness is how often all items of an interface are renewed, in 1/s: the sum over its flows of packet rate times share
// of its demand.
type Freshness struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"` // over the interfaces
}

// NewOrchestratePlan names shares and counts. No interface may have two shares on one flow. The bound, what is proven
// and the time are left to the caller; see SetBound.
func NewOrchestratePlan(p *OrchestrateProblem, algorithm string, shares []Share) *OrchestratePlan {
	plan := &OrchestratePlan{Algorithm: algorithm, Objective: p.Objective, Split: p.Split, Assignment: make(map[string]string, len(p.Interfaces))}
	if p.Copies() > 1 {
		plan.Redundancy = p.Copies()
	}
	parts, got := make([]int32, len(p.Interfaces)), make([]int64, len(p.Interfaces))
	for _, s := range shares {
		parts[s.Interface]++
		got[s.Interface] += s.Items
	}
	for _, s := range shares {
		i, f := &p.Interfaces[s.Interface], &p.Flows[s.Flow]
		if parts[s.Interface] == 1 && s.Items == i.Demand {
			plan.Assignment[i.ID] = f.ID
			continue
		}
		plan.Shares = append(plan.Shares, NamedShare{i.ID, f.ID, s.Items})
	}
	for k, i := range p.Interfaces {
		if want := i.Demand * int64(p.Copies()); got[k] < want {
			plan.Partial = true
			plan.Unserved = append(plan.Unserved, Unservable{i.ID, fmt.Sprintf("%d of %d items are carried", got[k], want)})
		}
	}
	plan.Stats = p.stats(shares)
	return plan
}

// SetBound fills in what is proven: no plan has an objective below bound. A partial plan is never optimal.
func (plan *OrchestratePlan) SetBound(bound int64) {
	s := &plan.Stats
	s.LowerBound = float64(bound)
	s.Gap = s.Objective - s.LowerBound
	s.Optimal = s.Gap == 0 && !plan.Partial
}

// stats gives all of the statistics but bound and time.
func (p *OrchestrateProblem) stats(shares []Share) OrchestrateStats {
	s := OrchestrateStats{Interfaces: len(p.Interfaces), Flows: len(p.Flows)}
	load, count := make([]int64, len(p.Flows)), make([]int, len(p.Flows))
	got, fresh := make([]int64, len(p.Interfaces)), make([]float64, len(p.Interfaces))
	rates := false
	for _, h := range shares {
		load[h.Flow] += h.Items
		count[h.Flow]++
		got[h.Interface] += h.Items
		if r := p.Flows[h.Flow].Rate; r > 0 {
			rates = true
			fresh[h.Interface] += r * float64(h.Items) / float64(p.Interfaces[h.Interface].Demand)
		}
	}
	for f := range p.Flows {
		if count[f] == 0 {
			continue
		}
		if s.FlowsUsed == 0 {
			s.LoadMin = load[f]
		}
		s.FlowsUsed++
		s.LoadMin, s.LoadMax = min(s.LoadMin, load[f]), max(s.LoadMax, load[f])
		s.LoadMean += float64(load[f])
		s.Fill += float64(load[f]) / float64(p.Flows[f].Capacity)
		s.PerFlow += float64(count[f])
		s.Correlation += float64(count[f]) / float64(len(p.Flows[f].Interfaces))
	}
	if n := float64(s.FlowsUsed); n > 0 {
		s.LoadMean /= n
		s.Fill /= n
		s.PerFlow /= n
		s.Correlation /= n
	}
	var all, have int64
	whole := 0
	for k, i := range p.Interfaces {
		want := i.Demand * int64(p.Copies())
		all += want
		have += got[k]
		if got[k] >= want {
			whole++
		}
	}
	s.Coverage, s.Assigned = float64(whole)/float64(len(p.Interfaces)), float64(have)/float64(all)
	if rates {
		s.Freshness = &Freshness{Min: math.Inf(1)}
		for _, v := range fresh {
			s.Freshness.Min = min(s.Freshness.Min, v)
			s.Freshness.Mean += v / float64(len(fresh))
		}
	}
	s.Objective = float64(s.FlowsUsed)
	if p.Objective == Balance {
		s.Objective = float64(s.LoadMax)
	}
	return s
}

// CheckOrchestrate says in what a plan does not do what the problem asks. It trusts nothing but the problem.
func CheckOrchestrate(p *OrchestrateProblem, plan *OrchestratePlan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if plan.Objective != p.Objective || plan.Split != p.Split || max(plan.Redundancy, 1) != p.Copies() {
		return fmt.Errorf("the plan is for %s, redundancy %d, split %t", plan.Objective, max(plan.Redundancy, 1), plan.Split)
	}
	var bad Errors
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
	return bad.Join()
}

// readShares finds what the names of a plan stand for.
func readShares(p *OrchestrateProblem, plan *OrchestratePlan, bad *Errors) []Share {
	iface, flow := make(map[string]int32, len(p.Interfaces)), make(map[string]int32, len(p.Flows))
	for k, i := range p.Interfaces {
		iface[i.ID] = int32(k)
	}
	for k, f := range p.Flows {
		flow[f.ID] = int32(k)
	}
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
func checkOrchestrateStats(p *OrchestrateProblem, plan *OrchestratePlan, shares []Share) error {
	want, got := p.stats(shares), plan.Stats
	var wantFresh, gotFresh Freshness
	if want.Freshness != nil {
		wantFresh = *want.Freshness
	}
	if got.Freshness != nil {
		gotFresh = *got.Freshness
	}
	for _, v := range [...]struct {
		name      string
		got, want float64
	}{
		{"objective", got.Objective, want.Objective},
		{"interfaces", float64(got.Interfaces), float64(want.Interfaces)},
		{"flows", float64(got.Flows), float64(want.Flows)},
		{"flows_used", float64(got.FlowsUsed), float64(want.FlowsUsed)},
		{"coverage", got.Coverage, want.Coverage},
		{"assigned", got.Assigned, want.Assigned},
		{"load_min", float64(got.LoadMin), float64(want.LoadMin)},
		{"load_mean", got.LoadMean, want.LoadMean},
		{"load_max", float64(got.LoadMax), float64(want.LoadMax)},
		{"fill", got.Fill, want.Fill},
		{"per_flow", got.PerFlow, want.PerFlow},
		{"correlation", got.Correlation, want.Correlation},
		{"freshness: min", gotFresh.Min, wantFresh.Min},
		{"freshness: mean", gotFresh.Mean, wantFresh.Mean},
		{"gap", got.Gap, got.Objective - got.LowerBound},
	} {
		if !(math.Abs(v.got-v.want) <= 1e-9*(1+math.Abs(v.want))) {
			return fmt.Errorf("statistics: %s is %v, the assignment says %v", v.name, v.got, v.want)
		}
	}
	switch s := got.Stats; {
	case !plan.Partial && !(s.LowerBound <= s.Objective):
		return fmt.Errorf("lower bound %v is above the objective %v", s.LowerBound, s.Objective)
	case s.Optimal && s.LowerBound != s.Objective:
		return fmt.Errorf("optimal at %v, with a lower bound of %v", s.Objective, s.LowerBound)
	case s.Optimal && plan.Partial:
		return errors.New("a partial plan is called optimal")
	}
	return nil
}
