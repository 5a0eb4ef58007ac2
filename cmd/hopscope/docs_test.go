package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the generated pages, and what the program must go on printing, anew")

// TestPages holds the generated pages against the program.
func TestPages(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"docs/configuration.md": writeSettingsPage,
		"docs/metrics.md":       writeMetricsPage,
		"docs/series.md":        writeSeriesPage,
		"deploy/hopscope.yaml":  writeExampleSettings,

		"docs/agent-settings.md": writeAgentSettingsPage,
		"deploy/agent.yaml":      writeAgentSettings,

		"docs/control-settings.md": writeControlSettingsPage,
		"deploy/control.yaml":      writeControlSettings,
	} {
		var want bytes.Buffer
		if err := write(&want); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "..", filepath.FromSlash(name))
		if *update {
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s differs from what the program says (%v); write it with: make docs", name, err)
		}
	}
}
