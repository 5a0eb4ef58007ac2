package steer

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// Files name a network that is steered.
type Files struct {
	Topology  string
	FirstNode int64 // node id of the first node in reports; the others follow
	Plan      probe.Files
	Agents    []AgentHost
	Switches  []Switch
	Suspicion suspicion.Config // without a LatencyFloor, it follows from the rates of lines

	Orchestrate OrchestrateConfig
	Delivery    p4.DeliveryConfig
}

// Network is the network of a control of probes, from its files.
type Network struct {
	Control  *control.Network
	Config   *Config
	Suspects *Suspects
	// Entries by switch: those of the settings, of the assignment of flows, and of the delivery of reports.
	fixed, assigned, delivered map[string][]control.Entry

	orchestrator *orchestrator // nil if no flows are assigned to interfaces
	deliverer    *deliverer    // nil if no reports are delivered over assigned paths
}

// anew is the same network without any state of its links, for another loop.
func (x *Network) anew() (*Network, error) {
	y, n := *x, *x.Control
	n.Check = nil // it is of the loop before
	y.Control = &n
	var err error
	y.Suspects, err = New(x.Config)
	return &y, err
}

// ReadNetwork reads everything that files name, and finds what does not go together.
func ReadNetwork(cfg *Files) (*Network, error) {
	g, err := load.Topology(cfg.Topology)
	if err != nil {
		return nil, err
	}
	ids, numbers := g.IDs()
	for i := 0; i < len(ids) && !numbers; i++ {
		ids[i] += uint32(cfg.FirstNode)
	}
	plan, err := cfg.Plan.Read(1) // checked here; the epochs of plans are the controller's
	if err != nil {
		return nil, err
	}
	if err := checkDetail(plan); err != nil {
		return nil, err
	}
	probes, err := readProbes(cfg.Plan.Probes)
	if err != nil {
		return nil, err
	}
	sent := make(map[string]bool, len(plan.Probes))
	probing := &loop.Probing{Dialect: plan.Dialect, Basic: plan.Basic, Detailed: plan.Detailed, Interval: cfg.Plan.Interval,
		Slots: map[string]probe.Slot{}, Addresses: map[string]netip.Addr{}}
	agents := map[string]bool{}
	for k := range plan.Probes {
		p := &plan.Probes[k]
		sent[p.ID], agents[p.Agent], agents[p.Collector] = true, true, true
		probing.Slots[p.ID] = probe.Slot{Interval: p.Interval, Phase: p.Phase}
	}
	probes = slices.DeleteFunc(probes, func(p planner.Probe) bool { return !sent[p.ID] })
	for i, a := range cfg.Agents {
		if !agents[a.Name] {
			return nil, fmt.Errorf("agents[%d]: no probe of the plan begins or ends at %q", i, a.Name)
		}
		probing.Addresses[a.Name] = netip.MustParseAddr(a.Address) // Validate has read it
	}
	links := NewLinks(g, ids)
	passed, err := links.Route(probes)
	if err != nil {
		return nil, err
	}
	sc := cfg.Suspicion
	if sc.LatencyFloor == 0 {
		sc.LatencyFloor, sc.Floors = LeastLatencyFloor, links.PacketTimes(LeastLatencyFloor)
	}
	x := &Network{fixed: map[string][]control.Entry{}, Config: &Config{Suspicion: sc, Links: links, Probes: probes, Passed: passed, Interval: longest(plan), Sent: probing}}
	if x.Suspects, err = New(x.Config); err != nil {
		return nil, err
	}
	x.Control = &control.Network{Name: g.Name(), Probes: probes}
	for name := range agents {
		x.Control.Agents = append(x.Control.Agents, name)
	}
	slices.Sort(x.Control.Agents)
	if err := x.readSwitches(cfg, g); err != nil {
		return nil, err
	}
	if err := x.readOrchestrator(cfg); err != nil {
		return nil, err
	}
	return x, x.readDeliverer(cfg)
}

// withEntries is the same network with other entries of one kind.
func (x *Network) withEntries(set func(y *Network)) *Network {
	y, n := *x, *x.Control
	set(&y)
	n.Check = nil // it is of the network before
	n.Entries = func(_ *control.Plan, sw string) []control.Entry {
		return slices.Concat(y.fixed[sw], y.assigned[sw], y.delivered[sw])
	}
	y.Control = &n
	return &y
}

// Assigned returns the numbers of interfaces and flows of the assignment in the files, and why it was left out.
func (x *Network) Assigned() (interfaces, flows int, why string, ok bool) {
	if x.orchestrator == nil {
		return 0, 0, "", false
	}
	s := x.orchestrator.describe(nil)
	return s.Assigned, s.FlowsUsed, s.Why, true
}

// longest is the interval of the probe that is sent least often.
func longest(p *probe.Plan) (d time.Duration) {
	for k := range p.Probes {
		d = max(d, p.Probes[k].Interval)
	}
	return d
}

// checkDetail names probes that could not be sent in detail, which any of them may have to be. Limits of single agents
// are checked when they follow.
func checkDetail(p *probe.Plan) error {
	all := *p
	all.Probes = slices.Clone(p.Probes)
	for k := range all.Probes {
		all.Probes[k].Detailed = true
	}
	if _, err := all.Check(&probe.Limits{MTU: agent.DefaultConfig().MTU}); err != nil {
		return fmt.Errorf("the plan would be refused with all probes in detail:\n%w", err)
	}
	return nil
}

// readProbes reads the plans that cover the network, with the ids that probe.Files assigns.
func readProbes(files []string) (all []planner.Probe, err error) {
	for i, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		var c cover.Plan
		err = planner.ReadPlan(f, "cover", &c)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("plan %s: %w", path, err)
		}
		for _, p := range append(c.Probes, c.Second...) {
			if len(files) > 1 {
				p.ID = fmt.Sprintf("%d/%s", i+1, p.ID)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// readSwitches reads the entries that switches are to hold, whatever the plan.
func (x *Network) readSwitches(cfg *Files, g *topo.Graph) error {
	for i := range cfg.Switches {
		s := &cfg.Switches[i]
		if _, ok := g.Lookup(s.Name); !ok {
			return fmt.Errorf("switches[%d].name: the topology has no node %q", i, s.Name)
		}
		x.Control.Switches = append(x.Control.Switches, s.Name)
		if s.Entries == "" {
			continue
		}
		b, err := readEntries(s.Entries)
		if err != nil {
			return fmt.Errorf("switches[%d].entries: %w", i, err)
		}
		list, err := p4rt.ReadJSON(b)
		if err != nil {
			return fmt.Errorf("switches[%d].entries: %s: %w", i, s.Entries, err)
		}
		pipeline, err := p4rt.BMv2(s.Program)
		if err != nil {
			return fmt.Errorf("switches[%d].program: %w", i, err)
		}
		if err := loop.Fits(pipeline.Info.Tables(), list); err != nil {
			return fmt.Errorf("switches[%d].entries: %s: %w", i, s.Entries, err)
		}
		for k := range list {
			x.fixed[s.Name] = append(x.fixed[s.Name], loop.EntryOf(&list[k], 0))
		}
	}
	if len(x.fixed) > 0 {
		x.Control.Entries = func(_ *control.Plan, sw string) []control.Entry { return x.fixed[sw] }
	}
	return nil
}

// readEntries reads a file of no more bytes than maxEntries.
func readEntries(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEntries+1))
	if err == nil && len(b) > maxEntries {
		err = fmt.Errorf("%s: more than %d bytes", path, maxEntries)
	}
	return b, err
}

const maxEntries = 64 << 20
