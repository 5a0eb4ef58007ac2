package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// controlReloadable are the keys of the settings that a running control takes over: what is steered, and not how.
var controlReloadable = []string{"topology", "first_node_id", "plan.probes", "plan.schedule", "plan.interval", "agents", "switches"}

// controlFiles are the settings of a control, which are read again at SIGHUP.
type controlFiles struct {
	path   string
	hangup <-chan struct{}
	now    atomic.Pointer[controlConfig] // those in force
}

func newControlFiles(path string, hangup <-chan struct{}, cfg *controlConfig) *controlFiles {
	f := &controlFiles{path: path, hangup: hangup}
	f.now.Store(cfg)
	return f
}

// read gives the settings as they are in the file, as far as a running control takes them over, and the changed keys that it does not.
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

// steering is a control that runs, and follows its files.
type steering struct {
	files    *controlFiles
	x        *controlled
	loop     *loop.Loop
	server   *loop.Server
	switches *switchSide
	term     uint64
	log      *slog.Logger
}

// follow takes over the files at every SIGHUP, and lets go of switches that have left the network.
func (s *steering) follow(ctx context.Context) {
	t := time.NewTicker(s.files.now.Load().Loop.Cycle)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.letGo(ctx)
			continue
		case <-s.files.hangup:
		}
		restart, err := s.reload(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Error("settings not reloaded; the network and its plan stay what they are", "error", err.Error())
			continue
		}
		n := s.x.network
		s.log.Info("settings reloaded", "file", s.files.path, "network", n.Name, "agents", len(n.Agents), "switches", len(n.Switches), "probes", len(n.Probes))
		if len(restart) > 0 {
			s.log.Warn("changed settings that need a restart", "keys", strings.Join(restart, ", "))
		}
	}
}

// reload takes over what the files say now, or refuses all of it.
func (s *steering) reload(ctx context.Context) (restart []string, err error) {
	cfg, restart, err := s.files.read()
	var x *controlled
	if err == nil {
		x, err = readControlled(cfg)
	}
	late := &latePost{}
	var fresh map[string]p4rt.Installer
	if err == nil {
		fresh, err = s.switches.more(cfg, s.term, late.post, s.log)
	}
	if err != nil {
		s.loop.RefuseNetwork(err.Error())
		return nil, err
	}
	err = s.loop.Replace(ctx, loop.Replacement{Network: x.network, Probing: x.probing, Passes: x.links.passes, First: func() { s.x.suspects.follow(x.suspects) }})
	if err != nil {
		for name := range fresh {
			s.switches.forget(name)
		}
		return nil, err
	}
	for name, to := range fresh {
		s.switches.Serve(name, to)
	}
	late.to(s.loop.Post) // behind the network that they are of
	for _, name := range x.network.Switches {
		// It has come back before its connection was ended, so that nobody else says that it is there.
		if c := s.switches.clients[name]; fresh[name] == nil && !slices.Contains(s.x.network.Switches, name) && (c == nil || c.State().Set()) {
			s.loop.Post(control.Up{Device: control.Device{Kind: control.Switch, Name: name}})
		}
	}
	s.server.Allow(x.network.Agents)
	x.suspects = s.x.suspects // which findings go to, and which has followed
	s.x = x
	s.files.now.Store(cfg)
	return restart, nil
}

// passes reports whether a probe of a network before can take its way in this one.
func (d *directions) passes(p *planner.Probe) bool {
	return !slices.ContainsFunc(p.Links, func(l string) bool { _, ok := d.byName[l]; return !ok })
}

// letGo ends the connections of switches that the network has no more, when nothing of the controller is left there.
func (s *steering) letGo(ctx context.Context) {
	var left []string
	for name := range s.switches.opened {
		if !slices.Contains(s.x.network.Switches, name) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := s.loop.Status(ctx)
	if err != nil {
		return // the next time
	}
	for _, name := range left {
		if d := (control.Device{Kind: control.Switch, Name: name}); !slices.ContainsFunc(status.Devices, func(x control.DeviceStatus) bool { return x.Device == d }) {
			s.switches.Leave(name)
			s.switches.forget(name)
			s.log.Info("switch has left the network", "switch", name)
		}
	}
}

// more opens the switches that are new in the settings. Of those that are served already nothing but the entries may have changed.
func (s *switchSide) more(cfg *controlConfig, term uint64, post func(control.Event), log *slog.Logger) (map[string]p4rt.Installer, error) {
	fresh := map[string]p4rt.Installer{}
	var errs []error
	for i := range cfg.Switches {
		c := cfg.Switches[i]
		if old, ok := s.opened[c.Name]; ok {
			now := c
			now.Entries = old.Entries
			if !reflect.DeepEqual(now, old) {
				errs = append(errs, fmt.Errorf("switches[%d] (%s): only the entries of a switch can change while it is served; a restart takes the rest", i, c.Name))
			}
			continue
		}
		to, err := s.open(cfg, &c, term, post, log)
		if err != nil {
			errs = append(errs, fmt.Errorf("switches[%d] (%s): %w", i, c.Name, err))
			continue
		}
		fresh[c.Name] = to
	}
	if err := errors.Join(errs...); err != nil {
		for name := range fresh {
			s.forget(name)
		}
		return nil, err
	}
	return fresh, nil
}

// forget ends the connection to a switch.
func (s *switchSide) forget(name string) {
	if c := s.clients[name]; c != nil {
		_ = c.Close() // nothing of it could be lost any more
	}
	delete(s.clients, name)
	delete(s.opened, name)
}

// follow takes over another network, with what is known of the links that both have. It is called by who asks for suspects.
func (s *suspects) follow(next *suspects) {
	was := make([]int32, next.links.graph.NumInterfaces())
	for i := range was {
		was[i] = -1
		if next.links.graph.Peer(i) < 0 {
			continue
		}
		if old, ok := s.links.byName[next.links.name(i)]; ok {
			was[i] = int32(old)
		}
	}
	next.state.Inherit(s.state, was)
	s.links, s.state = next.links, next.state
	s.probes.follow(next.probes)
}
