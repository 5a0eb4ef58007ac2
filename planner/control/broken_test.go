package control

import (
	"slices"
	"strings"
	"testing"
)

// small explorations find what is broken sooner.
var small = []exploration{
	{"a second plan, a refusal, a crash", 1, bounds{ticks: 2, refusals: 1, crashes: 1}},
	{"a second plan, a fault, a refusal", 1, bounds{ticks: 3, faults: 1, refusals: 1}},
	{"detail in force, a restart with the journal", 2, bounds{ticks: 1, restarts: 1}},
	{"a second plan, a switch that acknowledges and forgets, with audits", 1, bounds{ticks: 2, forgets: 1, audit: 1}},
	{"a second plan, two single entries refused or forgotten, a crash", 1, bounds{ticks: 2, singles: 2, crashes: 1}},
}

// TestBrokenControllers breaks the controller in several ways. The exploration has to find every one.
func TestBrokenControllers(t *testing.T) {
	each := func(w *world, actions []Action, do func(a Action) []Action) (out []Action) {
		for _, a := range actions {
			out = append(out, do(a)...)
		}
		return out
	}
	for _, b := range []twist{
		{name: "removes what is old before agents have moved", finds: "out of sight",
			actions: func(w *world, actions []Action) []Action {
				return each(w, actions, func(a Action) []Action {
					in, ok := a.(Install)
					if !ok {
						return []Action{a}
					}
					epoch := in.Entries[len(in.Entries)-1].Epoch
					old := slices.DeleteFunc(slices.Clone(w.node(in.Device).entries), func(e Entry) bool { return e.Epoch == 0 || e.Epoch >= epoch })
					return []Action{a, Remove{0, in.Device, old}}
				})
			}},
		{name: "moves agents before switches are ready", finds: "out of sight",
			actions: func(w *world, actions []Action) []Action {
				return each(w, actions, func(a Action) []Action {
					if _, ok := a.(Install); ok && w.c.target != nil {
						return []Action{a, SendPlan{0, w.nodes[0].Device, w.c.target}}
					}
					return []Action{a}
				})
			}},
		{name: "guesses that an agent has no plan", finds: "out of sight",
			events: func(_ *world, e Event) Event {
				if r, ok := e.(ReadBack); ok {
					r.Epoch = 0
					return r
				}
				return e
			}},
		{name: "guesses that switches hold nothing", finds: "never well",
			events: func(_ *world, e Event) Event {
				if r, ok := e.(ReadBack); ok {
					r.Entries = nil
					return r
				}
				return e
			}},
		{name: "takes silence for an answer", finds: "out of sight",
			events: func(w *world, e Event) Event {
				at := int64(0)
				switch e := e.(type) {
				case Wake:
					at = e.Now
				case Tick:
					at = e.Now
				}
				for k := range w.c.devices {
					if d := &w.c.devices[k]; d.waits > reading && d.deadline <= at {
						for _, a := range w.c.Step(Acked{d.request, d.Device}) {
							w.post(a)
						}
					}
				}
				return e
			}},
		{name: "numbers plans from the beginning after a crash", finds: "out of sight",
			events: func(w *world, e Event) Event {
				if _, ok := e.(Tick); ok && w.c.target == nil {
					w.c.last = 0
				}
				return e
			}},
		{name: "forgets to remove", finds: "never well",
			actions: func(w *world, actions []Action) []Action {
				return each(w, actions, func(a Action) []Action {
					if r, ok := a.(Remove); ok {
						return []Action{Remove{r.Request, r.Device, nil}}
					}
					return []Action{a}
				})
			}},
		{name: "uses reports of whatever plan an agent has", finds: "are used in one cycle",
			actions: func(w *world, actions []Action) []Action {
				for k := range w.c.devices {
					if d := &w.c.devices[k]; d.Kind == Agent {
						d.expect = d.inForce
					}
				}
				return actions
			}},
		{name: "believes that a refused install wrote nothing", finds: "never well",
			events: func(w *world, e Event) Event {
				if r, ok := e.(ReadBack); ok && r.Device.Kind == Switch && w.c.refusal.plan != nil {
					r.Entries = slices.DeleteFunc(slices.Clone(r.Entries), func(e Entry) bool { return e.Epoch == w.c.refusal.plan.Epoch })
					return r
				}
				return e
			}},
		{name: "begins without suspicion after a restart", finds: "no longer in detail",
			events: func(w *world, e Event) Event {
				if t, ok := e.(Tick); ok && w.c.counts.Cycles == 0 {
					t.Suspects = nil
					return t
				}
				return e
			}},
		{name: "believes what it wrote and not what it reads", finds: "never well",
			events: func(w *world, e Event) Event {
				if r, ok := e.(ReadBack); ok && r.Device.Kind == Switch && w.c.find(r.Device).journaled {
					r.Entries = w.c.find(r.Device).have
					return r
				}
				return e
			}},
		{name: "goes on without a switch that keeps what it has to give up", finds: "out of sight",
			events: func(w *world, e Event) Event {
				for k := range w.c.devices {
					w.c.devices[k].surplus = false
				}
				return e
			}},
		{name: "sends no plan a second time", finds: "never well",
			actions: func(w *world, actions []Action) []Action {
				return each(w, actions, func(a Action) []Action {
					if s, ok := a.(SendPlan); ok && w.c.find(s.Device).attempts > 0 {
						return nil
					}
					return []Action{a}
				})
			}},
	} {
		t.Run(b.name, func(t *testing.T) {
			for _, e := range small {
				x := new(explorer)
				if err := x.run(e, &b); err != nil {
					what, _, _ := strings.Cut(err.Error(), ", after")
					t.Logf("found after %d states of %q: %s", x.states, e.name, what)
					if !strings.Contains(err.Error(), b.finds) {
						t.Errorf("found %q, want %q", what, b.finds)
					}
					return
				}
			}
			t.Error("not found")
		})
	}
}
