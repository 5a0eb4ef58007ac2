package attention_test

import (
	"fmt"

	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/attention/solve"
)

// One probe passes both suspicious links, but two short ones that pass one each cost less.
func Example() {
	problem := &attention.Problem{
		Probes: []attention.Trace{
			{ID: "long", Cost: 7, Links: []string{"a--b", "b--c", "c--d"}},
			{ID: "left", Cost: 2, Links: []string{"a--b"}},
			{ID: "right", Cost: 3, Links: []string{"c--d"}},
		},
		Suspicious: []string{"a--b", "c--d"},
	}
	plan, err := solve.Plan(problem, solve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range plan.Probes {
		fmt.Println(p.ID, "looks at", p.Suspicious)
	}
	fmt.Printf("cost: %g, proven: %v, error: %v\n", plan.Stats.Cost, plan.Stats.Optimal, attention.Check(problem, plan))
	// Output:
	// left looks at [a--b]
	// right looks at [c--d]
	// cost: 5, proven: true, error: <nil>
}
