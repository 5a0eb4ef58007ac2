package p4_test

import (
	"testing"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/delivery"
)

// TestDeliveryCounts attributes counters to paths by their cells, whichever of them a switch answers with, takes none of a
// negative one, and keeps those of a switch that no longer answers.
func TestDeliveryCounts(t *testing.T) {
	c := &p4.DeliveryConfig{Points: []p4.DeliveryPoint{{Name: "m"}, {Name: "n"}}}
	plan := &delivery.Plan{Assignment: []delivery.Assignment{{ID: "m/1", Point: "m", Tag: 1, Server: "s", Rate: 1}, {ID: "m/3", Point: "m", Tag: 3, Server: "s", Rate: 1}, {ID: "n/2", Point: "n", Tag: 2, Server: "s", Rate: 1}}}
	var s p4.DeliveryStatus
	s.Describe(c, plan)
	of := map[string]*p4.Counts{"m": {Sent: map[int64]int64{3: 7}, Refused: map[int64]int64{1: 4}, Withheld: map[int64]int64{0: 2}},
		"n": {Sent: map[int64]int64{2: -1}, Refused: map[int64]int64{2: -9}}, "v": {Refused: map[int64]int64{0: 5}}}
	check := func() {
		t.Helper()
		if s.Refused != 11 || s.Points[0].Refused != 6 || s.Points[1].Refused != 0 {
			t.Errorf("%d refused, at points %+v", s.Refused, s.Points)
		}
		if p := s.Paths; p[0].Sent != 0 || p[0].Refused != 4 || p[1].Sent != 7 || p[1].Refused != 0 || p[2].Sent != 0 || p[2].Refused != 0 {
			t.Errorf("paths %+v", p)
		}
	}
	s.Count(plan, of)
	check()
	delete(of, "n")
	s.Describe(c, plan)
	s.Count(plan, of)
	check()
}
