package planner_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/hopscope/hopscope/"

// TestDeps holds the borders of the room. A plan follows from topology, inputs and seed alone, planners meet neither
// decoders nor the network, and only topo/load reads files and YAML. Checks do not see the solvers that they check.
// Control, which is no family, uses that of attention alone, and no clock or network either: what it wants are values.
func TestDeps(t *testing.T) {
	imports := map[string][]string{}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"planner/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		imports[fields[0]] = fields[1:]
	}
	if len(imports) < 10 {
		t.Fatalf("go list names %d packages, want all of planner", len(imports))
	}
	families := 0
	for pkg, paths := range imports {
		if strings.HasSuffix(pkg, "/solve") {
			families++
		}
		for _, path := range paths {
			if why := forbidden(pkg, path, imports); why != "" {
				t.Errorf("%s imports %s: %s", pkg, path, why)
			}
		}
	}
	if families < 5 {
		t.Errorf("%d families have a package solve, want at least 5", families)
	}
}

// TestForbidden breaks every border once: the rules themselves must see it.
func TestForbidden(t *testing.T) {
	imports := map[string][]string{module + "planner/cover/solve": nil, module + "planner/delivery/solve": nil, module + "planner/attention/solve": nil}
	for _, tt := range []struct{ pkg, path string }{
		{"planner/cover", "planner/cover/solve"},
		{"planner/cover", "planner/delivery"},
		{"planner/cover/solve", "planner/delivery"},
		{"planner/cover/solve", "planner/delivery/solve"},
		{"planner", "planner/cover"},
		{"planner", "planner/cover/solve"},
		{"planner/topo", "planner"},
		{"planner/topo/load", "planner"},
		{"planner/cover", "planner/topo/load"},
		{"planner/cover/solve", "decode"},
		{"planner/cover", "planner/show"},
		{"planner/show", "planner/cover/solve"},
		{"planner/show", "planner/topo/load"},
		{"planner/control", "planner/cover"},
		{"planner/control", "planner/cover/solve"},
		{"planner/control", "planner/topo/load"},
		{"planner/control", "inference"},
		{"planner/control", "p4/agent"},
		{"planner/cover/solve", "planner/control"},
		{"planner/attention", "planner/control"},
		{"planner", "planner/control"},
		{"planner/opt", "planner/topo"},
		{"planner/opt", "planner"},
		{"planner/opt/postman", "planner/topo"},
	} {
		if forbidden(module+tt.pkg, module+tt.path, imports) == "" {
			t.Errorf("%s may import %s, want an error", tt.pkg, tt.path)
		}
	}
	for _, tt := range []struct{ pkg, path string }{
		{"planner/cover/solve", module + "planner/cover"},
		{"planner/cover/solve", module + "planner"},
		{"planner/cover", module + "planner/topo"},
		{"planner/topo/load", module + "planner/topo"},
		{"planner/topo/load", "os"},
		{"planner/topo", "time"},
		{"planner/topo", module + "planner/opt"},
		{"planner", module + "planner/opt"},
		{"planner/cover/solve", module + "planner/opt/postman"},
		{"planner/opt/postman", module + "planner/opt"},
		{"planner/show", "time"},
		{"planner/show", module + "planner/cover"},
		{"planner/control", module + "planner"},
		{"planner/control", module + "planner/topo"},
		{"planner/control", module + "planner/attention"},
		{"planner/control", module + "planner/attention/solve"},
	} {
		if why := forbidden(module+tt.pkg, tt.path, imports); why != "" {
			t.Errorf("%s must not import %s: %s; want it allowed", tt.pkg, tt.path, why)
		}
	}
}

// forbidden returns why a package of the room must not import another, or nothing.
func forbidden(pkg, path string, imports map[string][]string) string {
	pkg = strings.TrimPrefix(pkg, module)
	loads := pkg == "planner/topo/load" // the one package that reads files
	path, ours := strings.CutPrefix(path, module)
	if !ours {
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && !loads {
			return "planning needs no module of others"
		}
		if loads || path == "time" && (pkg == "planner/topo" || pkg == "planner/show") { // a link has a delay
			return ""
		}
		if pkg == "planner/control" && strings.HasPrefix(path, "sync") {
			return "control is one goroutine's at a time"
		}
		return map[string]string{
			"net":       "planning does no I/O",
			"os":        "planning does no I/O",
			"time":      "a clock comes in as a function that says stop",
			"log":       "packages return errors; the program logs",
			"log/slog":  "packages return errors; the program logs",
			"math/rand": "generators are math/rand/v2, with a seed that is an argument",
			"context":   "nothing here waits",
		}[path]
	}
	// What is a family, and whose solvers these are, follows from the tree: a new family needs no line here.
	family := func(p string) string {
		base := strings.TrimSuffix(p, "/solve")
		if _, ok := imports[module+base+"/solve"]; ok {
			return base
		}
		return ""
	}
	from, to := family(pkg), family(path)
	switch {
	case path != "planner" && !strings.HasPrefix(path, "planner/"):
		return "planners know planners and nothing else"
	case path == "planner/topo/load":
		return "topologies are arguments"
	case path == "planner/show":
		return "plans know nothing of how they are shown or compared"
	case pkg == "planner/show":
		if strings.HasSuffix(path, "/solve") {
			return "a plan is shown and compared whoever made it"
		}
	case path == "planner/control":
		return "plans know nothing of who steers by them"
	case pkg == "planner/control":
		if to != "" && to != "planner/attention" {
			return "control steers attention; other plans are events"
		}
	case strings.HasPrefix(pkg, "planner/opt"):
		if path != "planner/opt" {
			return "algorithms know nothing of what they are used for"
		}
	case strings.HasPrefix(path, "planner/opt"):
	case pkg == "planner/topo":
		return "graphs know nothing of ours but algorithms"
	case loads:
		if path != "planner/topo" {
			return "topologies know graphs and no plans"
		}
	case pkg == "planner" && to != "":
		return "what is common to families knows none of them"
	case strings.HasSuffix(path, "/solve") && path == pkg+"/solve":
		return "a check must not see the solver that it checks"
	case to != "" && to != from:
		return "families do not know each other"
	}
	return ""
}
