package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saved makes a plan, edits its JSON, and returns the file.
func saved(t *testing.T, args string, edit func(plan, stats map[string]any)) string {
	t.Helper()
	out, err := runPlan(t, strings.Fields(args+" --format json")...)
	if err != nil {
		t.Fatalf("plan %s: %v", args, err)
	}
	var plan map[string]any
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	edit(plan, plan["stats"].(map[string]any))
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const greedyTrap = `{"probes":[{"id":"a","cost":3.9,"links":["1","2","3","4"]},{"id":"b","cost":4,"links":["1","2","5"]},
	{"id":"c","cost":4,"links":["3","4","6"]},{"id":"d","cost":4.2,"links":["5","6"]}],"suspicious":["1","2","3","4","5","6"]}`

// TestPlanProve holds the checking of a plan's claims of its own optimality: they are proven again, refuted, or called
// a claim.
func TestPlanProve(t *testing.T) {
	instance := filepath.Join(t.TempDir(), "trap.json")
	if err := os.WriteFile(instance, []byte(greedyTrap), 0o600); err != nil {
		t.Fatal(err)
	}
	same := func(_, _ map[string]any) {}
	best := func(_, stats map[string]any) { // the lie that every reader would believe
		stats["optimal"], stats["lower_bound"] = true, stats["objective"]
		if stats["gap"] != nil {
			stats["gap"] = 0
		}
	}
	for _, x := range []struct {
		made, checked string
		edit          func(plan, stats map[string]any)
		want          string // at the end of the table, or in the error
		proof         string
	}{
		{"cover --topology leaf-spine:3,4", "cover --topology leaf-spine:3,4", same, ": the best there is (verified);", "verified"},
		{"cover --topology fat-tree:4 --method dfs", "cover --topology fat-tree:4", best, "does not hold: the plan says that no objective is below", ""},
		{"attention --instance " + instance + " --method exact", "attention --instance " + instance, same, ": the best there is (verified);", "verified"},
		{"attention --instance " + instance + " --method greedy", "attention --instance " + instance, best, "does not hold: the plan says that no objective is below 8.1, but there is a plan with 8", ""},
		{"attention --instance " + instance + " --method greedy", "attention --instance " + instance, same, " (verified);", "verified"},
		{"orchestrate --topology fat-tree:4", "orchestrate --topology fat-tree:4", same, ": the best there is (verified);", "verified"},
		{"orchestrate --topology fat-tree:4", "orchestrate --topology fat-tree:4 --time-limit 1ns", same, ": claimed to be the best there is, not verified;", "claimed, not verified"},
		{"orchestrate --topology fat-tree:4 --method heuristic", "orchestrate --topology fat-tree:4", best, "does not hold: the plan says that no objective is below", ""},
		{"orchestrate --topology fat-tree:4 --method heuristic", "orchestrate --topology fat-tree:4 --time-limit 1ns", best, ": claimed to be the best there is, not verified;", "claimed, not verified"},
		{"delivery --topology fat-tree:4", "delivery --topology fat-tree:4", same, ": the best there is (verified);", "verified"},
		{"queries " + queriesExample, "queries " + queriesExample, same, ": the best there is (verified);", "verified"},
	} {
		plan := saved(t, x.made, x.edit)
		out, err := runPlan(t, strings.Fields(x.checked+" --check "+plan)...)
		if x.proof == "" {
			if err == nil || !strings.Contains(err.Error(), x.want) || errors.As(err, new(usageError)) {
				t.Errorf("plan %s: %v, want %q", x.checked, err, x.want)
			}
			continue
		}
		if err != nil || !strings.Contains(out, x.want) {
			t.Errorf("plan %s: %v in\n%s\nwant %q", x.checked, err, out, x.want)
		}
		out, err = runPlan(t, strings.Fields(x.checked+" --format json --check "+plan)...)
		var got struct{ Stats struct{ Proof string } }
		if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Stats.Proof != x.proof {
			t.Errorf("plan %s: %v, proof %q, want %q", x.checked, err, got.Stats.Proof, x.proof)
		}
	}
}

// TestPlanKind reads plans of other families, of later programs, and of programs that wrote neither kind nor version.
func TestPlanKind(t *testing.T) {
	const cover = "cover --topology leaf-spine:2,3"
	for _, x := range []struct {
		key   string
		value any
		want  string
	}{
		{"kind", "attention", `this is a plan of kind "attention", and "cover" is wanted`},
		{"version", 2, "this is a plan of version 2, and only versions up to 1 are known"},
		{"version", "1", "byte "},
		{"kind", nil, ""},
		{"version", nil, ""},
	} {
		plan := saved(t, cover, func(plan, _ map[string]any) {
			if plan["kind"] != "cover" || plan["version"] != 1.0 {
				t.Errorf("kind %v, version %v", plan["kind"], plan["version"])
			}
			if plan[x.key] = x.value; x.value == nil {
				delete(plan, x.key)
			}
		})
		for _, args := range []string{" --check ", " --replan "} {
			_, err := runPlan(t, strings.Fields(cover+args+plan)...)
			if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || !errors.As(err, new(usageError))) {
				t.Errorf("%s%s with %s %v: %v, want %q", cover, args, x.key, x.value, err, x.want)
			}
		}
	}
	attention := "attention --topology leaf-spine:2,3 --suspicious leaf-0--spine-0 --probes "
	if _, err := runPlan(t, strings.Fields(attention+saved(t, "delivery --topology fat-tree:4", func(_, _ map[string]any) {}))...); err == nil || !strings.Contains(err.Error(), `of kind "delivery", and "cover" is wanted`) {
		t.Errorf("probes of a delivery plan: %v", err)
	}
}
