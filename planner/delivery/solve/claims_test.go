package solve

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/delivery"
)

// calls is a time limit in calls.
func calls(n int) func() bool {
	return func() bool { n--; return n < 0 }
}

// TestClaims compares the bounds of plans of the same problem: of several methods, stopped early or not, replaced or
// not, with every rule. No plan may refute the claims of another. A plan that is replaced where nothing has changed
// stays the same.
func TestClaims(t *testing.T) {
	seeds := uint64(testkit.Rounds(60, 300))
	proven := 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 77))
		p := scarce(rng)
		p.TransitAll = rng.IntN(3) == 0
		if rng.IntN(3) == 0 {
			p.LossTest = []delivery.LossTest{delivery.LossJoint, delivery.LossExact, delivery.LossChernoff}[rng.IntN(3)]
			if p.LossTest != delivery.LossJoint {
				p.Reserve = 1 + rng.Float64()
			}
		}
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Kind == delivery.PointNode && seed%5 == 0 {
				n.Weight = 0.5 + rng.Float64() // with more digits than the search has
			}
		}
		noLinks := rng.IntN(2) == 0
		var plans []*delivery.Plan
		add := func(o Options) *delivery.Plan {
			o.Partial, o.NoLinks = true, noLinks
			plan, err := Plan(p, o)
			if err == nil {
				err = delivery.Check(p, plan)
			}
			if err == nil && o.Previous != nil {
				err = delivery.CheckTransition(p, o.Previous, plan)
			}
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, o, err)
			}
			plans = append(plans, plan)
			return plan
		}
		full := add(Options{Stop: calls(20000)})
		if full.Stats.Optimal {
			proven++
		}
		for _, n := range []int{0, 3, 10, 50, 200} {
			add(Options{Stop: calls(n)})
			if p.Test() == delivery.LossPath {
				add(Options{Method: Paper, Stop: calls(n)})
				add(Options{Method: Greedy, Stop: calls(n)})
			}
			second := add(Options{Stop: calls(n), Previous: full, Churn: rng.IntN(4) - 1})
			if full.Stats.Optimal && second.Churn.Changed > 0 {
				t.Errorf("seed %d: %d points change, and nothing has", seed, second.Churn.Changed)
			}
		}
		for _, a := range plans {
			for _, b := range plans {
				s := a.Stats
				if err := s.Hold(&b.Stats); err != nil {
					t.Errorf("seed %d, no links %v, %s against %s: %v", seed, noLinks, a.Algorithm, b.Algorithm, err)
				}
			}
		}
	}
	if proven < int(seeds)/3 {
		t.Errorf("only %d of %d plans are proven", proven, seeds)
	}
}
