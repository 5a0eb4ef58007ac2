package solve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// scarce draws a problem that brute can solve, mostly with too little room for everything, and half of them with
// weights.
func scarce(r *rand.Rand, split bool, copies int) *orchestrate.Problem {
	p := &orchestrate.Problem{Redundancy: copies, Split: split}
	ifaces, flows, demand := 1+r.IntN(6), 1+r.IntN(5), []int64{1, 2, 3, 4, 5, 6, 10}
	if split || copies > 1 {
		ifaces, flows = 1+r.IntN(4), 1+r.IntN(4)
	}
	if split {
		demand = demand[:4]
	}
	var sum int64
	for i := range ifaces {
		q := orchestrate.Interface{ID: fmt.Sprintf("i%d", i), Demand: demand[r.IntN(len(demand))]}
		if len(p.Interfaces) > 0 && r.IntN(2) == 0 {
			q.Demand = p.Interfaces[0].Demand
		}
		sum += q.Demand * int64(copies)
		p.Interfaces = append(p.Interfaces, q)
	}
	if r.IntN(2) == 0 {
		for i := range ifaces {
			p.Interfaces[i].Weight = 1 + r.Int64N(6)
		}
	}
	dense := 0.4 + 0.6*r.Float64()
	same := r.Int64N(2*sum/int64(flows) + 1)
	for f := range flows {
		q := orchestrate.Flow{ID: fmt.Sprintf("f%d", f), Capacity: r.Int64N(2*sum/int64(flows) + 1)}
		if r.IntN(2) == 0 {
			q.Capacity = same
		}
		for _, i := range r.Perm(ifaces) {
			if r.Float64() < dense {
				q.Interfaces = append(q.Interfaces, int32(i))
			}
		}
		p.Flows = append(p.Flows, q)
	}
	return p
}

// TestPartial compares partial plans of every kind with trying everything: the least weight is left out, the objective is
// the best of the plans that leave out no more, and both are proven.
func TestPartial(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, split := range []bool{false, true} {
		for copies := 1; copies <= 2; copies++ {
			partial := 0
			for n := 0; partial < 500; n++ {
				p := scarce(r, split, copies)
				b := newBrute(p)
				b.next(0)
				if b.lost > 0 {
					partial++
				}
				for _, p.Objective = range []string{orchestrate.Concentrate, orchestrate.Balance} {
					name := fmt.Sprintf("seed %d, problem %d, %+v", seed, n, p)
					plan, err := Plan(p, Options{Method: []Method{Auto, Exact}[n%2], Seed: uint64(n), Partial: true, Stop: after(100000)})
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if err := orchestrate.Check(p, plan); err != nil {
						t.Fatalf("%s: plan %+v: %v", name, plan, err)
					}
					want := float64(b.flows)
					if p.Objective == orchestrate.Balance {
						want = float64(b.level)
					}
					s := plan.Stats
					if math.Abs(s.LeftOut-float64(b.lost)/60) > 1e-9 || s.Objective != want || !s.Optimal {
						t.Fatalf("%s: left out %v (bound %v), objective %v (bound %v), proven %t, want %v and %v: %v %v",
							name, s.LeftOut, s.LeftOutBound, s.Objective, s.LowerBound, s.Optimal, float64(b.lost)/60, want, plan.Assignment, plan.Shares)
					}
				}
			}
		}
	}
}
