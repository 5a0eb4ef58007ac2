package steer

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/control"
)

// LatePost keeps what is posted before there is a loop.
type LatePost struct {
	mu    sync.Mutex
	early []control.Event
	loop  func(control.Event)
}

// Post passes an event on, or keeps it.
func (p *LatePost) Post(e control.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loop == nil {
		p.early = append(p.early, e)
		return
	}
	p.loop(e)
}

// To names the loop.
func (p *LatePost) To(post func(control.Event)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loop = post
	for _, e := range p.early {
		post(e)
	}
	p.early = nil
}

// AgentHost are settings of the host of an agent.
type AgentHost struct {
	Name    string `yaml:"name" doc:"Name of the agent in the plan."`
	Address string `yaml:"address" doc:"IPv4 address of its host."`
}

// Switch are settings of a switch that is to hold entries.
type Switch struct {
	Name      string `yaml:"name" doc:"Name of the node in the topology."`
	Address   string `yaml:"address" doc:"HOST:PORT of its P4Runtime server."`
	TLSName   string `yaml:"tls_name" doc:"Name that its certificate must carry. Empty is that of address."`
	Plaintext bool   `yaml:"plaintext" doc:"No TLS, for switches without it on lines that no other machine reaches."`
	Device    int64  `yaml:"device_id" range:"0..9223372036854775807" doc:"Id of the switch behind its address."`
	Election  int64  `yaml:"election_id" range:"0..9223372036854775807" doc:"Id that the controller stands for election with; 0 is 1."`
	Program   string `yaml:"program" oneof:"srint|intmd|into|rft|pint|hopscope" doc:"Program of hopscope that it runs."`
	Commit    bool   `yaml:"commit" doc:"The same as load: always."`
	Load      string `yaml:"load" doc:"Condition for loading the program, which empties all tables: never, if-empty (the default: no program), or always (none or another one). A dry run or pause never loads; loop.approve requires approval."`
	File      string `yaml:"file" doc:"Write entries into this file of JSON, in place of address."`
	Entries   string `yaml:"entries" doc:"JSON file with the entries of the switch, as in file."`
}

// SwitchTLS are files of certificates towards switches.
type SwitchTLS struct {
	CAFile   string `yaml:"ca_file" doc:"PEM file of the authorities that may sign certificates of switches."`
	CertFile string `yaml:"cert_file" doc:"PEM file of the controller's certificate."`
	KeyFile  string `yaml:"key_file" doc:"PEM file of the key that belongs to cert_file."`
}

// Switches are the switches of a control of probes, with their connections.
type Switches struct {
	*loop.Installers
	cfg    SwitchesConfig
	served map[string]*ServedSwitch
}

// SwitchesConfig holds the settings of all connections to switches.
type SwitchesConfig struct {
	TLS     SwitchTLS
	Timeout time.Duration // of a request
	Term    uint64        // stands above the election ids of the settings
	Log     *slog.Logger
}

// ServedSwitch is one of them.
type ServedSwitch struct {
	settings Switch // that it was opened with
	to       p4rt.Installer
	client   *p4rt.Client // nil for a file
	watch    *switchWatch
	election p4rt.Election
	owes     bool   // it has left the network, and may hold entries of this controller: the connection is for these alone
	logged   string // last, of why it still does
}

// Client is the connection, nil for a file.
func (x *ServedSwitch) Client() *p4rt.Client { return x.client }

// SetLeft sets whether the switch has left the network: another controller may have it then.
func (x *ServedSwitch) SetLeft(left bool) {
	if x.watch != nil {
		x.watch.left.Store(left)
	}
}

// Close ends the connection. The entries of the switch stay.
func (x *ServedSwitch) Close() {
	if x.client != nil {
		_ = x.client.Close() // nothing of it could be lost any more
	}
}

// there reports whether a switch can be written.
func (x *ServedSwitch) there() bool { return x.client == nil || x.client.State().Set() }

// Close ends pending jobs and the connections. The entries of switches stay.
func (s *Switches) Close() {
	s.Installers.Close()
	s.closeClients()
}

func (s *Switches) closeClients() {
	for _, x := range s.served {
		x.Close()
	}
}

