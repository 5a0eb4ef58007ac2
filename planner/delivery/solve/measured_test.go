package solve_test

import (
	"math"
	"testing"
	"time"

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

// TestQuietPoints releases what a plan reserves for a point that stays quiet: its server is switched off, and the point keeps
// a path at the lowest rate. Nothing is released before the time, or with a time of 0.
func TestQuietPoints(t *testing.T) {
	p := &delivery.Problem{Nodes: []delivery.Node{
		{ID: "m", Kind: delivery.PointNode, Rate: 8, Deadline: 9}, {ID: "n", Kind: delivery.PointNode, Rate: 8, Deadline: 9}, {ID: "v", Kind: delivery.SwitchNode, Capacity: 40, Up: 1},
		{ID: "s", Kind: delivery.ServerNode, Capacity: 11, Up: 1}, {ID: "u", Kind: delivery.ServerNode, Capacity: 11, Up: 1}},
		Links: []delivery.Link{{A: "m", B: "v", Capacity: 40, Up: 1}, {A: "n", B: "v", Capacity: 40, Up: 1}, {A: "v", B: "s", Capacity: 40, Up: 1}, {A: "v", B: "u", Capacity: 40, Up: 1}}}
	began, silent, sending := time.Unix(1000, 0), map[string]int64{}, map[string]bool{}
	var plan *delivery.Plan
	next := func(seconds int, after time.Duration, rates map[string]float64) *delivery.Measured {
		t.Helper()
		m := &delivery.Measured{Rates: rates, Margin: 1.25}
		m.Release(silent, plan, began.Add(time.Duration(seconds)*time.Second).UnixNano(), int64(after), sending)
		m.HoldUnknown(plan, "")
		made, err := solve.Measured(p, m, plan, func() func() bool { return nil })
		if err != nil {
			t.Fatal(err)
		}
		plan = made
		return m
	}
	next(0, time.Minute, map[string]float64{"m": 8, "n": 8})
	if len(plan.Selected()) != 2 {
		t.Fatalf("two points of 10 at servers of 11: %v", plan.Assignment)
	}
	next(1, time.Minute, map[string]float64{"m": 8})
	if m := next(60, time.Minute, map[string]float64{"m": 8}); m.Held["n"] == "" || len(plan.Selected()) != 2 {
		t.Fatalf("quiet for 59 s: held %v, %v", m.Held, plan.Assignment)
	}
	if m := next(9999, 0, map[string]float64{"m": 8}); m.Held["n"] == "" {
		t.Fatalf("never to be released: held %v", m.Held)
	}
	sending["n"] = true
	if m := next(9999, time.Minute, map[string]float64{"m": 8}); m.Held["n"] == "" || len(silent) != 0 {
		t.Fatalf("reports are lost on the way: held %v, silent %v", m.Held, silent)
	}
	sending["n"], silent["n"] = false, began.UnixNano()
	for seconds := 61; seconds < 64; seconds++ { // and it stays so
		m := next(seconds, time.Minute, map[string]float64{"m": 8})
		if r := plan.Reserved(); m.Held["n"] != "" || len(plan.Selected()) != 1 || r["m"] != 10 || !(r["n"] > 0 && r["n"] < 1e-4) {
			t.Fatalf("quiet for a minute: held %v, reserved %v, %v", m.Held, r, plan.Assignment)
		}
	}
	if next(70, time.Minute, map[string]float64{"m": 8, "n": 8}); len(plan.Selected()) != 2 || plan.Reserved()["n"] != 10 || len(silent) != 0 {
		t.Errorf("no longer quiet: %v, silent %v", plan.Assignment, silent)
	}
}
