package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const helm = deploy + "helm/"

// The values of the chart are what its schema asks for, and the schema refuses what would lose datagrams, publish a page without a
// token, or is a mistake. TestHelmRenders has Helm do the same.
func TestHelmValues(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(readText(t, helm+"values.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("values.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	text := readText(t, helm+"values.yaml")
	for _, test := range append([]struct{ name, old, new string }{{"as they are", "", ""}}, wrongValues...) {
		changed := strings.Replace(text, test.old, test.new, 1)
		if (changed == text) != (test.old == "") {
			t.Errorf("%s: the values have no %q", test.name, test.old)
		}
		if err := schema.Validate(valuesOf(t, changed)); (err == nil) != (test.old == "") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// wrongValues are changes of values.yaml that the schema refuses.
var wrongValues = []struct{ name, old, new string }{
	{"a page on every address without a token", "      token_file: /run/secrets/hopscope/page-token\n", ""},
	{"a limit of the CPU", "limits: { memory: 2688Mi }", "limits: { memory: 2304Mi, cpu: 1 }"},
	{"no collector", "  replicas: 2", "  replicas: 0"},
	{"an unknown key", "fleet: true", "fleet: true\nfleets: 2"},
	{"no network of devices", `devices: ["10.0.0.0/8", "fd00::/8"]`, "devices: []"},
	{"a port beyond the last", "port: 32766", "port: 65536"},
	{"an unknown way of capture", "capture: none", "capture: pcap"},
	{"no image", "repository: registry.example.com/hopscope", `repository: ""`},
	{"no secret", "secretName: hopscope", `secretName: ""`},
}

// valuesOf reads YAML as a schema of JSON takes it.
func valuesOf(t *testing.T, text string) any {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The chart is of the version that the changelog has, and its settings and sizes are those of the manifests.
func TestHelmChart(t *testing.T) {
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	unmarshal(t, helm+"Chart.yaml", &chart)
	next := regexp.MustCompile(`(?m)^## (\d\S*)`).FindStringSubmatch(readText(t, "../../CHANGELOG.md"))
	if next == nil || chart.Version != next[1] || chart.AppVersion != next[1] {
		t.Errorf("the chart is of %s, for %s, and the changelog of %q", chart.Version, chart.AppVersion, next)
	}
	type sized struct {
		Replicas   int
		GoMemLimit string `yaml:"goMemLimit"`
		Resources  any
	}
	var values struct {
		Settings                     map[string]any
		Collector, Consumer, Console sized
	}
	unmarshal(t, helm+"values.yaml", &values)
	var roles []string
	for role, got := range values.Settings {
		roles = append(roles, role)
		var want any
		unmarshal(t, kubernetes+"settings/"+role+".yaml", &want)
		if a, b := canonical(t, got), canonical(t, want); a != b {
			t.Errorf("%s has\n%s\nand the manifests\n%s", role, a, b)
		}
	}
	for role, v := range map[string]sized{"collector": values.Collector, "consumer": values.Consumer, "console": values.Console} {
		var want sized
		for d := yaml.NewDecoder(strings.NewReader(readText(t, kubernetes+role+".yaml"))); ; {
			var m struct {
				Spec struct {
					Replicas int
					Template struct {
						Spec struct {
							Containers []struct {
								Env       []struct{ Value string }
								Resources any
							}
						}
					}
				}
			}
			if d.Decode(&m) != nil {
				break
			}
			for _, c := range m.Spec.Template.Spec.Containers {
				want = sized{Replicas: m.Spec.Replicas, Resources: c.Resources}
				for _, e := range c.Env {
					want.GoMemLimit = e.Value
				}
			}
		}
		if a, b := canonical(t, v), canonical(t, want); a != b {
			t.Errorf("%s has\n%s\nand the manifests\n%s", role, a, b)
		}
	}
	if slices.Sort(roles); !slices.Equal(roles, []string{"collector", "console", "consumer"}) {
		t.Errorf("settings of %q", roles)
	}
}

// canonical is a value as JSON with its keys in order.
func canonical(t *testing.T, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(valuesOf(t, string(b)), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
