package control

import (
	"slices"
	"testing"

	"github.com/hopscope/hopscope/planner"
)

// TestRefusedAgain has one switch refuse the entries of a plan for ever. The others have them for once at most, tries are further and further apart, and
// what was in force stays in sight.
func TestRefusedAgain(t *testing.T) {
	w := newWorld(Config{Cycle: cycle, Timeout: timeout, Grace: grace, RetryAfter: 2}, triangle())
	for n := 0; n < 3 || !w.idle(); {
		if w.rest() {
			n++
		}
	}
	first := w.c.InForce()
	w.bad = []Suspect{{Link: "ab", Weight: 1}}
	bad := Device{Switch, "b"}
	writes, tries := map[string]map[Request]bool{"a": {}, "c": {}}, []int{}
	for from := w.ticked; w.ticked < from+100; {
		n := w.node(bad)
		if len(n.requests) > 0 && !n.requests[0].lost {
			if in, ok := n.requests[0].Action.(Install); ok && slices.ContainsFunc(in.Entries, func(e Entry) bool { return e.Epoch > first.Epoch && e.Value != first.entriesOf("b")[1].Value }) {
				tries = append(tries, w.ticked)
				r := n.requests[0]
				n.requests = slices.Clone(n.requests[1:])
				var did []Change
				for _, e := range in.Entries {
					did = append(did, Change{Op: Insert, Entry: e, Why: "not here"})
				}
				w.emit(Refused{Request: r.id, Device: bad, Why: "not here", Did: did})
				continue
			}
		}
		for _, name := range []string{"a", "c"} {
			if n := w.node(Device{Switch, name}); len(n.requests) > 0 {
				if _, ok := n.requests[0].Action.(Install); ok {
					writes[name][n.requests[0].id] = true
				}
			}
		}
		w.rest()
		if bad := w.check(); bad != "" {
			t.Fatal(bad)
		}
	}
	if len(tries) < 4 || len(tries) > 8 {
		t.Errorf("%d tries in 100 cycles, at %v", len(tries), tries)
	}
	for name, n := range writes {
		if len(n) > 1 {
			t.Errorf("healthy switch %s is written to %d times", name, len(n))
		}
	}
	if w.c.InForce() != first {
		t.Errorf("in force is %v", w.c.InForce())
	}
}

// TestBudgetCountsTheLastSwitch: a probe over 8 links has 9 switches that add a block.
func TestBudgetCountsTheLastSwitch(t *testing.T) {
	p := planner.Probe{ID: "p", Agent: "a"}
	for k := range 9 {
		p.Nodes = append(p.Nodes, string(rune('a'+k)))
		if k > 0 {
			p.Links = append(p.Links, p.Nodes[k-1]+p.Nodes[k])
		}
	}
	for budget, detailed := range map[float64]int{8: 0, 9: 1} {
		w := newWorld(Config{Cycle: cycle, Timeout: timeout, Budget: budget}, &Network{Agents: []string{"a"}, Probes: []planner.Probe{p}})
		w.bad = []Suspect{{Link: "ab", Weight: 1}}
		for range 200 {
			w.rest()
		}
		s := w.c.Status()
		if s.Stats.Detailed != detailed || s.Stats.Hops != 9 {
			t.Errorf("with a budget of %v hops %d probes are in detail, want %d: %+v", budget, s.Stats.Detailed, detailed, s.Stats)
		}
	}
}
