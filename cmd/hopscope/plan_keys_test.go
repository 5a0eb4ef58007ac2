package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestPlanMisspeltKeys adds a key to every object of every file that plan commands read, one at a time. A key that is not read would
// mean a default that was not asked for, so that each is an error that names it.
func TestPlanMisspeltKeys(t *testing.T) {
	inExamples(t)
	made(t, "cover.json", "cover --topology lab.yaml")
	made(t, "attention.json", "attention --instance cycle.json")
	made(t, "orchestrate.json", "orchestrate --instance flows.json")
	made(t, "delivery.json", "delivery --instance network.json")
	made(t, "scheduled.json", "schedule --instance schedule.json")
	made(t, "mix.json", "queries queries.yaml")
	for _, x := range [][2]string{ // a file, and the command that reads what was made of it
		{"cycle.json", "attention --instance FILE"},
		{"metrics.yaml", "attention --metrics FILE"},
		{"flows.json", "orchestrate --instance FILE"},
		{"network.json", "delivery --instance FILE"},
		{"schedule.json", "schedule --instance FILE"},
		{"queries.yaml", "queries FILE"},
		{"lab.yaml", "cover --topology FILE"},
		{"cover.json", "cover --topology lab.yaml --check FILE"},
		{"cover.json", "cover --topology lab.yaml --replan FILE"},
		{"cover.json", "attention --topology lab.yaml --suspicious leaf-1--spine-1 --probes FILE"},
		{"cover.json", "diff cover.json FILE"},
		{"attention.json", "attention --instance cycle.json --check FILE"},
		{"attention.json", "attention --instance cycle.json --replan FILE"},
		{"orchestrate.json", "orchestrate --instance flows.json --check FILE"},
		{"orchestrate.json", "orchestrate --instance flows.json --replan FILE"},
		{"delivery.json", "delivery --instance network.json --check FILE"},
		{"delivery.json", "delivery --instance network.json --replan FILE"},
		{"scheduled.json", "schedule --instance schedule.json --check FILE"},
		{"scheduled.json", "schedule --instance schedule.json --replan FILE"},
		{"mix.json", "queries queries.yaml --check FILE"},
	} {
		file, args := x[0], x[1]
		text := fileOf(t, file)
		var v any
		err := json.Unmarshal(text, &v)
		if strings.HasSuffix(file, ".yaml") {
			if text, err = yaml.YAMLToJSON(text); err == nil {
				err = json.Unmarshal(text, &v)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		spoilt := 0
		everyObject(v, "", func(path string, o map[string]any) {
			if strings.HasSuffix(path, ".assignment") || strings.HasSuffix(path, ".weights") || strings.HasSuffix(path, ".rates") { // its keys are names of others
				return
			}
			spoilt++
			o["no_such_key"] = 1
			b, err := json.Marshal(v)
			delete(o, "no_such_key")
			if err != nil {
				t.Fatal(err)
			}
			to := "spoilt" + filepath.Ext(file)
			if err := os.WriteFile(to, b, 0o600); err != nil { // JSON is YAML
				t.Fatal(err)
			}
			_, err = runPlan(t, strings.Fields(strings.ReplaceAll(args, "FILE", to))...)
			if err == nil || !strings.Contains(err.Error(), "no_such_key") || !errors.As(err, new(usageError)) {
				t.Errorf("plan %s with a misspelt key at %q: %v", args, path, err)
			}
		})
		if spoilt < 2 {
			t.Errorf("%s: %d objects spoilt", file, spoilt)
		}
	}
}

// everyObject visits the objects of a document, of every list the first two.
func everyObject(v any, path string, visit func(path string, o map[string]any)) {
	switch v := v.(type) {
	case []any:
		for k := range min(len(v), 2) {
			everyObject(v[k], path+"[]", visit)
		}
	case map[string]any:
		visit(path, v)
		for k, x := range v {
			everyObject(x, path+"."+k, visit)
		}
	}
}