// OpenSwitches opens the connections and files of switches.
func OpenSwitches(list []Switch, cfg SwitchesConfig, post func(control.Event)) (*Switches, error) {
	side := &Switches{cfg: cfg, served: map[string]*ServedSwitch{}}
	to := map[string]p4rt.Installer{}
	for i := range list {
		c := &list[i]
		x, err := cfg.Open(c, post)
		if err != nil {
			side.closeClients()
			return nil, fmt.Errorf("switches[%d] (%s): %w", i, c.Name, err)
		}
		side.served[c.Name], to[c.Name] = x, x.to
	}
	side.Installers = loop.NewInstallers(loop.DefaultOwner, cfg.Timeout, post, to)
	return side, nil
}

// Open opens one switch.
func (cfg *SwitchesConfig) Open(c *Switch, post func(control.Event)) (*ServedSwitch, error) {
	pipeline, err := p4rt.BMv2(c.Program)
	if err != nil {
		return nil, err
	}
	d := control.Device{Kind: control.Switch, Name: c.Name}
	x := &ServedSwitch{settings: *c}
	if c.File != "" {
		if x.to, err = p4rt.OpenFiles(c.File, pipeline.Info, string(loop.DefaultOwner)); err != nil {
			return nil, err
		}
		post(control.Up{Device: d})
		return x, nil
	}
	x.election = p4rt.Election{High: cfg.Term, Low: uint64(max(c.Election, 1))}
	pc := p4rt.Config{Address: c.Address, Plaintext: c.Plaintext, Device: uint64(c.Device), Election: x.election, Pipeline: pipeline,
		Owner: string(loop.DefaultOwner), Timeout: cfg.Timeout}
	if !c.Plaintext {
		name := c.TLSName
		if name == "" {
			if name, _, err = net.SplitHostPort(c.Address); err != nil {
				return nil, err
			}
		}
		if pc.TLS, err = p4rt.LoadTLS(name, cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile); err != nil {
			return nil, fmt.Errorf("p4runtime: %w", err)
		}
	}
	x.watch = &switchWatch{load: c.load(), device: d, election: x.election, post: post, log: cfg.Log}
	pc.OnState = x.watch.state
	if x.client, err = p4rt.Dial(pc); err != nil {
		return nil, err
	}
	x.to = x.client
	return x, nil
}

// The settings of [Switch.Load].
const (
	loadNever   = "never"
	loadIfEmpty = "if-empty"
	loadAlways  = "always"
)

// load is when the program is loaded.
func (c *Switch) load() string {
	switch {
	case c.Load != "":
		return c.Load
	case c.Commit:
		return loadAlways
	}
	return loadIfEmpty
}

// switchWatch notifies the loop when a switch can be written, and when another controller has taken it over.
type switchWatch struct {
	load     string
	program  string // why it has to be loaded, as passed to the loop
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
	other, is := errors.AsType[*p4rt.PipelineError](s.Problem)
	program := ""
	if is && s.Connected && s.Primary {
		program = why
	}
	if program != w.program && !s.Set() {
		if program != "" && w.up {
			w.up = false
			w.post(control.Down{Device: w.device, Why: why})
		}
		w.program = program
		w.post(control.Program{Device: w.device, Why: program, Load: is && (w.load == loadAlways || w.load == loadIfEmpty && other.None)})
	}
	switch {
	case s.Set() && !w.up:
		w.up, w.was, w.program = true, true, ""
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

// more opens the switches that are new in the settings. Of those that are served already nothing but the entries may have changed.
func (s *Switches) more(list []Switch, post func(control.Event)) (map[string]*ServedSwitch, error) {
	fresh := map[string]*ServedSwitch{}
	var errs []error
	for i := range list {
		c := list[i]
		if old, ok := s.served[c.Name]; ok && !old.owes {
			now := c
			now.Entries = old.settings.Entries
			if !reflect.DeepEqual(now, old.settings) {
				errs = append(errs, fmt.Errorf("switches[%d] (%s): only the entries of a switch can change while it is served; a restart takes the rest", i, c.Name))
			}
			continue
		}
		x, err := s.cfg.Open(&c, post)
		if err != nil {
			errs = append(errs, fmt.Errorf("switches[%d] (%s): %w", i, c.Name, err))
			continue
		}
		fresh[c.Name] = x
	}
	if err := errors.Join(errs...); err != nil {
		for _, x := range fresh {
			x.Close()
		}
		return nil, err
	}
	return fresh, nil
}

// forget ends the connection to a switch.
func (s *Switches) forget(name string) {
	if x := s.served[name]; x != nil {
		s.Leave(name)
		x.Close()
		delete(s.served, name)
	}
}
