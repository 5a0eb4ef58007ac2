package p4_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var programs = []string{"srint", "intmd", "into", "pint", "rft", "hopscope"}

var include = regexp.MustCompile(`(?m)^#include "(.*)"$`)

// sources is a program and all that it includes, in the order in which compile.sh hashes them.
func sources(t *testing.T, program string) []string {
	t.Helper()
	included := included(t, program+".p4")
	slices.Sort(included)
	return append([]string{program + ".p4"}, slices.Compact(included)...)
}

// included is what a source includes, and what that includes.
func included(t *testing.T, source string) (list []string) {
	t.Helper()
	for _, m := range include.FindAllSubmatch(read(t, source), -1) {
		next := path.Join(path.Dir(source), string(m[1]))
		list = append(append(list, next), included(t, next)...)
	}
	return list
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// The programs for switches were compiled from the sources that are here.
func TestCompiled(t *testing.T) {
	recorded := map[string][]string{}
	for line := range strings.Lines(string(read(t, "bmv2/SOURCES"))) {
		f := strings.Fields(line)
		if len(f) != 3 {
			t.Fatalf("bmv2/SOURCES: %q, want a name and two hashes", line)
		}
		recorded[f[0]] = f[1:]
	}
	for _, program := range programs {
		var all []byte
		for _, name := range sources(t, program) {
			all = append(all, read(t, name)...)
		}
		for _, made := range []string{program + ".json", program + ".p4info.txtpb"} {
			h, ok := recorded[made]
			if !ok {
				t.Fatalf("bmv2/SOURCES has no line for %s", made)
			}
			if h[0] != sum(all) {
				t.Errorf("bmv2/%s is of other sources than %s.p4 and its includes: run p4/compile.sh", made, program)
			}
			if h[1] != sum(read(t, "bmv2/"+made)) {
				t.Errorf("bmv2/%s is not what the compiler wrote: run p4/compile.sh", made)
			}
		}
		delete(recorded, program+".json")
		delete(recorded, program+".p4info.txtpb")
	}
	if len(recorded) > 0 {
		t.Errorf("bmv2/SOURCES names %v, which nothing makes", recorded)
	}
}

// A program for BMv2, as far as these tests read it.
type compiled struct {
	Parsers []struct {
		States []struct {
			Name string `json:"name"`
		} `json:"parse_states"`
	} `json:"parsers"`
	Pipelines []struct {
		Name   string `json:"name"`
		Tables []struct {
			Name    string   `json:"name"`
			Actions []string `json:"actions"`
		} `json:"tables"`
	} `json:"pipelines"`
}

// Programs draw no random numbers, and let no controller write a register: vectors could not be replayed, and P4Runtime
// cannot write them on BMv2.
func TestPrograms(t *testing.T) {
	for _, program := range programs {
		var c compiled
		if err := json.Unmarshal(read(t, "bmv2/"+program+".json"), &c); err != nil {
			t.Fatalf("bmv2/%s.json: %v", program, err)
		}
		if len(c.Parsers) != 1 || len(c.Pipelines) != 2 || len(c.Pipelines[0].Tables) == 0 {
			t.Errorf("bmv2/%s.json: %d parsers, %d pipelines", program, len(c.Parsers), len(c.Pipelines))
		}
		if b := read(t, "bmv2/"+program+".json"); bytes.Contains(b, []byte(`"modify_field_rng_uniform"`)) {
			t.Errorf("%s draws random numbers", program)
		}
		for _, name := range sources(t, program) {
			if b := read(t, name); bytes.Contains(b, []byte("random(")) {
				t.Errorf("%s calls random", name)
			}
		}
	}
}
