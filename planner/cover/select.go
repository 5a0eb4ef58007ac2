package cover

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner/topo"
)

// SkipLinks excludes links by their names.
func (p *Problem) SkipLinks(names []string) error {
	if len(names) > 0 {
		p.Skip = make([]bool, p.Graph.NumLinks())
	}
	for _, name := range names {
		links, err := p.Graph.LookupLinks(name)
		if err != nil {
			return err
		}
		for _, l := range links {
			p.Skip[l] = true
		}
	}
	return nil
}

// SkipNodes excludes nodes by their names.
func (p *Problem) SkipNodes(names []string) error {
	if len(names) > 0 {
		p.SkipNode = make([]bool, p.Graph.NumNodes())
	}
	for _, name := range names {
		v, ok := p.Graph.Lookup(name)
		if !ok {
			return fmt.Errorf("the topology has no node %q", name)
		}
		p.SkipNode[v] = true
	}
	return nil
}

// MaybeHost returns a node with one link at which probes end, in a problem without hosts and agents. The topology does
// not have its tier, so it may be a host or a switch.
func (p *Problem) MaybeHost() (node int, ok bool) {
	if p.Hosts != nil || p.Agents != nil {
		return 0, false
	}
	g := p.Graph
	for v := range g.NumNodes() {
		lo, hi := g.Interfaces(v)
		if hi-lo == 1 && g.Degree(v) == 1 && g.Tier(v) == topo.NoTier && (p.Depots == nil || slices.Contains(p.Depots, v)) {
			return v, true
		}
	}
	return 0, false
}
