package main

import (
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/control"
)

// TestDemoRounds: a line of the demonstration's network that loses 5 % is suspected by lost rounds of probes alone.
// There are no findings or reports of hops. It gets detail, and attention goes back. Before, plans change, agents stop
// and start, and a line fills so that probes wait. No round is lost then and no link suspected.
func TestDemoRounds(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const faulty = "agg-0-0:3--core-0:1"
	script := []emu.Fault{
		{Kind: emu.CrossTraffic, At: 20 * time.Second, For: 14 * time.Second, Node: "agg-0-0", Peer: "core-0", Value: 0.95}, // findings change plans
		{Kind: emu.LosePackets, At: 120 * time.Second, For: 60 * time.Second, Node: "agg-0-0", Peer: "core-0", Value: 0.05},
	}
	length := 700 * time.Second // a line is well again when twelve more should have been lost
	if testkit.Race {           // under the race detector: until the line is looked at closer
		length = 182 * time.Second
	}
	s, c, _ := newSteered(t, func(cfg *emu.Config) { cfg.Script, cfg.Repeat, cfg.PacketRate = script, 0, cfg.PacketRate/4 }, length) // of the packets of flows, a quarter
	probes := *s.Config
	probes.Suspicion = suspicion.DefaultConfig()
	x, err := steer.New(&probes)
	if err != nil {
		t.Fatal(err)
	}
	fault := script[1]
	var raised, cleared, detailed, back time.Duration
	last, epochs := time.Duration(-1), map[uint32]bool{}
	s.each = func(at time.Duration) {
		if closer := len(s.detailedAtAgents(faulty)) > 0; at > fault.At {
			if closer && detailed == 0 {
				detailed = at
			}
			switch {
			case closer && at-back < time.Minute: // what is found later than that is another matter
				back = 0
			case !closer && detailed > 0 && back == 0:
				back = at
			}
		}
		if at/steer.EmulatedCycle == last {
			return
		}
		last = at / steer.EmulatedCycle
		epochs[s.Loop.StatusNow().Epoch] = true
		switch at / time.Second {
		case 50, 70:
			s.Network.StopAgent(s.Names[0])
		case 51, 75:
			s.Network.StartAgent(s.Names[0])
			d := control.Device{Kind: control.Agent, Name: s.Names[0]} // as a connection that ends and comes again
			s.Loop.Post(control.Down{Device: d, Why: "stopped"})
			s.Loop.Post(control.Up{Device: d})
		}
		for _, err := range x.Rounds.Survey(s.Agents.Answers(s.Network, s.Names)) {
			t.Errorf("at %v: %v", at, err)
		}
		here := false
		for _, l := range x.Suspects(s.epoch.Add(at).UnixNano()) {
			here = here || l.Link == faulty
			if at < fault.At || !strings.Contains(l.Why, "rounds of the probes that cross it got lost") {
				t.Errorf("suspected at %v: %s, %s", at, l.Link, l.Why)
			}
			if here && raised == 0 {
				raised = at
				t.Logf("suspected at %v: %s", at, l.Why)
			}
		}
		if lost := x.Rounds.Status().Lost; at < fault.At && lost > 0 {
			t.Fatalf("at %v %d rounds are lost", at, lost)
		}
		if raised > 0 && !here && cleared == 0 {
			cleared = at
		}
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := x.Rounds.Status()
	t.Logf("raised %v, detailed %v, cleared %v, back %v; %d epochs, %+v", raised, detailed, cleared, back, len(epochs), status)
	end := fault.At + fault.For
	if raised < fault.At || raised > end || detailed < fault.At || detailed > end || !testkit.Race && (cleared < raised || back < end) {
		t.Errorf("the fault is from %v to %v: raised at %v, looked at closer at %v, cleared at %v, attention back at %v", fault.At, end, raised, detailed, cleared, back)
	}
	if len(epochs) < 3 || status.Sent < uint64(20_000*length/(700*time.Second)) || status.Refused > 0 {
		t.Errorf("%d epochs, %+v", len(epochs), status)
	}
}
