package cover

import (
	"fmt"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/topo"
)

// valid leaves out what names no interface, which is reported elsewhere.
func valid(g *topo.Graph, w Walk) Walk {
	for k, i := range w {
		if i < 0 || int(i) >= g.NumInterfaces() {
			return w[:k]
		}
	}
	return w
}

// checkAgents returns probes that no agent of the problem sends or receives, and agents with too many. Where the
// problem has no agents, a port that a probe names for its sender or receiver must lead to no node.
func checkAgents(p *Problem, plan *Plan) error {
	var bad planner.Errors
	agents := make(map[string]*topo.Agent, len(p.Agents))
	for k := range p.Agents {
		agents[p.Agents[k].Name] = &p.Agents[k]
	}
	sends, receives := map[string]int{}, map[string]int{}
	for _, probes := range [...][]planner.Probe{plan.Probes, plan.Second} {
		for k := range probes {
			q := &probes[k]
			for _, e := range [...]struct {
				role, node, host string
				port             int
				count            map[string]int
			}{{"agent", q.Agent, q.AgentHost, q.AgentPort, sends}, {"collector", q.Collector, q.CollectorHost, q.CollectorPort, receives}} {
				if err := p.checkEnd(agents, e.node, e.host, e.port); err != nil {
					bad.Add("probe %s: %s: %w", q.ID, e.role, err)
				}
				e.count[e.host]++
			}
		}
	}
	for _, a := range p.Agents {
		if n := sends[a.Name]; n > a.Send {
			bad.Add("agent %q sends %d probes, at most %d are allowed", a.Name, n, a.Send)
		}
		if n := receives[a.Name]; n > a.Receive {
			bad.Add("agent %q receives %d probes, at most %d are allowed", a.Name, n, a.Receive)
		}
	}
	return bad.Join()
}

// checkEnd returns what is wrong with one end of a probe.
func (p *Problem) checkEnd(agents map[string]*topo.Agent, node, host string, port int) error {
	g := p.Graph
	n, ok := g.Lookup(node)
	if !ok {
		return fmt.Errorf("no node %q", node)
	}
	if p.Agents != nil {
		switch a := agents[host]; {
		case a == nil:
			return fmt.Errorf("no agent %q", host)
		case a.Node != n || a.Port != port:
			return fmt.Errorf("agent %q is at port %d of %q, not at port %d of %q", host, a.Port, g.NodeName(a.Node), port, node)
		}
		return nil
	}
	switch {
	case host != "":
		return fmt.Errorf("agent %q is named, and there are none", host)
	case port < 0 || port > 0 && p.host(n):
		return fmt.Errorf("port %d of %q is no place for an agent", port, node)
	case port > 0:
		if i := g.ByPort(n, port); i >= 0 && g.Link(i) >= 0 {
			return fmt.Errorf("port %d of %q leads to %q", port, node, g.NodeName(g.Neighbor(i)))
		}
	}
	return nil
}
