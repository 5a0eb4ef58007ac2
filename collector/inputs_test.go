package collector

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/ingest/pcapfile"
	"github.com/hopscope/hopscope/internal/testkit"
)

// A capture that can no longer be read is a problem of the collector. It is a sentence in /readyz, on the page and in
// the console of a fleet.
func TestInputProblems(t *testing.T) {
	capture, err := os.ReadFile("../decode/testdata/fabric-report05.pcap")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "growing.pcap")
	if err := os.WriteFile(path, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := pcapfile.DefaultFollowConfig()
	cfg.Files = []string{path}
	source, err := cfg.Open()
	if err != nil {
		t.Fatal(err)
	}
	c := newEngine(t, nil, Options{Sources: []Source{{Name: "pcap", Source: source}}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	problem := func() string { return strings.Join(c.Status().Problems, "\n") }
	testkit.Until(t, "the capture was read", func() bool { return c.Summary(1, 1).Reports > 0 })
	if p := problem(); strings.Contains(p, "pcap") {
		t.Errorf("problems before the damage: %s", p)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(strings.Repeat("\xff", 64))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "a problem was named", func() bool { return strings.Contains(problem(), "pcap: ") && strings.Contains(problem(), path) })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
