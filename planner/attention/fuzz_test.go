package attention_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/attention/solve"
)

// calls is a time limit in calls.
func calls(n int) func() bool {
	return func() bool { n--; return n < 0 }
}

// FuzzPlan reads a problem; what is valid has a partial plan that holds.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(attentionText))
	f.Add([]byte(`{"probes":[{"id":"a","links":["1","2"]},{"id":"b","cost":0.1,"links":["2","3"]},{"id":"c","links":["3","1"]}],"suspicious":["1","2","3","4"]}`))
	f.Add([]byte(`{"probes":[{"id":"a","cost":1e12,"links":[]}],"suspicious":[],"switch_cost":1e12,"detailed":["a"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := attention.Read(bytes.NewReader(b))
		if err != nil || len(p.Probes) > 50 {
			return
		}
		for _, m := range solve.Methods {
			plan, err := solve.Plan(p, solve.Options{Method: m, Partial: true, Stop: calls(1000)})
			if err == nil {
				err = attention.Check(p, plan)
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", m, b, err)
			}
		}
	})
}

// FuzzCheck checks plans of unknown origin against a problem. The check ends with an answer on any plan, and a plan
// that passes is no better than the optimum.
func FuzzCheck(f *testing.F) {
	p, err := attention.Read(strings.NewReader(attentionText))
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
	f.Add([]byte(`{"probes":[{"id":"a"},{"id":"a"},{"id":"none"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var plan attention.Plan
		_, err := planner.ReadDecisions(bytes.NewReader(b), "attention", &plan, func(g planner.Given) error { p.Complete(&plan, g); return nil })
		if err == nil && attention.Check(p, &plan) == nil && !plan.Partial && plan.Stats.Objective < best.Stats.Objective-1e-9 {
			t.Errorf("objective %v: %s", plan.Stats.Objective, b)
		}
	})
}
