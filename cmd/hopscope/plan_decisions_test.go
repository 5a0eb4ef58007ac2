package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/topo"
)

// pick keeps some keys of each object of a list.
func pick(list any, keys ...string) (kept []map[string]any) {
	for _, x := range list.([]any) {
		m := map[string]any{}
		for _, k := range keys {
			if v, ok := x.(map[string]any)[k]; ok {
				m[k] = v
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// A plan that gives its decisions alone holds, and gets what the planner's own has; bounds are proven for it.
func TestPlanDecisions(t *testing.T) {
	inExamples(t)
	keep := func(keys ...string) func(plan map[string]any) map[string]any {
		return func(plan map[string]any) map[string]any {
			m := map[string]any{}
			for _, k := range keys {
				if v, ok := plan[k]; ok {
					m[k] = v
				}
			}
			return m
		}
	}
	probes := func(keys ...string) func(plan map[string]any) map[string]any {
		return func(plan map[string]any) map[string]any {
			return map[string]any{"probes": pick(plan["probes"], keys...)}
		}
	}
	for _, x := range []struct {
		args   string
		decide func(plan map[string]any) map[string]any
		open   string // keys that no decision gives
	}{
		{"cover --topology fat-tree:4", probes("nodes"), ""},
		{"cover --topology lab.yaml", probes("nodes", "ports"), ""},
		{"cover --topology lab.yaml --directed", probes("nodes", "links"), ""},
		{"cover --topology lab.yaml --agents agents.yaml", probes("nodes", "ports"), ""},
		{"orchestrate --instance flows.json", keep("assignment"), ""},
		{"orchestrate --instance flows.json --objective balance --split", keep("assignment", "shares"), ""},
		{"orchestrate --instance flows.json --redundancy 2 --partial", keep("assignment", "shares", "partial"), "reason"},
		{"attention --instance cycle.json", probes("id"), ""},
		{"schedule --instance schedule.json", probes("id", "interval_ms", "phase_ms"), "peak_lower_bound"},
		{"delivery --instance network.json", func(plan map[string]any) map[string]any {
			return map[string]any{"assignment": pick(plan["assignment"], "path", "rate_gbps"), "added_links": pick(plan["added_links"], "a", "b")}
		}, "constraint detail"},
		{"delivery --instance network.json --partial --no-links", func(plan map[string]any) map[string]any {
			return map[string]any{"assignment": pick(plan["assignment"], "path", "rate_gbps"), "partial": true}
		}, "constraint detail"},
		{"queries queries.yaml", func(plan map[string]any) map[string]any {
			sets := pick(plan["sets"], "share", "slots")
			for _, s := range sets {
				s["slots"] = pick(s["slots"], "query")
			}
			return map[string]any{"queries": pick(plan["queries"], "name", "bits", "instances"), "sets": sets}
		}, "goal_price floor_price limited_by"},
	} {
		out, err := runPlan(t, strings.Fields(x.args+" --format json")...)
		if err != nil {
			t.Fatalf("plan %s: %v", x.args, err)
		}
		var want, got map[string]any
		if err := json.Unmarshal([]byte(out), &want); err != nil {
			t.Fatal(err)
		}
		decisions, err := json.Marshal(x.decide(want))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "decided.json")
		if err := os.WriteFile(path, decisions, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err = runPlan(t, strings.Fields(x.args+" --format json --check "+path)...)
		if err != nil {
			t.Errorf("plan %s --check of %s: %v", x.args, decisions, err)
			continue
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		open := strings.Fields(x.open + " algorithm seconds proof nodes")
		without(want, open)
		without(got, open)
		if !reflect.DeepEqual(got, want) {
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(want)
			t.Errorf("plan %s --check of its decisions\n%s\nwant\n%s", x.args, a, b)
		}
	}
}

// without takes keys out of JSON, wherever they are, but for lists: the nodes of a walk are no number of nodes.
func without(v any, keys []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range keys {
			if _, list := v[k].([]any); !list || k == "limited_by" {
				delete(v, k)
			}
		}
		for _, x := range v {
			without(x, keys)
		}
	case []any:
		for _, x := range v {
			without(x, keys)
		}
	}
}

// A list of names may be longer than a file name, or name a directory, in each flag that takes a list or a file.
func TestPlanLongList(t *testing.T) {
	g, err := topo.Parse("fat-tree:20")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for v := range g.NumNodes() {
		names = append(names, g.NodeName(v))
	}
	t.Chdir(t.TempDir())
	plan, links := coverJSON(t, "--topology", "fat-tree:8"), []string{}
	var ids, hosts []string
	for _, p := range plan.Probes {
		ids = append(ids, p.ID)
		for k := range len(p.Nodes) - 1 {
			links = append(links, p.Nodes[k]+"--"+p.Nodes[k+1])
		}
	}
	for v := range g.NumNodes() {
		if g.Tier(v) == topo.Edge {
			hosts = append(hosts, g.NodeName(v))
		}
	}
	made(t, "plan.json", "cover --topology fat-tree:8")
	if err := os.Mkdir("edge-0-0", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"attention", "--topology", "fat-tree:8", "--probes", "plan.json", "--suspicious", strings.Join(links, ",")},
		{"attention", "--topology", "fat-tree:8", "--probes", "plan.json", "--suspicious", links[0], "--detailed", strings.Join(ids, ",")},
		{"cover", "--topology", "fat-tree:20", "--partial", "--hosts", strings.Join(hosts, ",")},
		{"cover", "--topology", "fat-tree:4", "--depots", "edge-0-0"},
	} {
		if _, err := runPlan(t, args...); err != nil {
			t.Errorf("%s %s: %.200v", args[0], args[len(args)-2], err)
		}
	}
	if out, err := runPlan(t, "cover", "--topology", "fat-tree:20", "--depots", strings.Join(names, ","), "--format", "json"); err != nil {
		t.Errorf("--depots with %d names: %.200v", len(names), err)
	} else if !strings.Contains(out, `"optimal":true`) {
		t.Errorf("--depots with %d names: %.300s", len(names), out)
	}
}

// What a plan gives is compared, also beside what it leaves out, and what cannot be derived is said with its remedy.
func TestPlanDecisionsRefused(t *testing.T) {
	inExamples(t)
	for _, x := range []struct{ args, plan, want string }{
		{"cover --topology ring.edges", `{"probes":[{"nodes":["a","b","c","a"]}],"stats":{"mean":2}}`, "does not hold: statistics: mean is 2, not 3"},
		{"cover --topology ring.edges", `{"probes":[{"nodes":["a","b","c"]},{"nodes":["c","a"]}],"stats":{"optimal":true}}`, "no objective is below 2, but there is a plan with 1"},
		{"cover --topology ring.edges", `{"probes":[{"nodes":["a","b","c"]}]}`, "1 of the links are not covered"},
		{"cover --topology ring.edges", `{"probes":[{"nodes":["a","nowhere"]}]}`, `no node "nowhere"`},
		{"cover --topology ring.edges", `{"probes":[{"nodes":["a"]}]}`, "1 nodes, 0 links, 0 ports"},
		{"cover --topology ring.edges", `{"probes":[{"nodes":["a","a"]}]}`, `no link leads from "a" to "a"`},
		{"cover --topology twice.edges", `{"probes":[{"nodes":["a","b","a"]}]}`, `several links join "a" and "b": give its ports, or its links`},
		{"orchestrate --instance flows.json", `{"assignment":{"leaf-1:3":"h11>h21"}}`, "items are carried"},
		{"orchestrate --instance flows.json", `{"assignment":{"leaf-1:3":"nobody"}}`, `no flow "nobody"`},
		{"attention --instance cycle.json", `{"probes":[{"id":"none"}]}`, `probe "none" is listed, but is not there`},
		{"delivery --instance network.json", `{"assignment":[{"path":["m1","nowhere"]}]}`, "the path does not lead from a point to a server"},
		{"delivery --instance network.json", `{"assignment":[{"path":["m1"],"ports":[1,2,3]}]}`, "the path does not lead from a point to a server"},
		{"queries queries.yaml", `{"bits":-5,"queries":[{"name":"path","bits":8}],"sets":[{"share":1,"slots":[{"query":"path"}]}]}`, "bits, epoch, hash or seed are not those of the problem"},
		{"queries queries.yaml", `{"queries":[{"name":"path","bits":3}],"sets":[{"share":1,"slots":[{"query":"path"}]}]}`, "is none of its widths"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "decided.json")
		if err := os.WriteFile(path, []byte(x.plan), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "twice.edges"), []byte("a b\na b\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "ring.edges"), []byte("a b\nb c\nc a\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := strings.Replace(x.args, "--topology ", "--topology "+dir+"/", 1)
		if _, err := runPlan(t, strings.Fields(args+" --check "+path)...); err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "{") {
			t.Errorf("plan %s --check of %s: %v, want %q", x.args, x.plan, err, x.want)
		}
	}
}

// values calls f with every value in JSON that is no list and no object, and a function that sets it.
func values(at string, v any, set func(any), f func(at string, v any, set func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			values(at+"."+k, v[k], func(x any) { v[k] = x }, f)
		}
	case []any:
		for i := range min(len(v), 2) { // the others are like the first
			values(fmt.Sprintf("%s[%d]", at, i), v[i], func(x any) { v[i] = x }, f)
		}
	default:
		f(strings.TrimPrefix(at, "."), v, set)
	}
}

// A plan with any one wrong value is refused, and no message contains a raw Go value. Single statistics may be absent.
func TestPlanFiguresWrong(t *testing.T) {
	testkit.Long(t)
	inExamples(t)
	path := filepath.Join(t.TempDir(), "wrong.json")
	check := func(args string, plan any) error {
		b, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = runPlan(t, strings.Fields(args+" --format json --check "+path)...)
		return err
	}
	for _, args := range []string{
		"cover --topology lab.yaml --max-hops 3", "cover --topology lab.yaml --agents agents.yaml", "orchestrate --instance flows.json", "attention --instance cycle.json",
		"schedule --instance schedule.json", "delivery --instance network.json", "queries queries.yaml",
	} {
		out, err := runPlan(t, strings.Fields(args+" --format json")...)
		if err != nil {
			t.Fatalf("plan %s: %v", args, err)
		}
		var plan map[string]any
		if err := json.Unmarshal([]byte(out), &plan); err != nil {
			t.Fatal(err)
		}
		refused := 0
		values("", plan, nil, func(at string, was any, set func(any)) {
			var wrong any = "nonsense"
			switch was := was.(type) {
			case float64:
				wrong = was + 7
			case bool:
				wrong = !was
			}
			set(wrong)
			if err := check(args, plan); err != nil {
				refused++
				if strings.ContainsAny(err.Error(), "{}") || strings.Contains(err.Error(), "map[") || strings.Contains(err.Error(), "%!") {
					t.Errorf("plan %s, %s is %v: %v", args, at, wrong, err)
				}
			}
			set(was)
		})
		if refused < 5 {
			t.Errorf("plan %s: %d wrong values are refused", args, refused)
		}
		stats := plan["stats"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(stats)) {
			was := stats[key]
			delete(stats, key)
			if err := check(args, plan); err != nil {
				t.Errorf("plan %s without stats.%s: %v", args, key, err)
			}
			stats[key] = was
		}
	}
}
