package delivery_test

import (
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
)

// TestHold holds claims against another plan, by its figures and bounds: what is left out, links, servers.
func TestHold(t *testing.T) {
	stats := func(left, leftBound float64, links, linkBound, servers, bound int, optimal bool) delivery.Stats {
		s := delivery.Stats{Links: links, LinkBound: linkBound, Servers: servers}
		s.LeftOut, s.LeftOutBound, s.Objective, s.LowerBound, s.Optimal = left, leftBound, float64(servers), float64(bound), optimal
		return s
	}
	best := stats(1, 1, 2, 2, 3, 3, true)
	for _, tt := range []struct {
		name  string
		plan  delivery.Stats
		other delivery.Stats
		proof planner.Proof // empty: refuted
	}{
		{"the same", best, best, planner.Verified},
		{"nothing claimed", stats(2, 0, 5, 0, 4, 0, false), best, planner.Verified},
		{"too much left out", stats(2, 2, 0, 0, 3, 0, false), best, ""},
		{"optimal and left out", stats(2, 1, 2, 2, 3, 3, true), best, ""},
		{"a link too many", stats(1, 1, 3, 3, 3, 3, true), best, ""},
		{"a link too many, optimal", stats(1, 1, 3, 2, 3, 3, true), best, ""},
		{"a server too many", stats(1, 1, 2, 2, 4, 4, true), best, ""},
		{"more links have fewer servers", stats(1, 1, 1, 1, 4, 4, true), best, planner.Claimed},
		{"not found again", best, stats(2, 0, 2, 0, 3, 0, false), planner.Claimed},
		{"servers not proven again", best, stats(1, 1, 2, 2, 3, 2, false), planner.Claimed},
		{"links not proven again", best, stats(1, 1, 2, 1, 3, 3, false), planner.Claimed},
		{"worse, with a bound of its own", stats(2, 1, 0, 0, 2, 2, false), best, planner.Claimed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.plan.Hold(&tt.other)
			if (err != nil) != (tt.proof == "") || tt.plan.Proof != tt.proof {
				t.Errorf("Hold: %v, proof %q, want %q", err, tt.plan.Proof, tt.proof)
			}
		})
	}
}
