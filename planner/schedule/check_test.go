package schedule_test

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/schedule"
)

// TestCheckTimes sends one probe in an interval of one slot and more, over a link that wants to be seen every two slots.
func TestCheckTimes(t *testing.T) {
	p := schedule.Defaults()
	p.Slot, p.Period, p.Longest = 100, 200, 400
	p.Links = []schedule.Link{{Name: "other"}}
	p.Probes = []schedule.Probe{{ID: "p", Links: []string{"l"}, Agent: "a", Collector: "b"}, {ID: "q", Links: []string{"l", "other"}, Agent: "a", Collector: "b"}}
	fast := *p
	fast.Period, fast.Longest = 100, 100
	for _, c := range []struct {
		name    string
		p       *schedule.Problem
		p1, p2  int // intervals, in slots
		partial bool
		listed  bool
		want    string
	}{
		{"both in every slot", &fast, 1, 1, false, false, ""},
		{"both every two", p, 2, 2, false, false, ""},
		{"one of both", p, 0, 2, false, false, ""},
		{"one is not on the other link", p, 2, 0, true, true, ""},
		{"and this is not said", p, 2, 0, true, false, "link other is never seen"},
		{"nor that the plan is partial", p, 2, 0, false, true, "link other is never seen"},
		{"too seldom", p, 0, 4, true, true, ""},
		{"too seldom, not said", p, 0, 4, true, false, "link other is not seen for 400 ms, and should be every 200 ms"},
		{"too seldom, not said to be partial", p, 0, 4, false, true, "link other is not seen for 400 ms, and should be every 200 ms"},
	} {
		r, err := c.p.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		plan := schedule.NewPlan(r, "by hand", schedule.Times{Interval: []int{c.p1, c.p2}, Phase: []int{0, 0}})
		if !c.listed {
			plan.NotSeen = nil
		}
		plan.Partial = c.partial
		if err := schedule.Check(c.p, plan); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
