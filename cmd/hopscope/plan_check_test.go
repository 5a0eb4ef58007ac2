package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every family's plan passes its check when it comes back as a file, and fails it for another problem.
func TestPlanCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const probes = `{"probes":[{"id":"p","links":["a","b"]},{"id":"q","links":["b","c"]}],"suspicious":["%"]}`
	a := file("a.json", strings.Replace(probes, "%", "a", 1))
	c := file("c.json", strings.Replace(probes, "%", "c", 1))
	const timed = `{"probes":[{"id":"p","links":["a","b"],"agent":"x"},{"id":"q","links":["c"],"agent":"x"}],"longest_ms":2000,"links":[{"name":"c","period_ms":%}]}`
	seldom := file("seldom.json", strings.Replace(timed, "%", "2000", 1))
	often := file("often.json", strings.Replace(timed, "%", "1000", 1))
	for _, x := range []struct{ plan, other, want string }{
		{"cover --topology fat-tree:4", "cover --topology fat-tree:4 --directed", "of the directions are not covered"},
		{"cover --topology fat-tree:4 --redundant", "cover --topology fat-tree:4", "a second cover that was not asked for"},
		{"orchestrate --topology fat-tree:4", "orchestrate --topology fat-tree:4 --seed 2", "its capacity is"},
		{"attention --instance " + a, "attention --instance " + c, "suspicious link c is on no probe that measures in detail"},
		{"schedule --instance " + seldom, "schedule --instance " + often, "is not seen for 2000 ms, and should be every 1000 ms"},
		{"delivery --topology fat-tree:4", "delivery --topology fat-tree:4 --seed 2", "the path does not lead from a point to a server"},
	} {
		out, err := runPlan(t, strings.Fields(x.plan+" --format json")...)
		if err != nil {
			t.Fatalf("plan %s: %v", x.plan, err)
		}
		plan := file("plan.json", out)
		if second, err := runPlan(t, strings.Fields(x.plan+" --format json --check "+plan)...); err != nil || strings.Replace(second, `"proof":"verified",`, "", 1) != out || second == out {
			t.Errorf("plan %s --check: %v in\n%swant\n%s", x.plan, err, second, out)
		}
		_, err = runPlan(t, strings.Fields(x.other+" --check "+plan)...)
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "does not hold") {
			t.Errorf("plan %s --check of another: %v, want %q in it", x.other, err, x.want)
		}
		if _, usage := errors.AsType[usageError](err); usage {
			t.Errorf("plan %s --check of another: asked wrongly, want failed", x.other)
		}
		if _, err = runPlan(t, strings.Fields(x.plan+" --check "+file("cut.json", out[:len(out)/2]))...); err == nil || !strings.Contains(err.Error(), "cut.json: ") || !errors.As(err, new(usageError)) {
			t.Errorf("plan %s --check of half a file: %v", x.plan, err)
		}
	}
}

// TestPlanCheckRoutes: what a plan in a file says that senders write has to lead along the way of its probe.
func TestPlanCheckRoutes(t *testing.T) {
	inExamples(t)
	args := "cover --topology lab.yaml --sr"
	made(t, "routes.json", args)
	if _, err := runPlan(t, strings.Fields(args+" --check routes.json")...); err != nil {
		t.Errorf("a good plan: %v", err)
	}
	if _, err := runPlan(t, strings.Fields("cover --topology lab.yaml --check routes.json")...); err == nil || !strings.Contains(err.Error(), "probe p1 has a route, which is checked with --sr") {
		t.Errorf("routes that nobody checks: %v", err)
	}
	text := string(fileOf(t, "routes.json"))
	const key = `"route":"`
	end := strings.Index(text, key) + len(key) + 2*64
	other := "0"
	if text[end-1] == '0' {
		other = "1"
	}
	if err := os.WriteFile("wrong.json", []byte(text[:end-1]+other+text[end:]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runPlan(t, strings.Fields(args+" --check wrong.json")...); err == nil || !strings.Contains(err.Error(), "probe p1 has the route") {
		t.Errorf("a wrong route: %v", err)
	}
}
