package schedule_test

import (
	"fmt"

	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
)

// The link in the middle is to be seen twice as often as the others. Two probes pass it and take turns.
func Example() {
	problem := schedule.Defaults()
	problem.Classes = []schedule.Class{{Name: "core", Period: 500, Links: []string{"b--c"}}}
	problem.Probes = []schedule.Probe{
		{ID: "left", Links: []string{"a--b", "b--c"}, Agent: "a", Collector: "c"},
		{ID: "right", Links: []string{"b--c", "c--d"}, Agent: "b", Collector: "d"},
	}
	plan, err := solve.Plan(problem, solve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range plan.Probes {
		fmt.Printf("%s: every %g ms from %g ms on\n", p.ID, p.Interval, p.Phase)
	}
	fmt.Printf("%g bytes/s, proven: %v, error: %v\n", plan.Stats.Objective, plan.Stats.Optimal, schedule.Check(problem, plan))
	// Output:
	// left: every 1000 ms from 500 ms on
	// right: every 1000 ms from 0 ms on
	// 400 bytes/s, proven: true, error: <nil>
}
