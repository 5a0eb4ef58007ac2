package emu

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/emu/sim"
	"github.com/hopscope/hopscope/p4/probe"
)

// Agent is one of Config.Agents: a host of a switch, which does what "hopscope agent" does on a host. It goes by the
// name of the switch.
type Agent struct {
	Switch string
	Host   int          // of those of the switch, the first one is 0
	Limits probe.Limits // the zero value is those of agent.DefaultConfig; the name is that of the switch
}

// agentStats counts what an agent did.
type agentStats struct {
	Sent      uint64
	received  uint64 // probes that were reported
	malformed uint64 // frames that are none
	oldEpoch  uint64 // of Received: probes of an epoch before that in force here
	skipped   uint64 // starts that were left out
	accepted  uint64 // plans
	refused   uint64
}

// prober is the state of an agent.
type prober struct {
	name    string
	host    int32
	timer   int32
	stopped bool
	limits  probe.Limits
	ends    probe.Ends

	plan    *probe.Plan // nil for none
	numbers map[string]uint32
	work    *probe.Work
	table   *probe.Timetable
	next    int64 // virtual time of the event that counts; others of the timer are stale

	life       uint64       // times that it was started
	track      *probe.Track // of arrivals
	paths      *probe.Track // of arrivals of the plan
	look, turn int64        // virtual times of the next look at these, and of the next report about them
	spoiled    uint64       // frames that came and are no probes
	unfollowed uint64
	parser     *probe.Parser
	reports    *probe.Groups
	stats      agentStats
	sim.Called
}

// buildAgents makes the agents, which have no plan yet.
func (n *Network) buildAgents() error {
	mark := uint8(agent.DefaultConfig().Mark)
	for k := range n.cfg.Agents {
		c := &n.cfg.Agents[k]
		at, ok := n.graph.Lookup(c.Switch)
		if !ok {
			return fmt.Errorf("agent %d: there is no switch %q", k, c.Switch)
		}
		h := n.hostAt(at, c.Host)
		if h < 0 {
			return fmt.Errorf("agent %d: switch %s has no host %d that could send", k, c.Switch, c.Host)
		}
		if n.agentOf[h] != nil {
			return fmt.Errorf("agent %d: switch %s has one already", k, c.Switch)
		}
		a := &prober{name: c.Switch, host: h, limits: c.Limits, numbers: map[string]uint32{}, table: probe.NewTimetable(nil, 0), next: -1, work: &probe.Work{}, life: 1,
			parser: probe.NewParser(mark)}
		if a.limits == (probe.Limits{}) {
			d := agent.DefaultConfig()
			a.limits = d.Limits()
		}
		a.limits.Name = c.Switch
		a.track, a.paths = probe.NewTrack(a.limits.Probes), probe.NewTrack(a.limits.Probes)
		from := netip.AddrFrom4(n.hosts[h].v4)
		a.ends = probe.Ends{ToMAC: mac(macSwitch, at), FromMAC: mac(macHost, int(h)), From: from, To: from, Mark: mark}
		a.timer = n.timer(timerAgent, k)
		source := netip.AddrPortFrom(sim.OffsetAddr(n.cfg.Exporters, 1<<17+k), sourcePort)
		a.reports = probe.NewGroups(probe.AgentNode(a.name), n.cfg.MTU-headers.IPv4Len-udpLen, func(b []byte) {
			n.emit(Datagram{At: time.Duration(n.now), From: source, Port: n.cfg.ReportPort, Payload: b})
		})
		n.agents, n.agentOf[h] = append(n.agents, a), a
	}
	return nil
}

// hostAt is a host of a switch, by number, or -1.
func (n *Network) hostAt(node, number int) int32 {
	lo, hi := n.graph.Interfaces(node)
	for i := lo; i < hi; i++ {
		if h := n.ports[i].host; h >= 0 {
			if number == 0 {
				return h
			}
			number--
		}
	}
	return -1
}

// AgentHost is the host at a switch that an agent runs on, or would run on: the interface that leads to it, and its address. A switch without
// hosts has none.
func (n *Network) AgentHost(node int) (iface int, address netip.Addr) {
	h := n.hostAt(node, 0)
	if k := n.agentNamed(n.graph.NodeName(node)); k >= 0 {
		h = n.agents[k].host
	}
	if h < 0 {
		return -1, address
	}
	return int(n.hosts[h].iface), netip.AddrFrom4(n.hosts[h].v4)
}

// agentNamed returns an agent's index, or -1.
func (n *Network) agentNamed(name string) int {
	return slices.IndexFunc(n.agents, func(a *prober) bool { return a.name == name })
}

// AgentPlan is the plan in force at an agent, nil for none.
func (n *Network) AgentPlan(name string) *probe.Plan {
	if k := n.agentNamed(name); k >= 0 {
		return n.agents[k].plan
	}
	return nil
}

// StopAgent ends the program of an agent: it sends, takes and answers nothing, and its plan is gone. StartAgent starts it again.
func (n *Network) StopAgent(name string) {
	if k := n.agentNamed(name); k >= 0 {
		a := n.agents[k]
		a.stopped, a.plan, a.work, a.next = true, nil, &probe.Work{}, -1
		a.table = probe.NewTimetable(nil, 0)
	}
}

