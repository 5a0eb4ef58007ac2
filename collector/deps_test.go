package collector

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// below lists the packages of the engine, each with the others that it may import. Values go down, and none imports
// the engine, which makes them all.
var below = map[string][]string{
	"exporters": {},
	"inventory": {"settings"},
	"ledger":    {},
	"metrics":   {},
	"settings":  {},
	"summary":   {"ledger"},
	"stores":    {"ledger", "metrics", "settings"},
	"pipeline":  {"exporters", "ledger", "settings"},
	"windows":   {"ledger", "pipeline", "stores", "summary"},
	"fleet":     {"inventory", "ledger", "metrics", "stores", "summary"},
}

// Arrows between the packages of the engine go one way.
func TestPackages(t *testing.T) {
	const here = "github.com/hopscope/hopscope/collector/"
	args := []string{"list", "-f", `{{.ImportPath}} {{join .Imports " "}}`}
	for name := range below {
		args = append(args, "./"+name)
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], here)
		for _, dep := range fields[1:] {
			if dep == strings.TrimSuffix(here, "/") {
				t.Errorf("%s imports the engine, which makes it", name)
			}
			if other, ours := strings.CutPrefix(dep, here); ours && !slices.Contains(below[name], other) {
				t.Errorf("%s imports %s, which is not below it", name, other)
			}
		}
	}
}
