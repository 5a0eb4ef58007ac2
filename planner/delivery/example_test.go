package delivery_test

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
)

// Two switches report through a third one to a single server, since it has room for both.
func Example() {
	problem, err := delivery.Read(strings.NewReader(`{
		"nodes": [
			{"id": "leaf-1", "kind": "point", "rate_gbps": 10, "deadline_ms": 5, "loss": 0.01},
			{"id": "leaf-2", "kind": "point", "rate_gbps": 20, "deadline_ms": 5, "loss": 0.01},
			{"id": "spine", "kind": "switch", "capacity_gbps": 100},
			{"id": "server-1", "kind": "server", "capacity_gbps": 40},
			{"id": "server-2", "kind": "server", "capacity_gbps": 25}],
		"links": [
			{"a": "leaf-1", "b": "spine", "latency_ms": 1, "capacity_gbps": 100},
			{"a": "leaf-2", "b": "spine", "latency_ms": 1, "capacity_gbps": 100},
			{"a": "spine", "b": "server-1", "latency_ms": 1, "capacity_gbps": 100},
			{"a": "spine", "b": "server-2", "latency_ms": 1, "capacity_gbps": 100}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := solve.Plan(problem, solve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range plan.Assignment {
		fmt.Printf("%s sends %g Gbit/s over %s\n", a.Point, a.Rate, strings.Join(a.Path, " "))
	}
	fmt.Printf("servers: %d, added links: %d, proven: %v, error: %v\n", plan.Stats.Servers, plan.Stats.Links, plan.Stats.Optimal, delivery.Check(problem, plan))
	// Output:
	// leaf-1 sends 10 Gbit/s over leaf-1 spine server-1
	// leaf-2 sends 20 Gbit/s over leaf-2 spine server-1
	// servers: 1, added links: 0, proven: true, error: <nil>
}
