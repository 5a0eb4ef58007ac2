package solve

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/querymix"
)

// before is a plan that a network could have had before a problem: other packets, other widths, other queries.
func before(rng *rand.Rand, p *querymix.Problem) *querymix.Plan {
	old := *p
	old.Queries = nil
	for _, q := range p.Queries {
		if rng.IntN(6) == 0 {
			continue
		}
		q.Frequency = 0
		q.Widths = slices.Clone(q.Widths)
		for k := range q.Widths {
			q.Widths[k].Packets = float64(1 + rng.IntN(40))
		}
		old.Queries = append(old.Queries, q)
	}
	if rng.IntN(4) == 0 {
		old.Queries = append(old.Queries, querymix.Query{Name: "gone", Value: "node", Aggregation: querymix.Static, Hops: 5,
			Widths: []querymix.Width{{Bits: 1, Instances: 1, Packets: 3}}})
	}
	plan, err := Plan(&old, Options{Partial: true})
	if err != nil {
		return &querymix.Plan{}
	}
	for i := range plan.Queries {
		if rng.IntN(8) == 0 {
			plan.Queries[i].Bits = 31 // a width that there is no more
		}
	}
	return plan
}

// limited is the best objective with a limit of changes, and how many there have to be: by looking at all widths.
func (o *oracle) limited(previous *querymix.Plan, limit int) (least *big.Rat, forced int) {
	rates := map[int]*big.Rat{} // the best by changes
	o.each(func(widths []int) {
		changes := 0
		for i := range previous.Queries {
			d := &previous.Queries[i]
			if q := slices.IndexFunc(o.p.Queries, func(q querymix.Query) bool { return q.Name == d.Name }); q < 0 || o.p.Queries[q].Widths[widths[q]].Bits != d.Bits {
				changes++
			}
		}
		for _, q := range o.p.Queries {
			if !slices.ContainsFunc(previous.Queries, func(d querymix.PlannedQuery) bool { return d.Name == q.Name }) {
				changes++
			}
		}
		if rate := o.rate(widths); rate != nil && rate.Sign() > 0 && (rates[changes] == nil || rate.Cmp(rates[changes]) > 0) {
			rates[changes] = rate
		}
	})
	forced = 1 << 20
	for n := range rates {
		forced = min(forced, n)
	}
	if limit < 0 {
		limit = 1 << 20
	}
	var best *big.Rat
	for n, r := range rates {
		if n <= max(limit, forced) && (best == nil || r.Cmp(best) > 0) {
			best = r
		}
	}
	if best == nil {
		return nil, 0
	}
	return new(big.Rat).Inv(best), forced
}

// TestChurnAgainstOracle limits how many queries change after an earlier plan.
func TestChurnAgainstOracle(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 4))
	plans, dearer := 0, 0
	for n := range testkit.Rounds(150, 1000) {
		p := random(rng)
		previous, limit := before(rng, p), rng.IntN(5)-1
		want, forced := (&oracle{p}).limited(previous, limit)
		plan, err := Plan(p, Options{Previous: previous, Churn: limit})
		if (err == nil) != (want != nil) {
			t.Fatalf("seed %d, problem %d: %s\n%v, the oracle has %v", seed, n, text(p), err, want)
		}
		if err != nil {
			continue
		}
		plans++
		if err := querymix.Check(p, plan); err != nil {
			t.Fatalf("seed %d, problem %d: %s\n%s\n%v", seed, n, text(p), text(plan), err)
		}
		exact, _ := want.Float64()
		if got := plan.Stats.Objective; math.Abs(got-exact) > 1e-9*exact || !plan.Stats.Optimal || plan.Churn.Forced != forced {
			t.Fatalf("seed %d, problem %d: %s\nafter %s\n%s\nobjective %v (optimal %v, %+v), want %v with %d forced",
				seed, n, text(p), text(previous), text(plan), got, plan.Stats.Optimal, plan.Churn, exact, forced)
		}
		if free, _ := Plan(p, Options{}); free.Stats.Objective < exact*(1-1e-9) {
			dearer++
		}
	}
	if plans < testkit.Rounds(30, 400) || dearer < testkit.Rounds(1, 30) {
		t.Errorf("seed %d: %d plans, %d of them dearer for the limit: the problems are too plain", seed, plans, dearer)
	}
}
