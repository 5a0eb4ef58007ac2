package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/p4/loop"
)

const (
	fleetRules = deploy + "prometheus/fleet.rules.yml"
	fleetTests = deploy + "prometheus/fleet.rules.test.yml"
)

// metricRooms are the packages that publish the metrics of a fleet, by what their names begin with.
var metricRooms = map[string]string{"hopscope_fleet_": "cmd/hopscope", "hopscope_consume_": "collector/fleet"}

// metricIsMade reports whether the sources of the package that publishes a metric name it. Of a package that this build does not have
// nothing is known.
func metricIsMade(t *testing.T, name string) bool {
	t.Helper()
	for prefix, pkg := range metricRooms {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		dir := filepath.Join("../..", filepath.FromSlash(pkg))
		sources := 0
		found := false
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			sources++
			found = found || strings.Contains(readText(t, path), `"`+name+`"`)
			return nil
		})
		if os.IsNotExist(err) || err == nil && sources == 0 {
			t.Logf("%s is of %s, which is not there", name, pkg)
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	return false
}

// The alerts on a fleet name metrics of its members and explain their meaning. They are tested.
func TestFleetAlertsAreWhole(t *testing.T) {
	var file struct {
		Groups []struct{ Rules []alertRule }
	}
	unmarshal(t, fleetRules, &file)
	tests := readText(t, fleetTests)
	rules := file.Groups[0].Rules
	if len(rules) < 10 {
		t.Fatalf("%d rules", len(rules))
	}
	metric := regexp.MustCompile(`\bhopscope_[a-z_]+\b`)
	by := regexp.MustCompile(`\bby \(([^)]*)\)`)
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, r := range rules {
		for _, name := range metric.FindAllString(r.Expr, -1) {
			if !metricIsMade(t, name) {
				t.Errorf("%s: there is no metric %s", r.Alert, name)
			}
		}
		for _, key := range []string{"summary", "description"} {
			if r.Annotations[key] == "" {
				t.Errorf("%s has no %s", r.Alert, key)
			}
			for _, m := range label.FindAllStringSubmatch(r.Annotations[key], -1) {
				// Of a sum there are the labels that it is made by.
				if of := by.FindStringSubmatch(r.Expr); of != nil && !strings.Contains(", "+of[1]+",", ", "+m[1]+",") {
					t.Errorf("%s: %s names the label %s, which the expression has not", r.Alert, key, m[1])
				}
			}
		}
		checkRunbook(t, &r)
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s is of severity %q", r.Alert, s)
		}
		if !strings.Contains(tests, `alertname="`+r.Alert+`"`) {
			t.Errorf("%s fires in no test of %s", r.Alert, fleetTests)
		}
	}
}

// The dashboard of a fleet is whole, and its queries name metrics that members and controls have.
func TestFleetDashboard(t *testing.T) { fleetQueries(t) }

// fleetQueries checks the dashboard of a fleet and returns its queries as a file of recording rules, for Prometheus' own parser.
func fleetQueries(t *testing.T) (rules string) {
	t.Helper()
	var d struct {
		Panels []struct {
			Type, Title, Description string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct {
				Expr       string
				Datasource struct{ Type, UID string }
			}
		}
	}
	if err := json.Unmarshal([]byte(readText(t, deploy+"grafana/hopscope-fleet.json")), &d); err != nil {
		t.Fatal(err)
	}
	cfg := defaultConfig()
	var known []string
	for _, m := range collector.Metrics(&cfg) {
		known = append(known, m.Name)
	}
	known = append(append(known, alertMetrics...), controlDevices.Name)
	for i := range loop.Metrics {
		known = append(known, loop.Metrics[i].Name)
	}
	taken := map[[2]int]string{}
	queries := 0
	var b strings.Builder
	for _, p := range d.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or leaves the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("panel %q has no query or no description", p.Title)
		}
		for _, target := range p.Targets {
			queries++
			if target.Datasource.UID != "${datasource}" || target.Datasource.Type != "prometheus" {
				t.Errorf("panel %q names its own data source", p.Title)
			}
			names := regexp.MustCompile(`\b(?:hopscope|process)_[a-z_]+\b`).FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("panel %q asks for nothing", p.Title)
			}
			for _, name := range names {
				if name = strings.TrimSuffix(name, "_bucket"); !slices.Contains(known, name) && !metricIsMade(t, name) {
					t.Errorf("panel %q: there is no metric %s", p.Title, name)
				}
			}
			fmt.Fprintf(&b, "      - {record: q%d, expr: %q}\n", queries, strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(target.Expr))
		}
	}
	return "groups:\n  - name: queries\n    rules:\n" + b.String()
}
