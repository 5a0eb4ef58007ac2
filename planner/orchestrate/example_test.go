package orchestrate_test

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
)

// Two flows pass the middle interface, but only one of them has room for everything that is to be collected.
func Example() {
	problem, err := orchestrate.Read(strings.NewReader(`{
		"interfaces": [{"id": "in", "demand": 4}, {"id": "middle", "demand": 5}, {"id": "out", "demand": 3}],
		"flows": [
			{"id": "web", "capacity": 12, "interfaces": ["in", "middle", "out"]},
			{"id": "mail", "capacity": 6, "interfaces": ["middle"]}
		]}`), orchestrate.Concentrate)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := solve.Plan(problem, solve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range problem.Interfaces {
		fmt.Printf("%s travels on %s\n", i.ID, plan.Assignment[i.ID])
	}
	fmt.Printf("flows used: %d, proven: %v, error: %v\n", plan.Stats.FlowsUsed, plan.Stats.Optimal, orchestrate.Check(problem, plan))
	// Output:
	// in travels on web
	// middle travels on web
	// out travels on web
	// flows used: 1, proven: true, error: <nil>
}
