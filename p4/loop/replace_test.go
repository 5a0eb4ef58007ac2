package loop

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// Networks follow each other faster than a cap on changes lets plans follow them. Some probes of the first network are
// in neither the second nor the third. They are sent as before until their turn comes, but broken ones are replaced at
// once.
func TestReplaceTwiceWhileStaged(t *testing.T) {
	var steer control.Config
	x := newEmulated(t, 6, func(_ *emu.Config, c *control.Config) {
		c.MaxChanges = 2
		steer = *c
	})
	first := *x.probing
	first.Slots = map[string]probe.Slot{}
	for k := range x.network.Probes {
		first.Slots[x.network.Probes[k].ID] = probe.Slot{Interval: 70 * time.Millisecond, Phase: time.Duration(k) * time.Microsecond}
	}
	x.probing = &first
	x.start(t, steer, nil)
	x.run(2 * cycle)
	replace := func(prefix string, passes func(p *planner.Probe) bool) {
		n := *x.network
		n.Name, n.Check, n.Probes = prefix, nil, slices.Clone(x.network.Probes)
		b := *x.probing
		b.Slots = map[string]probe.Slot{}
		for k := range n.Probes {
			n.Probes[k].ID = prefix + n.Probes[k].ID
			b.Slots[n.Probes[k].ID] = probe.Slot{Interval: 90 * time.Millisecond, Phase: time.Duration(k) * time.Microsecond}
		}
		if err := x.loop.replace(&Replacement{Network: &n, Probing: &b, Passes: passes}); err != nil {
			t.Fatal(err)
		}
	}
	// sent are the probes at the agents, by the network that they are of.
	sent := func() map[string][]string {
		all := map[string][]string{}
		for _, name := range x.names {
			for _, p := range x.net.AgentPlan(name).Probes {
				of, want := "", 70*time.Millisecond
				if p.ID[0] == 'B' || p.ID[0] == 'C' {
					of, want = p.ID[:1], 90*time.Millisecond
				}
				if p.Agent == name {
					all[of] = append(all[of], p.ID)
				}
				if to := x.probing.Addresses[p.Collector]; p.Interval != want || p.To != to || to == (netip.Addr{}) {
					t.Errorf("probe %s is sent to %v every %v, want %v every %v", p.ID, p.To, p.Interval, to, want)
				}
			}
		}
		return all
	}
	replace("B", nil)
	x.run(2 * cycle)
	got := sent()
	if len(got[""]) == 0 || len(got["B"]) == 0 {
		t.Fatalf("not on its way: %v", got)
	}
	last := slices.Max(got[""]) // it would have stayed for long
	replace("C", func(p *planner.Probe) bool { return p.ID != last })
	x.run(cycle + 300*time.Millisecond)
	got = sent()
	if !slices.Contains(got["C"], "C"+last) {
		t.Errorf("what is in place of the broken probe %s does not come at once: %v", last, got)
	}
	if len(got[""]) < 2 {
		t.Errorf("nearly all of the first network went at once: %v", got)
	}
	x.run(time.Duration(2*len(x.network.Probes)) * cycle)
	if got = sent(); len(got[""])+len(got["B"]) > 0 || len(got["C"]) != len(x.network.Probes) {
		t.Errorf("in the end: %v", got)
	}
}
