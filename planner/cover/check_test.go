package cover_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
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

func coverPlan(t *testing.T, p *cover.Problem, o solve.Options) *cover.Plan {
	t.Helper()
	plan, err := solve.Plan(p, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := cover.Check(p, plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

func ids(x *cover.Plan) (list []string) {
	for _, p := range x.Probes {
		list = append(list, p.ID)
	}
	return list
}

// TestCheck breaks good plans in every way that the check is there for.
func TestCheck(t *testing.T) {
	g := fabric(t)
	plain := &cover.Problem{Graph: g}
	depots := &cover.Problem{Graph: g, Depots: []int{3, 4}}
	redundant := &cover.Problem{Graph: g, Redundant: true}
	low := &cover.Problem{Graph: g, Directed: true, MaxPort: 3}
	skip := make([]bool, g.NumLinks())
	skip[0] = true
	for _, c := range []struct {
		name  string
		p     *cover.Problem
		check *cover.Problem // problem that the plan is checked against, if another
		spoil func(*cover.Plan)
		want  string
	}{
		{"probe left out", plain, nil, func(x *cover.Plan) { x.Probes = x.Probes[1:] }, "of the links are not covered"},
		{"probe twice", plain, nil, func(x *cover.Plan) { x.Probes = append(x.Probes, x.Probes[0]) }, "is passed 2 times"},
		{"node swapped", plain, nil, func(x *cover.Plan) {
			x.Probes[0].Nodes = slices.Clone(x.Probes[0].Nodes)
			x.Probes[0].Nodes[1] = "leaf-3"
		}, "does not lead to"},
		{"port swapped", plain, nil, func(x *cover.Plan) {
			x.Probes[0].Ports = slices.Clone(x.Probes[0].Ports)
			x.Probes[0].Ports[0] = 9
		}, "port 9 of"},
		{"link swapped", plain, nil, func(x *cover.Plan) {
			x.Probes[0].Links = slices.Clone(x.Probes[0].Links)
			x.Probes[0].Links[0] = "x--y"
		}, "not x--y"},
		{"unknown node", plain, nil, func(x *cover.Plan) {
			x.Probes[0].Nodes = slices.Clone(x.Probes[0].Nodes)
			x.Probes[0].Nodes[0], x.Probes[0].Agent = "nobody", "nobody"
		}, `no node "nobody"`},
		{"agent elsewhere", plain, nil, func(x *cover.Plan) { x.Probes[0].Agent = "leaf-9" }, "are not its ends"},
		{"cut", plain, nil, func(x *cover.Plan) { x.Probes[0].Ports = x.Probes[0].Ports[1:] }, "nodes,"},
		{"too long", plain, &cover.Problem{Graph: g, MaxHops: 2}, func(*cover.Plan) {}, "at most 2 are allowed"},
		{"link to skip", plain, &cover.Problem{Graph: g, Skip: skip}, func(*cover.Plan) {}, "which must not be used"},
		{"one direction only", plain, &cover.Problem{Graph: g, Directed: true}, func(*cover.Plan) {}, "of the directions are not covered"},
		{"said to be directed", plain, nil, func(x *cover.Plan) { x.Directed = true }, "the plan says true of passing both directions"},
		{"said to be partial", plain, nil, func(x *cover.Plan) { x.Partial = true }, "said to be true"},
		{"more kept than there are", plain, nil, func(x *cover.Plan) { x.Kept = 99 }, "99 and 0 probes are said to be kept"},
		{"not probed is no link", plain, nil, func(x *cover.Plan) { x.NotProbed = []cover.Unprobed{{Link: "x--y"}} }, "link x--y is said not to be probed"},
		{"not probed is passed", plain, nil, func(x *cover.Plan) {
			x.NotProbed = []cover.Unprobed{{Link: x.Probes[0].Links[0]}}
		}, "is said not to be probed"},
		{"left out and not named", low, nil, func(x *cover.Plan) { x.NotProbed = x.NotProbed[1:] }, "are named"},
		{"left out in another direction", low, nil, func(x *cover.Plan) { x.NotProbed[0].From = "leaf-0" }, "is said not to be probed"},
		{"deadlock of nothing", plain, nil, func(x *cover.Plan) { x.Deadlock = "x" }, "a deadlock, and no transition"},
		{"transition to other probes", plain, nil, func(x *cover.Plan) { x.Transition = &planner.Transition{Add: []string{"z"}} }, `lists "z"`},
		{"transition from its own probes", plain, nil, func(x *cover.Plan) { x.Transition = &planner.Transition{Remove: []string{"p1"}} }, `lists "p1"`},
		{"transition to one probe", plain, nil, func(x *cover.Plan) { x.Transition = &planner.Transition{Keep: []string{"p1"}} }, "leads to 1 probes"},
		{"transition without steps", plain, nil, func(x *cover.Plan) { x.Transition = &planner.Transition{Add: ids(x)} }, "has no steps for"},
		{"transition with other steps", plain, nil, func(x *cover.Plan) {
			x.Transition = &planner.Transition{Keep: ids(x), Steps: []planner.Step{{Op: planner.OpRemove, ID: "p1"}}}
		}, `a step to remove "p1"`},
		{"no depot at the end", plain, depots, func(*cover.Plan) {}, "which is no depot"},
		{"id twice", plain, nil, func(x *cover.Plan) { x.Probes[1].ID = x.Probes[0].ID }, `the id "p1"`},
		{"variance", plain, nil, func(x *cover.Plan) { x.Stats.Variance++ }, "statistics: variance is 1, not 0"},
		{"objective", plain, nil, func(x *cover.Plan) { x.Stats.Objective++ }, "the probes say"},
		{"bound above", plain, nil, func(x *cover.Plan) { x.Stats.LowerBound++ }, "is above the objective"},
		{"not optimal", plain, nil, func(x *cover.Plan) { x.Stats.LowerBound-- }, "called optimal"},
		{"walked back and forth", depots, nil, func(x *cover.Plan) {
			back := x.Probes[0]
			slices.Reverse(back.Nodes)
			x.Probes = append(x.Probes, x.Probes[0])
		}, ""},
		{"second cover gone", redundant, nil, func(x *cover.Plan) { x.Second = nil }, "second cover"},
		{"second cover like the first", redundant, nil, func(x *cover.Plan) { x.Second = x.Probes }, "in the direction of the first"},
		{"second cover for nothing", plain, nil, func(x *cover.Plan) { x.Second = x.Probes }, "was not asked for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := coverPlan(t, c.p, solve.Options{Partial: c.p == low})
			if c.check == nil {
				c.check = c.p
			}
			c.spoil(plan)
			if err := cover.Check(c.check, plan); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check = %v, want %q in it", err, c.want)
			}
		})
	}
}
