package planner

import (
	"fmt"

	"github.com/hopscope/hopscope/planner/topo"
)

// Check returns what is wrong with the probes of one plan of any family. Every probe has an id that is unique over all
// lists, and is a walk through the topology (see [Walk]). The purpose of the walks is checked by the Check of a family,
// which calls this one.
func Check(g *topo.Graph, lists ...[]Probe) error {
	var bad Errors
	seen := map[string]bool{}
	for _, probes := range lists {
		for k := range probes {
			p := &probes[k]
			if p.ID == "" || seen[p.ID] {
				bad.Add("the id %q is empty, or of two probes", p.ID)
			}
			seen[p.ID] = true
			if _, err := Walk(g, p); err != nil {
				bad.Add("probe %s: %w", p.ID, err)
			}
		}
	}
	return bad.Join()
}

// Walk returns the interfaces by which a probe leaves its nodes: one less than nodes. The links and ports of the probe
// must be those between its nodes. Its agent and collector must be the first and the last node.
func Walk(g *topo.Graph, p *Probe) ([]int32, error) {
	if len(p.Nodes) < 2 || len(p.Ports) != len(p.Nodes)-1 || len(p.Links) != len(p.Ports) {
		return nil, fmt.Errorf("%d nodes, %d links, %d ports: a probe has two nodes at least, and a link and a port less than nodes", len(p.Nodes), len(p.Links), len(p.Ports))
	}
	if p.Agent != p.Nodes[0] || p.Collector != p.Nodes[len(p.Nodes)-1] {
		return nil, fmt.Errorf("agent %q and collector %q are not its ends", p.Agent, p.Collector)
	}
	w := make([]int32, len(p.Ports))
	for k, port := range p.Ports {
		n, ok := g.Lookup(p.Nodes[k])
		if !ok {
			return nil, fmt.Errorf("no node %q", p.Nodes[k])
		}
		i := g.ByPort(n, port)
		if i < 0 || g.Neighbor(i) < 0 || g.NodeName(g.Neighbor(i)) != p.Nodes[k+1] {
			return nil, fmt.Errorf("port %d of %q does not lead to %q", port, p.Nodes[k], p.Nodes[k+1])
		}
		if name := g.LinkName(g.Link(i)); name != p.Links[k] {
			return nil, fmt.Errorf("port %d of %q is of link %s, not %s", port, p.Nodes[k], name, p.Links[k])
		}
		w[k] = int32(i)
	}
	return w, nil
}
