package solve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
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

// TestPartial compares partial plans of every kind with enumeration. The least weight is left out, the objective is the
// best of the plans that leave out no more, and both are proven.
func TestPartial(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, split := range []bool{false, true} {
		for copies := 1; copies <= 2; copies++ {
			partial := 0
			for n := 0; partial < testkit.Rounds(100, 500); n++ {
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

// TestPartialLone adds an interface that no flow passes to problems that are hard to pack. Only that one is left out,
// and the rest is solved as if it were not there.
func TestPartialLone(t *testing.T) {
	for _, tt := range []struct {
		p            *orchestrate.Problem
		flows, level float64
	}{
		{alike(2, 7, 5, 4, 2, 3), 2, 7},
		{alike(4, 100, 49, 26, 25, 47, 28, 25, 45, 29, 26, 43, 30, 27), 4, 100},
		{alike(3, 100, 5, 5, 4, 4, 3, 3, 3), 1, 9},
	} {
		for _, tt.p.Split = range []bool{false, true} {
			for k, want := range []float64{tt.flows, tt.level} {
				p := *tt.p
				p.Objective = []string{orchestrate.Concentrate, orchestrate.Balance}[k]
				p.Interfaces = append(p.Interfaces[:len(p.Interfaces):len(p.Interfaces)], orchestrate.Interface{ID: "lone", Demand: 900})
				plan, err := Plan(&p, Options{Partial: true, Stop: after(20000)})
				if err != nil {
					t.Fatal(err)
				}
				if s := plan.Stats; s.LeftOut != 900 || s.Objective != want || !s.Optimal || len(plan.Unserved) != 1 || plan.Unserved[0].Reason != "0 of 900 items are carried: no flow passes it" {
					t.Errorf("%s, split %t: %+v, %v, want 900 left out and %v", p.Objective, p.Split, s, plan.Unserved, want)
				}
			}
		}
	}
}

// TestPartialSame makes plans twice, with the same number of steps until the end.
func TestPartialSame(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range 60 {
		p := medium(r)
		p.Split, p.Objective = n%5 == 0, []string{orchestrate.Concentrate, orchestrate.Balance}[n%2]
		var first, old *orchestrate.Plan
		for range 2 {
			plan, err := Plan(p, Options{Method: []Method{Auto, Search, Heuristic}[n%3], Seed: uint64(n), Partial: true, Stop: after(40)})
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && !reflect.DeepEqual(plan, first) {
				t.Fatalf("seed %d, problem %d: two runs differ:\n%+v\n%+v", seed, n, first, plan)
			}
			first = plan
		}
		if p.Split {
			continue
		}
		q := shake(r, p)
		for range 2 {
			plan, err := Plan(q, Options{Seed: uint64(n), Partial: true, Previous: first, Churn: n % 4, Stop: after(40)})
			if err != nil {
				t.Fatal(err)
			}
			if old != nil && !reflect.DeepEqual(plan, old) {
				t.Fatalf("seed %d, problem %d: two replans differ:\n%+v\n%+v", seed, n, old, plan)
			}
			old = plan
		}
	}
}

// medium draws problems of every kind: with equal capacities, with the same flow several times, with flows that pass
// everything, and with capacity 0.
func medium(r *rand.Rand) *orchestrate.Problem {
	p := &orchestrate.Problem{}
	ifaces, flows, kind := 4+r.IntN(8), 3+r.IntN(6), r.IntN(4)
	var sum int64
	for i := range ifaces {
		q := orchestrate.Interface{ID: fmt.Sprintf("i%d", i), Demand: 1 + r.Int64N(9)}
		if kind == 0 {
			q.Demand = 3 + 3*r.Int64N(2)
		}
		if r.IntN(4) == 0 {
			q.Weight = 1 + r.Int64N(9)
		}
		sum += q.Demand
		p.Interfaces = append(p.Interfaces, q)
	}
	mean := float64(sum) / float64(flows) * []float64{0.5, 0.8, 1, 1.3, 3}[r.IntN(5)]
	dense := 0.2 + 0.7*r.Float64()
	for f := range flows {
		q := orchestrate.Flow{ID: fmt.Sprintf("f%d", f), Capacity: int64(mean * (0.5 + r.Float64()))}
		if kind == 1 {
			q.Capacity = int64(mean)
		}
		for i := range ifaces {
			if kind == 2 || r.Float64() < dense {
				q.Interfaces = append(q.Interfaces, int32(i))
			}
		}
		if kind == 3 && f > 0 && r.IntN(2) == 0 {
			q.Capacity, q.Interfaces = p.Flows[f-1].Capacity, p.Flows[f-1].Interfaces
		}
		if r.IntN(10) == 0 {
			q.Capacity = 0
		}
		p.Flows = append(p.Flows, q)
	}
	return p
}
