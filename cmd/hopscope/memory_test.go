package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/internal/testkit"
)

// The most that the defaults take is what a small machine has, and every part of it is named once.
func TestMemoryOfDefaults(t *testing.T) {
	cfg := defaultConfig()
	cfg.Shards = 4
	seen := map[string]bool{}
	for _, n := range collector.Memory(&cfg.Config, &cfg.Analysis, &cfg) {
		t.Logf("%6d MiB %s", n.Bytes>>20, n.Part)
		if seen[n.Part] || n.Bytes <= 0 {
			t.Errorf("part %q of %d bytes", n.Part, n.Bytes)
		}
		seen[n.Part] = true
	}
	for _, part := range []string{"flows", "exporters", "udp", "web", "batches on their way"} {
		if !seen[part] {
			t.Errorf("no part %q", part)
		}
	}
	all := cfg.memory()
	if all > 4<<30 || all < cfg.Flows.MemoryBytes {
		t.Errorf("the defaults take up to %d bytes", all)
	}
	cfg.Influx.Enabled = true
	if more := cfg.memory() - all; more < int64(cfg.Influx.Queue.MaxBytes) {
		t.Errorf("a store takes %d bytes more, less than its queue", more)
	}
	if text := memoryProblem(&cfg, all); !strings.Contains(text, "flows 512 MiB") {
		t.Errorf("problem: %q", text)
	}
	if text := memoryProblem(&cfg, 1<<40); text != "" {
		t.Errorf("problem with a tebibyte: %q", text)
	}
}

// Garbage is collected before it is as much as the tables of flows, and as usual where those are small. GOGC takes precedence.
func TestCollectSoon(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for _, c := range []struct {
		gogc  string
		flows int64
		want  int
	}{{"", 512 << 20, 12}, {"", 32 << 20, 100}, {"", 1 << 40, 1}, {"50", 512 << 20, 100}} {
		t.Setenv("GOGC", c.gogc)
		debug.SetGCPercent(100)
		var cfg config
		cfg.Flows.MemoryBytes = c.flows
		collectSoon(&cfg)
		if got := debug.SetGCPercent(100); got != c.want {
			t.Errorf("%+v: garbage is collected at %d percent", c, got)
		}
	}
}

// The first collection sets the runtime back to what it does by itself.
func TestCollectLater(t *testing.T) {
	t.Setenv("GOGC", "")
	var cfg config
	cfg.Flows.MemoryBytes = 512 << 20
	collectLater(&cfg)
	runtime.GC()
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(time.Millisecond) {
		percent := debug.SetGCPercent(100)
		if percent == 100 {
			return
		}
		debug.SetGCPercent(percent)
		if time.Now().After(end) {
			t.Fatalf("garbage is collected at %d percent, want 100", percent)
		}
	}
}
