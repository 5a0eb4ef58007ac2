package solve

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/querymix"
)

// Complete derives the rest of a plan from the width of each query, and sets of queries with their shares, for
// [planner.ReadDecisions]. The packets of a width come from the problem, or from the model of [Plan] with the same
// seed. Names that the problem lacks are left to [querymix.Check].
func Complete(p *querymix.Problem, plan *querymix.Plan, given planner.Given, seed uint64) error {
	if !given["bits"] {
		plan.Bits = p.Bits
	}
	if !given["hash"] {
		plan.Hash = p.Hash
		if plan.Hash == "" {
			plan.Hash = "mix"
		}
	}
	if !given["seed"] {
		plan.Seed = p.Seed
	}
	if !given["epoch"] {
		plan.Epoch = p.Epoch
	}
	at := map[string]int{}
	for i := range plan.Queries {
		x := &plan.Queries[i]
		at[x.Name] = i
		k := slices.IndexFunc(p.Queries, func(q querymix.Query) bool { return q.Name == x.Name })
		if k < 0 || x.Widths != nil {
			continue
		}
		d, _, _, err := describe(&p.Queries[k], p.Bits, seed, nil)
		if err != nil {
			return fmt.Errorf("query %q: %w", x.Name, err)
		}
		d.Bits, d.Instances, d.Fragments = x.Bits, max(x.Instances, 1), x.Fragments
		for j := range d.Widths {
			if w := &d.Widths[j]; w.Width().Coded(d.Width()) && w.Packets > 0 {
				w.Reason, d.Carrying = "", w.Packets
			}
		}
		*x = d
	}
	if plan.Bits != p.Bits {
		return nil // Check reports it, and no digest of that size is laid out
	}
	full := *plan
	full.Queries, full.Sets = slices.Clone(plan.Queries), nil
	var sets [][]int
	var shares []float64
	placed := false
	for _, s := range plan.Sets {
		var set []int
		for _, slot := range s.Slots {
			if i, ok := at[slot.Query]; ok {
				set = append(set, i)
			}
			placed = placed || slot.Bits != 0
		}
		sets, shares = append(sets, set), append(shares, s.Share)
		placed = placed || s.First != 0 || s.Last != 0
	}
	if sum := total(shares); sum > 0 && !slices.ContainsFunc(shares, func(x float64) bool { return x < 0 }) {
		full.Arrange(sets, shares)
	}
	if !placed {
		plan.Sets, plan.Queries, plan.Epoch = full.Sets, full.Queries, full.Epoch
	}
	plan.Stats = full.Stats
	for _, l := range plan.LeftOut {
		if k := slices.IndexFunc(p.Queries, func(q querymix.Query) bool { return q.Name == l.Name }); k >= 0 {
			plan.Stats.LeftOut += p.Queries[k].LeftOutWeight()
		}
	}
	return nil
}

func total(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}
