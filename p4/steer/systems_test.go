package steer

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// TestSystems holds the state of each system against that of the control.
func TestSystems(t *testing.T) {
	steady := func(change func(*loop.Status)) *loop.Status {
		s := &loop.Status{Probes: 9, Covered: 64, Detailed: 1, Links: nil, Orchestration: &loop.Orchestration{Plans: 2, InForce: true, Flows: 8, Interfaces: 10, Assigned: 10, FlowsUsed: 4, Entries: 11, Reported: 9, Silent: []string{"leaf-1:2"}},
			Delivery: &p4.DeliveryStatus{Plans: 3, InForce: true, Entries: 14, Objective: 1, LowerBound: 1, Refused: 5,
				Servers: []p4.ServerStatus{{Server: "a", On: true, Up: true, Received: 0.25}, {Server: "b", Why: "no \x1b answer"}},
				Points:  []p4.PointStatus{{Point: "leaf-1", Held: "no report"}, {Point: "leaf-2", Constraint: "no path"}}, Paths: []p4.PathStatus{{Path: "leaf-1/1", Point: "leaf-1", Sent: 30}, {Path: "leaf-1/2\x1b", Point: "leaf-1", Sent: 12, Refused: 5}}}}
		s.Status = control.Status{Phase: control.Steady, Epoch: 7, InForce: 7, Have: 8, Agents: 8, Suspects: []control.Suspect{{Link: "a-b", Why: "it drops"}},
			Devices: []control.DeviceStatus{{Device: control.Device{Kind: control.Switch, Name: "leaf-1"}, State: "ready"}, {Device: control.Device{Kind: control.Switch, Name: "leaf-2"}, State: "down"}}}
		change(s)
		return s
	}
	for _, c := range []struct {
		name   string
		change func(*loop.Status)
		want   string // state of probes, detail, assignment and delivery
		says   []string
	}{
		{"steady", func(*loop.Status) {}, "in-force in-force in-force in-force", []string{"1 of 2 points over 2 paths to 1 of 2 servers", "14 entries", "1 points keep their rate", "server b is down: no", "servers receive 250 Mbit/s", "sent 42 reports over these paths", "refused 5 reports", "sent 12 reports, and 5 beyond", "9 probes that cross 64 directions of links", "epoch 7 at 8 of 8 agents", "1 suspicious links; 1 of 9 probes in detail", "a-b: it drops", "detail on 0 of 1", "10 of 10 interfaces on 4 of 8 flows", "1 of 2 switches hold", "9 of 10 assigned interfaces are reported", "not reported: leaf-1:2"}},
		{"moving", func(s *loop.Status) { s.Epoch, s.Phase = 8, control.Moving }, "changing changing in-force in-force", nil},
		{"waits", func(s *loop.Status) {
			s.Pending = &control.Plan{Epoch: 8}
			s.Orchestration.InForce, s.Delivery.InForce = false, false
		}, "waiting waiting waiting waiting", []string{"the plan of epoch 8 waits for approval"}},
		{"dry run", func(s *loop.Status) { s.DryRun, s.Orchestration.InForce, s.Delivery.InForce = true, false, false }, "planned planned planned planned", []string{"dry run"}},
		{"no probes", func(s *loop.Status) { s.Phase = control.NoNetwork }, "off off in-force in-force", []string{"no probes"}},
		{"another control", func(s *loop.Status) { s.Phase, s.Why = control.Deposed, "epoch 9 \x1b" }, "failed failed in-force in-force", []string{"another controller is in charge"}},
		{"no assignment", func(s *loop.Status) { s.Orchestration = nil }, "in-force in-force off in-force", nil},
		{"no delivery", func(s *loop.Status) { s.Delivery = nil }, "in-force in-force in-force off", nil},
		{"no server answers", func(s *loop.Status) {
			s.Delivery = &p4.DeliveryStatus{Why: "no page answers", Points: []p4.PointStatus{{Point: "leaf-1"}}}
		}, "in-force in-force in-force failed", []string{"no page answers"}},
		{"no plan", func(s *loop.Status) { s.Orchestration = &loop.Orchestration{Why: "no flow"} }, "in-force in-force failed in-force", []string{"no flow"}},
		{"not yet a plan", func(s *loop.Status) { s.Orchestration = &loop.Orchestration{} }, "in-force in-force changing in-force", nil},
		{"stands by", func(s *loop.Status) { s.Standby = &loop.Standby{Why: "b is in charge"} }, "off off off off", []string{"stands by: b is in charge"}},
	} {
		list := Systems(steady(c.change))
		var states, text []string
		for _, name := range []string{"probes", "fant", "into", "rft"} {
			x := list[slices.IndexFunc(list, func(x loop.System) bool { return x.System == name })]
			states = append(states, x.State)
			text = append(text, x.Why)
			text = append(append(append(text, x.Decided...), x.Installed...), x.Brought...)
		}
		if got := strings.Join(states, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		all := strings.Join(text, "\n")
		for _, s := range c.says {
			if !strings.Contains(all, s) {
				t.Errorf("%s: %q does not contain %q", c.name, all, s)
			}
		}
		if strings.Contains(all, "\x1b") {
			t.Errorf("%s: control characters of a device are printed: %q", c.name, all)
		}
	}
}

// TestAssignmentWithoutNetwork: a loop may be asked for its status before its network is known.
func TestAssignmentWithoutNetwork(t *testing.T) {
	if a := new(Assignment); a.Status(nil) != nil || a.Delivery(nil) != nil {
		t.Error("an assignment without a network has a status")
	}
}
