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

// config check accepts a key that means nothing any more and says what has taken its place.
func TestRetiredSettings(t *testing.T) {
	path := writeFile(t, "events:\n  threshold: 9\n  false_a_day: 3\n")
	c := rootCommand()
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs([]string{"config", "check", path})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := path + ": warning: line 2: events.threshold: is not read any more: " + limitsOfHops + "\n"
	if !strings.Contains(stderr.String(), want) {
		t.Errorf("config check says %q, want %q", &stderr, want)
	}
}

// config check says when limits are beyond what was measured.
func TestExtrapolatedLimits(t *testing.T) {
	for text, warned := range map[string]bool{"events:\n  false_a_day: 0.1\n": true, "events:\n  false_a_day: 5\n": false, "window: 5s\n": false} {
		c := rootCommand()
		var stdout, stderr bytes.Buffer
		c.SetOut(&stdout)
		c.SetErr(&stderr)
		c.SetArgs([]string{"config", "check", writeFile(t, text)})
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(stderr.String(), "if more than 4 statistics are judged: the limits are extrapolated. Latency, queue and utilisation of a hop are three, the latency of each of 100 busy flows") != warned {
			t.Errorf("config check of %q says %q", text, &stderr)
		}
	}
}
