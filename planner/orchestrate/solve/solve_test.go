package solve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// TestPlanTiny compares every method, objective and option with trying everything.
func TestPlanTiny(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	solved, infeasible := 0, 0
	for n := range testkit.Rounds(1000, 6000) {
		p := tiny(r)
		flows, level := brute(p)
		for _, p.Objective = range []string{orchestrate.Concentrate, orchestrate.Balance} {
			want := flows
			if p.Objective == orchestrate.Balance {
				want = level
			}
			name := fmt.Sprintf("seed %d, problem %d, %+v", seed, n, p)
			method := []Method{Auto, Exact}[n%2]
			plan, err := Plan(p, Options{Method: method, Seed: uint64(n), Stop: after(20000)})
			if want < 0 {
				infeasible++
				if _, ok := errors.AsType[*Infeasible](err); !ok {
					t.Fatalf("%s: Plan = %v, %v, want Infeasible", name, plan, err)
				}
				part, err := Plan(p, Options{Method: method, Partial: true, Stop: after(100)})
				if err != nil {
					t.Fatalf("%s: partial: %v", name, err)
				}
				if err := orchestrate.Check(p, part); err != nil || !part.Partial {
					t.Fatalf("%s: partial plan %+v: %v", name, part, err)
				}
				continue
			}
			solved++
			if err != nil {
				t.Fatalf("%s: %v, want %d", name, err, want)
			}
			if err := orchestrate.Check(p, plan); err != nil {
				t.Fatalf("%s: plan %+v: %v", name, plan, err)
			}
			s := plan.Stats
			if s.LowerBound > float64(want) {
				t.Fatalf("%s: bound %v is above the optimum %d", name, s.LowerBound, want)
			}
			if s.Objective != float64(want) || !s.Optimal {
				t.Fatalf("%s: %s %v, proven %t, want %d", name, p.Objective, s.Objective, s.Optimal, want)
			}
		}
	}
	t.Logf("%d problems solved, %d infeasible", solved, infeasible)
}

// TestPlanStopped gives no time at all: what comes must hold nevertheless.
func TestPlanStopped(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range testkit.Rounds(80, 300) {
		p := network(r, 5+r.IntN(60), r.IntN(300))
		p.Redundancy, p.Split = 1, n%3 == 0
		for _, p.Objective = range []string{orchestrate.Concentrate, orchestrate.Balance} {
			for _, method := range []Method{Heuristic, Search, Exact} {
				plan, err := Plan(p, Options{Method: method, Seed: 1, Stop: after(n % 5)})
				if _, ok := errors.AsType[*NotFound](err); ok && method == Heuristic {
					continue
				}
				if err != nil {
					t.Fatalf("seed %d, problem %d, %s %s: %v", seed, n, p.Objective, method, err)
				}
				if err := orchestrate.Check(p, plan); err != nil {
					t.Fatalf("seed %d, problem %d, %s %s: %v", seed, n, p.Objective, method, err)
				}
			}
		}
	}
}

// TestPlanSame asks twice, and once more with everything three times as large.
func TestPlanSame(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range testkit.Rounds(20, 60) {
		p := network(r, 5+r.IntN(40), r.IntN(200))
		q := *p
		q.Interfaces, q.Flows = slices.Clone(p.Interfaces), slices.Clone(p.Flows)
		for k := range q.Interfaces {
			q.Interfaces[k].Demand *= 3
		}
		for k := range q.Flows {
			q.Flows[k].Capacity *= 3
		}
		for _, p.Objective = range []string{orchestrate.Concentrate, orchestrate.Balance} {
			q.Objective = p.Objective
			for _, method := range []Method{Heuristic, Search} {
				o := Options{Method: method, Seed: uint64(n)}
				var got [3]string
				for k, in := range []*orchestrate.Problem{p, p, &q} {
					o.Stop = after(300)
					plan, err := Plan(in, o)
					if err != nil {
						got[k] = fmt.Sprintf("%T", err)
						continue
					}
					got[k] = fmt.Sprint(plan.Assignment)
				}
				if got[0] != got[1] {
					t.Errorf("seed %d, problem %d, %s %s: two runs differ:\n%s\n%s", seed, n, p.Objective, method, got[0], got[1])
				}
				if got[0] != got[2] {
					t.Errorf("seed %d, problem %d, %s %s: scaling changes the plan:\n%s\n%s", seed, n, p.Objective, method, got[0], got[2])
				}
			}
		}
	}
}

