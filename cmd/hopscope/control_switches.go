package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/control"
)

// latePost keeps what is posted before there is a loop.
type latePost struct {
	mu    sync.Mutex
	early []control.Event
	loop  func(control.Event)
}

func (p *latePost) post(e control.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loop == nil {
		p.early = append(p.early, e)
		return
	}
	p.loop(e)
}

// to names the loop.
func (p *latePost) to(post func(control.Event)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loop = post
	for _, e := range p.early {
		post(e)
	}
	p.early = nil
}

// switchSide is the switches of a control of probes, with their connections.
type switchSide struct {
	*loop.Installers
	served map[string]*servedSwitch
}

// servedSwitch is one of them.
type servedSwitch struct {
	settings controlSwitch // that it was opened with
	to       p4rt.Installer
	client   *p4rt.Client // nil for a file
	watch    *switchWatch
	election p4rt.Election
	owes     bool   // it has left the network, and may hold entries of ours: the connection is for these alone
	said     string // last, of why it still does
}

func (x *servedSwitch) close() {
	if x.client != nil {
		_ = x.client.Close() // nothing of it could be lost any more
	}
}

// there reports whether a switch can be written.
func (x *servedSwitch) there() bool { return x.client == nil || x.client.State().Set() }

// Close ends what is under way, and the connections. What switches hold stays.
func (s *switchSide) Close() {
	s.Installers.Close()
	s.closeClients()
}

func (s *switchSide) closeClients() {
	for _, x := range s.served {
		x.close()
	}
}

// openSwitches opens the connections and files of switches. Term stands above the election id of the settings.
func openSwitches(cfg *controlConfig, term uint64, post func(control.Event), log *slog.Logger) (*switchSide, error) {
	side := &switchSide{served: map[string]*servedSwitch{}}
	to := map[string]p4rt.Installer{}
	for i := range cfg.Switches {
		c := &cfg.Switches[i]
		x, err := openSwitch(cfg, c, term, post, log)
		if err != nil {
			side.closeClients()
			return nil, fmt.Errorf("switches[%d] (%s): %w", i, c.Name, err)
		}
		side.served[c.Name], to[c.Name] = x, x.to
	}
	side.Installers = loop.NewInstallers(loop.DefaultOwner, cfg.Loop.Timeout, post, to)
	return side, nil
}

// openSwitch opens one switch.
func openSwitch(cfg *controlConfig, c *controlSwitch, term uint64, post func(control.Event), log *slog.Logger) (*servedSwitch, error) {
	pipeline, err := p4rt.BMv2(c.Program)
	if err != nil {
		return nil, err
	}
	d := control.Device{Kind: control.Switch, Name: c.Name}
	x := &servedSwitch{settings: *c}
	if c.File != "" {
		if x.to, err = p4rt.OpenFiles(c.File, pipeline.Info, string(loop.DefaultOwner)); err != nil {
			return nil, err
		}
		post(control.Up{Device: d})
		return x, nil
	}
	x.election = p4rt.Election{High: term, Low: uint64(max(c.Election, 1))}
	pc := p4rt.Config{Address: c.Address, Plaintext: c.Plaintext, Device: uint64(c.Device), Election: x.election, Pipeline: pipeline,
		Commit: c.Commit, Owner: string(loop.DefaultOwner), Timeout: cfg.Loop.Timeout}
	if !c.Plaintext {
		name := c.TLSName
		if name == "" {
			if name, _, err = net.SplitHostPort(c.Address); err != nil {
				return nil, err
			}
		}
		if pc.TLS, err = p4rt.LoadTLS(name, cfg.P4Runtime.CAFile, cfg.P4Runtime.CertFile, cfg.P4Runtime.KeyFile); err != nil {
			return nil, fmt.Errorf("p4runtime: %w", err)
		}
	}
	x.watch = &switchWatch{device: d, election: x.election, post: post, log: log}
	pc.OnState = x.watch.state
	if x.client, err = p4rt.Dial(pc); err != nil {
		return nil, err
	}
	x.to = x.client
	return x, nil
}

// switchWatch tells the loop when a switch can be written, and when another controller has taken it over.
type switchWatch struct {
	device   control.Device
	election p4rt.Election
	post     func(control.Event)
	log      *slog.Logger

	left    atomic.Bool // the network: another controller may have it
	up, was bool
}

func (w *switchWatch) state(s p4rt.State) {
	why := "another controller is primary"
	switch {
	case s.Problem != nil:
		why = s.Problem.Error()
	case !s.Connected:
		why = "it cannot be reached"
	}
	switch {
	case s.Set() && !w.up:
		w.up, w.was = true, true
		w.post(control.Up{Device: w.device})
	case !s.Set() && w.up:
		w.up = false
		w.post(control.Down{Device: w.device, Why: why})
	case !s.Set() && !errors.Is(s.Problem, p4rt.ErrClosed):
		w.log.Warn("switch not ready", "switch", w.device.Name, "error", why)
	}
	if w.was && !w.left.Load() && s.Connected && !s.Primary && s.Leader.Above(w.election) {
		w.post(control.Superseded{Why: fmt.Sprintf("switch %s has another primary controller", w.device.Name)})
	}
}
