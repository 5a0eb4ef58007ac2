package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/planner/querymix"
)

const queriesExample = "../../docs/examples/queries.yaml"

// planQueries lets the search come to its end, however slow the machine is.
func planQueries(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runPlan(t, append([]string{"queries", "--time-limit", "1h"}, args...)...)
}

func TestPlanQueries(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) (plan querymix.Plan, text string) {
		t.Helper()
		text, err := planQueries(t, append([]string{"--format", "json"}, args...)...)
		if err == nil {
			err = json.Unmarshal([]byte(text), &plan)
		}
		if err != nil {
			t.Fatalf("plan queries %s: %v", strings.Join(args, " "), err)
		}
		return plan, text
	}

	// PINT's own mix, section 6.4: path on all packets, latency on 15 of 16, utilisation on 1 of 16.
	example, err := os.ReadFile(queriesExample)
	if err != nil {
		t.Fatal(err)
	}
	paper := file("paper.yaml", strings.Replace(string(example), "widths: [8, 2x4, 4x2, 8x1]", "frequency: 1\n    widths: [8]", 1))
	svg := filepath.Join(dir, "q.svg")
	plan, text := run(paper, "--svg", svg)
	wellFormed(t, svg)
	if len(plan.Sets) != 2 || plan.Sets[0].Last != 0xefffffff || plan.Queries[0].Share != 1 || plan.Queries[1].Share != 0.9375 || plan.Queries[2].Share != 0.0625 || !plan.Stats.Optimal {
		t.Errorf("plan %s, want the paper's", text)
	}
	saved := file("plan.json", text)
	if out, err := planQueries(t, paper, "--check", saved); err != nil || !strings.Contains(out, "the best there is") {
		t.Errorf("check: %s, %v", out, err)
	}
	if made, err := pintplan.ReadFile(saved); err != nil || made.Epoch != plan.Epoch || len(made.Sets) != 2 {
		t.Errorf("the collector reads %+v, %v", made, err)
	}
	if _, err := planQueries(t, paper, "--bits", "24", "--check", saved); err == nil || !strings.Contains(err.Error(), "plan.json does not hold: bits") {
		t.Errorf("check of a plan for other bits: %v", err)
	}

	// The path could be known in fewer packets now, but not without another coding.
	if p, _ := run(queriesExample, "--replan", saved, "--churn", "0"); p.Queries[0].Bits != 8 || p.Churn.Changed != 0 || len(p.Transition.Keep) != 3 || !p.Stats.Optimal {
		t.Errorf("queries %+v, want the path in 8 bits as before", p.Queries)
	}
	if p, _ := run(queriesExample, "--replan", saved, "--churn", "1"); p.Queries[0].Instances != 8 || p.Churn.Changed != 1 || len(p.Transition.Steps) != 1 {
		t.Errorf("queries %+v, want the path in 8x1 bits", p.Queries)
	}
	if out, err := planQueries(t, queriesExample, "--replan", saved); err != nil || !strings.Contains(out, "coded in another way path; as before latency utilization") {
		t.Errorf("table: %s, %v", out, err)
	}

	// What a topology is known for: the collector's own tracing, which gains from many narrow digests.
	traced, _ := run(queriesExample, "--topology", "fat-tree:8", "--routing", "distance")
	if q := traced.Queries[0]; q.Bits != 1 || q.Instances != 8 || q.Carrying > 6 || traced.Queries[1].Share != q.Share {
		t.Errorf("query %+v, want 8x1 bits", q)
	}
	if second, _ := run(queriesExample, "--topology", "fat-tree:8", "--routing", "distance"); second.Queries[0].Carrying != traced.Queries[0].Carrying {
		t.Error("the same seed measures something else")
	}

	// Links without weights leave paths that are as short as in hops.
	if byWeight, _ := run(queriesExample, "--topology", "fat-tree:8", "--routing", "weights"); byWeight.Queries[0].Carrying > 6 {
		t.Errorf("query %+v, want paths known as soon as with distances", byWeight.Queries[0])
	}

	out, err := planQueries(t, queriesExample)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"93.75 %  00000000-efffffff     0-7 path, 8-15 latency",
		"93.75 % of packets carry path (",
		"path is on 96.88 % of packets; a larger share would leave less for latency and utilization.",
		"utilization is on 6.25 % of packets, which is the frequency that it asks for",
		"latency does not use 4 bits: values would be off by up to 50.9 %.",
		"The query that is worst off is ",
		"the best there is",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}

	// With room for all of them there is one set.
	if plan, _ := run(queriesExample, "--bits", "32", "--epoch", "9"); len(plan.Sets) != 1 || plan.Stats.Objective != 1 || plan.Epoch != 9 {
		t.Errorf("plan %+v, want everything on all packets", plan)
	}
	if other, _ := run(queriesExample, "--bits", "24"); other.Epoch == plan.Epoch {
		t.Errorf("plans of 16 and 24 bits both have epoch %d", plan.Epoch)
	}
	if out, err := planQueries(t, queriesExample, "--hash", "crc", "--format", "p4"); err != nil || !strings.Contains(out, "table_add pint_set carry 0x00000000->0xefffffff => 0 1") {
		t.Errorf("p4: %v", err)
	}
	small := file("small.yaml", "bits: 16\nqueries:\n  - {name: path, value: node, aggregation: static, hops: 5, nodes: 80, widths: [2x4]}\n"+
		"  - {name: latency, value: latency, aggregation: dynamic, hops: 5, samples: 9, max_value: 1000000, widths: [8]}\n")
	out, err = planQueries(t, small, "--hash", "crc", "--format", "entries")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := p4rt.ReadJSON([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	pipeline, err := p4rt.BMv2("pint")
	if err != nil {
		t.Fatal(err)
	}
	if err := loop.Fits(pipeline.Info.Tables(), entries); err != nil || len(entries) < 11*1024+64+256 {
		t.Errorf("%d entries for switches: %v", len(entries), err)
	}

	const two = "bits: 8\nqueries:\n  - {name: a, value: node, aggregation: loop, frequency: %s, widths: [6]}\n  - {name: b, value: node, aggregation: loop, frequency: 3/4, widths: [6]}\n"
	full := file("crowded.yaml", strings.Replace(two, "%s", "1/2", 1))
	if out, err := planQueries(t, full, "--partial"); err != nil || !strings.Contains(out, "Only 80 % of every frequency") || !strings.Contains(out, "partial") {
		t.Errorf("partial: %s, %v", out, err)
	}
	wide := file("wide.json", `{"bits":8,"queries":[{"name":"a","value":"node","aggregation":"loop","widths":[9]},{"name":"b","value":"node","aggregation":"loop","widths":[8]}]}`)
	if out, err := planQueries(t, wide, "--partial"); err != nil || !strings.Contains(out, "left out: a (width 9: 9 bits are more than the 8 of a packet)") {
		t.Errorf("partial: %s, %v", out, err)
	}

	tests := []struct {
		args, want string
		usage      bool
	}{
		{"", "wants 1 argument", true},
		{"nowhere.yaml", "nowhere.yaml", true},
		{queriesExample + " --format xml", "neither table nor json nor p4", true},
		{queriesExample + " --format p4", "--hash crc", true},
		{queriesExample + " --format entries", "hash crc", true},
		{queriesExample + " --hash crc --format entries", `query "path": pint.p4 carries out one query of each kind`, true}, // in 8 instances
		{queriesExample + " --hash md5", `hash "md5"`, true},
		{queriesExample + " --churn 1", "--churn goes with --replan", true},
		{queriesExample + " --replan " + saved + " --churn -3", "--churn -3: a number of changes", true},
		{queriesExample + " --replan nowhere.json", "nowhere.json", true},
		{queriesExample + " --bits 0", "a budget of 0 bits", true},
		{queriesExample + " --bits 7", `query "utilization": width 8: 8 bits are more than the 7 of a packet`, false},
		{queriesExample + " --topology nowhere:3", "nowhere", true},
		{queriesExample + " --routing ecmp", "--routing goes with --topology", true},
		{queriesExample + " --routing shortest --topology fat-tree:4", `--routing "shortest"`, true},
		{queriesExample + " --topology leaf-spine:4,2", `query "path": width 8: topology leaf-spine:4,2 has no shortest path of 5 switches`, false},
		{queriesExample + " --time-limit 0s", "--time-limit", true},
		{full, `queries "a" (on 50 % of packets, with 6 bits or more), "b" (on 75 % of packets, with 6 bits or more): packets of 8 bits cannot carry them that often; 80 % of these frequencies are possible`, false},
		{file("full.yaml", strings.Replace(strings.Replace(two, "%s", "1", 1), "frequency: 3/4, ", "", 1)), `query "b": the frequencies of others leave no packets`, false},
		{wide, `query "a": width 9: 9 bits are more than the 8 of a packet`, false},
		{file("empty.yaml", ""), "the instance is empty", true},
		{file("bad.yaml", "bits: [\n"), "bad.yaml", true},
		{file("nan.yaml", strings.Replace(two, "%s", ".nan", 1)), "nan.yaml", true},
		{file("twice.yaml", strings.Replace(strings.Replace(two, "%s", "1/4", 1), "name: b", "name: a", 1)), `query "a" is there twice`, true},
		{file("key.yaml", "bits: 8\nbudget: 3\n"), `unknown key "budget"`, true},
		{file("code.yaml", "bits: 8\nqueries:\n  - {name: u, value: utilization, aggregation: per-packet, max_value: 1000, widths: [1]}\n"), `query "u": pint: `, false},
	}
	for _, tt := range tests {
		_, err := planQueries(t, strings.Fields(tt.args)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, new(usageError)) != tt.usage {
			t.Errorf("plan queries %s: %v, want %q (usage: %v)", tt.args, err, tt.want, tt.usage)
		}
	}
}
