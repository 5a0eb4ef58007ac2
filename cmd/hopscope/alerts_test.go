package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/docs"
	"github.com/hopscope/hopscope/inference"
)

const (
	alertRules = deploy + "prometheus/hopscope.rules.yml"
	alertTests = deploy + "prometheus/hopscope.rules.test.yml"
)

type alertRule struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

func loadAlerts(t *testing.T) []alertRule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alertRule }
	}
	unmarshal(t, alertRules, &file)
	var rules []alertRule
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) == 0 {
		t.Fatalf("%s has no rules", alertRules)
	}
	return rules
}

// alertMetrics are metrics of every program, or of its scraper.
var alertMetrics = []string{"up", "process_start_time_seconds", "process_resident_memory_bytes", "go_gc_gomemlimit_bytes"}

// Every metric and every label in the rules and in their tests is one that the program has.
func TestAlertsNameMetrics(t *testing.T) {
	cfg := defaultConfig()
	known := map[string][]string{}
	for _, m := range slices.Concat(collector.Metrics(&cfg), fleetMetrics, historyMetrics) {
		known[m.Name] = append(slices.Clone(m.Labels), "job", "instance")
	}
	for _, name := range alertMetrics {
		known[name] = []string{"job", "instance"}
	}
	var (
		metric = regexp.MustCompile(`\b(?:hopscope|process|go)_[a-z_]+\b|\bup\b`)
		use    = regexp.MustCompile(`\b((?:hopscope|process|go)_[a-z_]+|up)\{([^}]*)\}`)
		label  = regexp.MustCompile(`(\w+) *(?:=~|!~|!=|=)`)
		value  = regexp.MustCompile(`\$labels\.(\w+)`)
	)
	check := func(where, text string) (labels []string) {
		for _, name := range metric.FindAllString(text, -1) {
			if known[name] == nil {
				t.Errorf("%s: there is no metric %s", where, name)
			}
			labels = append(labels, known[name]...)
		}
		for _, m := range use.FindAllStringSubmatch(text, -1) {
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(known[m[1]], l[1]) {
					t.Errorf("%s: %s has no label %s", where, m[1], l[1])
				}
			}
		}
		return labels
	}
	for _, r := range loadAlerts(t) {
		labels := check(r.Alert, r.Expr)
		for _, key := range []string{"summary", "description"} {
			if r.Annotations[key] == "" {
				t.Errorf("%s has no %s", r.Alert, key)
			}
			for _, m := range value.FindAllStringSubmatch(r.Annotations[key], -1) {
				if !slices.Contains(labels, m[1]) {
					t.Errorf("%s: %s names the label %s, which the expression has not", r.Alert, key, m[1])
				}
			}
		}
		checkRunbook(t, &r)
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s is of severity %q", r.Alert, s)
		}
	}
	tests, err := os.ReadFile(alertTests)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(tests)) {
		if series, ok := strings.CutPrefix(strings.TrimSpace(line), "- {series: "); ok {
			check(alertTests, series)
		}
	}
}

// checkRunbook checks that the runbook of a rule is a section of a page that the program shows. Of a kind that the label
// has, all are.
func checkRunbook(t *testing.T, r *alertRule) {
	t.Helper()
	_, address, _ := strings.Cut(r.Annotations["runbook_url"], "/docs/")
	name, anchor, _ := strings.Cut(address, "#")
	page, ok := docs.Page(name)
	if !ok {
		t.Errorf("%s: runbook_url %q names no page that the program shows", r.Alert, r.Annotations["runbook_url"])
	}
	anchors := []string{anchor}
	if anchor == "{{ $labels.kind }}" {
		anchors = nil
		for _, k := range inference.Kinds() {
			anchors = append(anchors, k.String())
		}
	}
	var headings []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			headings = append(headings, docs.Anchor(strings.TrimLeft(line, "#")))
		}
	}
	for _, a := range anchors {
		if !slices.Contains(headings, a) {
			t.Errorf("%s: docs/%s.md has no section %s", r.Alert, name, a)
		}
	}
}

// Every alert has a test in which it fires.
func TestAlertsAreTested(t *testing.T) {
	tests, err := os.ReadFile(alertTests)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range loadAlerts(t) {
		if !strings.Contains(string(tests), `alertname="`+r.Alert+`"`) {
			t.Errorf("%s fires in no test of %s", r.Alert, alertTests)
		}
	}
}
