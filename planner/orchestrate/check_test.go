package orchestrate_test

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// TestCheckItems carries more than there is, and otherwise than was asked.
func TestCheckItems(t *testing.T) {
	p := &orchestrate.Problem{
		Objective:  orchestrate.Concentrate,
		Interfaces: []orchestrate.Interface{{ID: "i", Demand: 4}, {ID: "j", Demand: 2}},
		Flows:      []orchestrate.Flow{{ID: "f", Capacity: 20, Interfaces: []int32{0, 1}}, {ID: "g", Capacity: 20, Interfaces: []int32{0}}},
	}
	for _, c := range []struct {
		name   string
		split  bool
		copies int
		shares []orchestrate.Share
		want   string // nothing: it holds
	}{
		{"whole", false, 1, []orchestrate.Share{{0, 0, 4}, {1, 0, 2}}, ""},
		{"twice", false, 1, []orchestrate.Share{{0, 0, 4}, {0, 1, 4}, {1, 0, 2}}, `interface "i": 8 of 4 items are carried`},
		{"twice where that is asked for", false, 2, []orchestrate.Share{{0, 0, 4}, {0, 1, 4}, {1, 0, 2}}, ""},
		{"in parts", true, 1, []orchestrate.Share{{0, 0, 3}, {0, 1, 1}, {1, 0, 2}}, ""},
		{"in parts that were not asked for", false, 1, []orchestrate.Share{{0, 0, 3}, {0, 1, 1}, {1, 0, 2}}, "demands are not to be split"},
		{"more than the demand", true, 2, []orchestrate.Share{{0, 0, 5}, {0, 1, 3}, {1, 0, 2}}, "5 items on flow \"f\", its demand is 4"},
		{"less than nothing", true, 2, []orchestrate.Share{{0, 0, -1}, {0, 1, 4}, {1, 0, 2}}, "-1 items on flow \"f\""},
		{"as much as fits", true, 1, []orchestrate.Share{{0, 0, 4}, {1, 0, 2}}, ""},
		{"what the flow does not pass", false, 1, []orchestrate.Share{{0, 0, 4}, {1, 1, 2}}, `flow "g" does not pass interface "j"`},
	} {
		q := *p
		q.Split, q.Redundancy = c.split, c.copies
		plan := orchestrate.NewPlan(&q, "by hand", c.shares)
		plan.SetBound(0, 0)
		plan.Stats.Optimal = false
		if err := orchestrate.Check(&q, plan); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for _, room := range []int64{5, 6} {
		q := *p
		q.Flows = []orchestrate.Flow{{ID: "f", Capacity: room, Interfaces: []int32{0, 1}}}
		plan := orchestrate.NewPlan(&q, "by hand", []orchestrate.Share{{0, 0, 4}, {1, 0, 2}})
		plan.SetBound(0, 0)
		plan.Stats.Optimal = false
		if err := orchestrate.Check(&q, plan); (err == nil) != (room == 6) {
			t.Errorf("6 items on a flow of %d: %v", room, err)
		}
	}
}
