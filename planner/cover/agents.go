package cover

import (
	"slices"

	"github.com/hopscope/hopscope/planner/topo"
)

// UseAgents makes the nodes that have agents the depots, or uses the agents of the depots that there are.
func (p *Problem) UseAgents() {
	g := p.Graph
	if len(g.Agents()) == 0 {
		return
	}
	asked := p.Depots
	if asked == nil {
		p.Depots = []int{}
	}
	p.Agents = []topo.Agent{}
	for _, a := range g.Agents() {
		switch {
		case asked != nil && !slices.Contains(asked, a.Node) || p.SkipNode != nil && p.SkipNode[a.Node]:
			continue
		case asked == nil && !slices.Contains(p.Depots, a.Node):
			p.Depots = append(p.Depots, a.Node)
		}
		p.Agents = append(p.Agents, a)
	}
}
