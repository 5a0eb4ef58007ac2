package cover_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// line is a way of three links over four nodes, of which the last has an interface that leads out as well. Links take
// 10, 20 and 30 ns in the direction in which they are numbered, and 1 ns more back.
func line(t *testing.T) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder("line")
	for _, name := range []string{"a", "b", "c", "d"} {
		b.AddNode(name, 0)
	}
	for k := range 3 {
		there := topo.Attr{Weight: 1, Cost: uint32(k + 1), Delay: time.Duration(10 * (k + 1))}
		back := there
		back.Delay++
		b.AddLink(topo.LinkEnd{Node: k, Attr: there}, topo.LinkEnd{Node: k + 1, Attr: back})
	}
	b.AddInterface(topo.LinkEnd{Node: 3})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestCheckWalks breaks walks in every way, and keeps those just within the limits.
func TestCheckWalks(t *testing.T) {
	g := line(t)
	there, back := make([]int32, 3), make([]int32, 3) // interfaces by which the links are left
	for l := range there {
		x, y := g.Ends(l)
		there[l], back[l] = int32(x), int32(y)
	}
	out := int32(-1)
	for i := range g.NumInterfaces() {
		if g.Link(i) < 0 {
			out = int32(i)
		}
	}
	skip := []bool{false, true, false}
	for _, c := range []struct {
		name    string
		p       cover.Problem
		walks   []cover.Walk
		missing int
		want    string // nothing: they hold
	}{
		{"all", cover.Problem{}, []cover.Walk{there}, 0, ""},
		{"two", cover.Problem{}, []cover.Walk{there[:1], there[1:]}, 0, ""},
		{"one missing", cover.Problem{}, []cover.Walk{there[1:]}, 1, ""},
		{"both directions", cover.Problem{Directed: true}, []cover.Walk{there, {back[2], back[1], back[0]}}, 0, ""},
		{"one direction missing", cover.Problem{Directed: true}, []cover.Walk{there, {back[2], back[1]}}, 1, ""},
		{"no link", cover.Problem{}, []cover.Walk{there, {}}, 0, "probe 2 passes no link"},
		{"no link between depots", cover.Problem{Depots: []int{0, 3}}, []cover.Walk{there, {}}, 0, "probe 2 passes no link"},
		{"as many hops as may be", cover.Problem{MaxHops: 3}, []cover.Walk{there}, 0, ""},
		{"one hop too many", cover.Problem{MaxHops: 2}, []cover.Walk{there}, 0, "probe 1 has 3 hops, at most 2"},
		{"as slow as may be", cover.Problem{MaxDelay: 60}, []cover.Walk{there}, 0, ""},
		{"too slow", cover.Problem{MaxDelay: 59}, []cover.Walk{there}, 0, "a delay of 60 ns, at most 59"},
		{"slower on the way back", cover.Problem{MaxDelay: 60}, []cover.Walk{{back[2], back[1], back[0]}}, 0, "a delay of 63 ns, at most 60"},
		{"an interface too high", cover.Problem{}, []cover.Walk{{int32(g.NumInterfaces())}}, 0, "leads nowhere"},
		{"an interface below all", cover.Problem{}, []cover.Walk{{-1}}, 0, "leads nowhere"},
		{"out of the network", cover.Problem{}, []cover.Walk{{out}}, 0, "leads nowhere"},
		{"a jump", cover.Problem{}, []cover.Walk{{there[0], there[2]}, {there[1]}}, 0, `leaves "c", but the probe is at "b"`},
		{"through a host", cover.Problem{Hosts: []bool{false, true, false, false}}, []cover.Walk{there}, 0, `"b", a host`},
		{"from host to host", cover.Problem{Hosts: []bool{true, false, false, true}}, []cover.Walk{there}, 0, ""},
		{"what is to be skipped", cover.Problem{Skip: skip}, []cover.Walk{there}, 0, "must not be used"},
		{"what is skipped is not missing", cover.Problem{Skip: skip}, []cover.Walk{there[:1], there[2:]}, 0, ""},
		{"a high port", cover.Problem{MaxPort: 1}, []cover.Walk{there[1:2]}, 0, "must not be used"},
		{"twice", cover.Problem{}, []cover.Walk{there, there[:1]}, 0, "is passed 2 times"},
		{"twice between depots", cover.Problem{Depots: []int{0, 3}}, []cover.Walk{there, there}, 0, ""},
		{"begun at no depot", cover.Problem{Depots: []int{3}}, []cover.Walk{there}, 0, `ends at "a"`},
		{"ended at no depot", cover.Problem{Depots: []int{0}}, []cover.Walk{there}, 0, `ends at "d"`},
	} {
		c.p.Graph = g
		missing, err := cover.CheckWalks(&c.p, c.walks)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case c.want == "" && (err != nil || len(missing) != c.missing):
			t.Errorf("%s: %v and %d missing, want %d", c.name, err, len(missing), c.missing)
		}
	}
}

