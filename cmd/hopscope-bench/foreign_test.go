package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The examples, which are programs of another origin, stand in the tables of all benches that take one; a program that answers nonsense has lines
// that say so, and no table is lost.
func TestForeign(t *testing.T) {
	python, err := filepath.Abs("../../.cache/python/bin/python")
	if err != nil {
		t.Fatal(err)
	}
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
