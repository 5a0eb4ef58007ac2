package control

import (
	"math"
	"slices"
	"testing"
)

// TestEpochsDoNotWrap has a device report the last epoch that there is. The next one would be 0, which stands for no plan.
func TestEpochsDoNotWrap(t *testing.T) {
	if _, err := New(Config{Cycle: cycle, Timeout: timeout}, triangle(), Seed{Epoch: math.MaxUint32}); err == nil {
		t.Error("a seed of the last epoch is taken")
	}
	net := triangle()
	net.Agents = []string{"a", "b"}
	for _, tt := range []struct {
		name string
		lie  func(w *world)
	}{
		{"agent", func(w *world) {
			n := w.node(Device{Agent, "b"})
			n.plan = &Plan{Epoch: math.MaxUint32, Network: net, Probes: net.Probes}
		}},
		{"switch", func(w *world) {
			w.node(Device{Switch, "b"}).entries = []Entry{{math.MaxUint32, "detail", ""}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(Config{Cycle: cycle, Timeout: timeout, Grace: grace}, net)
			tt.lie(w)
			for range 500 {
				w.rest()
			}
			if p := w.c.InForce(); p == nil || p.Epoch == 0 || p.Epoch > 10 {
				t.Fatalf("the plan in force is %v", p)
			}
			if n := w.node(Device{Agent, "a"}); n.epoch() != w.c.InForce().Epoch {
				t.Errorf("the agent that reports the truth has epoch %d", n.epoch())
			}
			if n := w.node(Device{Switch, "b"}); slices.ContainsFunc(n.entries, func(e Entry) bool { return e.Epoch == math.MaxUint32 }) {
				t.Error("the entry of an epoch that no controller gave has stayed")
			}
			state := ""
			for _, d := range w.c.Status().Devices {
				if d.Device == (Device{Agent, "b"}) {
					state = d.State
				}
			}
			if want := map[string]string{"agent": "failed", "switch": "ready"}[tt.name]; state != want {
				t.Errorf("agent b is %s, want %s", state, want)
			}
		})
	}
}
