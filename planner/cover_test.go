package planner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
)

func fabric(t *testing.T) *topo.Graph {
	t.Helper()
	g, err := topo.Parse("leaf-spine:3,4")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func coverPlan(t *testing.T, p *planner.CoverProblem, o cover.Options) *planner.CoverPlan {
	t.Helper()
	plan, err := cover.Plan(p, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := planner.CheckCover(p, plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestCheckCover breaks good plans in every way that the check is there for.
func TestCheckCover(t *testing.T) {
	g := fabric(t)
	plain := &planner.CoverProblem{Graph: g}
	depots := &planner.CoverProblem{Graph: g, Depots: []int{3, 4}}
	redundant := &planner.CoverProblem{Graph: g, Redundant: true}
	skip := make([]bool, g.NumLinks())
	skip[0] = true
	for _, c := range []struct {
		name  string
		p     *planner.CoverProblem
		check *planner.CoverProblem // problem that the plan is checked against, if another
		spoil func(*planner.CoverPlan)
		want  string
	}{
		{"probe left out", plain, nil, func(x *planner.CoverPlan) { x.Probes = x.Probes[1:] }, "of the links are not covered"},
		{"probe twice", plain, nil, func(x *planner.CoverPlan) { x.Probes = append(x.Probes, x.Probes[0]) }, "is passed 2 times"},
		{"node swapped", plain, nil, func(x *planner.CoverPlan) {
			x.Probes[0].Nodes = slices.Clone(x.Probes[0].Nodes)
			x.Probes[0].Nodes[1] = "leaf-3"
		}, "does not lead to"},
		{"port swapped", plain, nil, func(x *planner.CoverPlan) {
			x.Probes[0].Ports = slices.Clone(x.Probes[0].Ports)
			x.Probes[0].Ports[0] = 9
		}, "port 9 of"},
		{"link swapped", plain, nil, func(x *planner.CoverPlan) {
			x.Probes[0].Links = slices.Clone(x.Probes[0].Links)
			x.Probes[0].Links[0] = "x--y"
		}, "not x--y"},
		{"unknown node", plain, nil, func(x *planner.CoverPlan) {
			x.Probes[0].Nodes = slices.Clone(x.Probes[0].Nodes)
			x.Probes[0].Nodes[0], x.Probes[0].Agent = "nobody", "nobody"
		}, `no node "nobody"`},
		{"agent elsewhere", plain, nil, func(x *planner.CoverPlan) { x.Probes[0].Agent = "leaf-9" }, "are not its ends"},
		{"cut", plain, nil, func(x *planner.CoverPlan) { x.Probes[0].Ports = x.Probes[0].Ports[1:] }, "nodes,"},
		{"too long", plain, &planner.CoverProblem{Graph: g, MaxHops: 2}, func(*planner.CoverPlan) {}, "at most 2 are allowed"},
		{"link to skip", plain, &planner.CoverProblem{Graph: g, Skip: skip}, func(*planner.CoverPlan) {}, "which must not be used"},
		{"one direction only", plain, &planner.CoverProblem{Graph: g, Directed: true}, func(*planner.CoverPlan) {}, "of the directions are not covered"},
		{"no depot at the end", plain, depots, func(*planner.CoverPlan) {}, "which is no depot"},
		{"id twice", plain, nil, func(x *planner.CoverPlan) { x.Probes[1].ID = x.Probes[0].ID }, `the id "p1"`},
		{"variance", plain, nil, func(x *planner.CoverPlan) { x.Stats.Variance++ }, "statistics are"},
		{"objective", plain, nil, func(x *planner.CoverPlan) { x.Stats.Objective++ }, "the probes say"},
		{"bound above", plain, nil, func(x *planner.CoverPlan) { x.Stats.LowerBound++ }, "is above the objective"},
		{"not optimal", plain, nil, func(x *planner.CoverPlan) { x.Stats.LowerBound-- }, "optimal at"},
		{"walked back and forth", depots, nil, func(x *planner.CoverPlan) {
			back := x.Probes[0]
			slices.Reverse(back.Nodes)
			x.Probes = append(x.Probes, x.Probes[0])
		}, ""},
		{"second cover gone", redundant, nil, func(x *planner.CoverPlan) { x.Second = nil }, "second cover"},
		{"second cover like the first", redundant, nil, func(x *planner.CoverPlan) { x.Second = x.Probes }, "in the direction of the first"},
		{"second cover for nothing", plain, nil, func(x *planner.CoverPlan) { x.Second = x.Probes }, "was not asked for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := coverPlan(t, c.p, cover.Options{})
			if c.check == nil {
				c.check = c.p
			}
			c.spoil(plan)
			if err := planner.CheckCover(c.check, plan); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("CheckCover = %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestLinkNames(t *testing.T) {
	b := topo.NewBuilder("names")
	x, y := b.AddNode("a--b", topo.NoTier), b.AddNode("b", topo.NoTier)
	b.AddLink(topo.LinkEnd{Node: x}, topo.LinkEnd{Node: y})
	b.AddLink(topo.LinkEnd{Node: x, Port: 7}, topo.LinkEnd{Node: y})
	b.AddLink(topo.LinkEnd{Node: y}, topo.LinkEnd{Node: y})
	b.AddInterface(topo.LinkEnd{Node: y, Port: 4})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int{
		"a--b--b": {0, 1}, "b--a--b": {0, 1}, "a--b:7--b": {1}, "b:2--a--b:7": {1}, "b--b": {2}, g.LinkName(0): {0}, g.LinkName(2): {2},
	} {
		if got, err := g.LookupLinks(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("LookupLinks(%q) = %v, %v, want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "--", "b", "a--b", "a--b:9--b", "b:x--b", "b--c"} {
		if got, err := g.LookupLinks(name); err == nil {
			t.Errorf("LookupLinks(%q) = %v, want an error", name, got)
		}
	}
	if got := [...]int{g.HostPort(0), g.HostPort(1)}; got != [...]int{2, 4} {
		t.Errorf("host ports %v, want 2 (the lowest that no link uses) and 4 (which leads out)", got)
	}
}
