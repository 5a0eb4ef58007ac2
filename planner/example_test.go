package planner_test

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/planner"
)

// A plan that replaces another keeps the ids of the probes that stay. Their difference is what agents have to be sent.
func ExampleDiff() {
	old := []planner.Probe{
		{ID: "p1", Nodes: []string{"leaf-1", "spine-1", "leaf-2"}},
		{ID: "p2", Nodes: []string{"leaf-2", "spine-2", "leaf-1"}},
		{ID: "p3", Nodes: []string{"leaf-1", "leaf-2"}},
	}
	now := []planner.Probe{
		{ID: "p1", Nodes: []string{"leaf-1", "spine-1", "leaf-2"}},
		{ID: "p3", Nodes: []string{"leaf-1", "spine-2", "leaf-2"}},
		{ID: "p4", Nodes: []string{"spine-2", "leaf-2"}},
	}
	changes, err := planner.Diff(old, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range changes.Added {
		fmt.Println("add", p.ID, p.Nodes)
	}
	for _, p := range changes.Removed {
		fmt.Println("remove", p.ID)
	}
	for _, c := range changes.Changed {
		fmt.Println("change", c.New.ID, "from", c.Old.Nodes, "to", c.New.Nodes)
	}
	// Output:
	// add p4 [spine-2 leaf-2]
	// remove p2
	// change p3 from [leaf-1 leaf-2] to [leaf-1 spine-2 leaf-2]
}

// Keys that are not read are errors, with the place where they are.
func ExampleReadJSON() {
	var plan struct {
		Probes []planner.Probe `json:"probes"`
	}
	err := planner.ReadJSON(strings.NewReader(`{"probes": [{"id": "p1", "node": ["leaf-1", "leaf-2"]}]}`), &plan)
	fmt.Println(err)
	// Output:
	// byte 25: probes[0]: unknown key "node"
}
