package main

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/p4/steer"
)

// controlReloadable are the keys of the settings that a running control takes over: what is steered, and not how.
var controlReloadable = []string{"topology", "first_node_id", "plan.probes", "plan.schedule", "plan.interval", "agents", "switches"}

// controlFiles are the settings of a control, which are read again at SIGHUP.
type controlFiles struct {
	path   string
	hangup <-chan struct{}
	now    atomic.Pointer[controlConfig] // those in force
	last   atomic.Pointer[steer.Network] // and the network that they name
}

func newControlFiles(path string, hangup <-chan struct{}, cfg *controlConfig) *controlFiles {
	f := &controlFiles{path: path, hangup: hangup}
	f.now.Store(cfg)
	return f
}

// Read implements [steer.Settings].
func (f *controlFiles) Read() (files *steer.Files, adopt func(*steer.Network), restart []string, err error) {
	cfg, restart, err := f.read()
	if err != nil {
		return nil, nil, nil, err
	}
	return cfg.network(), func(x *steer.Network) { f.now.Store(cfg); f.last.Store(x) }, restart, nil
}

// Report implements [steer.Settings].
func (f *controlFiles) Report(x *steer.Network, restart []string, log *slog.Logger) {
	n := x.Control
	log.Info("settings reloaded", "file", f.path, "network", n.Name, "agents", len(n.Agents), "switches", len(n.Switches), "probes", len(n.Probes))
	if len(restart) > 0 {
		log.Warn("changed settings that need a restart", "keys", strings.Join(restart, ", "))
	}
}

// read returns the settings of the file, as far as a running control adopts them, and the changed keys that it does not
// adopt.
func (f *controlFiles) read() (*controlConfig, []string, error) {
	next, err := readControlConfig(f.path)
	if err != nil {
		return nil, nil, err
	}
	old := f.now.Load()
	restart := slices.DeleteFunc(settings.Diff(old, &next), func(key string) bool { return settings.Below(key, controlReloadable...) })
	cfg := *old
	cfg.Topology, cfg.FirstNode, cfg.Agents, cfg.Switches = next.Topology, next.FirstNode, next.Agents, next.Switches
	cfg.Files.Probes, cfg.Files.Schedule, cfg.Files.Interval = next.Files.Probes, next.Files.Schedule, next.Files.Interval
	return &cfg, restart, settings.Check(&cfg)
}
