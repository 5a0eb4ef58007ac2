package main

import (
	"cmp"
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
	"github.com/hopscope/hopscope/planner/control"
)

// controlReloadable are the keys of the settings that a running control takes over: what is steered, and not how.
var controlReloadable = []string{"topology", "first_node_id", "plan.probes", "plan.schedule", "plan.interval", "agents", "switches"}

// controlFiles are the settings of a control, which are read again at SIGHUP.
type controlFiles struct {
	path   string
	hangup <-chan struct{}
	now    atomic.Pointer[controlConfig] // those in force
	last   atomic.Pointer[controlled]    // and the network that they name
}

func newControlFiles(path string, hangup <-chan struct{}, cfg *controlConfig) *controlFiles {
	f := &controlFiles{path: path, hangup: hangup}
	f.now.Store(cfg)
	return f
}

// take reads the network that the files name now, and keeps it, or changes nothing.
func (f *controlFiles) take() (x *controlled, restart []string, err error) {
	cfg, restart, err := f.read()
	if err == nil {
		x, err = readControlled(cfg)
	}
	if err != nil {
		return nil, nil, err
	}
	f.now.Store(cfg)
	f.last.Store(x)
	return x, restart, nil
}

// said writes to the log what a reload came to.
func (f *controlFiles) said(x *controlled, restart []string, log *slog.Logger) {
	n := x.network
	log.Info("settings reloaded", "file", f.path, "network", n.Name, "agents", len(n.Agents), "switches", len(n.Switches), "probes", len(n.Probes))
	if len(restart) > 0 {
		log.Warn("changed settings that need a restart", "keys", strings.Join(restart, ", "))
	}
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
	hangup   <-chan struct{}
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
		case <-s.hangup:
		}
		restart, err := s.reload(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Error("settings not reloaded; the network and its plan stay what they are", "error", err.Error())
			continue
		}
		s.files.said(s.x, restart, s.log)
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
	var fresh map[string]*servedSwitch
	if err == nil {
		fresh, err = s.switches.more(cfg, s.term, late.post, s.log)
	}
	if err != nil {
		s.loop.RefuseNetwork(err.Error())
		return nil, err
	}
	err = s.loop.Replace(ctx, loop.Replacement{Network: x.network, Probing: x.probes.Sent, Passes: x.probes.Links.Passes, First: func() { s.x.suspects.Replace(x.suspects) }})
	if err != nil {
		for _, c := range fresh {
			c.close()
		}
		return nil, err
	}
	for name, c := range fresh {
		s.switches.forget(name) // where it was served for what it owed
		s.switches.served[name] = c
		s.switches.Serve(name, c.to)
	}
	late.to(s.loop.Post) // behind the network that they are of
	for name, c := range s.switches.served {
		in, was := slices.Contains(x.network.Switches, name), slices.Contains(s.x.network.Switches, name)
		if c.watch != nil {
			c.watch.left.Store(!in)
		}
		// It has come back before its connection was ended, so that nobody else says that it is there.
		if in && !was && fresh[name] == nil && c.there() {
			s.loop.Post(control.Up{Device: control.Device{Kind: control.Switch, Name: name}})
		}
	}
	s.server.Allow(x.network.Agents)
	x.suspects = s.x.suspects // which findings go to, and which has followed
	s.x = x
	s.files.now.Store(cfg)
	s.files.last.Store(x)
	return restart, nil
}

// letGo ends the connections of switches that the network has no more, when nothing of the controller is left there. One that cannot be
// reached is waited for, and cleaned when it comes back.
func (s *steering) letGo(ctx context.Context) {
	var left []string
	for name := range s.switches.served {
		if !slices.Contains(s.x.network.Switches, name) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return
	}
	slices.Sort(left)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := s.loop.Status(ctx)
	if err != nil || status.Phase == control.Stood {
		return // the next time
	}
	for _, name := range left {
		d := control.Device{Kind: control.Switch, Name: name}
		if slices.ContainsFunc(status.Devices, func(x control.DeviceStatus) bool { return x.Device == d }) {
			continue // it is the controller's
		}
		x := s.switches.served[name]
		end, err := s.clean(ctx, d, x)
		switch {
		case end:
			s.switches.forget(name)
			if err == nil {
				s.log.Info("switch has left the network", "switch", name)
			} else {
				s.log.Warn("switch has left the network, and keeps its entries", "switch", name, "error", err.Error())
			}
		case ctx.Err() == nil && x.said != err.Error():
			x.said = err.Error()
			s.log.Warn("switch has left the network, and keeps its entries until it can be written", "switch", name, "error", x.said)
		}
	}
}

// clean takes our entries out of a switch that has left. End says that there is nothing more to do there; the error is why they stay.
func (s *steering) clean(ctx context.Context, d control.Device, x *servedSwitch) (end bool, err error) {
	if !x.there() {
		state := x.client.State()
		_, other := errors.AsType[*p4rt.PipelineError](state.Problem)
		switch {
		case state.Connected && !state.Primary && state.Leader.Above(x.election):
			return true, p4rt.ErrNotPrimary // it is somebody else's now
		case x.owes && other:
			return true, nil // its entries went with the program
		case x.owes:
			return false, cmp.Or(state.Problem, p4rt.ErrUnreachable)
		}
		// The program of a switch that is not ours any more is not our affair.
		cfg, c := *s.files.now.Load(), x.settings
		c.Commit = false
		x.close()
		again, err := openSwitch(&cfg, &c, s.term, func(control.Event) {}, slog.New(slog.DiscardHandler))
		if err != nil {
			return true, err
		}
		again.owes, again.settings = true, x.settings
		s.switches.served[d.Name] = again
		s.switches.Serve(d.Name, again.to)
		return false, p4rt.ErrUnreachable
	}
	n, err := s.switches.Clear(ctx, d.Name, func(entries int) error {
		return s.loop.Push(ctx, control.Record{What: control.Pushed, Device: d.String(), Count: entries, Why: "out of it, which has left the network"})
	})
	if err == nil && n > 0 {
		err = s.loop.Push(ctx, control.Record{What: control.Answered, Device: d.String(), Count: n, Why: "it has left the network"})
	}
	return err == nil, err
}

// more opens the switches that are new in the settings. Of those that are served already nothing but the entries may have changed.
func (s *switchSide) more(cfg *controlConfig, term uint64, post func(control.Event), log *slog.Logger) (map[string]*servedSwitch, error) {
	fresh := map[string]*servedSwitch{}
	var errs []error
	for i := range cfg.Switches {
		c := cfg.Switches[i]
		if old, ok := s.served[c.Name]; ok && !old.owes {
			now := c
			now.Entries = old.settings.Entries
			if !reflect.DeepEqual(now, old.settings) {
				errs = append(errs, fmt.Errorf("switches[%d] (%s): only the entries of a switch can change while it is served; a restart takes the rest", i, c.Name))
			}
			continue
		}
		x, err := openSwitch(cfg, &c, term, post, log)
		if err != nil {
			errs = append(errs, fmt.Errorf("switches[%d] (%s): %w", i, c.Name, err))
			continue
		}
		fresh[c.Name] = x
	}
	if err := errors.Join(errs...); err != nil {
		for _, x := range fresh {
			x.close()
		}
		return nil, err
	}
	return fresh, nil
}

// forget ends the connection to a switch.
func (s *switchSide) forget(name string) {
	if x := s.served[name]; x != nil {
		s.Leave(name)
		x.close()
		delete(s.served, name)
	}
}
