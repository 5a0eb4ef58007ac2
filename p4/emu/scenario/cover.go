package scenario

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
)

// CoverPlan plans probes between the agents that together pass both directions of every link between switches, over at
// most so many links each. All start once an interval, spread over it, with the basic bitmap. It returns the plan of
// the agents, and the cover with the names of links.
func CoverPlan(n *emu.Network, epoch uint32, dialect probe.Dialect, interval time.Duration, maxHops int, seed uint64) (*probe.Plan, *cover.Plan, error) {
	var all []string
	for _, a := range n.Config().Agents {
		all = append(all, a.Switch)
	}
	return CoverPlanAmong(n, all, epoch, dialect, interval, maxHops, seed)
}

// CoverPlanAmong is CoverPlan for some of the agents, by the names of their switches.
func CoverPlanAmong(n *emu.Network, agents []string, epoch uint32, dialect probe.Dialect, interval time.Duration, maxHops int, seed uint64) (*probe.Plan, *cover.Plan, error) {
	g := n.Graph()
	p := &cover.Problem{Graph: g, Directed: true, MaxHops: maxHops}
	for _, name := range agents {
		at, _ := g.Lookup(name) // the network has them
		p.Depots = append(p.Depots, at)
	}
	c, err := solve.Plan(p, solve.Options{Seed: seed})
	if err != nil {
		return nil, nil, fmt.Errorf("probes between the agents: %w", err)
	}
	plan := &probe.Plan{Epoch: epoch, Dialect: dialect}
	plan.Basic, plan.Detailed = dialect.Bitmaps()
	for k := range c.Probes {
		x := &c.Probes[k]
		at, _ := g.Lookup(x.Collector) // the cover is of this graph
		out, to := n.AgentHost(at)
		x.CollectorPort = g.Port(out)
		route := append(append([]int(nil), x.Ports...), x.CollectorPort)
		b, err := srint.AppendProbe(nil, route)
		if err != nil {
			return nil, nil, fmt.Errorf("probe %s: %w", x.ID, err)
		}
		x.Route = hex.EncodeToString(b)
		plan.Probes = append(plan.Probes, probe.Probe{
			ID: x.ID, Route: route, Interval: interval, Phase: interval / time.Duration(len(c.Probes)) * time.Duration(k),
			Agent: x.Agent, Collector: x.Collector, To: to,
		})
	}
	return plan, c, nil
}
