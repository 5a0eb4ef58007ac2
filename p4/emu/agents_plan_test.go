package emu

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
)

// CoverPlan plans probes between the agents that together pass both directions of every link between switches, over at
// most so many links each. All start once an interval, spread over it, with the basic bitmap. It returns the plan of
// the agents, and the cover with the names of links.
func (n *Network) CoverPlan(epoch uint32, dialect probe.Dialect, interval time.Duration, maxHops int, seed uint64) (*probe.Plan, *cover.Plan, error) {
	p := &cover.Problem{Graph: n.graph, Directed: true, MaxHops: maxHops}
	for _, a := range n.agents {
		p.Depots = append(p.Depots, int(n.hosts[a.host].node))
	}
	c, err := solve.Plan(p, solve.Options{Seed: seed})
	if err != nil {
		return nil, nil, fmt.Errorf("probes between the agents: %w", err)
	}
	plan := &probe.Plan{Epoch: epoch, Dialect: dialect}
	plan.Basic, plan.Detailed = dialect.Bitmaps()
	for k := range c.Probes {
		x := &c.Probes[k]
		at, _ := n.graph.Lookup(x.Collector) // the cover is of this graph
		h := &n.hosts[n.hostAt(at, 0)]
		x.CollectorPort = int(n.ports[h.iface].number)
		route := append(append([]int(nil), x.Ports...), x.CollectorPort)
		b, err := srint.AppendProbe(nil, route)
		if err != nil {
			return nil, nil, fmt.Errorf("probe %s: %w", x.ID, err)
		}
		x.Route = hex.EncodeToString(b)
		plan.Probes = append(plan.Probes, probe.Probe{
			ID: x.ID, Route: route, Interval: interval, Phase: interval / time.Duration(len(c.Probes)) * time.Duration(k),
			Agent: x.Agent, Collector: x.Collector, To: netip.AddrFrom4(h.v4),
		})
	}
	return plan, c, nil
}

// agentStats returns the counters of an agent.
func (n *Network) agentStats(name string) (s agentStats, ok bool) {
	if k := n.agentNamed(name); k >= 0 {
		return n.agents[k].stats, true
	}
	return s, false
}
