package querymix_test

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/querymix/solve"
)

// Three queries of eight bits share sixteen. One wants no more than one packet of four, and the others share the rest.
func Example() {
	problem, err := querymix.Read(strings.NewReader(`{"bits": 16, "queries": [
		{"name": "path", "value": "node", "aggregation": "static", "hops": 5, "nodes": 80,
			"widths": [{"bits": 8, "packets": 30}]},
		{"name": "latency", "value": "latency", "aggregation": "dynamic", "hops": 5, "samples": 10, "max_value": 1000000,
			"widths": [{"bits": 8, "packets": 50}]},
		{"name": "load", "value": "utilization", "aggregation": "per-packet", "max_value": 65536, "frequency": "1/4",
			"widths": [8]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := solve.Plan(problem, solve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range plan.Queries {
		fmt.Printf("%s is on %.1f %% of packets\n", q.Name, 100*q.Share)
	}
	fmt.Printf("proven: %v, error: %v\n", plan.Stats.Optimal, querymix.Check(problem, plan))
	// Output:
	// path is on 87.5 % of packets
	// latency is on 87.5 % of packets
	// load is on 25.0 % of packets
	// proven: true, error: <nil>
}
