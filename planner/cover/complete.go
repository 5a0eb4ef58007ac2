package cover

import (
	"fmt"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/topo"
)

// Complete derives the rest of a plan from the nodes of its probes, for [planner.ReadDecisions]. Where several links
// join two nodes, a probe without ports and links is an error. Probes that are no walks are left to [Check].
func (p *Problem) Complete(plan *Plan, given planner.Given) error {
	var bad planner.Errors
	room := make([][2]int, len(p.Agents)) // probes that each agent can still send and receive
	for k, a := range p.Agents {
		room[k] = [2]int{a.Send, a.Receive}
	}
	for prefix, probes := range map[string][]planner.Probe{"p": plan.Probes, "q": plan.Second} {
		for k := range probes {
			x := &probes[k]
			if x.ID == "" {
				x.ID = fmt.Sprintf("%s%d", prefix, k+1)
			}
			if err := completeWalk(p.Graph, x); err != nil {
				bad.Add("probe %s: %w", x.ID, err)
			}
		}
	}
	for _, probes := range [...][]planner.Probe{plan.Probes, plan.Second} {
		for k := range probes {
			x := &probes[k]
			p.nameAgent(&x.AgentHost, &x.AgentPort, x.Agent, room, 0)
			p.nameAgent(&x.CollectorHost, &x.CollectorPort, x.Collector, room, 1)
		}
	}
	if err := bad.Join(); err != nil {
		return err
	}
	if !given["topology"] {
		plan.Topology = p.Graph.Name()
	}
	if !given["directed"] {
		plan.Directed = p.Directed
	}
	if !given["minimise"] && p.measure() != Links {
		plan.Minimise = p.Minimise
	}
	walks, err := Walks(p.Graph, plan.Probes)
	second, err2 := Walks(p.Graph, plan.Second)
	if err != nil || err2 != nil {
		return nil
	}
	plan.Stats = p.stats(walks, second)
	plan.Stats.Objective = float64(p.objective(walks))
	left := p.leftOut(walks)
	plan.Stats.LeftOut = float64(len(left))
	if plan.Partial && !given["not_probed"] {
		plan.NotProbed = left
	}
	return nil
}

// completeWalk fills in the ports, links and ends of a probe from its nodes.
func completeWalk(g *topo.Graph, x *planner.Probe) error {
	if len(x.Nodes) > 0 {
		if x.Agent == "" {
			x.Agent = x.Nodes[0]
		}
		if x.Collector == "" {
			x.Collector = x.Nodes[len(x.Nodes)-1]
		}
	}
	if x.Ports != nil && x.Links != nil {
		return nil
	}
	var ports []int
	var links []string
	for k := 1; k < len(x.Nodes); k++ {
		from, ok := g.Lookup(x.Nodes[k-1])
		to, ok2 := g.Lookup(x.Nodes[k])
		if !ok {
			return fmt.Errorf("no node %q", x.Nodes[k-1])
		}
		if !ok2 {
			return fmt.Errorf("no node %q", x.Nodes[k])
		}
		found, several := -1, false
		lo, hi := g.Interfaces(from)
		for i := lo; i < hi; i++ {
			switch {
			case g.Link(i) < 0 || g.Neighbor(i) != to:
			case x.Ports != nil && (k > len(x.Ports) || g.Port(i) != x.Ports[k-1]):
			case x.Links != nil && (k > len(x.Links) || g.LinkName(g.Link(i)) != x.Links[k-1]):
			default:
				several = several || found >= 0
				found = i
			}
		}
		switch {
		case several:
			return fmt.Errorf("several links join %q and %q: give its ports, or its links", x.Nodes[k-1], x.Nodes[k])
		case found < 0:
			return fmt.Errorf("no link leads from %q to %q", x.Nodes[k-1], x.Nodes[k])
		}
		ports = append(ports, g.Port(found))
		links = append(links, g.LinkName(g.Link(found)))
	}
	if x.Ports == nil {
		x.Ports = ports
	}
	if x.Links == nil {
		x.Links = links
	}
	return nil
}

// nameAgent assigns an end of a probe to an agent of its node with room for it, if the plan names none. The role is 0
// for the sender and 1 for the receiver.
func (p *Problem) nameAgent(host *string, port *int, node string, room [][2]int, role int) {
	for k, a := range p.Agents {
		if *host == "" && *port == 0 && p.Graph.NodeName(a.Node) == node && room[k][role] > 0 {
			*host, *port = a.Name, a.Port
		}
		if a.Name == *host {
			room[k][role]--
			return
		}
	}
}
