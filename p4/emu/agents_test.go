package emu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	headers "github.com/hopscope/hopscope/decode/packet"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/probe"
)

// agentNames are the edge switches of fat-tree:4.
func agentNames() (list []Agent) {
	for pod := range 4 {
		for e := range 2 {
			list = append(list, Agent{Switch: fmt.Sprintf("edge-%d-%d", pod, e)})
		}
	}
	return list
}

// withAgents is a network with an agent at every edge switch, all of which hold a plan that covers it.
func withAgents(t *testing.T, cfg Config, dialect probe.Dialect, seed uint64) (*Network, *probe.Plan) {
	t.Helper()
	cfg.Agents = agentNames()
	n := mustNew(t, cfg, seed)
	p, _, err := n.CoverPlan(1, dialect, 100*time.Millisecond, 8, seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range cfg.Agents {
		n.SendPlan(a.Switch, p)
	}
	return n, p
}

// Reports of agents alone show both directions of every link between switches, with the true node, ports and latency,
// in both dialects. None is lost on a network without faults.
func TestAgentsSeeEveryLink(t *testing.T) {
	for _, dialect := range []probe.Dialect{probe.INT21, probe.FANT} {
		cfg := DefaultConfig()
		cfg.ClockSkew = time.Millisecond
		truth := map[string]int{}
		cfg.Observe = func(j *Journey) {
			for _, h := range j.Hops {
				if j.Probe && j.Outcome == Delivered {
					truth[fmt.Sprint(h.NodeID, h.ingressPort, h.EgressPort, uint32(h.Latency()), h.QueueBytes)]++
				}
			}
		}
		n, p := withAgents(t, cfg, dialect, 3)
		name := "auto"
		if dialect == probe.FANT {
			name = "fant"
		}
		d := demux.New(profile(t, name))
		var b decode.Batch
		seen, reports, inside := map[[2]uint32]bool{}, 0, uint64(0)
		n.Run(2050*time.Millisecond, func(x Datagram) {
			if !x.From.Addr().IsLoopback() || x.From.Addr().As4()[1] != 18 {
				return
			}
			b.Reset()
			d.Datagram(&b, decode.AddrFrom(x.From.Addr()), x.Payload, 0)
			for _, r := range b.Reports {
				if r.Kind == decode.KindProbes { // rounds of a path
					continue
				}
				if err := r.Error(); err != nil || len(r.Hops) == 0 {
					t.Fatalf("%s: %v, %d hops: %x", dialect, err, len(r.Hops), x.Payload)
				}
				reports++
				for _, h := range r.Hops {
					seen[[2]uint32{h.NodeID, uint32(h.EgressIf)}] = true
					inside += uint64(h.Latency)
					key := fmt.Sprint(h.NodeID, h.IngressIf, h.EgressIf, h.Latency, h.QueueOccupancy)
					if truth[key]--; truth[key] < -1 { // the packet is observed after it was reported
						t.Fatalf("%s: nothing like hop %+v happened", dialect, h)
					}
				}
			}
		})
		g := n.Graph()
		for i := range g.NumInterfaces() {
			if g.Peer(i) >= 0 && !seen[[2]uint32{n.NodeID(g.Node(i)), uint32(g.Port(i))}] {
				t.Errorf("%s: no probe leaves %s by port %d", dialect, g.NodeName(g.Node(i)), g.Port(i))
			}
		}
		sent, received := uint64(0), uint64(0)
		for _, a := range agentNames() {
			s, _ := n.agentStats(a.Switch)
			sent, received = sent+s.Sent, received+s.received
			rounds, _, _ := n.AgentRounds(a.Switch)
			for _, c := range rounds.Received {
				inside -= c.Transit
				if c.Transits != c.Received {
					t.Errorf("%s: agent %s knows the times of %d of %d rounds", dialect, a.Switch, c.Transits, c.Received)
				}
			}
			if s.malformed+s.oldEpoch+s.skipped > 0 {
				t.Errorf("%s: agent %s: %+v", dialect, a.Switch, s)
			}
		}
		if inside != 0 {
			t.Errorf("%s: times in switches of reports and of rounds differ by %d ns", dialect, int64(inside))
		}
		if want := uint64(20 * len(p.Probes)); sent < want || sent > want+uint64(len(p.Probes)) || received+uint64(len(p.Probes)) < sent || uint64(reports) != received {
			t.Errorf("%s: %d sent, %d received, %d reported; want about %d", dialect, sent, received, reports, want)
		}
	}
}

// The one program does to an agent's probe in the emulated network what p4/srint.p4 does, with the same bytes. This holds for both
// dialects and bitmaps, until there is no room or no hop left.
func TestAgentsProbeIsProgram(t *testing.T) {
	recorded, refused := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 17))
		cfg := DefaultConfig()
		cfg.Topology, cfg.Agents, cfg.ClockSkew = "leaf-spine:2,6", []Agent{{Switch: "leaf-0"}}, time.Second
		n := mustNew(t, cfg, seed)
		plan := &probe.Plan{Epoch: 1, Dialect: []probe.Dialect{probe.INT21, probe.FANT}[r.IntN(2)]}
		plan.Basic, plan.Detailed = plan.Dialect.Bitmaps()
		if plan.Dialect == probe.INT21 { // utilisation and buffers are left out, which BMv2 does not know
			plan.Basic = uint16(r.Uint32())&^(insTx|insBuffer|insReserved) | insNodeID
		} else {
			plan.Basic &^= insTx | insBuffer | insReserved
		}
		route := make([]int, 1+r.IntN(5))
		for k := range route {
			route[k] = 1 + r.IntN(3)
		}
		plan.Probes = []probe.Probe{{ID: "p", Route: route, Interval: time.Second, Agent: "leaf-0"}}
		a := n.agents[0]
		if err := n.adopt(a, plan); err != nil {
			t.Fatal(err)
		}
		n.sendWide(a, &a.work.Templates[0], 42)
		p := &n.packets[0]
		switch r.IntN(3) {
		case 0:
			n.cfg.MTU = len(p.Buf) - ethLen + r.IntN(60)
			if err := n.buildRouters(); err != nil {
				t.Fatal(err)
			}
		case 1:
			p.Buf[ethLen+4+2*len(route)+headers.IPv4Len+udpLen+4+3] = uint8(r.IntN(2)) // hops left
		}
		for i := range route {
			d := &n.switches[i]
			p.node, d.id = int32(i), uint32(10+i)
			before := bytes.Clone(p.Buf)
			us := func(most int64) time.Duration { return time.Duration(r.Int64N(most)) * time.Microsecond }
			h := Hop{Node: i, NodeID: d.id, EgressPort: uint16(route[i]), QueueBytes: r.Uint32N(1 << 19), Ingress: us(1 << 40)}
			h.Egress = h.Ingress + us(1<<20)
			h.ingressPort = uint16(n.ports[p.in].number)
			if p.pass = (&programs.Packet{}); !n.follows(p, d, p.pass) {
				t.Fatalf("seed %d, switch %d: the probe is not followed", seed, i)
			}
			n.stamp(p, d, &h)
			if h.recorded {
				recorded++
			} else {
				refused++
			}
			s, err := programs.New("srint")
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{fmt.Sprintf("table_set_default egress.device set_device %d %d", d.id, d.clock), fmt.Sprintf("table_set_default egress.port_mtu set_mtu %d", n.cfg.MTU)} {
				if err := s.Command(line); err != nil {
					t.Fatal(err)
				}
			}
			out, _, err := s.Process(programs.Frame{Port: h.ingressPort, Bytes: before}, []programs.Pass{{
				EgressPort: uint16(route[i]), PacketLength: uint32(len(before)), IngressTime: uint64(h.Ingress / time.Microsecond),
				EgressTime: uint64(h.Egress / time.Microsecond), EnqueueDepth: h.QueueBytes,
			}})
			if err != nil || len(out) != 1 || int(out[0].Port) != route[i] || !bytes.Equal(out[0].Bytes, p.Buf) || p.Size != len(p.Buf) {
				t.Fatalf("seed %d, switch %d of %d: %v\n got %x\nwant %x", seed, i, len(route), err, p.Buf, out)
			}
		}
		if be.Uint16(p.Buf[ethLen-2:]) != headers.EtherIPv4 || headers.Fold(headers.Sum(p.Buf[ethLen:ethLen+20])) != 0xffff {
			t.Fatalf("seed %d: %x", seed, p.Buf)
		}
	}
	if recorded < 150 || refused < 50 {
		t.Errorf("%d blocks recorded and %d refused", recorded, refused)
	}
}

