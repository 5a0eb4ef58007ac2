package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/settings"
)

// config check and config print accept an old name and say so.
func TestRenamedSettings(t *testing.T) {
	before := renames
	defer func() { renames = before }()
	renames = []settings.Rename{{Old: "udp.threads", New: "udp.workers", Since: "0.4"}}
	path := writeFile(t, "udp:\n  threads: 3\n")
	for _, args := range [][]string{{"config", "check", path}, {"config", "print", path}} {
		c := rootCommand()
		var stdout, stderr bytes.Buffer
		c.SetOut(&stdout)
		c.SetErr(&stderr)
		c.SetArgs(args)
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := path + ": warning: line 2: udp.threads: is called udp.workers since version 0.4; the old name is read until 0.6\n"; stderr.String() != want {
			t.Errorf("%s says %q, want %q", args, &stderr, want)
		}
		if args[1] == "print" && !strings.Contains(stdout.String(), "  workers: 3\n") {
			t.Error("the old name has no effect")
		}
	}
}

// The renames can be, and none is older than it should be by the last release of the changelog.
func TestRenames(t *testing.T) {
	log, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	released := "0.0"
	if m := regexp.MustCompile(`(?m)^## \[?v?(\d+\.\d+)`).FindSubmatch(log); m != nil {
		released = string(m[1])
	}
	cfg := defaultConfig()
	for _, p := range settings.CheckRenames(&cfg, released) {
		t.Error(p)
	}
}
