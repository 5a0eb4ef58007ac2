package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hopscope/hopscope/"

// rooms are the folders at the top, with what each may import of the others: its own inner packages, and what lies below
// it. What a room holds to beyond that stands in tests of its own. Only tests and what is measured import internal.
var rooms = map[string][]string{
	"docs":      {}, // pages that the program shows
	"sketches":  {},
	"decode":    {},
	"ingest":    {},
	"inference": {"decode", "sketches"},
	"planner":   {},
	"sink":      {"decode", "docs", "inference", "sketches"},
	"p4":        {"decode", "inference", "planner", "sketches"},
	"collector": {"decode", "inference", "ingest", "sink", "sketches"},
	"internal":  {"decode", "inference", "ingest", "p4", "planner", "sink", "sketches"}, // what tests of several rooms share
	"bench":     {"collector", "decode", "inference", "ingest", "internal", "p4", "planner", "sink", "sketches"},
	"cmd":       {"bench", "collector", "decode", "docs", "inference", "ingest", "p4", "planner", "sink", "sketches"},
}

// byName are rooms of which another one may know the interfaces alone: no source and no store by its name.
var byName = map[string][]string{
	"collector": {"ingest/", "sink/"},
}

// shared are packages that other rooms may import although their room is not below.
var shared = map[string][]string{
	"ingest/kafka": {"sink"},                    // both ends of Kafka connect alike
	"ingest/peer":  {"p4", "sink"},              // all connections read secrets alike, and hear why they end
	"ingest/retry": {"collector", "p4", "sink"}, // all that may pass is tried again in the same way
	"sink/flock":   {"p4"},                      // what writes a file keeps it to one process, and durable
}

// withInference are the packages of p4 in which plans meet what was seen. The others know plans and packets alone.
var withInference = []string{"p4/steer"}

// exceptions are packages of such a room that are no source and no store.
var exceptions = []string{"ingest/retry", "sink/flock", "sink/notify", "sink/spool"}

// TestProduct holds that the program links nothing that only measures or only tests.
func TestProduct(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"cmd/hopscope").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if pkg, ours := strings.CutPrefix(strings.TrimSpace(line), module); ours && (strings.HasPrefix(pkg, "bench/") || strings.HasPrefix(pkg, "internal/")) {
			t.Errorf("hopscope links %s", pkg)
		}
	}
}

// No import runs upward, and so none in a circle.
func TestRooms(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		room, _, _ := strings.Cut(pkg, "/")
		below, ok := rooms[room]
		if !ok {
			t.Errorf("%s is in no room", pkg)
		}
		seen[room] = true
		for _, dep := range fields[1:] {
			dep, ours := strings.CutPrefix(dep, module)
			if !ours {
				continue
			}
			if from, _, _ := strings.Cut(dep, "/"); from != room && !slices.Contains(below, from) && !slices.Contains(shared[dep], room) {
				t.Errorf("%s imports %s: %s is not below %s", pkg, dep, from, room)
			}
			if room == "p4" && (strings.HasPrefix(dep, "inference") || strings.HasPrefix(dep, "sketches")) && !slices.Contains(withInference, pkg) {
				t.Errorf("%s imports %s: of p4 only %q know what was seen", pkg, dep, withInference)
			}
			for _, named := range byName[room] {
				if strings.HasPrefix(dep, named) && !slices.Contains(exceptions, dep) {
					t.Errorf("%s imports %s: it is to know interfaces, and no part by its name", pkg, dep)
				}
			}
		}
	}
	for room := range rooms {
		if !seen[room] {
			t.Errorf("the room %s has no package", room)
		}
	}
}

// Nothing is at the top but the rooms and what belongs to the whole, and the two programs and what they share below cmd.
func TestTop(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	beside := []string{"go.mod", "go.sum", "Makefile", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "SUPPORT.md", "LICENSE", "docs", "deploy", "bin", "dist"}
	for _, e := range entries {
		_, room := rooms[e.Name()]
		if !room && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(beside, e.Name()) {
			t.Errorf("%s is at the top, where only rooms are", e.Name())
		}
	}
	commands, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if !slices.Contains([]string{"hopscope", "hopscope-bench", "internal"}, c.Name()) {
			t.Errorf("cmd/%s: the programs are hopscope and hopscope-bench", c.Name())
		}
	}
}
