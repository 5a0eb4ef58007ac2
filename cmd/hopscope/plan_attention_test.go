package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/attention"
)

// wellFormed reads a picture to its end.
func wellFormed(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var svg struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	}
	if err := xml.Unmarshal(b, &svg); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

const metricsText = `metrics:
  - {name: node_id, bit: 0, bytes: 4, required: true}
  - {name: hop_latency, bit: 2, bytes: 4}
  - {name: queue_occupancy, bit: 3, bytes: 4}
  - {name: ingress_time, bit: 4, bytes: 8}
  - {name: egress_time, bit: 5, bytes: 8}
relations:
  - {shows: hop_latency, of: queue_occupancy}
  - {shows: hop_latency, of: ingress_time}
  - {shows: hop_latency, of: egress_time}
`

func TestPlanAttention(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) (plan attention.Plan) {
		t.Helper()
		out, err := runPlan(t, append([]string{"attention", "--format", "json"}, args...)...)
		if err == nil {
			err = json.Unmarshal([]byte(out), &plan)
		}
		if err != nil {
			t.Fatalf("plan attention %s: %v", strings.Join(args, " "), err)
		}
		return plan
	}
	ids := func(p attention.Plan) (list []string) {
		for _, d := range p.Probes {
			list = append(list, d.ID)
		}
		return list
	}
	instance := file("i.json", `{"probes":[{"id":"a","links":["1","2","3"]},{"id":"b","links":["1"]},{"id":"c","links":["2"]}],"suspicious":["1","2"]}`)
	svg := filepath.Join(dir, "i.svg")
	if p := run("--instance", instance, "--svg", svg); !slices.Equal(ids(p), []string{"b", "c"}) || !p.Stats.Optimal || p.Stats.LowerBound != 2 {
		t.Errorf("plan %+v, want b and c", p)
	}
	wellFormed(t, svg)
	if p := run("--instance", instance, "--detailed", "a", "--switch-cost", "1"); !slices.Equal(ids(p), []string{"a"}) || p.Stats.Changes != 0 {
		t.Errorf("plan %+v, want a to stay", p)
	}
	if p := run("--instance", instance, "--method", "fant-h", "--alpha", "0.5"); p.Algorithm != "fant-h" {
		t.Errorf("plan %+v", p)
	}

	// A plan after another one, with a limit of changes, which the new link breaks by itself.
	out, err := runPlan(t, "attention", "--instance", instance, "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	earlier := file("earlier.json", out)
	more := file("more.json", `{"probes":[{"id":"a","links":["1","2","3"]},{"id":"b","links":["1"]},{"id":"c","links":["2"]}],"suspicious":["1","2","3","9"],"weights":{"9":3}}`)
	if p := run("--instance", more, "--replan", earlier, "--churn", "2", "--partial"); !slices.Equal(ids(p), []string{"a", "b"}) && !slices.Equal(ids(p), []string{"a", "c"}) ||
		p.Stats.Changes != 2 || p.Stats.LeftOut != 3 || p.Stats.LeftOutBound != 3 || len(p.Transition.Steps) != 2 || p.Transition.Steps[0].ID != "a" {
		t.Errorf("plan %+v, want a and one of b and c", p)
	}
	if p := run("--instance", more, "--replan", earlier, "--churn", "0", "--partial"); !slices.Equal(ids(p), []string{"a", "b", "c"}) || p.Churn.Forced != 1 || !p.Stats.Optimal {
		t.Errorf("plan %+v, want a, b and c", p)
	}
	limited := []string{"attention", "--instance", more, "--replan", earlier, "--churn", "0", "--partial"}
	if out, err = runPlan(t, limited...); err != nil || !strings.Contains(out, "more than --churn 0 have to change: 1 do") || !strings.Contains(out, "of weight 3, and no plan does") {
		t.Errorf("table: %s, %v", out, err)
	}
	if out, err = runPlan(t, append(limited, "--format", "json")...); err == nil {
		out, err = runPlan(t, append(limited, "--check", file("limited.json", out))...)
	}
	if err != nil || !strings.Contains(out, "(verified)") {
		t.Errorf("check: %s, %v", out, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "limited.json"))
	if err != nil {
		t.Fatal(err)
	}
	spoiled := file("spoiled.json", strings.Replace(string(text), `"op":"add"`, `"op":"remove"`, 1))
	if out, err = runPlan(t, append(limited, "--check", spoiled)...); err == nil || !strings.Contains(err.Error(), "spoiled.json does not hold") {
		t.Errorf("check of wrong steps: %s, %v", out, err)
	}

	// Probes of two covers of a ring, which meet the suspicious link from either side.
	ring := file("ring.edges", "a b\nb c\nc d\nd a\n")
	var plans []string
	for _, depots := range []string{"a,c", "b,d"} {
		out, err := runPlan(t, "cover", "--topology", ring, "--depots", depots, "--format", "json")
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, file(depots+".json", out))
	}
	metrics := file("metrics.yaml", metricsText)
	p := run("--topology", ring, "--probes", plans[0], "--probes", plans[1], "--suspicious", "a--b", "--svg", svg, "--metrics", metrics)
	if len(p.Probes) != 1 || p.Stats.Suspicious != 1 || p.Instructions == nil || p.Instructions.Basic != "0xA000" || p.Instructions.Detailed != "0xBC00" {
		t.Errorf("plan %+v", p)
	}
	wellFormed(t, svg)
	out, err = runPlan(t, "attention", "--metrics", metrics)
	if err != nil || !strings.Contains(out, "0xA000, 8 bytes a hop") || !strings.Contains(out, "hop_latency") {
		t.Errorf("metrics: %s, %v", out, err)
	}
	if out, err := runPlan(t, "attention", "--instance", instance); err != nil || !strings.Contains(out, "2 of 3 probes measure in detail") || !strings.Contains(out, "the best there is") {
		t.Errorf("table: %s, %v", out, err)
	}

	tests := []struct {
		args, want string
		usage      bool
	}{
		{"", "--instance is missing", true},
		{"--instance nowhere.json", "nowhere.json", true},
		{"--instance " + instance + " --topology " + ring, "do not go with it", true},
		{"--instance " + instance + " --method magic", "magic", true},
		{"--instance " + instance + " --method fant-h --alpha 3", "between 0 and 1", true},
		{"--instance " + instance + " --detailed z", `"z"`, true},
		{"--instance " + instance + " --churn 3", "--churn goes with --replan", true},
		{"--instance " + instance + " --replan " + earlier + " --churn -2", "--churn -2: a number of changes", true},
		{"--instance " + instance + " --replan " + earlier + " --detailed a", "--detailed does not go with it", true},
		{"--instance " + instance + " --replan " + earlier + " --churn 1 --method greedy", "only method", true},
		{"--instance " + instance + " --replan nowhere.json", "nowhere.json", true},
		{"--instance " + file("weights.json", `{"probes":[{"id":"a","links":["1"]}],"suspicious":["1"],"weights":{"1":0,"2":1}}`), `link "2" has a weight`, true},
		{"--instance " + instance + " --switch-cost -1", "a change costs -1", true},
		{"--instance " + file("bad.json", `{"probes":[{"id":"a","cost":-1,"links":["1"]}]}`), `"a" costs -1`, true},
		{"--instance " + file("none.json", `{"probes":[{"id":"a","links":["1"]}],"suspicious":["9"]}`), "link 9 is on no probe", false},
		{"--topology " + ring + " --probes " + plans[0] + " --suspicious a--c", "--suspicious: ", true},
		{"--topology " + ring + " --probes " + plans[0] + " --suspicious " + file("links", "# today\na--b\na--c\n"), "links:3: ", true},
		{"--topology " + ring + " --probes " + instance + " --suspicious a--b", "i.json", true},
		{"--metrics " + file("bad.yaml", "metrics:\n  - {name: a, bits: 3}\n"), "bad.yaml", true},
		{"--metrics " + metrics + " --svg x.svg", "--svg wants probes", true},
	}
	for _, tt := range tests {
		_, err := runPlan(t, append([]string{"attention"}, strings.Fields(tt.args)...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, new(usageError)) != tt.usage {
			t.Errorf("plan attention %s: %v, want %q (usage: %v)", tt.args, err, tt.want, tt.usage)
		}
	}
}