// A plan takes effect when the request has reached the agent, and is answered by its epoch. A lost request or answer
// leaves the controller without one. An older plan, another one of the same epoch and one that breaks a limit are
// refused. A stopped agent answers nothing and forgets.
func TestPlansReachAgents(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Agents, cfg.ControlDelay, cfg.ControlGap = agentNames(), 5*time.Millisecond, time.Millisecond
	cfg.Agents[2].Limits = probe.Limits{SendBPS: 1000, ReceiveBPS: 1e6, Probes: 10, MTU: 1500, ProbesPerSec: 100}
	var answers []PlanAnswer
	epochs := map[uint32]int{}
	cfg.OnPlan = func(a PlanAnswer) { answers = append(answers, a) }
	cfg.OnProbe = func(_ string, a *probe.Arrival) { epochs[a.Epoch]++ }
	n := mustNew(t, cfg, 1)
	p, _, err := n.CoverPlan(4, probe.INT21, 20*time.Millisecond, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	run := func(d time.Duration) []PlanAnswer {
		answers = nil
		n.Run(n.Now()+d, func(Datagram) {})
		return answers
	}
	n.AskPlan("edge-0-0")
	if a := run(time.Second); len(a) != 1 || a[0].InForce != 0 || a[0].about != 0 || a[0].At != 10*time.Millisecond {
		t.Fatalf("asked: %+v", a)
	}
	first := n.SendPlan("edge-0-0", p)
	n.SendPlan("edge-0-1", p)
	n.SendPlan("edge-1-0", p)
	n.SendPlan("nobody", p)
	a := run(50 * time.Millisecond)
	if len(a) != 3 || a[0].Request != first || a[0].InForce != 4 || a[0].about != 4 || a[0].Refused != "" || a[1].At != a[0].At+time.Millisecond || a[2].Refused == "" || a[2].InForce != 0 {
		t.Fatalf("sent: %+v", a)
	}
	if epochs[4] == 0 || len(epochs) != 1 {
		t.Fatalf("epochs of probes: %v", epochs)
	}
	next, other, old := *p, *p, *p
	next.Epoch, other.Epoch, old.Epoch, other.Basic = 5, 5, 3, 0xe000
	for _, x := range []*probe.Plan{&next, &next, &other, &old} {
		n.SendPlan("edge-0-0", x)
	}
	a = run(30 * time.Millisecond)
	if len(a) != 4 || a[0].InForce != 5 || a[0].Refused != "" || a[1].Refused != "" || a[2].Refused == "" || a[3].Refused == "" || a[3].InForce != 5 {
		t.Fatalf("sent again: %+v", a)
	}
	late := uint64(0)
	for _, x := range cfg.Agents {
		if x.Switch != "edge-0-1" {
			n.SendPlan(x.Switch, &next)
		}
	}
	run(100 * time.Millisecond)
	for _, x := range cfg.Agents {
		s, _ := n.agentStats(x.Switch)
		late += s.oldEpoch
	}
	if s, _ := n.agentStats("edge-0-0"); s.accepted != 4 || s.refused != 2 || late == 0 || epochs[5] == 0 {
		t.Errorf("%+v, %v, %d old ones: one agent sends by the older plan", s, epochs, late)
	}
	n.StopAgent("edge-0-0")
	before, _ := n.agentStats("edge-0-0")
	n.SendPlan("edge-0-0", &next)
	if a := run(200 * time.Millisecond); len(a) != 0 || n.AgentPlan("edge-0-0") != nil {
		t.Errorf("a stopped agent says %+v", a)
	}
	if after, _ := n.agentStats("edge-0-0"); after != before {
		t.Errorf("a stopped agent did something: %+v, %+v", before, after)
	}
	n.StartAgent("edge-0-0")
	n.AskPlan("edge-0-0")
	if a := run(200 * time.Millisecond); len(a) != 1 || a[0].InForce != 0 {
		t.Errorf("a new start says %+v", a)
	}
	n.control.Loss = 1
	n.SendPlan("edge-0-0", &next)
	if a := run(time.Second); len(a) != 0 || n.AgentPlan("edge-0-0") != nil {
		t.Errorf("a lost request is answered by %+v", a)
	}
}

// The same seed gives the same bytes with agents, too, in one Run and in many.
func TestAgentsRepeat(t *testing.T) {
	print := func(steps int) string {
		var b bytes.Buffer
		cfg := busyConfig()
		cfg.ControlDelay, cfg.ControlLoss = time.Millisecond, .1
		n, _ := withAgents(t, cfg, probe.INT21, 5)
		for i := range steps {
			n.Run(time.Second*time.Duration(i+1)/time.Duration(steps), func(d Datagram) { b.Write(appendFrame(nil, d, n.cfg.Exporters, 7)) })
		}
		s := n.Stats()
		if s.ProbesSent != s.ProbesDelivered+s.probesDropped+s.ProbesInFlight {
			t.Fatalf("probes: %+v", s)
		}
		return b.String()
	}
	if print(1) != print(613) {
		t.Error("bytes differ")
	}
}
