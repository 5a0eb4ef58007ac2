package cover_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// FuzzCheck checks plans of unknown origin against problems of every kind. The check ends with an answer on any plan,
// and a plan that passes is no better than the optimum.
func FuzzCheck(f *testing.F) {
	g, err := topo.Parse("leaf-spine:2,3")
	if err != nil {
		f.Fatal(err)
	}
	problems := []*cover.Problem{{Graph: g}, {Graph: g, Directed: true}, {Graph: g, Depots: []int{2, 3}}, {Graph: g, Redundant: true}, {Graph: g, Redundant: true, Depots: []int{2}}}
	fewest := make([]float64, len(problems))
	for k, p := range problems {
		plan, err := solve.Plan(p, solve.Options{})
		if err != nil {
			f.Fatal(err)
		}
		b, err := json.Marshal(plan)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		fewest[k] = plan.Stats.Objective
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for k, p := range problems {
			var plan cover.Plan
			_, err := planner.ReadDecisions(bytes.NewReader(b), "cover", &plan, func(g planner.Given) error { return p.Complete(&plan, g) })
			if err == nil && cover.Check(p, &plan) == nil && !plan.Partial && plan.Stats.Objective < fewest[k] {
				t.Errorf("problem %d: objective %v below %v: %s", k, plan.Stats.Objective, fewest[k], b)
			}
		}
	})
}
