package steer

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/control"
)

// emulatedInto is a network of switches with the program into, which a control serves beside that of its probes.
type emulatedInto struct {
	network    *scenario.Into
	cfg        OrchestrateConfig
	late       LatePost
	switches   *Switches
	served     *Network
	assignment *Assignment
	log        *slog.Logger
}

// emulatedEvery is the interval of assignments.
const emulatedEvery = 3 * time.Second

// NewEmulatedInto is [NewEmulated] for a control that assigns flows to interfaces of another emulated network, too. It keeps
// the assignment in a file.
func NewEmulatedInto(cfg emu.Config, seed uint64, j *loop.Journal, log *slog.Logger, file string) (*Emulated, error) {
	x := &emulatedInto{cfg: DefaultOrchestrateConfig(), log: log}
	x.cfg.File, x.cfg.Every = file, emulatedEvery
	var err error
	if x.network, err = scenario.NewInto(); err != nil {
		return nil, err
	}
	s, err := newEmulated(cfg, seed, j, log, nil, x)
	if err != nil && x.switches != nil {
		x.switches.Close()
	}
	return s, err
}

// join adds the switches to the options of a loop.
func (x *emulatedInto) join(o *loop.Options) error {
	g := x.network.Graph()
	x.served = &Network{fixed: map[string][]control.Entry{}, Control: o.Network, Config: &Config{Links: NewLinks(g, x.network.NodeIDs()), Sent: o.Probing}}
	to, list := map[string]p4rt.Installer{}, []Switch{}
	for n := range g.NumNodes() {
		name := g.NodeName(n)
		to[name], list = x.network.Installer(n), append(list, Switch{Name: name, Program: intoProgram})
		o.Network.Switches = append(o.Network.Switches, name)
		for _, e := range x.network.Fixed(n) {
			x.served.fixed[name] = append(x.served.fixed[name], loop.EntryOf(&e, 0))
		}
	}
	o.Network.Entries = func(_ *control.Plan, sw string) []control.Entry { return x.served.fixed[sw] }
	if err := x.served.readOrchestrator(&Files{Switches: list, Orchestrate: x.cfg}); err != nil {
		return err
	}
	o.Network, x.assignment = x.served.Control, x.served.Assignment()
	x.switches = &Switches{Installers: loop.NewInstallers(loop.DefaultOwner, time.Duration(o.Control.Timeout), x.late.Post, to), served: map[string]*ServedSwitch{}}
	o.Switches, o.Orchestration = x.switches, x.assignment.Status
	for name := range to {
		x.late.Post(control.Up{Device: control.Device{Kind: control.Switch, Name: name}})
	}
	return nil
}

// Assign plays the switches that carry out assignments, whose reports go to an address, and assigns the flows that a page
// lists to their interfaces, until ctx ends. The channel is closed at the end of both. An error ends the play.
func (s *Emulated) Assign(ctx context.Context, page *Page, reports netip.AddrPort, failed func(error)) (ended <-chan struct{}) {
	done := make(chan struct{})
	x := s.into
	if x == nil {
		close(done)
		return done
	}
	var both sync.WaitGroup
	both.Go(func() {
		steering := &Steering{Cycle: EmulatedCycle, Network: x.served, Loop: s.Loop, Switches: x.switches, Log: x.log, Page: page, Every: x.cfg.Every, Assignment: x.assignment}
		steering.Run(ctx)
	})
	both.Go(func() {
		if err := x.network.Play(ctx, reports); err != nil {
			failed(fmt.Errorf("emulated switches of INTO: %w", err))
		}
	})
	go func() {
		both.Wait()
		x.switches.Close()
		close(done)
	}()
	return done
}
