//go:build install

package main

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestHelmRenders holds what Helm makes of the chart against the manifests of deploy/kubernetes: without other values it is the same
// fleet, object for object, so that what TestKubernetes and TestDeployedSettings hold of these goes for the chart.
func TestHelmRenders(t *testing.T) {
	const tool = "../../.cache/helm/3.22.0/helm"
	if _, err := os.Stat(tool); err != nil {
		t.Fatal("Helm is not built: run `make helm`")
	}
	template := func(args ...string) (string, error) {
		out, err := exec.Command(tool, append([]string{"template", "hopscope", helm, "--namespace", "hopscope", "--kube-version", "1.34.0"}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := exec.Command(tool, "lint", "--strict", helm).CombinedOutput(); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
	rendered, err := template()
	if err != nil {
		t.Fatal(rendered)
	}
	got, want := chartObjects(t, rendered), map[string]string{}
	var k struct{ Resources []string }
	unmarshal(t, kubernetes+"kustomization.yaml", &k)
	for _, name := range k.Resources {
		maps.Copy(want, chartObjects(t, readText(t, kubernetes+name)))
	}
	delete(want, "Namespace hopscope")         // Helm's own
	delete(got, "ConfigMap hopscope-settings") // TestHelmChart compares the settings
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is\n%s\nin the chart, and in the manifests\n%s", name, got[name], text)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("the chart has %s too", name)
	}
	var config struct{ Data map[string]string }
	_, text, _ := strings.Cut(rendered, "kind: ConfigMap\n")
	text, _, _ = strings.Cut(text, "\n---\n")
	if err := yaml.Unmarshal([]byte(text), &config); err != nil || len(config.Data) != 3 {
		t.Fatalf("%v in the map of settings\n%s", err, text)
	}
	for name, text := range config.Data {
		var a, b any
		unmarshal(t, kubernetes+"settings/"+name, &a)
		if err := yaml.Unmarshal([]byte(text), &b); err != nil || canonical(t, a) != canonical(t, b) {
			t.Errorf("%v: %s is\n%s", err, name, text)
		}
	}

	// Collectors that read interfaces of the node.
	for capture, caps := range map[string]string{"afpacket": "add: [NET_RAW] }", "afxdp": "add: [NET_RAW, NET_ADMIN, BPF] }"} {
		out, err := template("--set", "collector.capture="+capture)
		if err != nil || strings.Count(out, caps) != 1 || strings.Count(out, "hostNetwork: true") != 1 || strings.Count(out, "runAsUser: 0") != 1 {
			t.Errorf("%s: %v\n%s", capture, err, out)
		}
	}

	// Collectors alone, without Kafka.
	alone, err := template("--set", "fleet=false,settings.collector.kafka=null,collector.storageClassName=fast,collector.service.type=NodePort,nodeSelector.disk=ssd")
	if err != nil {
		t.Fatal(alone)
	}
	list := slices.Sorted(maps.Keys(chartObjects(t, alone)))
	if want := []string{
		"ConfigMap hopscope-settings", "NetworkPolicy hopscope-all", "NetworkPolicy hopscope-collector", "NetworkPolicy hopscope-nothing", "NetworkPolicy hopscope-page",
		"NetworkPolicy hopscope-store", "PodDisruptionBudget hopscope-collector", "Service hopscope-collectors", "Service hopscope-reports", "StatefulSet hopscope-collector",
	}; !slices.Equal(list, want) {
		t.Errorf("collectors alone are %q", list)
	}
	for _, text := range []string{"storageClassName: fast", "type: NodePort", "disk: ssd"} {
		if !strings.Contains(alone, text) {
			t.Errorf("collectors alone have no %q", text)
		}
	}
	if strings.Contains(alone, "kafka") {
		t.Error("collectors alone speak of Kafka")
	}

	text = readText(t, helm+"values.yaml")
	for _, test := range wrongValues {
		values := writeFile(t, strings.Replace(text, test.old, test.new, 1))
		args := []string{"--values", values}
		if test.new == "" { // a key that is missing is that of the chart
			args = []string{"--set", "settings.collector.web.token_file=null"}
		}
		if out, err := template(args...); err == nil || !strings.Contains(out, "values don't meet the specifications of the schema") {
			t.Errorf("%s: %v\n%s", test.name, err, out)
		}
	}
}

// chartObjects are those of a stream of YAML by kind and name, without what Helm and kustomize add to each in their own way.
func chartObjects(t *testing.T, stream string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for d := yaml.NewDecoder(strings.NewReader(stream)); ; {
		var o map[string]any
		err := d.Decode(&o)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if o == nil {
			continue
		}
		meta := o["metadata"].(map[string]any)
		delete(meta, "labels")
		name := regexp.MustCompile(`-\d+$`).ReplaceAllString(meta["name"].(string), "")
		meta["name"] = name
		text := canonical(t, o)
		text = regexp.MustCompile(`(?s)\n *"annotations": \{[^}]*\},`).ReplaceAllString(text, "")
		text = regexp.MustCompile(`"image": "[^"]*"`).ReplaceAllString(text, `"image": "hopscope"`)
		out[o["kind"].(string)+" "+name] = text
	}
}
