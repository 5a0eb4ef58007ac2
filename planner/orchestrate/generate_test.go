package orchestrate_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// square is a ring a-b-c-d with the diagonal a-c, a second link a-b and a link from d to itself.
func square(t *testing.T) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder("square")
	for _, n := range []string{"a", "b", "c", "d"} {
		b.AddNode(n, topo.NoTier)
	}
	for _, l := range [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}, {1, 0}, {3, 3}} {
		b.AddLink(topo.LinkEnd{Node: l[0]}, topo.LinkEnd{Node: l[1]})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func passes(p *orchestrate.Problem, flow string) string {
	var names []string
	for _, f := range p.Flows {
		if f.ID == flow {
			for _, i := range f.Interfaces {
				names = append(names, p.Interfaces[i].ID)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestGenerate(t *testing.T) {
	g := square(t)
	m := orchestrate.DefaultModel()
	p, err := orchestrate.Generate(g, m)
	if err != nil {
		t.Fatal(err)
	}
	p.Objective = orchestrate.Concentrate
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	// Two interfaces for every link once parallel ones are taken together, two for every node.
	if len(p.Interfaces) != 2*5+2*4 || len(p.Flows) != 4*3 {
		t.Errorf("%d interfaces and %d flows, want 18 and 12", len(p.Interfaces), len(p.Flows))
	}
	for flow, want := range map[string]string{
		"a>b": "a>b in:a out:b",
		"b>d": "a>d b>a in:b out:d", // a was discovered before c
		"d>b": "a>b d>a in:d out:b",
	} {
		if got := passes(p, flow); got != want {
			t.Errorf("flow %s passes %s, want %s", flow, got, want)
		}
	}
	m.BothSides = true
	if p, err = orchestrate.Generate(g, m); err != nil {
		t.Fatal(err)
	}
	if got, want := passes(p, "b>d"), "a>b a>d b>a d>a in:b in:d out:b out:d"; got != want {
		t.Errorf("with both sides flow b>d passes %s, want %s", got, want)
	}
	m.Pairs = []orchestrate.Pair{{Src: 1, Dst: 3, Rate: 7}, {Src: 1, Dst: 3}}
	if p, err = orchestrate.Generate(g, m); err != nil {
		t.Fatal(err)
	}
	if len(p.Flows) != 2 || p.Flows[0].ID != "b>d" || p.Flows[0].Rate != 7 || p.Flows[1].ID != "b>d#2" {
		t.Errorf("flows %+v", p.Flows)
	}
}

// TestGenerateDraws holds the distributions to what they should be: six standard errors are one in a thousand million.
func TestGenerateDraws(t *testing.T) {
	g, err := topo.Random(60, 150, 1)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		m := orchestrate.DefaultModel()
		m.Seed = seed
		p, err := orchestrate.Generate(g, m)
		if err != nil {
			t.Fatal(err)
		}
		count := map[int64]int{}
		for _, i := range p.Interfaces {
			count[i.Demand]++
		}
		for d := range count {
			if d < 4 || d > 10 {
				t.Errorf("seed %d: demand %d", seed, d)
			}
		}
		n := float64(len(p.Interfaces)) / 7
		for d := int64(4); d <= 10; d++ {
			if math.Abs(float64(count[d])-n) > 6*math.Sqrt(n) {
				t.Errorf("seed %d: demand %d %d times, expected %.0f", seed, d, count[d], n)
			}
		}
		sum, squares := 0.0, 0.0
		for _, f := range p.Flows {
			sum += float64(f.Capacity)
			squares += float64(f.Capacity-35) * float64(f.Capacity-35)
		}
		k := float64(len(p.Flows))
		if mean, sd := sum/k, math.Sqrt(squares/k); math.Abs(mean-35) > 6*5/math.Sqrt(k) || math.Abs(sd-5) > 6*5/math.Sqrt(2*k)+0.02 {
			t.Errorf("seed %d: capacities with mean %v, deviation %v", seed, mean, sd)
		}
	}
}

func TestGenerateErrors(t *testing.T) {
	one := topo.NewBuilder("one")
	one.AddNode("a", topo.NoTier)
	apart := topo.NewBuilder("apart")
	apart.AddNode("a", topo.NoTier)
	apart.AddNode("b", topo.NoTier)
	build := func(b *topo.Builder) *topo.Graph {
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := square(t)
	for _, tt := range []struct {
		g      *topo.Graph
		change func(m *orchestrate.Model)
		want   string
	}{
		{build(one), func(*orchestrate.Model) {}, "topology one: 1 nodes have no flows between them"},
		{build(apart), func(*orchestrate.Model) {}, `topology apart: is not connected: no way from node "a" to node "b"; a partial plan would do without such flows`},
		{build(apart), func(m *orchestrate.Model) { m.Parts = true }, "topology apart: no flows"},
		{g, func(m *orchestrate.Model) { m.DemandMin = 0 }, "demands of 0 to 10 items: must be 1 or more, in this order"},
		{g, func(m *orchestrate.Model) { m.DemandMax = 3 }, "demands of 4 to 3 items: must be 1 or more, in this order"},
		{g, func(m *orchestrate.Model) { m.CapacityMean = math.NaN() }, "capacities of NaN items, deviation 5: must be at least 1 and 0"},
		{g, func(m *orchestrate.Model) { m.CapacityStdv = -1 }, "capacities of 35 items, deviation -1: must be at least 1 and 0"},
		{g, func(m *orchestrate.Model) { m.Pairs = []orchestrate.Pair{{Src: 0, Dst: 9}} }, "flow from node 0 to node 9: topology square has 4 nodes"},
		{g, func(m *orchestrate.Model) { m.Pairs = []orchestrate.Pair{{Src: 2, Dst: 2}} }, `flow from node "c" to itself`},
		{g, func(m *orchestrate.Model) { m.Pairs = []orchestrate.Pair{} }, "topology square: no flows"},
	} {
		m := orchestrate.DefaultModel()
		tt.change(&m)
		if p, err := orchestrate.Generate(tt.g, m); err == nil || err.Error() != tt.want {
			t.Errorf("Generate = %v, %v, want %s", p, err, tt.want)
		}
	}
}

// In a topology of several parts flows stay within them, and all else is as if the parts were alone.
func TestGenerateParts(t *testing.T) {
	b := topo.NewBuilder("parts")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		b.AddNode(name, topo.NoTier)
	}
	b.AddLink(topo.LinkEnd{Node: 0}, topo.LinkEnd{Node: 3})
	b.AddLink(topo.LinkEnd{Node: 1}, topo.LinkEnd{Node: 2})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := orchestrate.DefaultModel()
	m.Parts = true
	p, err := orchestrate.Generate(g, m)
	if err != nil {
		t.Fatal(err)
	}
	var flows []string
	for _, f := range p.Flows {
		flows = append(flows, f.ID)
	}
	if want := []string{"a>d", "b>c", "c>b", "d>a"}; !slices.Equal(flows, want) {
		t.Errorf("flows %v, want %v", flows, want)
	}
	p.Objective = orchestrate.Concentrate
	plan, err := solve.Plan(p, solve.Options{Partial: true})
	if err == nil {
		err = orchestrate.Check(p, plan)
	}
	if err != nil || !plan.Partial || len(plan.Unserved) != 2 || plan.Unserved[0].Interface != "in:e" {
		t.Errorf("plan %+v, %v, want the interfaces of e not served", plan, err)
	}
}
