package querymix

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Check returns where a plan does not answer its problem, or makes false claims about itself.
//
// The prices prove that no other sets and shares are better for the widths of the plan. A query at its goal once pays
// GoalPrice, and a share of 1 pays FloorPrice. A packet earns at most K, the best of all sets that fit. A plan of
// objective T earns at least Σ GoalPrice/T + Σ FloorPrice·floor. So T is at least Σ GoalPrice / (K - Σ
// FloorPrice·floor).
func Check(p *Problem, plan *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var bad planner.Errors
	if plan.Bits != p.Bits || plan.Seed != p.Seed || p.Epoch != 0 && plan.Epoch != p.Epoch || plan.Hash != hashName(p.Hash) {
		bad.Add("bits, epoch, hash or seed are not those of the problem")
	}
	if plan.Partial != (len(plan.LeftOut) > 0 || plan.Held != 0) || !(plan.Held >= 0 && plan.Held < 1) {
		bad.Add("the plan says partial %v, leaves out %d queries and holds %v of frequencies", plan.Partial, len(plan.LeftOut), plan.Held)
	}
	planned := map[string]*PlannedQuery{}
	for i := range plan.Queries {
		q := &plan.Queries[i]
		if planned[q.Name] != nil {
			bad.Add("query %q is planned twice", q.Name)
		}
		planned[q.Name] = q
	}
	share := checkSets(&bad, plan, planned)
	left := 0.0
	for _, l := range plan.LeftOut {
		i := slices.IndexFunc(p.Queries, func(q Query) bool { return q.Name == l.Name })
		if i < 0 || planned[l.Name] != nil {
			bad.Add("query %q is left out, but planned or not there", l.Name)
		} else {
			left += p.Queries[i].LeftOutWeight()
		}
	}
	if !planner.Near(plan.Stats.LeftOut, left) {
		bad.Add("queries of weight %v are left out, the plan says %v", left, plan.Stats.LeftOut)
	}
	plan.CheckClaims(&bad, "queries")
	if len(plan.Queries)+len(plan.LeftOut) != len(p.Queries) {
		bad.Add("%d queries are planned and %d left out, of %d", len(plan.Queries), len(plan.LeftOut), len(p.Queries))
	}
	objective := 0.0
	for i := range p.Queries {
		q := &p.Queries[i]
		if d := planned[q.Name]; d != nil {
			checkQuery(&bad, plan, q, d, share[q.Name])
			for _, name := range d.LimitedBy {
				if planned[name] == nil || name == q.Name {
					bad.Add("query %q is limited by %q, which is no other query of the plan", q.Name, name)
				}
			}
			if plan.Pursued(d) {
				objective = max(objective, d.Ratio)
			}
		}
	}
	s := &plan.Stats
	if !planner.Near(s.Objective, objective) || s.Queries != len(plan.Queries) || s.Sets != len(plan.Sets) {
		bad.Add("objective %v of %d queries in %d sets, the plan says %v, %d and %d", objective, len(plan.Queries), len(plan.Sets), s.Objective, s.Queries, s.Sets)
	}
	if w := planned[s.Worst]; len(plan.Queries) > 0 && (w == nil || !planner.Near(w.Ratio, objective)) {
		bad.Add("query %q is not the worst", s.Worst)
	}
	s.CheckBound(&bad)
	if plan.Bits != p.Bits {
		return bad.Join()
	}
	if bound := plan.priceBound(); s.Optimal && bound < s.Objective*(1-1e-6) {
		bad.Add("the prices prove %v for these widths, the plan has %v and is called optimal", bound, s.Objective)
	} else if bound > s.Objective*(1+1e-6) {
		bad.Add("the prices prove %v for these widths, but the plan has %v", bound, s.Objective)
	}
	return bad.Join()
}

// hashName is the hash of a problem that may name none.
func hashName(hash string) string {
	if hash == "" {
		return "mix"
	}
	return hash
}

// checkSets checks sets, and returns the share of packets of each query.
func checkSets(bad *planner.Errors, plan *Plan, planned map[string]*PlannedQuery) map[string]float64 {
	share := map[string]float64{}
	sum, next := 0.0, uint64(0)
	for n, set := range plan.Sets {
		if !(set.Share > 0 && set.Share <= 1+1e-9) {
			bad.Add("set %d has a share of %v", n, set.Share)
		}
		sum += set.Share
		if uint64(set.First) != next || set.Last < set.First {
			bad.Add("set %d has hashes %#x to %#x, and those before end at %#x", n, set.First, set.Last, next)
		}
		next = uint64(set.Last) + 1
		if hashes := float64(set.Last) - float64(set.First) + 1; math.Abs(hashes/(1<<32)-set.Share) > 1e-8 {
			bad.Add("set %d has a share of %v, and %v of the hashes", n, set.Share, hashes/(1<<32))
		}
		var used uint64
		for _, slot := range set.Slots {
			q := planned[slot.Query]
			if q == nil || slot.Bits != q.Total() || slot.Shift < 0 || slot.Bits < 1 || slot.Shift+slot.Bits > plan.Bits {
				bad.Add("set %d: query %q with %d bits from bit %d does not fit, or is not planned so", n, slot.Query, slot.Bits, slot.Shift)
				continue
			}
			room := (uint64(1)<<slot.Bits - 1) << slot.Shift
			if used&room != 0 {
				bad.Add("set %d: query %q overlaps another", n, slot.Query)
			}
			if slices.ContainsFunc(set.Slots, func(o Slot) bool { return o.Query == slot.Query && o.Shift != slot.Shift }) {
				bad.Add("set %d: query %q is there twice", n, slot.Query)
			}
			used |= room
			share[slot.Query] += set.Share
		}
	}
	if len(plan.Queries) > 0 && (next != 1<<32 || !planner.Near(sum, 1)) {
		bad.Add("the shares sum to %v, and hashes end at %#x", sum, next)
	}
	return share
}