// TestCheckSecond has second covers leave out what the first one does, and no more.
func TestCheckSecond(t *testing.T) {
	g := fabric(t)
	p := &cover.Problem{Graph: g, Redundant: true}
	for _, c := range []struct {
		name  string
		p     *cover.Problem
		spoil func(*cover.Plan)
		want  string
	}{
		{"a port that leads elsewhere", p, func(x *cover.Plan) { x.Second[0].Ports[0] = 99 }, "second cover: probe"},
		{"a probe less", p, func(x *cover.Plan) { x.Second = x.Second[1:] }, "second cover: "},
		{"a probe twice", p, func(x *cover.Plan) { x.Second = append(x.Second, x.Second[0]) }, "second cover: "},
		{"the limit of hops", &cover.Problem{Graph: g, Redundant: true, MaxHops: 2}, func(x *cover.Plan) {
			x.Second[0].Nodes = x.Second[0].Nodes[:2]
		}, "second cover: "},
	} {
		plan := coverPlan(t, c.p, solve.Options{})
		c.spoil(plan)
		if err := cover.Check(c.p, plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	low := &cover.Problem{Graph: g, Redundant: true, MaxPort: 3}
	plan := coverPlan(t, low, solve.Options{Partial: true})
	if len(plan.NotProbed) == 0 {
		t.Error("nothing is left out of both covers")
	}
}

// TestCheckStats makes plans of walks by hand. Three traversals of a link are not optimal, unless a limit, or the
// measure, asks for them. Means may be off by rounding.
func TestCheckStats(t *testing.T) {
	g := line(t)
	x, y := g.Ends(0)
	twice := []cover.Walk{{int32(x), int32(y), int32(x), int32(y)}}
	rest := []bool{false, true, true}
	ok := func(*cover.Plan) {}
	for _, c := range []struct {
		name  string
		p     cover.Problem
		walks []cover.Walk
		spoil func(*cover.Plan)
		want  string
	}{
		{"there and back", cover.Problem{}, []cover.Walk{twice[0][:2]}, ok, ""},
		{"there and back, twice", cover.Problem{}, twice, ok, "passed 3 times in a plan said to be optimal"},
		{"twice and not said to be optimal", cover.Problem{}, twice, func(x *cover.Plan) { x.Stats.Optimal = false }, ""},
		{"twice in both directions", cover.Problem{Directed: true}, twice, ok, ""},
		{"twice with a limit of hops", cover.Problem{MaxHops: 4}, twice, ok, ""},
		{"twice with a limit of delay", cover.Problem{MaxDelay: 100}, twice, ok, ""},
		{"twice by bytes", cover.Problem{Minimise: cover.Bytes, Size: cover.Size{Header: 10, PerHop: 2}}, twice, ok, ""},
		{"by cost", cover.Problem{Minimise: cover.Cost}, []cover.Walk{twice[0][:2]}, ok, ""},
		{"by links, by name", cover.Problem{Minimise: cover.Links}, []cover.Walk{twice[0][:2]}, ok, ""},
		{"by links, said", cover.Problem{Minimise: cover.Links}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Minimise = cover.Links }, ""},
		{"by cost instead of links", cover.Problem{Minimise: cover.Links}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Minimise = cover.Cost }, "minimises"},
		{"by links instead of cost", cover.Problem{Minimise: cover.Cost}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Minimise = "" }, "minimises"},
		{"a mean that is rounded", cover.Problem{}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Stats.Mean += 1e-12; x.Stats.Variance += 1e-7 }, ""},
		{"a mean that is not", cover.Problem{}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Stats.Mean += 1e-6 }, "statistics: mean is"},
		{"a variance that is not", cover.Problem{}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Stats.Variance += 1e-5 }, "statistics: variance is"},
		{"a variance of two probes that is rounded", cover.Problem{}, []cover.Walk{twice[0][:2], twice[0]}, func(x *cover.Plan) {
			x.Stats.Optimal = false
			x.Stats.Variance += 1e-7
		}, ""},
		{"as many kept as there are", cover.Problem{}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Kept = 1 }, ""},
		{"one more kept", cover.Problem{}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Kept = 2 }, "2 and 0 probes are said to be kept"},
		{"fewer than none kept", cover.Problem{}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.Kept = -1 }, "said to be kept"},
		{"one of a second cover kept", cover.Problem{}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.KeptSecond = 1 }, "said to be kept"},
		{"fewer than none of it", cover.Problem{}, []cover.Walk{twice[0][:2]}, func(x *cover.Plan) { x.KeptSecond = -1 }, "said to be kept"},
	} {
		c.p.Graph, c.p.Skip, c.p.Depots = g, rest, []int{0}
		plan := byHand(&c.p, c.walks)
		c.spoil(plan)
		if err := cover.Check(&c.p, plan); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// byHand is a plan of walks from depots that is said to be optimal.
func byHand(p *cover.Problem, walks []cover.Walk) *cover.Plan {
	plan := cover.NewPlan(p, "by hand", walks, nil)
	s := &plan.Stats
	for _, w := range walks {
		s.Objective += float64(p.Length(w))
	}
	s.LowerBound, s.Optimal = s.Objective, true
	return plan
}

// TestCheckAttention has a probe of two links, on which three switches add 10 bytes, or 30 in every other round: 60 in the mean.
func TestCheckAttention(t *testing.T) {
	g := line(t)
	x, y := g.Ends(0)
	p := cover.Problem{Graph: g, Skip: []bool{false, true, true}, Depots: []int{0}, Attention: &cover.Attention{Share: 0.5, Basic: 10, Detailed: 30}}
	for _, c := range []struct {
		name         string
		bytes, bound float64
		maxHops      int
		want         string
	}{
		{"a bound of 0 and any length", 60, 0, 0, ""},
		{"a bound below and the longest length", 60, 59, 2, ""},
		{"a bound that is reached", 60, 60, 3, ""},
		{"a bound that is rounded", 60, 60 + 1e-10, 2, ""},
		{"a bound above", 60, 60.1, 2, "at least 60.1"},
		{"a bound below 0", 60, -0.1, 2, "at least -0.1"},
		{"a length below the longest", 60, 59, 1, "at most 1 links"},
		{"bytes that are rounded", 60 + 1e-10, 59, 2, ""},
		{"other bytes", 61, 59, 2, "statistics: attention"},
	} {
		plan := byHand(&p, []cover.Walk{{int32(x), int32(y)}})
		a := &plan.Stats.Attention
		a.Bytes, a.Bound, a.MaxHops = c.bytes, c.bound, c.maxHops
		if err := cover.Check(&p, plan); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestCheckSecondLeavesOut: a second cover may leave out what the first one does, and nothing else.
func TestCheckSecondLeavesOut(t *testing.T) {
	g := line(t)
	there, back := make([]int32, 3), make([]int32, 3)
	for l := range there {
		x, y := g.Ends(l)
		there[l], back[2-l] = int32(x), int32(y)
	}
	p := &cover.Problem{Graph: g, Redundant: true}
	for _, c := range []struct {
		first, second cover.Walk
		want          string
	}{
		{there, back, ""},
		{there[:2], back[1:], ""}, // both without the last link
		{there, back[1:], "second cover: 1 links are not covered"},
		{there[:2], back, "passed in the direction of the first only"},
		{there, there, "passed in the direction of the first only"},
	} {
		plan := cover.NewPlan(p, "by hand", []cover.Walk{c.first}, []cover.Walk{c.second})
		plan.Stats.Objective, plan.Stats.LowerBound = 1, 1
		if len(c.first) == 2 {
			plan.Partial, plan.Stats.LeftOut, plan.NotProbed = true, 1, []cover.Unprobed{{Link: g.LinkName(2)}}
		}
		if err := cover.Check(p, plan); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v and %v: %v, want %q", c.first, c.second, err, c.want)
		}
	}
}

// TestCheckLeftOut counts the directions that are left out, whichever they are.
func TestCheckLeftOut(t *testing.T) {
	g := line(t)
	p := &cover.Problem{Graph: g, Directed: true}
	for side := range 2 {
		var walk cover.Walk
		var out []cover.Unprobed
		for k := range 3 {
			l := [...]int{k, 2 - k}[side]
			x, y := g.Ends(l)
			walk = append(walk, int32([...]int{x, y}[side]))
			out = append(out, cover.Unprobed{Link: g.LinkName(l), From: g.NodeName(g.Node([...]int{y, x}[side]))})
		}
		for _, left := range []float64{2, 3, 4} {
			plan := cover.NewPlan(p, "by hand", []cover.Walk{walk}, nil)
			s := &plan.Stats
			s.Objective, s.LowerBound, s.LeftOut, plan.Partial, plan.NotProbed = 1, 1, left, true, out
			if err := cover.Check(p, plan); (err == nil) != (left == 3) {
				t.Errorf("side %d, %v said to be left out: %v", side, left, err)
			}
			plan.Stats.LeftOut, plan.NotProbed = 3, out[1:]
			if err := cover.Check(p, plan); err == nil || !strings.Contains(err.Error(), "3 of the directions are left out, and 2 are named") {
				t.Errorf("side %d, one not named: %v", side, err)
			}
		}
	}
}

// TestCheckOwnTransition gives plans a transition from nothing, and breaks its steps.
func TestCheckOwnTransition(t *testing.T) {
	p := &cover.Problem{Graph: fabric(t)}
	for _, c := range []struct {
		name  string
		spoil func(x *cover.Plan, all *planner.Transition)
		want  string
	}{
		{"all added", func(*cover.Plan, *planner.Transition) {}, ""},
		{"one kept", func(_ *cover.Plan, all *planner.Transition) {
			all.Keep, all.Add, all.Steps = all.Add[:1], all.Add[1:], all.Steps[1:]
		}, ""},
		{"one removed", func(_ *cover.Plan, all *planner.Transition) {
			all.Remove, all.Steps = []string{"old"}, append(all.Steps, planner.Step{Op: planner.OpRemove, ID: "old"})
		}, ""},
		{"a deadlock", func(x *cover.Plan, all *planner.Transition) { x.Deadlock, all.Steps = "why", nil }, ""},
		{"a deadlock and steps", func(x *cover.Plan, _ *planner.Transition) { x.Deadlock = "why" }, "which its lists do not have"},
		{"a step less", func(_ *cover.Plan, all *planner.Transition) { all.Steps = all.Steps[1:] }, "has no steps for 1 of the probes"},
		{"a step twice", func(_ *cover.Plan, all *planner.Transition) { all.Steps = append(all.Steps, all.Steps[0]) }, "which its lists do not have"},
		{"a step of another kind", func(_ *cover.Plan, all *planner.Transition) { all.Steps[0].Op = planner.OpChange }, "which its lists do not have"},
		{"a step of another probe", func(_ *cover.Plan, all *planner.Transition) { all.Steps[0].ID = "x" }, "which its lists do not have"},
		{"one listed twice", func(_ *cover.Plan, all *planner.Transition) { all.Change = all.Add[:1] }, "twice, or where no probe"},
		{"one removed that is there", func(_ *cover.Plan, all *planner.Transition) { all.Remove, all.Add = all.Add[:1], all.Add[1:] }, "twice, or where no probe"},
		{"one not listed", func(_ *cover.Plan, all *planner.Transition) { all.Add, all.Steps = all.Add[1:], all.Steps[1:] }, "probes, the plan has"},
	} {
		plan := coverPlan(t, p, solve.Options{})
		all := &planner.Transition{Add: ids(plan)}
		for _, id := range all.Add {
			all.Steps = append(all.Steps, planner.Step{Op: planner.OpAdd, ID: id})
		}
		plan.Transition = all
		c.spoil(plan, all)
		if err := cover.Check(p, plan); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestCheckAgents has two agents send and receive up to their limits, and breaks the figures of the plan.
func TestCheckAgents(t *testing.T) {
	base := line(t)
	g, err := base.WithAgents([]topo.Agent{{Name: "x", Node: 0, Port: 5, Send: 1, Receive: 1}, {Name: "y", Node: 3, Port: 6, Send: 1, Receive: 1}})
	if err != nil {
		t.Fatal(err)
	}
	there, back := make(cover.Walk, 3), make(cover.Walk, 3)
	for l := range there {
		x, y := g.Ends(l)
		there[l], back[2-l] = int32(x), int32(y)
	}
	for _, c := range []struct {
		name     string
		noAgents bool
		spoil    func(p *cover.Problem, x *cover.Plan)
		want     string
	}{
		{"as much as they may", false, func(*cover.Problem, *cover.Plan) {}, ""},
		{"one sends too many", false, func(p *cover.Problem, _ *cover.Plan) { p.Agents[0].Send = 0 }, `agent "x" sends 1 probes, at most 0`},
		{"one receives too many", false, func(p *cover.Problem, _ *cover.Plan) { p.Agents[0].Receive = 0 }, `agent "x" receives 1 probes, at most 0`},
		{"the other sends too many", false, func(p *cover.Problem, _ *cover.Plan) { p.Agents[1].Send = 0 }, `agent "y" sends 1 probes, at most 0`},
		{"the other receives too many", false, func(p *cover.Problem, _ *cover.Plan) { p.Agents[1].Receive = 0 }, `agent "y" receives 1 probes, at most 0`},
		{"an agent that is not there", false, func(_ *cover.Problem, x *cover.Plan) { x.Probes[0].AgentHost = "z" }, `probe p1: agent: no agent "z"`},
		{"no agent", false, func(_ *cover.Problem, x *cover.Plan) { x.Probes[0].CollectorHost = "" }, `probe p1: collector: no agent ""`},
		{"the agent of another node", false, func(_ *cover.Problem, x *cover.Plan) { x.Probes[0].AgentHost = "y" }, `agent "y" is at port 6 of "d", not at port 5 of "a"`},
		{"another port", false, func(_ *cover.Problem, x *cover.Plan) { x.Probes[0].CollectorPort = 7 }, `agent "y" is at port 6 of "d", not at port 7`},
		{"an agent where there are none", true, func(_ *cover.Problem, x *cover.Plan) { x.Probes[0].AgentHost = "x" }, `agent "x" is named, and there are none`},
		{"a port that leads out", true, func(_ *cover.Problem, x *cover.Plan) { x.Probes[0].AgentPort = 9 }, ""},
		{"a port that leads to a node", true, func(_ *cover.Problem, x *cover.Plan) { x.Probes[0].AgentPort = 1 }, `port 1 of "a" leads to "b"`},
		{"a port below all", true, func(_ *cover.Problem, x *cover.Plan) { x.Probes[0].AgentPort = -1 }, "is no place for an agent"},
		{"a port of a host", true, func(p *cover.Problem, x *cover.Plan) {
			p.Hosts, x.Probes[0].AgentPort = []bool{true, false, false, false}, 9
		}, "is no place for an agent"},
		{"no port of a host", true, func(p *cover.Problem, _ *cover.Plan) { p.Hosts = []bool{true, false, false, false} }, ""},
	} {
		p := &cover.Problem{Graph: g, Depots: []int{0, 3}, Agents: slices.Clone(g.Agents())}
		if c.noAgents {
			p.Agents = nil
		}
		plan := cover.NewPlan(p, "by hand", []cover.Walk{there, back}, nil)
		plan.Stats.Objective, plan.Stats.LowerBound = 6, 3
		if !c.noAgents {
			a, b := &plan.Probes[0], &plan.Probes[1]
			a.AgentHost, a.AgentPort, a.CollectorHost, a.CollectorPort = "x", 5, "y", 6
			b.AgentHost, b.AgentPort, b.CollectorHost, b.CollectorPort = "y", 6, "x", 5
		}
		c.spoil(p, plan)
		if err := cover.Check(p, plan); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
