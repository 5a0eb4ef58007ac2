package planner_test

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/topo"
)

// TestCheck breaks probes in every way that a check of any family has to see.
func TestCheck(t *testing.T) {
	g, err := topo.Parse("leaf-spine:2,3")
	if err != nil {
		t.Fatal(err)
	}
	probe := func(id string) planner.Probe {
		i, _ := g.Ends(0)
		names := []string{g.NodeName(g.Node(i)), g.NodeName(g.Neighbor(i))}
		return planner.Probe{ID: id, Nodes: names, Ports: []int{g.Port(i)}, Links: []string{g.LinkName(g.Link(i))}, Agent: names[0], Collector: names[1]}
	}
	for _, x := range []struct {
		spoil func(p *planner.Probe)
		want  string // nothing: it holds
	}{
		{func(*planner.Probe) {}, ""},
		{func(p *planner.Probe) { p.ID = "" }, `the id ""`},
		{func(p *planner.Probe) { p.ID = "q" }, `the id "q"`},
		{func(p *planner.Probe) { p.Nodes = p.Nodes[:1] }, "1 nodes, 1 links, 1 ports"},
		{func(p *planner.Probe) { p.Ports = nil }, "2 nodes, 1 links, 0 ports"},
		{func(p *planner.Probe) { p.Agent = p.Collector }, "are not its ends"},
		{func(p *planner.Probe) { p.Ports[0] = 77 }, "port 77 of"},
		{func(p *planner.Probe) { p.Links[0] = "x--y" }, "not x--y"},
		{func(p *planner.Probe) { p.Nodes[0], p.Agent = "nobody", "nobody" }, `no node "nobody"`},
	} {
		p := probe("p")
		x.spoil(&p)
		err := planner.Check(g, []planner.Probe{p}, []planner.Probe{probe("q")})
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: %v, want %q", p, err, x.want)
		}
	}
}
