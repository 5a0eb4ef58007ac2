package papers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
)

// TestOrchestrate assigns interfaces to flows that often have too little room for all of them. It assigns them to one
// flow each, to two that carry the same, and item by item.
func TestOrchestrate(t *testing.T) {
	testkit.Long(t)
	for _, kind := range []struct {
		name        string
		least, most int // flows that carry the same
		split       bool
	}{{"one flow", 1, 1, false}, {"two flows", 2, 2, false}, {"split", 1, 2, true}} {
		for _, objective := range []string{orchestrate.Concentrate, orchestrate.Balance} {
			t.Run(kind.name+" "+objective, func(t *testing.T) {
				s := start(t)
				for k := range instances {
					p := orchestrateInstance(random(2, k))
					p.Objective, p.Redundancy, p.Split = objective, kind.least+k%(kind.most-kind.least+1), kind.split
					plan, err := solve.Plan(p, solve.Options{Method: solve.Exact, Partial: true, Seed: 1, Stop: stopAfter(1 << 14)})
					if err != nil {
						t.Fatal(err)
					}
					if err := orchestrate.Check(p, plan); err != nil {
						t.Errorf("instance %d: %v", k, err)
					}
					hold(t, fmt.Sprint("instance ", k), p, &plan.Stats.Stats, orchestrateTruth(t, s, p))
				}
			})
		}
	}
}

// orchestrateInstance draws problems of every kind. They have equal capacities, the same flow several times, flows
// that pass everything, capacity 0, or weights that are not the demands.
func orchestrateInstance(r *rand.Rand) *orchestrate.Problem {
	p := new(orchestrate.Problem)
	sum := 0.0
	for i := range 2 + r.IntN(9) {
		q := orchestrate.Interface{ID: fmt.Sprint("i", i), Demand: int64(1 + r.IntN(9))}
		if r.IntN(4) == 0 {
			q.Weight = int64(1 + r.IntN(9))
		}
		sum += float64(q.Demand)
		p.Interfaces = append(p.Interfaces, q)
	}
	kind, flows, dense := r.IntN(4), 1+r.IntN(8), 0.2+0.7*r.Float64()
	mean := sum / float64(flows) * []float64{0.5, 0.8, 1, 1.3, 3}[r.IntN(5)]
	for f := range flows {
		flow := orchestrate.Flow{ID: fmt.Sprint("f", f), Capacity: int64(mean * (0.5 + r.Float64()))}
		if kind == 0 {
			flow.Capacity = int64(mean)
		}
		for i := range p.Interfaces {
			if kind == 1 || r.Float64() < dense {
				flow.Interfaces = append(flow.Interfaces, int32(i))
			}
		}
		if kind == 2 && f > 0 && r.IntN(2) == 0 {
			flow.Capacity, flow.Interfaces = p.Flows[f-1].Capacity, p.Flows[f-1].Interfaces
		}
		if r.IntN(10) == 0 {
			flow.Capacity = 0
		}
		p.Flows = append(p.Flows, flow)
	}
	return p
}

// orchestrateTruth carries the most by weight, and then uses the fewest flows or has the smallest largest load. A
// variable counts the items of an interface on a flow where these may be split, and is 0 or 1 where not.
func orchestrateTruth(t *testing.T, s *solver, p *orchestrate.Problem) truth {
	m := new(model)
	worth := 0.0
	var carried, uses []term
	on := make([][]term, len(p.Interfaces))
	largest := m.variable(0, math.Inf(1), false)
	for _, f := range p.Flows {
		used := m.choice(0)
		uses = append(uses, term{used, 1})
		load := []term{}
		for _, i := range f.Interfaces {
			q := &p.Interfaces[i]
			most, items := 1.0, float64(q.Demand)
			if p.Split {
				most, items = items, 1
			}
			x := m.variable(0, most, true)
			on[i] = append(on[i], term{x, 1})
			carried = append(carried, term{x, -float64(q.Worth()) / most})
			load = append(load, term{x, items})
			m.most(0, term{x, 1}, term{used, -most})
		}
		m.most(0, append(load, term{used, -float64(f.Capacity)})...)
		m.most(0, append(load, term{largest, -1})...)
	}
	for i := range p.Interfaces {
		q := &p.Interfaces[i]
		copies := float64(p.Copies())
		worth += copies * float64(q.Worth())
		if p.Split {
			copies *= float64(q.Demand)
		}
		m.most(copies, on[i]...)
	}
	if p.Objective == orchestrate.Balance {
		uses = []term{{largest, 1}}
	}
	most, least := s.lexicographic(t, m, carried, uses)
	return truth{worth + most, least}
}
