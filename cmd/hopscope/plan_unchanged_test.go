package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
)

// TestPlanUnchanged plans the examples of every family once more, starting from the optimal plan. Any change is
// allowed, but none is made, since nothing can get better.
func TestPlanUnchanged(t *testing.T) {
	inExamples(t)
	for _, made := range []string{
		"cover --topology lab.yaml --max-hops 4",
		"cover --topology fat-tree:4 --balanced",
		"attention --instance cycle.json",
		"orchestrate --instance flows.json",
		"orchestrate --instance flows.json --objective balance",
		"orchestrate --instance flows.json --redundancy 2 --partial",
		"orchestrate --instance classes.json --class bulk --size-percentile 75 --partial",
		"delivery --instance network.json",
		"delivery --instance network.json --no-links --partial",
		"schedule --instance schedule.json",
		"queries queries.yaml",
	} {
		var old, plan struct {
			Stats      planner.Stats
			Transition *planner.Transition
		}
		run := func(to any, more ...string) string {
			t.Helper()
			out, err := runPlan(t, append(strings.Fields(made+" --format json"), more...)...)
			if err != nil {
				t.Fatalf("plan %s %v: %v", made, more, err)
			}
			if err := json.Unmarshal([]byte(out), to); err != nil {
				t.Fatal(err)
			}
			return out
		}
		out := run(&old)
		if !old.Stats.Optimal {
			t.Errorf("plan %s: the example is not solved to the end", made)
		}
		if err := os.WriteFile("before.json", []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{"", "--churn 0", "--churn 1", "--churn 5", "--churn 5 --seed 3", "--churn -1", "--churn -1 --seed 4"} {
			if strings.Contains(more, "--seed") && !strings.HasPrefix(made, "orchestrate") {
				continue // the others draw nothing here
			}
			run(&plan, append(strings.Fields(more), "--replan", "before.json")...)
			if x := plan.Transition; x == nil || x.Churn() != 0 || len(x.Steps) != 0 || len(x.Keep) == 0 {
				t.Errorf("plan %s --replan %s: %+v", made, more, x)
			}
		}
	}
}