// checkQuery checks one query against what is asked of it.
func checkQuery(bad *planner.Errors, plan *Plan, q *Query, d *PlannedQuery, share float64) {
	add := func(format string, args ...any) { bad.Add("query %q: "+format, append([]any{q.Name}, args...)...) }
	flow := q.Flow
	if flow == "" {
		flow = "5-tuple"
	}
	if d.Value != q.Value || d.Aggregation != q.Aggregation || d.Answer != q.Answer || d.Function != q.Function || d.Flow != flow || d.SpaceBytes != q.SpaceBytes || d.MinValue != q.MinValue || d.MaxValue != q.MaxValue || d.Matches != q.Matches ||
		(q.Tau > 0 || q.XOR != nil) && (d.Tau != q.Tau || !slices.Equal(d.XOR, q.XOR)) {
		add("the plan asks something else")
	}
	if len(d.Widths) != len(q.Widths) {
		add("the plan knows %d widths of %d", len(d.Widths), len(q.Widths))
		return
	}
	alone, found := math.Inf(1), false
	for k := range d.Widths {
		w := &d.Widths[k]
		if !w.Width().Coded(q.Widths[k]) || q.Widths[k].Packets != 0 && w.Packets != q.Widths[k].Packets {
			add("width %s is not what was asked", w.Width())
		}
		if w.Reason == "" && w.Bits*w.Instances <= plan.Bits {
			alone = min(alone, w.Packets)
		}
		if w.Width().Coded(d.Width()) {
			found = true
			if w.Reason != "" || w.Packets != d.Carrying || !(w.Packets > 0) {
				add("width %s takes %v packets (%s), the plan has it with %v", w.Width(), w.Packets, w.Reason, d.Carrying)
			}
		}
	}
	if !found {
		add("width %s is none of its widths", d.Width())
	}
	demand, goal := WantAlone, alone
	switch {
	case q.Within > 0:
		demand, goal = WantWithin, q.Within
	case q.Frequency > 0:
		demand = WantFrequency
	}
	if d.Demand != demand || !planner.Near(d.Goal, goal) || !planner.Near(d.Alone, alone) || d.Frequency != float64(q.Frequency) {
		add("demand, goal, frequency or packets alone are not those of the problem")
	}
	if !planner.Near(d.Share, share) || !planner.Near(d.Packets, d.Carrying/share) || !planner.Near(d.Ratio, d.Packets/goal) {
		add("it is on a share of %v of all packets: the plan says %v, %v packets, %v of its goal", share, d.Share, d.Packets, d.Ratio)
	}
	if floor := d.floor(plan.Held); share < floor*(1-1e-9)-1e-9 {
		add("it is on a share of %v of all packets, less than %v", share, floor)
	}
	if !(d.GoalPrice >= 0 && d.FloorPrice >= 0) || math.IsInf(d.GoalPrice, 0) || math.IsInf(d.FloorPrice, 0) {
		add("its prices are %v and %v", d.GoalPrice, d.FloorPrice)
	}
}

// floor is the least share of a query, of whose frequency a part is held.
func (d *PlannedQuery) floor(held float64) float64 {
	if held == 0 {
		held = 1
	}
	return max(d.Frequency*held, MinShare)
}

// priceBound is the bound of the objective that the prices prove, for the widths of the plan.
func (plan *Plan) priceBound() float64 {
	best := make([]float64, plan.Bits+1) // earned by a packet, by bits used at most
	goals, floors := 0.0, 0.0
	for i := range plan.Queries {
		q := &plan.Queries[i]
		earns := q.FloorPrice
		if plan.Pursued(q) {
			goals += q.GoalPrice
			earns += q.GoalPrice * q.Goal / q.Carrying
		}
		floors += q.FloorPrice * q.floor(plan.Held)
		for b := plan.Bits; b >= q.Total() && q.Total() > 0; b-- {
			best[b] = max(best[b], best[b-q.Total()]+earns)
		}
	}
	if goals == 0 || best[plan.Bits] <= floors {
		return 0
	}
	return goals / (best[plan.Bits] - floors)
}
