package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/internal/testkit"
)

// runBench runs a command and returns what it writes.
func runBench(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("hopscope-bench %q: %v", args, err)
	}
	return out.String()
}

// Benches write the same figures as text, JSON and CSV, with the machine, the version and the seed.
func TestFormats(t *testing.T) {
	testkit.Long(t)
	for _, args := range []string{
		"pint --figure loops --runs 5", "pipeline --flows 10 --reports 5000", "fleet --collectors 2 --flows 10 --reports 1000", "findings quiet --quiet 1",
		"findings world --scenario loss-host-port", "loop detection --fault link-down",
	} {
		list, err := harness.Read(strings.NewReader(runBench(t, strings.Fields(args+" --format json")...)))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		r := list[0]
		if len(r.Tables) == 0 || len(r.Tables[0].Rows) == 0 || r.Tables[0].Title == "" || r.Machine.System == "" || !strings.HasPrefix(r.Bench, "hopscope-bench "+strings.Fields(args)[0]) {
			t.Errorf("%s: %+v", args, r)
		}
		if drawn := !strings.HasPrefix(args, "pipeline") && !strings.HasPrefix(args, "fleet"); drawn != (r.Seed != nil) {
			t.Errorf("%s: seed %v", args, r.Seed)
		}
		var b bytes.Buffer
		if err := r.Write(&b, "csv"); err != nil {
			t.Fatal(err)
		}
		if lines, err := csv.NewReader(&b).ReadAll(); err != nil || len(lines) < 2 {
			t.Errorf("%s: %v, %q", args, err, lines)
		}
	}
	if text := runBench(t, "findings", "quiet", "--quiet", "1"); !strings.Contains(text, "\nBACKGROUND ") {
		t.Errorf("%s", text)
	}
}

// Two results of the same seed differ in nothing; those of many runs of two codings do.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, args ...string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(runBench(t, append(args, "--format", "json")...)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two := file("one.json", "pint", "--figure", "5", "--runs", "200"), file("two.json", "pint", "--figure", "5", "--runs", "200")
	if out := runBench(t, "compare", one, two); !strings.Contains(out, ": 0 figures changed beyond noise, ") || !strings.Contains(out, ", 0 differ with noise unknown, 0 are in one of the two alone") {
		t.Errorf("%s", out)
	}
	b, err := os.ReadFile(two)
	if err != nil {
		t.Fatal(err)
	}
	list, err := harness.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	rows := list[0].Tables[0].Rows
	rows[0][4], rows[2][4] = rows[2][4], rows[0][4] // the means of Baseline and Hybrid
	var changed bytes.Buffer
	if err := list[0].Write(&changed, "json"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(two, changed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out := runBench(t, "compare", one, two)
	if !strings.Contains(out, ": 2 figures changed beyond noise, ") || !strings.Contains(out, "Baseline") {
		t.Errorf("%s", out)
	}
	if out := runBench(t, "compare", one, two, "--format", "json"); !strings.Contains(out, `"row":"Baseline"`) {
		t.Errorf("%s", out)
	}
}

// The command of a result runs the same again.
func TestCommandLine(t *testing.T) {
	list, err := harness.Read(strings.NewReader(runBench(t, "pint", "--figure", "errors", "--row", "Kentucky Datalink, links: none", "--row", "[no] 'such row", "--row", "", "--runs", "2", "--format", "json")))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list[0].Bench, `hopscope-bench pint --figure=errors --row='Kentucky Datalink, links: none' --row='[no] '\''such row' --row='' --runs=2`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
