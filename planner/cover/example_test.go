package cover_test

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// A solver makes the plan, and an independent check validates it.
func Example() {
	g, err := topo.Parse("leaf-spine:2,3")
	if err != nil {
		fmt.Println(err)
		return
	}
	problem := &cover.Problem{Graph: g, MaxHops: 4}
	plan, err := solve.Plan(problem, solve.Options{Balanced: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range plan.Probes {
		fmt.Println(p.ID, strings.Join(p.Nodes, " "))
	}
	fmt.Println("optimal:", plan.Stats.Optimal, "error:", cover.Check(problem, plan))

	plan.Probes = plan.Probes[1:]
	fmt.Println("without a probe:", cover.Check(problem, plan) != nil)
	// Output:
	// p1 spine-0 leaf-0 spine-1 leaf-1
	// p2 leaf-1 spine-0 leaf-2 spine-1
	// optimal: true error: <nil>
	// without a probe: true
}
