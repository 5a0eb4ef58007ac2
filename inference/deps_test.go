package inference_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDeps holds the border of the room. The results of inference follow from its arguments alone, so that a recording
// and a seed give the same findings again.
func TestDeps(t *testing.T) {
	const module = "github.com/hopscope/hopscope/"
	allowed := []string{module + "inference", module + "decode", module + "sketches"}
	forbidden := map[string]string{
		"net":                      "inference does no I/O",
		"os":                       "inference does no I/O",
		"log":                      "packages return errors; the program logs",
		"log/slog":                 "packages return errors; the program logs",
		"math/rand":                "randomness is an argument",
		"math/rand/v2":             "randomness is an argument",
		"context":                  "nothing here waits",
		"github.com/goccy/go-yaml": "the program reads the configuration",
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{join .Imports \" \"}}{{end}}", module+"inference/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], module+"inference") {
			continue
		}
		for _, path := range fields[1:] {
			if reason := forbidden[path]; reason != "" {
				t.Errorf("%s imports %s: %s", fields[0], path, reason)
			}
			if !strings.HasPrefix(path, module) {
				if fields[0] == module+"inference/fleet" && path == "github.com/klauspost/compress/zstd" {
					continue // records of a fleet are compressed, on the goroutine that makes them and without any input or output
				}
				if strings.Contains(strings.SplitN(path, "/", 2)[0], ".") {
					t.Errorf("%s imports %s: inference needs no module of others", fields[0], path)
				}
				continue
			}
			ok := false
			for _, a := range allowed {
				ok = ok || path == a || strings.HasPrefix(path, a+"/")
			}
			if !ok {
				t.Errorf("%s imports %s: inference knows decode and sketches and nothing else", fields[0], path)
			}
		}
	}
}