// StartAgent starts one that was stopped. It has no plan.
func (n *Network) StartAgent(name string) {
	if k := n.agentNamed(name); k >= 0 {
		a := n.agents[k]
		a.stopped, a.track, a.paths, a.spoiled, a.unfollowed = false, probe.NewTrack(a.limits.Probes), probe.NewTrack(a.limits.Probes), 0, 0
		a.life++
		a.paths.Count = uint32(a.life) << 16
	}
}

// AgentRounds returns the rounds of the probes that an agent has sent and received, and the life of its program that
// counts them. The result ok is false if there is no such agent, or it is stopped.
func (n *Network) AgentRounds(name string) (r probe.Rounds, life uint64, ok bool) {
	k := n.agentNamed(name)
	if k < 0 || n.agents[k].stopped {
		return r, 0, false
	}
	a := n.agents[k]
	r = probe.Rounds{Address: a.ends.From, Received: a.track.Received(), Spoiled: a.spoiled, Unfollowed: a.unfollowed}
	if a.plan != nil {
		r.Epoch, r.Sent = a.plan.Epoch, a.work.SentRounds()
	}
	return r, a.life, true
}

// adopt puts a plan in force at an agent, or returns why not.
func (n *Network) adopt(a *prober, p *probe.Plan) error {
	if same, err := p.Follows(a.plan); same || err != nil {
		return err
	}
	if _, err := p.Check(&a.limits); err != nil {
		return err
	}
	w, numbers, err := probe.NewWork(p, a.name, &a.ends, a.numbers)
	if err != nil {
		return err
	}
	a.plan, a.numbers, a.work = p, numbers, w
	a.table = probe.NewTimetable(w.Slots, n.epoch+n.now)
	n.awaitAgent(a)
	a.paths.Tick(n.now)
	a.paths.Expect(probe.NewExpectations(p, a.name, a.ends.From.As4(), w))
	a.look, a.turn = n.now, n.now+int64(probe.Grace)
	n.reportPaths(a)
	return nil
}

// reportPaths reports once in a [probe.Grace] what became of the probes of a plan, as "hopscope agent" does.
func (n *Network) reportPaths(a *prober) {
	if a.plan == nil || n.now < a.look {
		return
	}
	a.look = n.now + int64(probe.Grace)/4
	n.events.Add(a.look, a.timer)
	if a.paths.Tick(n.now); n.now >= a.turn {
		a.turn += int64(probe.Grace)
		a.paths.Turn()
		a.paths.Outcomes(&a.ends, func(_ probe.TrackKey, b []byte, c *decode.ProbeCounts) { a.reports.Counts(b, c) })
		a.reports.Flush()
	}
}

// awaitAgent sets the event of the next probe of an agent.
func (n *Network) awaitAgent(a *prober) {
	a.next = -1
	if due, ok := a.table.Next(); ok {
		a.next = due - n.epoch
		n.events.Add(a.next, a.timer)
	}
}

// agentSends lets an agent send what is due.
func (n *Network) agentSends(a *prober) {
	if n.reportPaths(a); n.now != a.next {
		return // the event of a plan before
	}
	now := n.epoch + n.now
	for {
		due, ok := a.table.Next()
		if !ok || due > now {
			break
		}
		k, _, over := a.table.Pop(now)
		a.stats.skipped += over
		n.sendWide(a, &a.work.Templates[k], now)
		a.work.Next[k].Store(a.work.Templates[k].Seq)
	}
	n.awaitAgent(a)
}

// sendWide lets a host send one probe of an agent.
func (n *Network) sendWide(a *prober, t *probe.Template, now int64) {
	i, p := n.newPacket()
	h := &n.hosts[a.host]
	p.Buf = t.AppendFrame(p.Buf, now)
	p.Size = len(p.Buf)
	x := &a.plan.Probes[t.Probe]
	p.kind, p.wide, p.flow, p.dst = sourceRouted, true, a.host, -1
	p.carries, p.asked = md21, a.plan.Basic
	if a.plan.Dialect == probe.FANT {
		p.carries = FANT
	}
	if x.Detailed {
		p.asked = a.plan.Detailed
	}
	n.leaveHost(i, p, h)
	n.stats.ProbesSent++
	a.stats.Sent++
}

// receiveWide is the work of the host that a probe of an agent came to. It reports the probe as "hopscope agent" does.
func (n *Network) receiveWide(p *packet) bool {
	a := n.agentOf[n.ports[p.out].host]
	if a == nil || a.stopped {
		return false
	}
	var x probe.Arrival
	if why := a.parser.Parse(&x, p.Buf); why != probe.OK {
		a.stats.malformed++
		if why != probe.Foreign {
			a.spoiled++
		}
		return false
	}
	a.stats.received++
	if !a.track.Add(&x) {
		a.unfollowed++
	}
	x.Delay = n.epoch + n.now - x.Sent
	a.paths.Tick(n.now)
	a.paths.See(&x)
	if a.plan != nil && int32(x.Epoch-a.plan.Epoch) < 0 {
		a.stats.oldEpoch++
	}
	if n.cfg.OnProbe != nil {
		n.cfg.OnProbe(a.name, &x)
	}
	a.reports.Add(&x)
	a.reports.Flush()
	return true
}