// TestPlanMonotone adds flows and raises capacities: no optimum may rise.
func TestPlanMonotone(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range testkit.Rounds(200, 1000) {
		p := tiny(r)
		p.Split = false
		before := [2]float64{}
		for k, objective := range []string{orchestrate.Concentrate, orchestrate.Balance} {
			p.Objective = objective
			before[k] = optimum(t, p)
		}
		if n%2 == 0 {
			f := p.Flows[r.IntN(len(p.Flows))]
			f.ID, f.Capacity = "more", r.Int64N(12)
			p.Flows = append(p.Flows, f)
		} else {
			p.Flows[r.IntN(len(p.Flows))].Capacity += 1 + r.Int64N(5)
		}
		for k, objective := range []string{orchestrate.Concentrate, orchestrate.Balance} {
			p.Objective = objective
			if now := optimum(t, p); before[k] >= 0 && (now < 0 || now > before[k]) {
				t.Fatalf("seed %d, problem %d: %s was %v, is %v with more room: %+v", seed, n, objective, before[k], now, p)
			}
		}
	}
}

// optimum is the proven optimum, or -1 where there is none.
func optimum(t *testing.T, p *orchestrate.Problem) float64 {
	t.Helper()
	plan, err := Plan(p, Options{Method: Exact, Stop: after(20000)})
	if _, ok := errors.AsType[*Infeasible](err); ok {
		return -1
	}
	if err != nil || !plan.Stats.Optimal {
		t.Fatalf("Plan(%+v) = %+v, %v", p, plan, err)
	}
	return plan.Stats.Objective
}

// alike makes a problem whose flows all pass everything: bin packing, and scheduling on identical machines.
func alike(flows int, room int64, demands ...int64) *orchestrate.Problem {
	p := new(orchestrate.Problem)
	all := make([]int32, len(demands))
	for i, d := range demands {
		p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: fmt.Sprintf("i%d", i), Demand: d})
		all[i] = int32(i)
	}
	for f := range flows {
		p.Flows = append(p.Flows, orchestrate.Flow{ID: fmt.Sprintf("f%d", f), Capacity: room, Interfaces: all})
	}
	return p
}

// TestPlanPacking compares with known optima of bin packing and scheduling.
func TestPlanPacking(t *testing.T) {
	for _, tt := range []struct {
		name         string
		p            *orchestrate.Problem
		flows, level float64
	}{
		{"one", alike(3, 10, 7), 1, 7},
		{"halves", alike(6, 10, 5, 5, 5, 5), 2, 5},
		{"just above halves", alike(6, 11, 6, 6, 6, 6), 4, 6},
		{"first fit decreasing is wrong", alike(8, 60, 36, 36, 24, 24, 20, 20, 20, 15, 15, 15, 15), 4, 36},
		{"triplets", alike(4, 100, 49, 26, 25, 47, 28, 25, 45, 29, 26, 43, 30, 27), 4, 100},
		// Graham (1969): longest processing time first gives 4m-1, the optimum is 3m.
		{"Graham, 3 machines", alike(3, 100, 5, 5, 4, 4, 3, 3, 3), 1, 9},
		{"Graham, 4 machines", alike(4, 100, 7, 7, 6, 6, 5, 5, 4, 4, 4), 1, 12},
		{"all flows needed", alike(3, 12, 6, 6, 5, 7, 9, 3), 3, 12},
	} {
		for _, tt.p.Objective = range []string{orchestrate.Concentrate, orchestrate.Balance} {
			want := tt.flows
			if tt.p.Objective == orchestrate.Balance {
				want = tt.level
			}
			if got := optimum(t, tt.p); got != want {
				t.Errorf("%s: %s is %v, want %v", tt.name, tt.p.Objective, got, want)
			}
		}
	}
}

