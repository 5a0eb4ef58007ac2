package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/show"
)

// made makes a plan and saves it.
func made(t *testing.T, name, args string) {
	t.Helper()
	out, err := runPlan(t, strings.Fields(args+" --format json")...)
	if err != nil {
		t.Fatalf("plan %s: %v", args, err)
	}
	if err := os.WriteFile(name, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPlanDiff compares plans of every kind that has elements.
func TestPlanDiff(t *testing.T) {
	inExamples(t)
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made(t, "cover.json", "cover --topology lab.yaml --replan plan.json --skip leaf-1--spine-2")
	write("suspects.json", strings.Replace(string(fileOf(t, "cycle.json")), `"suspicious": [`, `"suspicious": ["leaf-1--spine-2", `, 1))
	made(t, "att1.json", "attention --instance cycle.json")
	made(t, "att2.json", "attention --instance suspects.json")
	write("one.json", `{"interfaces":[{"id":"a","demand":2},{"id":"b","demand":2}],"flows":[{"id":"f","capacity":2,"interfaces":["a","b"]},{"id":"g","capacity":2,"interfaces":["a","b"]},{"id":"h","capacity":2,"interfaces":["a"]}]}`)
	orc := `{"kind":"orchestrate","version":1,"algorithm":"x","objective":"concentrate","assignment":{"a":"%","b":"#"},"stats":{"objective":2,"lower_bound":2,"optimal":true,"seconds":0,"gap":0,"interfaces":2,"flows":3,"flows_used":2,"coverage":1,"assigned":1,"load_min":2,"load_mean":2,"load_max":2,"fill":1,"per_flow":1,"correlation":0.5}}`
	for name, x := range map[string][2]string{"orc1.json": {"f", "g"}, "orc2.json": {"g", "f"}, "orc3.json": {"h", "f"}} {
		write(name, strings.NewReplacer("%", x[0], "#", x[1]).Replace(orc))
	}
	made(t, "del1.json", "delivery --instance network.json --no-links --partial")
	made(t, "del2.json", "delivery --instance network.json")
	made(t, "queries.json", "queries queries.yaml")
	write("bare.json", strings.Replace(string(fileOf(t, "plan.json")), `"kind":"cover",`, "", 1))

	for _, x := range []struct {
		args  string
		want  string // in the table, or in the error
		fails bool
	}{
		{"plan.json plan.json", "nothing changes", false},
		{"plan.json cover.json", "step 1: add p", false},
		{"plan.json cover.json --topology lab.yaml", "remove  p1", false},
		{"att1.json att2.json", "step 1: ", false},
		{"orc1.json orc2.json", "change  a, b", false},
		{"orc1.json orc3.json --instance one.json", "step 1: change a\nstep 2: change b", false},
		{"orc1.json orc2.json --instance one.json", "there is no order of steps in which nothing is ever uncovered and no capacity exceeded: change a: needs 2 more of g", true},
		{"del1.json del2.json", "add     leaf-3", false},
		{"del1.json del2.json --instance network.json", "keep    leaf-1, leaf-2\nstep 1: add leaf-3", false},
		{"plan.json del1.json", "plan plan.json is of kind cover, and del1.json of kind delivery", true},
		{"queries.json queries.json", "followed as a whole", true},
		{"bare.json plan.json", `the key "kind" is missing`, true},
		{"plan.json cover.json --instance network.json", "these are of kind cover", true},
		{"plan.json nowhere.json", "no such file", true},
		{"plan.json lab.yaml", "plan lab.yaml: byte ", true},
	} {
		out, err := runPlan(t, strings.Fields("diff "+x.args)...)
		if x.fails {
			if err == nil || !strings.Contains(err.Error(), x.want) || errors.As(err, new(usageError)) == strings.Contains(x.want, "order of steps in") {
				t.Errorf("diff %s: %v, want %q", x.args, err, x.want)
			}
			continue
		}
		if err != nil || !strings.Contains(out, x.want) {
			t.Errorf("diff %s: %v in\n%swant %q", x.args, err, out, x.want)
		}
		out, err = runPlan(t, strings.Fields("diff --format json "+x.args)...)
		var d show.PlanDiff
		if err != nil || planner.ReadJSON(strings.NewReader(out), &d) != nil || d.Kind != "diff" || len(d.Steps) != d.Churn() {
			t.Errorf("diff --format json %s: %v in\n%s", x.args, err, out)
		}
	}
	var d struct{ Deadlock string }
	if out, err := runPlan(t, "diff", "orc1.json", "orc2.json", "--instance", "one.json", "--format", "json"); err == nil || json.Unmarshal([]byte(out), &d) != nil || d.Deadlock != err.Error() {
		t.Errorf("a deadlock: %v in\n%s", err, out)
	}
}

func fileOf(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
