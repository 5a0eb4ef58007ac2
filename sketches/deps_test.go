package sketches

import (
	"os/exec"
	"strings"
	"testing"
)

// Sketches do not depend on what they count, and do nothing but compute.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	const ours, self = "github.com/hopscope/hopscope/", "github.com/hopscope/hopscope/sketches"
	forbidden := map[string]string{
		"net":                                 "sketches do no input or output",
		"net/http":                            "sketches do no input or output",
		"log":                                 "leaf packages return errors, the program logs",
		"log/slog":                            "leaf packages return errors, the program logs",
		"math/rand":                           "chance comes from the caller's seed",
		"math/rand/v2":                        "chance comes from the caller's seed",
		"github.com/goccy/go-yaml":            "settings are read by the program",
		"github.com/apache/datasketches-go":   "it is what we compare with, in bench",
		"github.com/prometheus/client_golang": "the program registers metrics",
	}
	packages := strings.Fields(string(out))
	if len(packages) < 20 {
		t.Fatalf("go list names %d packages, want all that sketches are made of", len(packages))
	}
	for _, p := range packages {
		if strings.HasPrefix(p, ours) && p != self && !strings.HasPrefix(p, self+"/") {
			t.Errorf("%s: sketches import nothing of ours outside", p)
		}
		for f, why := range forbidden {
			if p == f || strings.Contains(f, ".") && strings.HasPrefix(p, f+"/") {
				t.Errorf("%s: %s", p, why)
			}
		}
	}
}
