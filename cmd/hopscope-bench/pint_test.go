package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func TestBenchPINT(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := pintCommand()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(&out)
		c.SetErr(&bytes.Buffer{})
		c.SetArgs(args)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	dir := filepath.Join(t.TempDir(), "plots")
	out, err := run("--figure", "5", "--runs", "20", "--seed", "7", "--format", "json", "--svg", dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := harness.Read(strings.NewReader(out))
	if err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	f := list[0]
	if f.Bench != "pint --figure=5 --runs=20 --seed=7" || *f.Seed != 7 || len(f.Tables) != 1 || len(f.Tables[0].Rows) == 0 || f.Version == "" || f.Machine.Cores < 1 {
		t.Errorf("figure 5 as JSON: %s", out)
	}
	plots, _ := filepath.Glob(filepath.Join(dir, "*.svg"))
	if len(plots) != 2 {
		t.Errorf("plots %v, want two", plots)
	}
	for _, p := range plots {
		wellFormed(t, p)
	}
	second, err := run("--figure", "5", "--runs", "20", "--seed", "7", "--format", "json")
	if err != nil || second != out {
		t.Errorf("the same seed gives another result (%v):\n%s\n%s", err, out, second)
	}
	table, err := run("--figure", "5", "--runs", "20")
	if err != nil || !strings.Contains(table, "Baseline") || !strings.Contains(table, "seed 1") {
		t.Errorf("table: %v\n%s", err, table)
	}
	table, err = run("--figure", "errors", "--row", "Kentucky Datalink, links: none", "--row", "Fat-tree k = 8, distances: IGP", "--runs", "20")
	if err != nil || strings.Count(table, "Errors of the map") != 2 || !strings.Contains(table, "\nIGP weights") || strings.Contains(table, "US Carrier") || strings.Contains(table, "detours") {
		t.Errorf("two rows: %v\n%s", err, table)
	}
	if _, err := run("--figure", "errors", "--row", "no such row"); err == nil || !strings.Contains(err.Error(), `"Kentucky Datalink, links: a node renumbered"`) {
		t.Errorf("no row: %v", err)
	}
	for _, args := range [][]string{{"--figure", "6"}, {"--row", "none"}, {"--runs", "-1"}, {"--format", "xml"}} {
		if _, err := run(args...); !errors.As(err, new(cli.UsageError)) {
			t.Errorf("bench pint %v: %v, want a usage error", args, err)
		}
	}
}
