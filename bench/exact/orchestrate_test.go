package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
)

// TestOrchestrate assigns interfaces to flows that often have too little room for all of them.
func TestOrchestrate(t *testing.T) {
	for _, objective := range []string{orchestrate.Concentrate, orchestrate.Balance} {
		t.Run(objective, func(t *testing.T) {
			s := start(t)
			for k := range instances {
				p := orchestrateInstance(random(2, k))
				p.Objective = objective
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

func orchestrateInstance(r *rand.Rand) *orchestrate.Problem {
	p := new(orchestrate.Problem)
	for i := range 2 + r.IntN(9) {
		p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: fmt.Sprint("i", i), Demand: int64(1 + r.IntN(9))})
	}
	for f := range 1 + r.IntN(8) {
		flow := orchestrate.Flow{ID: fmt.Sprint("f", f), Capacity: int64(r.IntN(20))}
		for i := range p.Interfaces {
			if r.IntN(5) < 2 {
				flow.Interfaces = append(flow.Interfaces, int32(i))
			}
		}
		p.Flows = append(p.Flows, flow)
	}
	return p
}

// orchestrateTruth carries the most items, and then uses the fewest flows or has the smallest largest load.
func orchestrateTruth(t *testing.T, s *solver, p *orchestrate.Problem) truth {
	m := new(model)
	demands := 0.0
	var carried, uses []term
	on := make([][]term, len(p.Interfaces))
	largest := m.variable(0, math.Inf(1), false)
	for _, f := range p.Flows {
		used := m.choice(0)
		uses = append(uses, term{used, 1})
		load := []term{}
		for _, i := range f.Interfaces {
			x, d := m.choice(0), float64(p.Interfaces[i].Demand)
			on[i] = append(on[i], term{x, 1})
			carried = append(carried, term{x, -d})
			load = append(load, term{x, d})
		}
		m.most(0, append(load, term{used, -float64(f.Capacity)})...)
		m.most(0, append(load, term{largest, -1})...)
	}
	for i := range p.Interfaces {
		demands += float64(p.Interfaces[i].Demand)
		m.most(1, on[i]...)
	}
	if p.Objective == orchestrate.Balance {
		uses = []term{{largest, 1}}
	}
	most, least := s.lexicographic(t, m, carried, uses)
	return truth{demands + most, least}
}
