package solve_test

import (
	"math"
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
)

// TestMeasuredHolds keeps points served: one whose rate is unknown, one whose measured rate has no place, whatever it is, and
// one whose place another one takes with such a rate. A rate that has a place is followed.
func TestMeasuredHolds(t *testing.T) {
	p := &delivery.Problem{Nodes: []delivery.Node{{ID: "m", Kind: delivery.PointNode, Rate: 2, Deadline: 9}, {ID: "n", Kind: delivery.PointNode, Rate: 2, Deadline: 9, Weight: 0.5},
		{ID: "v", Kind: delivery.SwitchNode, Capacity: 10, Up: 1}, {ID: "s", Kind: delivery.ServerNode, Capacity: 10, Up: 1}},
		Links: []delivery.Link{{A: "m", B: "v", Capacity: 10, Up: 1}, {A: "n", B: "v", Capacity: 10, Up: 1}, {A: "v", B: "s", Capacity: 10, Up: 1}}}
	plan := func(m *delivery.Measured, before *delivery.Plan, why string) *delivery.Plan {
		t.Helper()
		m.Margin = 1.25
		m.HoldUnknown(before, why)
		plan, err := solve.Measured(p, m, before, func() func() bool { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	before := plan(&delivery.Measured{Rates: map[string]float64{"m": 0}}, nil, "")
	if r := before.Reserved(); r["m"] != 2.5 || r["n"] != 2.5 {
		t.Fatalf("without measurements: %v", r)
	}
	for _, tt := range []struct {
		name  string
		m, n  float64 // measured
		why   string
		wantM float64
		wantN float64
		heldM string
		heldN string
	}{
		{"silent", 0, 2, "", 2.5, 2.5, "no server has a report of it", ""},
		{"too high", 40, 2, "", 2.5, 2.5, "the measured rate has no place: bandwidth", ""},
		{"beyond all numbers", math.Inf(1), 2, "", 2.5, 2.5, "the measured rate has no place: bandwidth", ""},
		{"takes the place of another", 7, 2.2, "", 2.5, 2.5, "the measured rate has no place: contention", ""},
		{"has a place", 4, 2, "", 5, 2.5, "", ""},
		{"falls", 0.8, 2, "", 1, 2.5, "", ""},
		{"falls at servers that lack reports", 0.8, 4, "lost", 2.5, 5, "lost", ""},
	} {
		m := &delivery.Measured{Rates: map[string]float64{"m": tt.m, "n": tt.n}}
		r := plan(m, before, tt.why).Reserved()
		if r["m"] != tt.wantM || r["n"] != tt.wantN || m.Held["m"] != tt.heldM || m.Held["n"] != tt.heldN {
			t.Errorf("%s: reserved %v, held %q", tt.name, r, m.Held)
		}
	}
}
