package steer

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/topo"
)

// EmulatedCycle is the interval at which the loop of an emulated network looks for suspects.
const EmulatedCycle = time.Second

// Emulated is the control of the probes of an emulated network, whose edge switches have an agent each.
type Emulated struct {
	Network  *emu.Network
	Agents   *loop.Emulated
	Loop     *loop.Loop
	Suspects *Suspects
	Links    *Links
	Config   *Config
	Journal  *loop.Journal
	Names    []string       // of agents
	Into     *scenario.Into // switches that carry out assignments; nil for none

	asked time.Duration // time of the last survey of rounds
	into  *emulatedInto
}

// These are the instructions of the demonstration's probes: node, interfaces, latency and queue, and for detail
// utilisation and buffers. Neither has times. On lines this slow, the travel time of a packet depends on its size. A
// change from one to the other would show in the times of lines.
const emulatedBasic, emulatedDetailed = 0xf000, 0xf180

// NewEmulated builds an emulated network whose probes a loop controls. Its plan covers both directions of every link. The loop does
// not run yet. Now is its clock, nil for that of the machine.
func NewEmulated(cfg emu.Config, seed uint64, j *loop.Journal, log *slog.Logger, now func() int64) (*Emulated, error) {
	return newEmulated(cfg, seed, j, log, now, nil)
}

func newEmulated(cfg emu.Config, seed uint64, j *loop.Journal, log *slog.Logger, now func() int64, into *emulatedInto) (*Emulated, error) {
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
	s := &Emulated{Agents: loop.NewEmulated(), Journal: j, Names: names}
	cfg.OnPlan = s.Agents.Answered
	cfg.ControlDelay, cfg.ControlJitter = 2*time.Millisecond, 3*time.Millisecond
	if s.Network, err = emu.New(cfg, seed); err != nil {
		return nil, err
	}
	const interval, maxHops = 200 * time.Millisecond, 8
	plan, cover, err := scenario.CoverPlan(s.Network, 1, probe.INT21, interval, maxHops, seed)
	if err != nil {
		return nil, err
	}
	s.Links = NewLinks(s.Network.Graph(), nodeIDs(s.Network))
	probes := slices.Clone(cover.Probes)
	passed, err := s.Links.Route(probes)
	if err != nil {
		return nil, err
	}
	sc := suspicion.DefaultConfig()
	sc.Window, sc.LatencyFloor = EmulatedCycle, float64(cfg.PacketTime())
	probing := &loop.Probing{Dialect: probe.INT21, Basic: emulatedBasic, Detailed: emulatedDetailed, Interval: interval, Addresses: loop.Addresses(plan)}
	s.Config = &Config{Suspicion: sc, Links: s.Links, Probes: probes, Passed: passed, Interval: interval, Sent: probing}
	if s.Suspects, err = New(s.Config); err != nil {
		return nil, err
	}
	s.Suspects.Resume(j.Seed().Suspects)
	options := loop.Options{
		Control: control.Config{Cycle: int64(EmulatedCycle), Timeout: int64(EmulatedCycle / 3), Grace: int64(interval), SwitchCost: 1, BasicBytes: 16, DetailedBytes: 24},
		Network: &control.Network{Name: cfg.Topology, Probes: probes, Agents: names},
		Probing: probing,
		Agents:  s.Agents, Journal: j, Seed: j.Seed(), Suspects: s.Suspects, Rounds: s.Suspects.Rounds, Log: log, Now: now,
	}
	if into != nil {
		if err := into.join(&options); err != nil {
			return nil, err
		}
		s.into, s.Into = into, into.network
	}
	if s.Loop, err = loop.New(options); err != nil {
		return nil, fmt.Errorf("control of the probes: %w", err)
	}
	if into != nil {
		into.late.To(s.Loop.Post)
	}
	s.Agents.Post(s.Loop.Post, names)
	return s, nil
}

// Deliver takes what the loop sends to the network, and rounds of probes back. The runner of the network calls it.
func (s *Emulated) Deliver() {
	s.Agents.Deliver(s.Network, 10*EmulatedCycle)
	if now := s.Network.Now(); now >= s.asked+loop.Settle {
		s.asked = now
		s.Suspects.Rounds.Survey(s.Agents.Answers(s.Network, s.Names)) // agents of this process report what they counted
	}
}

func nodeIDs(n *emu.Network) []uint32 {
	ids := make([]uint32, n.Graph().NumNodes())
	for i := range ids {
		ids[i] = n.NodeID(i)
	}
	return ids
}
