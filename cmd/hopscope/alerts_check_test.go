//go:build check

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// promtool runs Prometheus' own tool in dir.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	tool, err := filepath.Abs("../../.cache/promtool/0.315.0/promtool")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool); err != nil {
		t.Fatal("promtool is not built: run `make promtool`")
	}
	c := exec.Command(tool, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Prometheus' own tool takes the rules, and they fire when they should and only then.
func TestAlertsFire(t *testing.T) {
	promtool(t, filepath.Dir(alertRules), "check", "rules", filepath.Base(alertRules))
	promtool(t, filepath.Dir(alertRules), "test", "rules", filepath.Base(alertTests))
}

// The same for the rules of a fleet.
func TestFleetAlertsFire(t *testing.T) {
	promtool(t, filepath.Dir(fleetRules), "check", "rules", filepath.Base(fleetRules))
	promtool(t, filepath.Dir(fleetRules), "test", "rules", filepath.Base(fleetTests))
}

// The queries of the dashboard are ones that Prometheus takes.
func TestFleetDashboardParses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "queries.yml"), []byte(fleetQueries(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "queries.yml")
}
