package orchestrate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
)

// FuzzCheck checks plans of unknown origin against a problem. The check ends with an answer on any plan, and a plan
// that passes is no better than the optimum.
func FuzzCheck(f *testing.F) {
	p, err := orchestrate.Read(strings.NewReader(`{"interfaces":[{"id":"x","demand":4},{"id":"y","demand":6}],"flows":[{"id":"f","capacity":9,"interfaces":["x","y"]},{"id":"g","capacity":12,"interfaces":["y"]}]}`), orchestrate.Balance)
	if err != nil {
		f.Fatal(err)
	}
	best, err := solve.Plan(p, solve.Options{})
	if err != nil {
		f.Fatal(err)
	}
	b, err := json.Marshal(best)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"assignment":{"x":"f","y":"g"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var plan orchestrate.Plan
		_, err := planner.ReadDecisions(bytes.NewReader(b), "orchestrate", &plan, func(g planner.Given) error { p.Complete(&plan, g); return nil })
		if err == nil && orchestrate.Check(p, &plan) == nil && !plan.Partial && plan.Stats.Objective < best.Stats.Objective {
			t.Errorf("objective %v: %s", plan.Stats.Objective, b)
		}
	})
}
