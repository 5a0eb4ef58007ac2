package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

const orchestrateInstance = `{"interfaces":[{"id":"x","demand":4},{"id":"y","demand":6},{"id":"z","demand":5}],
"flows":[{"id":"f","capacity":9,"interfaces":["x","y"]},{"id":"g","capacity":12,"interfaces":["y","z"],"rate":3},{"id":"h","capacity":15,"interfaces":["x","y","z"]}]}`

func TestPlanOrchestrate(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	instance := file("instance.json", orchestrateInstance)
	ring := file("ring.edges", "a b\nb c\nc d\nd a\na c\n")
	matrix := file("ring.demands", "DEMANDS 3\nlabel src dst bw\nd0 0 1 8\nd1 1 2 0\nd2 2 3 16\n")
	plan := func(args ...string) (p orchestrate.Plan) {
		t.Helper()
		out, err := runPlan(t, append([]string{"orchestrate", "--format", "json"}, args...)...)
		if err != nil {
			t.Fatalf("plan orchestrate %s: %v", strings.Join(args, " "), err)
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, method := range []string{"heuristic", "search", "exact", "auto"} {
		if p := plan("--instance", instance, "--method", method); len(p.Assignment) != 3 || p.Stats.Objective != 1 || !p.Stats.Optimal {
			t.Errorf("%s: %+v, want one flow", method, p)
		}
		if p := plan("--instance", instance, "--method", method, "--objective", "balance"); p.Stats.Objective != 6 || !p.Stats.Optimal || p.Stats.Renewal == nil {
			t.Errorf("%s: %+v, want a largest load of 6", method, p)
		}
	}
	if p := plan("--instance", instance, "--objective", "balance", "--split"); p.Stats.Objective != 5 || len(p.Shares) == 0 {
		t.Errorf("split: %+v, want a largest load of 5", p)
	}
	if p := plan("--topology", "fat-tree:4", "--redundancy", "2", "--time-limit", "200ms"); len(p.Shares) != 2*104 || p.Redundancy != 2 || p.Topology != "fat-tree:4" {
		t.Errorf("redundancy: %+v, want 208 shares", p)
	}
	for _, args := range [][]string{{"--demands", matrix, "--packet-bytes", "500"}, {"--demands", matrix, "--model", "both-sides"}} {
		p := plan(append([]string{"--topology", ring, "--partial"}, args...)...)
		if !p.Partial || len(p.Unserved) == 0 || p.Stats.Flows != 2 || !strings.HasSuffix(p.Unserved[0].Reason, ": no flow passes it") {
			t.Errorf("%v: %+v, want a partial plan on 2 flows", args, p)
		}
	}
	picture := filepath.Join(dir, "plan.svg")
	out, err := runPlan(t, "orchestrate", "--instance", instance, "--svg", picture)
	if err != nil || !strings.Contains(out, "3 interfaces, 3 flows: 1 used, coverage 100.0 %") || !strings.Contains(out, "the best there is") {
		t.Errorf("%v in\n%s", err, out)
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	titles := 0 // of the picture, of a flow and of three interfaces
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the picture: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "title" {
			titles++
		}
	}
	if titles != 5 {
		t.Errorf("%d titles in the picture, want 5", titles)
	}
	first, err := runPlan(t, "orchestrate", "--instance", instance, "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	changed := file("changed.json", strings.Replace(orchestrateInstance, `"capacity":15`, `"capacity":11`, 1))
	if p := plan("--instance", changed, "--replan", file("first.json", first)); p.Churn == nil || p.Churn.Changed != 1 || p.Churn.Forced != 1 || len(p.Transition.Steps) != 1 || len(p.Transition.Keep) != 2 {
		t.Errorf("replan: %+v %+v, want one change", p.Churn, p.Transition)
	}
	out, err = runPlan(t, "orchestrate", "--instance", changed, "--replan", file("first.json", first), "--churn", "-1")
	if err != nil || !strings.Contains(out, " changed, 1 had to; no plan with so few changes is better\nstep 1: change ") {
		t.Errorf("%v in\n%s", err, out)
	}
	if p := plan("--instance", instance); len(p.Tables) != 3 || p.Tables[0].Interface != "x" || p.Tables[0].Entries[0] != (orchestrate.Entry{Flow: "h", Items: 4}) {
		t.Errorf("tables: %+v", p.Tables)
	}
	out, err = runPlan(t, "orchestrate", "--topology", ring, "--demands", matrix, "--partial")
	if err != nil || !strings.Contains(out, "This plan is partial") || !strings.Contains(out, "not served: ") {
		t.Errorf("%v in\n%s", err, out)
	}
}

func TestPlanOrchestrateErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte(strings.Replace(orchestrateInstance, `"demand":6`, `"demand":16`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.json")
	if err := os.WriteFile(good, []byte(orchestrateInstance), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.json")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(dir, "two.edges")
	if err := os.WriteFile(two, []byte("a b\nc d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runPlan(t, "orchestrate", "--topology", two, "--partial"); err != nil || !strings.Contains(out, "coverage 100.0 %") {
		t.Errorf("a topology in two parts: %v in\n%s", err, out)
	}
	for _, tt := range []struct {
		args  string
		usage bool
		want  string
	}{
		{"", true, "one of --instance, --topology and --from-collector is wanted"},
		{"--instance a --topology b", true, "one of --instance, --topology and --from-collector is wanted"},
		{"--instance a --demand-max 7", true, "--demand-max goes with --topology"},
		{"--instance a --objective speed", true, `--objective "speed" is neither concentrate nor balance`},
		{"--instance a --redundancy 0", true, "--redundancy 0 is outside 1..64"},
		{"--instance a --format svg", true, `--format "svg" is neither table nor json`},
		{"--topology fat-tree:4 --model half", true, `--model "half" is neither directed nor both-sides`},
		{"--topology fat-tree:4 --method magic", true, `"magic" is none of heuristic, search, exact, auto`},
		{"--topology fat-tree:4 --mtu 9000", true, "--mtu goes with --instance"},
		{"--instance a --churn 2", true, "--churn goes with --replan"},
		{"--instance a --replan b --churn -2", true, "--churn -2: a number of changes"},
		{"--instance a --replan b --split", true, "--replan does not go with --split"},
		{"--instance a --replan b --check c", true, "--check makes no plan"},
		{"--instance " + good + " --replan " + empty, true, "empty.json: byte 0: no JSON object"},
		{"--instance " + good + " --class voice", true, `no flow of class "voice"`},
		{"--topology fat-tree:4 --packet-bytes 0", true, "--packet-bytes 0 is not positive"},
		{"--topology fat-tree:4 --demand-min 20", true, "demands of 20 to 10 items"},
		{"--topology fat-tree:4 --capacity-mean 3 --capacity-stdv 0", false, "infeasible: interface "},
		{"--topology " + two, false, `no way from node "a" to node "c"; a partial plan`},
		{"--instance " + filepath.Join(dir, "none.json"), true, "no such file"},
		{"--instance " + empty, true, "empty.json: byte 0: no JSON object"},
		{"--instance " + bad, false, `infeasible: interface "y": demand 16 is above the capacity of every flow that passes it, at most 15`},
	} {
		out, err := runPlan(t, append([]string{"orchestrate"}, strings.Fields(tt.args)...)...)
		_, usage := errors.AsType[usageError](err)
		if err == nil || !strings.Contains(err.Error(), tt.want) || usage != tt.usage || out != "" {
			t.Errorf("plan orchestrate %s: %v, usage %t, output %q, want %s", tt.args, err, usage, out, tt.want)
		}
	}
}
