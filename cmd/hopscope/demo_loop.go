package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/sink/web"
)

// demoCycle is how often the loop of the demonstration looks for suspects: once a window.
const demoCycle = time.Second

// demoSteering is the control of the probes of an emulated network, whose edge switches have an agent each.
type demoSteering struct {
	network  *emu.Network
	agents   *loop.Emulated
	loop     *loop.Loop
	suspects *suspects
	links    *directions
	journal  *loop.Journal
	names    []string // of agents
	probes   []planner.Probe
	probing  *loop.Probing
	asked    time.Duration // when agents were asked for rounds last
}

// What the probes of the demonstration ask for: node, interfaces, latency and queue, and for a closer look utilisation and
// buffers. Neither has times: on lines as slow as these, how long a packet is under way depends on its size, so that the change
// from one to the other would be seen in the times of lines.
const demoBasic, demoDetailed = 0xf000, 0xf180

// steerEmulated builds an emulated network whose probes a loop controls. Its plan covers both directions of every link. The loop does
// not run yet. Now is its clock, nil for that of the machine.
func steerEmulated(cfg emu.Config, seed uint64, j *loop.Journal, log *slog.Logger, now func() int64) (*demoSteering, error) {
	g, err := topo.Parse(cfg.Topology)
	if err != nil {
		return nil, err
	}
	var names []string
	for n := range g.NumNodes() {
		if g.Tier(n) == topo.Edge {
			names = append(names, g.NodeName(n))
			cfg.Agents = append(cfg.Agents, emu.Agent{Switch: g.NodeName(n)})
		}
	}
	s := &demoSteering{agents: loop.NewEmulated(), names: names}
	cfg.OnPlan = s.agents.Answered
	cfg.ControlDelay, cfg.ControlJitter = 2*time.Millisecond, 3*time.Millisecond
	if s.network, err = emu.New(cfg, seed); err != nil {
		return nil, err
	}
	const interval, maxHops = 200 * time.Millisecond, 8
	plan, cover, err := s.network.CoverPlan(1, agent.INT21, interval, maxHops, seed)
	if err != nil {
		return nil, err
	}
	s.links = newDirections(s.network.Graph(), nodeIDs(s.network))
	probes := slices.Clone(cover.Probes)
	passed, err := s.links.follow(probes)
	if err != nil {
		return nil, err
	}
	sc := suspicion.DefaultConfig()
	sc.Window, sc.LatencyFloor = demoCycle, 1500*8e9/float64(cfg.LinkRate) // as long as a full packet takes
	s.probes, s.probing = probes, &loop.Probing{Dialect: agent.INT21, Basic: demoBasic, Detailed: demoDetailed, Interval: interval, Addresses: loop.Addresses(plan)}
	if s.suspects, err = newSuspects(sc, s.links, probes, passed, interval, s.probing); err != nil {
		return nil, err
	}
	s.loop, err = loop.New(loop.Options{
		Control: control.Config{Cycle: int64(demoCycle), Timeout: int64(demoCycle / 3), Grace: int64(interval), SwitchCost: 1, BasicBytes: 16, DetailedBytes: 24},
		Network: &control.Network{Name: cfg.Topology, Probes: probes, Agents: names},
		Probing: s.probing,
		Agents:  s.agents, Journal: j, Seed: j.Seed(), Suspects: s.suspects, Rounds: s.suspects.rounds, Log: log, Now: now,
	})
	if err != nil {
		return nil, fmt.Errorf("control of the probes: %w", err)
	}
	s.agents.Post(s.loop.Post, names)
	return s, nil
}

// deliver takes what the loop sends to the network, and rounds of probes back. It is for who runs the network.
func (s *demoSteering) deliver() {
	s.agents.Deliver(s.network, 10*demoCycle)
	if now := s.network.Now(); now >= s.asked+loop.Settle {
		s.asked = now
		s.suspects.rounds.Survey(s.agents.Told(s.network, s.names)) // agents of this process tell what they counted
	}
}

// steerDemo is steerEmulated with a journal among the files of the demonstration.
func steerDemo(cfg emu.Config, seed uint64, data string, log *slog.Logger) (*demoSteering, error) {
	j, err := loop.OpenJournal(filepath.Join(data, "control.jsonl"), 8<<20, 1)
	if err != nil {
		return nil, err
	}
	s, err := steerEmulated(cfg, seed, j, log, nil)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	s.journal = j
	return s, nil
}

// Close gives the journal back. The loop must be over.
func (s *demoSteering) Close() error { return s.journal.Close() }

// view is what the page shows.
func (s *demoSteering) view() *web.LoopView { return loopView(s.loop, s.links) }

// serve answers "hopscope control". An address that nobody asked for, and that is taken, is no error: another one is.
func (s *demoSteering) serve(address string, asked bool) (*controlPage, error) {
	p, err := serveControl(address, s.journal, notYet)
	if err != nil && !asked {
		p, err = serveControl("127.0.0.1:0", s.journal, notYet)
	}
	if err == nil {
		p.steered(s.loop)
	}
	return p, err
}
