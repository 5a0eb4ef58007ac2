package attention_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
)

// TestCheckEach breaks a partial plan in one thing at a time, and wants that to be reported and nothing else.
func TestCheckEach(t *testing.T) {
	p := &attention.Problem{
		Probes: []attention.Trace{
			{ID: "a", Cost: 2, Links: []string{"1", "2"}}, {ID: "b", Cost: 3, Links: []string{"2", "3", "2"}},
			{ID: "c", Cost: 4, Links: []string{"3", "4"}}, {ID: "d", Cost: 1, Links: []string{"5"}},
		},
		Suspicious: []string{"1", "3", "8", "9"}, Detailed: []string{"a", "c"}, SwitchCost: 1, Weights: map[string]float64{"9": 5},
	}
	good := func() *attention.Plan {
		plan := attention.NewPlan(p, "by hand", []int32{0, 1})
		plan.OnNoProbe, plan.Partial, plan.Stats.LeftOut = []string{"8", "9"}, true, 6
		return plan
	}
	if plan := good(); plan.Stats.Objective != 7 || !slices.Equal(plan.TurnedOn, []string{"b"}) || !slices.Equal(plan.TurnedOff, []string{"c"}) {
		t.Fatalf("the plan is %+v", plan)
	}
	for _, c := range []struct {
		name  string
		spoil func(*attention.Plan)
		want  string // the only error
	}{
		{"nothing", func(*attention.Plan) {}, ""},
		{"a link that no probe looks at", func(x *attention.Plan) {
			*x = *attention.NewPlan(p, "by hand", []int32{0})
			x.OnNoProbe, x.Partial, x.Stats.LeftOut = []string{"8", "9"}, true, 6
		}, "suspicious link 3 is on no probe that measures in detail"},
		{"a link that is not listed", func(x *attention.Plan) { x.OnNoProbe, x.Stats.LeftOut = []string{"9"}, 5 }, "suspicious link 8 is on no probe, and the plan does not say so"},
		{"a link that is listed twice", func(x *attention.Plan) { x.OnNoProbe = append(x.OnNoProbe, "9") }, "are there twice"},
		{"a link that is not suspicious", func(x *attention.Plan) { x.OnNoProbe = append(x.OnNoProbe, "7") }, "link 7 is listed as suspicious and on no probe, but is not"},
		{"a link on a probe", func(x *attention.Plan) { x.OnNoProbe = append(x.OnNoProbe, "3") }, "link 3 is listed as suspicious and on no probe, but is not"},
		{"another probe turned on", func(x *attention.Plan) { x.TurnedOn = []string{"d"} }, `probe "d" is not turned on`},
		{"one turned on that was", func(x *attention.Plan) { x.TurnedOn = []string{"a"} }, `probe "a" is not turned on`},
		{"another probe turned off", func(x *attention.Plan) { x.TurnedOff = []string{"d"} }, `probe "d" is not turned off`},
		{"one turned off that is not", func(x *attention.Plan) { x.TurnedOff = []string{"a"} }, `probe "a" is not turned off`},
		{"more changes", func(x *attention.Plan) { x.Stats.Changes++ }, "2 probes change, the plan says 3 and lists 2"},
		{"a change not listed", func(x *attention.Plan) { x.TurnedOn = nil }, "2 probes change, the plan says 2 and lists 1"},
		{"more left out", func(x *attention.Plan) { x.Stats.LeftOut++ }, "links of weight 6 are left out, the plan says 7"},
		{"more churn", func(x *attention.Plan) { x.Churn = &planner.Churn{Limit: -1, Changed: 3} }, "2 probes change, the plan says 3"},
		{"churn beyond the limit", func(x *attention.Plan) { x.Churn = &planner.Churn{Limit: 1, Changed: 2} }, "2 probes change, where 1 may"},
		{"churn within the limit", func(x *attention.Plan) { x.Churn = &planner.Churn{Limit: 2, Changed: 2} }, ""},
		{"another cost of a probe", func(x *attention.Plan) { x.Probes[0].Cost++ }, `probe "a" costs 2`},
		{"another link of a probe", func(x *attention.Plan) { x.Probes[0].Suspicious = []string{"3"} }, `probe "a" is listed for link 3`},
		{"a probe twice", func(x *attention.Plan) { x.Probes = append(x.Probes, x.Probes[0]) }, `probe "a" is listed, but is not there, or a second time`},
		{"another sum", func(x *attention.Plan) { x.Stats.Cost++ }, "the plan costs 5, with changes 7, and says 6 and 7"},
		{"another objective", func(x *attention.Plan) { x.Stats.Objective++ }, "and says 5 and 8"},
		{"another sum of all", func(x *attention.Plan) { x.Stats.AllCost++ }, "which cost 10"},
		{"links in another order", func(x *attention.Plan) { slices.Reverse(x.OnNoProbe) }, ""},
	} {
		plan := good()
		c.spoil(plan)
		err := attention.Check(p, plan)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case c.want != "" && strings.Contains(err.Error(), "\n") && c.name != "another link of a probe":
			t.Errorf("%s: %v, want %q alone", c.name, err, c.want)
		}
	}
}
