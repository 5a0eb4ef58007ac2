package planner_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDeps holds the border of the room: a plan follows from topology, inputs and seed alone, and planners meet neither
// decoders nor the network. Only topo/load reads files and YAML.
func TestDeps(t *testing.T) {
	const module = "github.com/hopscope/hopscope/"
	forbidden := map[string]string{
		"net":       "planning does no I/O",
		"os":        "planning does no I/O",
		"time":      "a clock comes in as a function that says stop",
		"log":       "packages return errors; the program logs",
		"log/slog":  "packages return errors; the program logs",
		"math/rand": "generators are math/rand/v2, with a seed that is an argument",
		"context":   "nothing here waits",
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{join .Imports \" \"}}{{end}}", module+"planner/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], module+"planner") || fields[0] == module+"planner/topo/load" {
			continue
		}
		for _, path := range fields[1:] {
			switch first, _, _ := strings.Cut(path, "/"); {
			case forbidden[path] != "" && !(path == "time" && fields[0] == module+"planner/topo"): // a link has a delay
				t.Errorf("%s imports %s: %s", fields[0], path, forbidden[path])
			case strings.HasPrefix(path, module) && !strings.HasPrefix(path, module+"planner"):
				t.Errorf("%s imports %s: planners know planners and nothing else", fields[0], path)
			case path == module+"planner/topo/load":
				t.Errorf("%s imports %s: topologies are arguments", fields[0], path)
			case !strings.HasPrefix(path, module) && strings.Contains(first, "."):
				t.Errorf("%s imports %s: planning needs no module of others", fields[0], path)
			}
		}
	}
}
