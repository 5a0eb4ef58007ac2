package solve

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
)

// TestChurn replans random networks after failures and repairs, with every churn. Plans are valid, and no worse with
// more churn than with less. With unlimited churn they are as good as a new plan. No step uncovers what both plans
// cover.
func TestChurn(t *testing.T) {
	better, forced := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 21))
		g := randomGraph(t, r, 12, 30)
		p := &cover.Problem{Graph: g, Directed: r.IntN(3) == 0, MaxHops: max(0, r.IntN(16)-8)}
		if r.IntN(4) == 0 {
			p.Depots, _ = randomDepots(r, g)
		}
		p.Skip = skipping(r, g, 4)
		old := checked(t, seed, p, Options{Partial: true, Balanced: true})
		now := *p
		now.Skip = skipping(r, g, 8)
		anew := checked(t, seed, &now, Options{Partial: true})
		kept, last := 0, 0
		for _, churn := range []int{0, 1, 2, 3, 5, 8, -1} {
			plan, err := Replan(&now, old, Options{Partial: true, Churn: &churn})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := cover.Check(&now, plan); err != nil {
				t.Fatalf("seed %d, churn %d: %v", seed, churn, err)
			}
			if err := cover.CheckTransition(&now, old, plan); err != nil {
				t.Fatalf("seed %d, churn %d: %v", seed, churn, err)
			}
			n, objective := plan.Transition.Churn(), int(plan.Stats.Objective)
			if churn == 0 {
				kept = n
				forced += n
			} else if churn > 0 && n > max(churn, kept) {
				t.Errorf("seed %d: churn %d for at most %d, of which %d has to be", seed, n, churn, kept)
			}
			if c := plan.Churn; c.Limit != churn || c.Changed != n || c.Forced > kept || churn == 0 && c.Forced != kept {
				t.Errorf("seed %d, churn %d: %d changes, of which %d have to be: the plan says %+v", seed, churn, n, kept, c)
			}
			if churn != 0 && objective > last {
				t.Errorf("seed %d: objective %d with churn %d, and %d with less", seed, objective, churn, last)
			}
			last = objective
			if churn < 0 && objective > int(anew.Stats.Objective) {
				t.Errorf("seed %d: objective %d with any churn, and a new plan has %v", seed, objective, anew.Stats.Objective)
			}
			whole, err := Replan(&now, old, Options{Partial: true})
			if err != nil {
				t.Fatal(err)
			}
			if objective > int(whole.Stats.Objective) {
				t.Errorf("seed %d: objective %d with churn %d, and %v where every whole probe is kept", seed, objective, churn, whole.Stats.Objective)
			}
			if objective < int(whole.Stats.Objective) {
				better++
			}
		}
	}
	if better < 100 || forced < 100 {
		t.Errorf("%d plans are better than without churn, %d probes had to change: want many", better, forced)
	}
}

// skipping fails one of so many links.
func skipping(r *rand.Rand, g *topo.Graph, n int) []bool {
	skip := make([]bool, g.NumLinks())
	for l := range skip {
		skip[l] = r.IntN(n) == 0
	}
	return skip
}
