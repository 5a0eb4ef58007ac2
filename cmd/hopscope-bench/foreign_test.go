package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The examples are programs of another origin, and have lines in the tables of all benches that take one. A program
// with invalid answers has lines that say so, and no table is lost.
func TestForeign(t *testing.T) {
	testkit.Long(t)
	python := testkit.Python(t)
	nonsense := filepath.Join(t.TempDir(), "nonsense.py")
	if err := os.WriteFile(nonsense, []byte("print('nonsense')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ args, script, want, failed string }{
		{"planner attention --time-limit 1s", "planner.py", "the best there is", "no plan: "},
		{"pint --runs 2", "decoder.py", "Fat-tree k = 8, 5 hops, 2 × 8 bits, 2 packets", "no paths: "},
		{"findings --hops 1", "detector.py", "lognormal 0.5, 200 values, × 4 ", "no findings: "},
		{"loop --fault link-down", "suspects.py", "theirs", "no suspects: "},
	} {
		run := func(script string) string {
			t.Helper()
			var b bytes.Buffer
			root := rootCommand()
			root.SetOut(&b)
			root.SetErr(&bytes.Buffer{})
			root.SetArgs(append(strings.Fields(x.args), "--algorithm", python+" "+script))
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Errorf("%s with %s: %v", x.args, script, err)
			}
			return b.String()
		}
		if out := run("../../docs/examples/" + x.script); !strings.Contains(out, x.want) || strings.Contains(out, x.failed) {
			t.Errorf("%s with %s: %s", x.args, x.script, out)
		}
		if out := run(nonsense); !strings.Contains(out, x.failed+"the answer, ") {
			t.Errorf("%s with nonsense: %s", x.args, out)
		}
	}
}

// An interrupted table has the lines that were there: here the first, of a program that answers once and hangs then.
func TestForeignInterrupted(t *testing.T) {
	python := testkit.Python(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("once.py", []byte(`import os, sys, time
if os.path.exists("first"):
    open("second", "w")
    time.sleep(1e6)
open("first", "w")
sys.exit("not today")
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"planner attention --time-limit 1h", "pint --runs 1 --time-limit 1h", "findings --hops 1 --time-limit 1h"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				if _, err := os.Stat("second"); err == nil {
					cancel()
				}
				time.Sleep(time.Millisecond)
			}
		}()
		var b bytes.Buffer
		root := rootCommand()
		root.SetOut(&b)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs(append(strings.Fields(args), "--algorithm", python+" once.py"))
		if err := root.ExecuteContext(ctx); err == nil || err.Error() != "interrupted" || strings.Count(b.String(), "not today") != 1 {
			t.Errorf("%s: %v\n%s", args, err, b.String())
		}
		cancel()
		for _, name := range []string{"first", "second"} {
			if err := os.Remove(name); err != nil {
				t.Error(err)
			}
		}
	}
}
