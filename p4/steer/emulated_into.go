package steer

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/delivery"
)

// emulatedInto is a network of switches that carry out assignments and deliver reports, which a control serves beside that of
// its probes.
type emulatedInto struct {
	network    *scenario.Into
	cfg        OrchestrateConfig
	delivery   p4.DeliveryConfig
	late       LatePost
	switches   *Switches
	served     *Network
	assignment *Assignment
	log        *slog.Logger
}

// emulatedEvery is the interval of assignments, and of plans of delivery.
const emulatedEvery = 3 * time.Second

// emulatedMargin is the rate that paths have, as a multiple of the measured one: an assignment of flows to interfaces multiplies
// the reports of a switch.
const emulatedMargin = 4

// NewEmulatedInto is [NewEmulated] for a control that assigns flows to interfaces of another emulated network, too, and plans
// the paths of its reports. It keeps the assignment and that plan in files of a directory, with the network of reports.
func NewEmulatedInto(cfg emu.Config, seed uint64, j *loop.Journal, log *slog.Logger, dir string) (*Emulated, error) {
	x := &emulatedInto{cfg: DefaultOrchestrateConfig(), delivery: p4.DefaultDeliveryConfig(), log: log}
	x.cfg.File, x.cfg.Every = filepath.Join(dir, "into.json"), emulatedEvery
	var err error
	if x.network, err = scenario.NewInto(); err != nil {
		return nil, err
	}
	c := &x.delivery
	c.File, c.Every, c.Instance = filepath.Join(dir, "rft.json"), emulatedEvery, filepath.Join(dir, "rft-network.json")
	c.Servers = []p4.DeliveryHost{{Name: scenario.IntoCollector, Address: "127.0.0.1:32766", MAC: "02:00:00:00:00:01"}}
	c.ReportBytes, c.Margin = scenario.IntoReportBytes, emulatedMargin
	var problem *delivery.Problem
	problem, c.Points = x.network.Delivery()
	if err := writePlan("delivery.instance", c.Instance, problem); err != nil {
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
		to[name], list = x.network.Installer(n), append(list, Switch{Name: name, Program: scenario.IntoProgram})
		o.Network.Switches = append(o.Network.Switches, name)
		for _, e := range x.network.Fixed(n) {
			x.served.fixed[name] = append(x.served.fixed[name], loop.EntryOf(&e, 0))
		}
	}
	o.Network.Entries = func(_ *control.Plan, sw string) []control.Entry { return x.served.fixed[sw] }
	files := &Files{Switches: list, Orchestrate: x.cfg, Delivery: x.delivery}
	if err := x.served.readOrchestrator(files); err != nil {
		return err
	}
	if err := x.served.readDeliverer(files); err != nil {
		return err
	}
	o.Network, x.assignment = x.served.Control, x.served.Assignment()
	x.switches = &Switches{Installers: loop.NewInstallers(loop.DefaultOwner, time.Duration(o.Control.Timeout), x.late.Post, to), served: map[string]*ServedSwitch{}}
	o.Switches, o.Orchestration, o.Delivery = x.switches, x.assignment.Status, x.assignment.Delivery
	for name, in := range to {
		x.switches.served[name] = &ServedSwitch{to: in}
		x.late.Post(control.Up{Device: control.Device{Kind: control.Switch, Name: name}})
	}
	return nil
}

// Assign plays the switches that carry out assignments, whose reports go to an address. It assigns the flows that a page
// lists to their interfaces, and plans the paths of their reports, until ctx ends. The channel is closed at the end of both. An
// error ends the play.
func (s *Emulated) Assign(ctx context.Context, page *Page, reports netip.AddrPort, failed func(error)) (ended <-chan struct{}) {
	done := make(chan struct{})
	x := s.into
	if x == nil {
		close(done)
		return done
	}
	x.served.deliverer.cfg.Servers[0].Page = page.URL
	var both sync.WaitGroup
	both.Go(func() {
		steering := &Steering{Cycle: EmulatedCycle, Network: x.served, Loop: s.Loop, Switches: x.switches, Log: x.log, Page: page, Every: x.cfg.Every, Assignment: x.assignment,
			Deliver: x.delivery.Every, Open: func(string) *Page { return page }}
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
