package orchestrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Share is items of one interface on one flow, both as indices into an Problem.
type Share struct {
	Interface, Flow int32
	Items           int64
}

// Plan assigns the items of interfaces to flows.
type Plan struct {
	planner.Head
	Algorithm  string `json:"algorithm"`
	Topology   string `json:"topology,omitempty"`
	Objective  string `json:"objective"`
	Redundancy int    `json:"redundancy,omitempty"` // where more than 1
	Split      bool   `json:"split,omitempty"`
	Partial    bool   `json:"partial,omitempty"` // interfaces are left out or not served whole

	// Assignment holds the flow of every interface that has its items on one flow. With redundancy or splitting Shares
	// holds the others.
	Assignment map[string]string `json:"assignment"`
	Shares     []NamedShare      `json:"shares,omitempty"`
	Unserved   []Unservable      `json:"unserved,omitempty"` // of a partial plan
	Stats      Stats             `json:"stats"`

	Tables []Table `json:"tables,omitempty"` // what to install at the interfaces; see Problem.Tables

	// Rates are those of the flows used, in packets a second, as far as the problem has them.
	Rates map[string]float64 `json:"rates,omitempty"`

	planner.Replacement // interface by interface, of which those have changed whose flow is another one
}

// NamedShare is items of one interface on one flow.
type NamedShare struct {
	Interface string `json:"interface"`
	Flow      string `json:"flow"`
	Items     int64  `json:"items"`
}

// Stats describes a plan. The objective is the number of flows used, or the largest load.
type Stats struct {
	planner.Stats
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

	Freshness Freshness `json:"freshness"`
	Renewal   *Renewal  `json:"renewal,omitempty"` // where a flow used has a rate
}

// Freshness is how far packets carry items before these are reported, in hops (INTO, section 5.2.5). A packet's items are
// extracted and reported at the last interface that is assigned to its flow: see [Entry]. The fewer hops, the fresher.
type Freshness struct {
	Mean float64 `json:"mean"` // over all items carried
	Max  int     `json:"max"`
}

// Renewal is the rate at which all items of an interface are renewed, in 1/s. It is the sum over its flows of packet
// rate times share of its demand.
type Renewal struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"` // over the interfaces
}

// NewPlan names shares and counts. No interface may have two shares on one flow. The bound, what is proven
// and the time are left to the caller; see SetBound.
func NewPlan(p *Problem, algorithm string, shares []Share) *Plan {
	plan := &Plan{Algorithm: algorithm, Objective: p.Objective, Split: p.Split, Assignment: make(map[string]string, len(p.Interfaces))}
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

// SetBound fills in the proven bounds. No plan leaves out less than leftOut. No plan that leaves out at most as much as
// this one has an objective below bound.
func (plan *Plan) SetBound(bound int64, leftOut float64) {
	s := &plan.Stats
	s.LowerBound, s.LeftOutBound = float64(bound), min(leftOut, s.LeftOut)
	s.Gap = s.Objective - s.LowerBound
	s.Optimal = s.Gap == 0 && planner.Near(s.LeftOut, s.LeftOutBound)
}

// leftOut is the weight of an interface with that many missing items, counted as often as they are to be carried. It is
// exact where whole demands are missing, or where the weight is the demand.
func (i *Interface) leftOut(missing int64) float64 {
	w, d := i.Worth(), i.Demand
	return float64(w*(missing/d)) + float64(w)*float64(missing%d)/float64(d)
}

// freshness counts hops from each interface to the last one assigned to the same flow. The interfaces of a flow are in the
// order in which its packets pass them.
func (p *Problem) freshness(shares []Share, items int64) (f Freshness) {
	type pair struct{ iface, flow int32 }
	carried := make(map[pair]int64, len(shares))
	used := make([]bool, len(p.Flows))
	for _, h := range shares {
		carried[pair{h.Interface, h.Flow}] = h.Items
		used[h.Flow] = true
	}
	var sum float64
	for k := range p.Flows {
		if !used[k] {
			continue
		}
		path := p.Flows[k].Interfaces
		last := -1
		for at, i := range slices.Backward(path) {
			n := carried[pair{i, int32(k)}]
			if n == 0 {
				continue
			}
			last = max(last, at)
			f.Max = max(f.Max, last-at)
			sum += float64(n) * float64(last-at)
		}
	}
	if items > 0 {
		f.Mean = sum / float64(items)
	}
	return f
}

// stats returns all of the statistics but bound and time.
func (p *Problem) stats(shares []Share) Stats {
	s := Stats{Interfaces: len(p.Interfaces), Flows: len(p.Flows)}
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
		s.LeftOut += i.leftOut(max(want-got[k], 0))
		if got[k] >= want {
			whole++
		}
	}
	s.Coverage, s.Assigned = float64(whole)/float64(len(p.Interfaces)), float64(have)/float64(all)
	if rates {
		s.Renewal = &Renewal{Min: math.Inf(1)}
		for _, v := range fresh {
			s.Renewal.Min = min(s.Renewal.Min, v)
			s.Renewal.Mean += v / float64(len(fresh))
		}
	}
	s.Freshness = p.freshness(shares, have)
	s.Objective = float64(s.FlowsUsed)
	if p.Objective == Balance {
		s.Objective = float64(s.LoadMax)
	}
	return s
}