// TestPlanErrors checks the errors of problems without a solution, and of invalid requests.
func TestPlanErrors(t *testing.T) {
	full := alike(2, 10, 6, 6, 6)
	lone := alike(2, 10, 6)
	lone.Interfaces = append(lone.Interfaces, orchestrate.Interface{ID: "lone", Demand: 3})
	large := alike(2, 10, 6, 11)
	twice := alike(2, 10, 6)
	twice.Redundancy = 3
	split := alike(2, 8, 6, 6, 6)
	split.Split = true
	for _, tt := range []struct {
		name   string
		p      *orchestrate.Problem
		o      Options
		want   string
		method bool
	}{
		{"do not fit", full, Options{}, `infeasible: interfaces "i0", "i1", "i2" do not fit into the flows that pass them in any way, if demands are not split`, false},
		{"no flow", lone, Options{}, `infeasible: interface "lone": no flow passes it`, false},
		{"too large", large, Options{}, `infeasible: interface "i1": demand 11 is above the capacity of every flow that passes it, at most 10`, false},
		{"too few for redundancy", twice, Options{}, `infeasible: interface "i0": 2 flows pass it, 3 are to carry each item`, false},
		{"too many items", split, Options{}, `infeasible: interfaces "i0", "i1", "i2" together have 2 items more than the capacity of the flows that pass them`, false},
		{"method", full, Options{Method: "magic"}, `no such method: "magic" is none of heuristic, search, exact, auto`, true},
	} {
		for _, tt.p.Objective = range []string{orchestrate.Concentrate, orchestrate.Balance} {
			tt.o.Stop = after(10000)
			plan, err := Plan(tt.p, tt.o)
			if err == nil || err.Error() != tt.want || errors.Is(err, ErrMethod) != tt.method {
				t.Errorf("%s, %s: Plan = %v, %v, want %s", tt.name, tt.p.Objective, plan, err, tt.want)
			}
		}
	}
	full.Objective = "speed"
	if _, err := Plan(full, Options{}); err == nil || !strings.Contains(err.Error(), `objective "speed"`) {
		t.Errorf("objective: %v", err)
	}
}

// TestPlanRedundancy asks for several flows and for splitting on problems too large for brute force.
func TestPlanRedundancy(t *testing.T) {
	planRedundancy(t, 4526091694905736885) // its linear programme goes through prices of 65 million flows for an interface
	planRedundancy(t, testkit.Seed(t))
}

func planRedundancy(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range testkit.Rounds(10, 40) {
		p := network(r, 10+r.IntN(40), 200)
		for i := range p.Interfaces { // a second flow for each
			p.Flows = append(p.Flows, orchestrate.Flow{ID: fmt.Sprintf("own%d again", i), Capacity: 25, Interfaces: []int32{int32(i)}})
		}
		last := [2]float64{}
		for copies := 1; copies <= 2; copies++ {
			for k, objective := range []string{orchestrate.Concentrate, orchestrate.Balance} {
				p.Objective, p.Redundancy = objective, copies
				var value [2]float64
				for s, split := range []bool{false, true} {
					p.Split = split
					plan, err := Plan(p, Options{Seed: 1, Stop: after(3000)})
					if err != nil {
						t.Fatalf("seed %d, problem %d, %s, %d copies, split %t: %v", seed, n, objective, copies, split, err)
					}
					if err := orchestrate.Check(p, plan); err != nil {
						t.Fatalf("seed %d, problem %d, %s, %d copies, split %t: %v", seed, n, objective, copies, split, err)
					}
					value[s] = plan.Stats.LowerBound
					if split && objective == orchestrate.Balance && !plan.Stats.Optimal {
						t.Errorf("seed %d, problem %d: splitting for balance is not proven", seed, n)
					}
					if !split && plan.Stats.Objective < last[k] {
						t.Errorf("seed %d, problem %d: %s %v with %d copies, at least %v with fewer", seed, n, objective, plan.Stats.Objective, copies, last[k])
					}
				}
				if objective == orchestrate.Balance && value[1] > value[0] {
					t.Errorf("seed %d, problem %d: balance is at least %v, with splitting at least %v", seed, n, value[0], value[1])
				}
				last[k] = value[0]
			}
		}
	}
}

func ExamplePlan() {
	p := &orchestrate.Problem{
		Interfaces: []orchestrate.Interface{{ID: "x", Demand: 4}, {ID: "y", Demand: 6}, {ID: "z", Demand: 5}},
		Flows: []orchestrate.Flow{
			{ID: "f", Capacity: 9, Interfaces: []int32{0, 1}},
			{ID: "g", Capacity: 12, Interfaces: []int32{1, 2}},
			{ID: "h", Capacity: 15, Interfaces: []int32{0, 1, 2}},
		},
		Objective: orchestrate.Concentrate,
	}
	plan, err := Plan(p, Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Assignment, plan.Stats.Objective, plan.Stats.Optimal)
	// Output: map[x:h y:h z:h] 1 true
}
