package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
)

func TestPlanDelivery(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) (plan delivery.Plan) {
		t.Helper()
		out, err := runPlan(t, append([]string{"delivery", "--format", "json"}, args...)...)
		if err == nil {
			err = json.Unmarshal([]byte(out), &plan)
		}
		if err != nil {
			t.Fatalf("plan delivery %s: %v", strings.Join(args, " "), err)
		}
		return plan
	}
	const text = `{"nodes":[{"id":"m","kind":"point","rate_gbps":30,"deadline_ms":5,"loss":0.1},
{"id":"n","kind":"point","rate_gbps":10,"deadline_ms":2,"loss":0.1},
{"id":"w","kind":"switch","capacity_gbps":100,"load_gbps":60,"up":0.99},{"id":"s","kind":"server","capacity_gbps":40}],
"links":[{"a":"m","b":"w","latency_ms":2,"capacity_gbps":100},{"a":"n","b":"w","latency_ms":2,"capacity_gbps":100},
{"a":"w","b":"s","latency_ms":2,"capacity_gbps":100,"load_gbps":65}]}`
	instance := file("i.json", text)
	svg := filepath.Join(dir, "i.svg")
	p := run("--instance", instance, "--svg", svg)
	if p.Partial || len(p.AddedLinks) != 1 || p.AddedLinks[0].A != "n" || p.AddedLinks[0].B != "s" || p.AddedLinks[0].Constraint != "deadline" || !p.Stats.Optimal {
		t.Errorf("plan %+v, want a link from n to s", p)
	}
	if len(p.Switches) != 3 || p.Switches[2].Switch != "w" || p.Switches[2].Rules[0].OutPort != 3 || p.Switches[0].Switch != "m" || p.Switches[0].Collectors[0].Collector != "s" || p.Switches[0].Collectors[0].NextHop != "w" {
		t.Errorf("configuration %+v", p.Switches)
	}
	wellFormed(t, svg)
	p = run("--instance", instance, "--no-links", "--partial", "--svg", svg)
	if !p.Partial || len(p.Unserved) != 1 || p.Unserved[0].Point != "n" || p.Unserved[0].Constraint != "deadline" {
		t.Errorf("plan %+v, want n unserved", p)
	}
	wellFormed(t, svg)
	out, err := runPlan(t, "delivery", "--instance", instance)
	for _, want := range []string{"ADDED LINK", "deadline", "SWITCH  PATH", "2 of 2 points served (1 without links) by 1 of 1 servers", "the best there is"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("table without %q: %s, %v", want, out, err)
		}
	}
	// An instance that is drawn, printed and read back has the same plan.
	drawn, err := runPlan(t, "delivery", "--topology", "leaf-spine:4,8", "--seed", "3", "--print-instance")
	if err != nil {
		t.Fatal(err)
	}
	a, b := run("--topology", "leaf-spine:4,8", "--seed", "3"), run("--instance", file("drawn.json", drawn))
	if a.Stats.Objective != b.Stats.Objective || a.Stats.Links != b.Stats.Links || len(a.Assignment) != len(b.Assignment) {
		t.Errorf("plans differ: %+v and %+v", a.Stats, b.Stats)
	}

	// Of two points one has to move; and the steps say so.
	roomy := strings.Replace(text, `"capacity_gbps":40}`, `"capacity_gbps":100},{"id":"r","kind":"server","capacity_gbps":100}`, 1)
	roomy = strings.Replace(roomy, `"deadline_ms":2,`, `"deadline_ms":5,`, 1)
	roomy = strings.Replace(roomy, `"load_gbps":65}`, `"port_a":5},{"a":"w","b":"r","port_a":6,"latency_ms":2,"capacity_gbps":100}`, 1)
	before, err := runPlan(t, "delivery", "--instance", file("roomy.json", roomy), "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	old := file("old.json", before)
	tight := file("tight.json", strings.ReplaceAll(roomy, `"capacity_gbps":100,"port_a"`, `"capacity_gbps":35,"port_a"`))
	p = run("--instance", tight, "--replan", old, "--churn", "1")
	if c := p.Churn; c == nil || c.Changed != 1 || c.Forced != 1 || p.Transition == nil || len(p.Transition.Keep) != 1 || len(p.Transition.Steps) != 1 || p.Transition.Steps[0].ID != p.Transition.Change[0] {
		t.Errorf("replanned %+v with transition %+v, want one point changed", c, p.Transition)
	}
	if out, err := runPlan(t, "delivery", "--instance", tight, "--replan", old); err != nil || !strings.Contains(out, "2 changed, 0 kept; 1 had to change\nstep 1: change ") {
		t.Errorf("table of a replanned plan: %s, %v", out, err)
	}

	tests := []struct {
		args, want string
		usage      bool
	}{
		{"--instance " + tight + " --churn 1", "--churn goes with --replan", true},
		{"--instance " + tight + " --churn -2 --replan " + old, "--churn -2: a number of changes", true},
		{"--instance " + tight + " --replan " + instance, "i.json", true},
		{"--instance " + tight + " --replan " + old + " --check " + old, "--check makes no plan", true},
		{"--instance " + tight + " --replan " + old + " --method paper", "only exact knows it", true},
		{"--instance " + file("key.json", strings.Replace(text, `"load_gbps"`, `"laod_gbps"`, 1)), `unknown key "laod_gbps"`, true},
		{"", "--instance or --topology is missing", true},
		{"--instance nowhere.json", "nowhere.json", true},
		{"--instance " + instance + " --topology fat-tree:4", "does not go with it", true},
		{"--instance " + instance + " --no-links", "point n cannot be served: deadline", false},
		{"--instance " + instance + " --method magic", "magic", true},
		{"--instance " + instance + " --loss-test luck", "luck", true},
		{"--instance " + instance + " --loss-test joint --method paper", "only exact knows it", true},
		{"--instance " + instance + " --reserve 0.5", "reserve 0.5", true},
		{"--instance " + file("bad.json", strings.Replace(text, `"latency_ms":2`, `"latency_ms":-1`, 1)), "link m w has latency_ms -1", true},
		{"--instance " + file("full.json", strings.Replace(text, `"rate_gbps":30`, `"rate_gbps":41`, 1)), "point m cannot be served", false},
		{"--topology nowhere.gml", "nowhere.gml", true},
	}
	for _, tt := range tests {
		_, err := runPlan(t, append([]string{"delivery"}, strings.Fields(tt.args)...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, new(usageError)) != tt.usage {
			t.Errorf("plan delivery %s: %v, want %q (usage: %v)", tt.args, err, tt.want, tt.usage)
		}
	}
}

// TestPlanDeliveryOfReports plans the delivery of reports that an assignment of flows brings.
func TestPlanDeliveryOfReports(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	assignment := func(interfaces, rate string) string {
		out, err := runPlan(t, "orchestrate", "--format", "json", "--instance", file("flows.json", `{"interfaces":[`+interfaces+`],"flows":[
			{"id":"f","capacity":4,"rate":100000,"interfaces":["m:1","n:1"]},{"id":"g","capacity":4,`+rate+`"interfaces":["n:2"]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return file("assignment.json", out)
	}
	const interfaces = `{"id":"m:1","demand":2},{"id":"n:1","demand":2},{"id":"n:2","demand":2}`
	network := file("network.json", `{"nodes":[{"id":"m","kind":"point","rate_gbps":5,"deadline_ms":5,"loss":0.1},{"id":"n","kind":"point","rate_gbps":5,"deadline_ms":5,"loss":0.1},
		{"id":"s","kind":"server","capacity_gbps":40}],"links":[{"a":"m","b":"s","latency_ms":2,"capacity_gbps":9},{"a":"n","b":"s","latency_ms":2,"capacity_gbps":9}]}`)
	out, err := runPlan(t, "delivery", "--format", "json", "--instance", network, "--report-bytes", "125", "--reports-of", assignment(interfaces, `"rate":20000,`))
	var plan delivery.Plan
	if err == nil {
		err = json.Unmarshal([]byte(out), &plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Both flows are reported by n, 120,000 packets a second with 1,000 bits each; m reports none.
	rates := map[string]float64{}
	for _, a := range plan.Assignment {
		rates[a.Point] += a.Rate
	}
	if len(rates) != 2 || rates["n"] < 0.1199 || rates["n"] > 0.1201 || rates["m"] != delivery.LeastRate {
		t.Errorf("rates %v, want 0.12 Gbit/s of n", rates)
	}
	without := assignment(interfaces, "")
	for _, tt := range []struct{ network, assignment, want string }{
		{network, without, `flow "g" has no rate`},
		{network, file("none.json", `{"kind":"orchestrate","version":1,"assignment":{}}`), "no table has a flow that is reported"},
		{network, file("bare.json", `{"kind":"orchestrate","version":1,"tables":[{"interface":"x","entries":[{"flow":"f","first":0,"items":1,"sink":true}]}],"rates":{"f":1}}`), `interface "x" is not NODE:PORT`},
		{network, file("other.json", `{"kind":"orchestrate","version":1,"tables":[{"interface":"x:1","entries":[{"flow":"f","first":0,"items":1,"sink":true}]}],"rates":{"f":1}}`), `flows are reported by ["x"], which the instance has no points of`},
		{network, file("much.json", `{"kind":"orchestrate","version":1,"tables":[{"interface":"m:1","entries":[{"flow":"f","first":0,"items":1,"sink":true}]}],"rates":{"f":1e308}}`), "rate_gbps"},
	} {
		if out, err := runPlan(t, "delivery", "--instance", tt.network, "--reports-of", tt.assignment); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s\n%s", tt.assignment, err, tt.want, out)
		}
	}
}
