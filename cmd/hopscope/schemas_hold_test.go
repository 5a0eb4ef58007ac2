package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled are the schemas of docs/schemas by name. Tests change the folder, so that it is found before any of them.
var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	m := map[string]*jsonschema.Schema{}
	for name := range schemas {
		s, err := c.Compile(filepath.Join(schemaDir, name+".schema.json"))
		if err != nil {
			return nil, err
		}
		m[name] = s
	}
	return m, nil
})

var schemaDir, _ = filepath.Abs(filepath.Join("..", "..", "docs", "schemas"))

// schemaError says in what JSON is not what a schema asks for.
func schemaError(t *testing.T, name string, text []byte) error {
	t.Helper()
	all, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return all[name].Validate(v)
}

// holdSchema holds the output of a command against the schema of its kind, if it is JSON.
func holdSchema(t *testing.T, args []string, out string) {
	t.Helper()
	if !strings.HasPrefix(out, "{") || slices.Contains(args, "entries") { // those of tables are for switches
		return
	}
	var head struct {
		Kind  string
		Basic []string
	}
	if err := json.Unmarshal([]byte(out), &head); err != nil {
		t.Errorf("plan %s: %v", strings.Join(args, " "), err)
	}
	name := "plan-" + head.Kind
	switch {
	case head.Kind == "diff":
		name = "diff"
	case head.Kind == "" && head.Basic != nil:
		name = "categories"
	case head.Kind == "":
		name = "instance-" + args[0]
	}
	if err := schemaError(t, name, []byte(out)); err != nil {
		t.Errorf("plan %s: %v", strings.Join(args, " "), err)
	}
}

// TestSchemasOfExamples holds the files of docs/examples against their schemas.
func TestSchemasOfExamples(t *testing.T) {
	for file, name := range map[string]string{
		"cycle.json": "instance-attention", "flows.json": "instance-orchestrate", "network.json": "instance-delivery", "schedule.json": "instance-schedule",
		"queries.yaml": "instance-queries", "metrics.yaml": "metrics", "fant-metrics.yaml": "metrics", "plan.json": "plan-cover",
	} {
		text, err := os.ReadFile(filepath.Join("../../docs/examples", file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".yaml") {
			if text, err = yaml.YAMLToJSON(text); err != nil {
				t.Fatal(err)
			}
		}
		if err := schemaError(t, name, text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestSchemasReject spoils plans and instances: an object anywhere in them with one more key, and values of other types.
func TestSchemasReject(t *testing.T) {
	inExamples(t)
	for args, name := range map[string]string{
		"cover --topology lab.yaml --replan plan.json --skip leaf-1--spine-2 --partial": "plan-cover",
		"attention --instance cycle.json":                                               "plan-attention",
		"orchestrate --instance flows.json":                                             "plan-orchestrate",
		"delivery --instance network.json":                                              "plan-delivery",
		"schedule --instance schedule.json":                                             "plan-schedule",
		"queries queries.yaml":                                                          "plan-queries",
		"diff plan.json plan.json":                                                      "diff",
		"delivery --topology Bren.gml --seed 7 --print-instance --format table":         "instance-delivery",
	} {
		out, err := runPlan(t, append(strings.Fields(args), "--format=json")...)
		if err != nil {
			t.Fatalf("plan %s: %v", args, err)
		}
		var v any
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatal(err)
		}
		reject(t, name, v)
	}
	for file, name := range map[string]string{"cycle.json": "instance-attention", "flows.json": "instance-orchestrate", "network.json": "instance-delivery", "schedule.json": "instance-schedule"} {
		var v any
		if err := json.Unmarshal(fileOf(t, file), &v); err != nil {
			t.Fatal(err)
		}
		reject(t, name, v)
	}
}

// reject spoils every object and every plain value of a document, one at a time.
func reject(t *testing.T, name string, v any) {
	t.Helper()
	spoilt := 0
	check := func(path string) {
		t.Helper()
		spoilt++
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if schemaError(t, name, text) == nil {
			t.Errorf("%s: the schema allows what was done to %s", name, path)
		}
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for k := range min(len(v), 2) {
				walk(path+"[]", v[k])
			}
		case map[string]any:
			free := strings.HasSuffix(path, ".assignment") || strings.HasSuffix(path, ".weights") || strings.HasSuffix(path, ".rates") // names of others are keys
			if !free {
				v["no_such_key"] = 1
				check(path)
				delete(v, "no_such_key")
			}
			for k, x := range v {
				switch x.(type) {
				case map[string]any, []any:
					v[k] = "x"
				default:
					v[k] = []any{map[string]any{}}
				}
				check(path + "." + k)
				v[k] = x
				walk(path+"."+k, x)
			}
		}
	}
	walk(name, v)
	if spoilt < 8 {
		t.Errorf("%s: %d spoilt, want more", name, spoilt)
	}
}
