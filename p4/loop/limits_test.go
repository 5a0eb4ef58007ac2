package loop

import (
	"slices"
	"testing"

	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/planner/control"
)

// leftOut is the value of hopscope_control_left_out_links.
func leftOut(t *testing.T, s *Status) int {
	t.Helper()
	k := slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == "hopscope_control_left_out_links" })
	if k < 0 {
		t.Fatal("there is no such metric")
	}
	return int(Metrics[k].Value(s))
}

// All links of a network are suspicious, more than ten times what the budget, or the cap on changes, allows. The status
// names those without detail, and the metric counts them. With the cap they get detail later.
func TestLimits(t *testing.T) {
	for name, set := range map[string]func(*control.Config){
		"loop.budget_hops":             func(c *control.Config) { c.Budget = 8 },
		"loop.budget_hops for nothing": func(c *control.Config) { c.Budget = 1 },
		"loop.max_changes":             func(c *control.Config) { c.MaxChanges = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			x := newEmulated(t, 1, func(_ *emu.Config, c *control.Config) { set(c) })
			x.run(2 * cycle)
			links := map[string]bool{}
			for _, p := range x.network.Probes {
				for _, l := range p.Links {
					links[l] = true
				}
			}
			for l := range links {
				x.suspects.list = append(x.suspects.list, control.Suspect{Link: l, Weight: 1, Why: "a test"})
			}
			x.run(cycle + cycle/5)
			s := x.loop.StatusNow()
			looked := 0
			for _, l := range s.Links {
				if l.Suspect && l.Detailed {
					looked++
				}
			}
			if (looked == 0) != (name == "loop.budget_hops for nothing") || looked > len(links)/5 || len(s.Stats.LeftOut) != len(links)-looked || leftOut(t, &s) != len(links)-looked {
				t.Errorf("%d of %d links have a closer look, %d are left out by the status and %d by the metric", looked, len(links), len(s.Stats.LeftOut), leftOut(t, &s))
			}
			if name == "loop.max_changes" {
				x.run(100 * cycle)
				if s := x.loop.StatusNow(); leftOut(t, &s) != 0 {
					t.Errorf("after 100 cycles %d are left out", leftOut(t, &s))
				}
			}
		})
	}
}
