package scenario

import (
	"container/heap"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/stamp"
	"github.com/hopscope/hopscope/planner/topo"
)

// The network of [Plain].
const (
	plainPorts    = 4 // of each agent, to every other one
	plainPort     = 49152
	plainInterval = 100 * time.Millisecond // between two requests of a session
	plainTimeout  = time.Second
	plainTurn     = time.Second // between two reports of an agent
	plainTrace    = 5 * time.Second
	plainMTU      = 1500
	plainRepeat   = 210 * time.Second
	plainTTL      = 255
)

// PlainFault is a part of the script of a [Plain] network.
type PlainFault struct {
	From, Until time.Duration // in each round of the script
	Off         string        // switch of the host that is off; empty where the network has the fault
	emu.Fault
}

// plainScript holds the faults in their order. Each round begins with quiet time, in which what is usual is learnt.
func plainScript() []PlainFault {
	const s = time.Second
	at := func(from, length time.Duration, f emu.Fault) PlainFault {
		f.At, f.For = from, length
		return PlainFault{From: from, Until: from + length, Fault: f}
	}
	return []PlainFault{
		at(40*s, 30*s, emu.Fault{Kind: emu.LosePackets, Node: "agg-0-0", Peer: "core-0", Value: .05}),
		at(95*s, 20*s, emu.Fault{Kind: emu.LinkDown, Node: "edge-1-0", Peer: "agg-1-0"}),
		at(135*s, 20*s, emu.Fault{Kind: emu.DelayLine, Node: "core-3", Peer: "agg-2-1", Delay: 8 * time.Millisecond}),
		{From: 175 * s, Until: 190 * s, Off: "edge-3-1"},
	}
}

// Plain is an emulated fat-tree whose switches send no telemetry. A host of each edge switch has an agent, with STAMP
// sessions to all others from several ports. Requests and answers are those of package stamp. They pass the network by
// its routes and faults, and the agents report as "hopscope agent" does. It is for one goroutine.
type Plain struct {
	network *emu.Network
	script  []PlainFault
	start   int64 // ns since 1970
	agents  []plainAgent
	flights flights
	buf     []byte
	turned  time.Duration
	traced  time.Duration
}

// plainAgent is an agent on a host.
type plainAgent struct {
	edge      string // switch
	addr      netip.Addr
	sessions  []*plainSession
	reflector stamp.Reflector
	reports   *probe.Groups
}

// plainSession is a session of an agent with another one.
type plainSession struct {
	*stamp.Session
	from, to int
	port     uint16
	watch    stamp.Watch
	packet   []byte // the beginning of its requests
	missed   uint64 // that are reported
}

// flight is what happens at a time: a session sends, or a packet comes.
type flight struct {
	at      time.Duration
	order   uint64
	session *plainSession
	packet  []byte // nil where the session sends
	routers int    // that it passed
	back    bool   // it is an answer
}

// flights are ordered by time, and then as they were added.
type flights struct {
	list  []flight
	added uint64
}

func (h *flights) Len() int { return len(h.list) }
func (h *flights) Less(i, k int) bool {
	a, b := &h.list[i], &h.list[k]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
func (h *flights) Swap(i, k int) { h.list[i], h.list[k] = h.list[k], h.list[i] }
func (h *flights) Push(x any)    { h.list = append(h.list, x.(flight)) }
func (h *flights) Pop() any {
	n := len(h.list) - 1
	x := h.list[n]
	h.list[n] = flight{}
	h.list = h.list[:n]
	return x
}

func (h *flights) add(f flight) {
	h.added++
	f.order = h.added
	heap.Push(h, f)
}

// NewPlain makes the network. Times of packets begin at start. The faults of the script happen unless quiet.
func NewPlain(seed uint64, start time.Time, quiet bool) (*Plain, error) {
	p := &Plain{start: start.UnixNano()}
	cfg := emu.DefaultConfig()
	cfg.Topology, cfg.HostsPerEdge, cfg.Flows, cfg.Epoch, cfg.Repeat = "fat-tree:4", 1, 0, start, plainRepeat
	if !quiet {
		p.script = plainScript()
	}
	for i := range p.script {
		if p.script[i].Off == "" {
			cfg.Script = append(cfg.Script, p.script[i].Fault)
		}
	}
	n, err := emu.New(cfg, seed)
	if err != nil {
		return nil, err
	}
	p.network = n
	p.agents = make([]plainAgent, n.NumHosts())
	for k := range p.agents {
		a := &p.agents[k]
		a.edge = n.Graph().NodeName(n.Graph().Node(n.HostInterface(k)))
		a.addr = p.host(k)
		a.reflector = stamp.Reflector{Stateful: true, Sessions: plainPorts * len(p.agents), Rate: 10_000}
		a.reports = probe.NewGroups(probe.AgentNode(a.edge), plainMTU-headers.IPv4Len-headers.UDPLen, nil)
	}
	for from := range p.agents {
		for k := range plainPorts * len(p.agents) {
			if to := k / plainPorts; to != from {
				if err := p.addSession(from, to, k%plainPorts); err != nil {
					return nil, err
				}
			}
		}
	}
	return p, nil
}

// addSession adds a session, and its first request.
func (p *Plain) addSession(from, to, number int) error {
	a := &p.agents[from]
	x, err := stamp.NewSession(stamp.Plan{SSID: uint16(1 + number), Interval: plainInterval, Timeout: plainTimeout, Stateful: true})
	if err != nil {
		return fmt.Errorf("session of %s: %w", a.edge, err)
	}
	s := &plainSession{Session: x, from: from, to: to, port: uint16(plainPort + number)}
	s.packet = headers.AppendIPv4(nil, &headers.IPv4{TTL: plainTTL, Proto: headers.ProtoUDP, Src: a.addr.As4(), Dst: p.agents[to].addr.As4()}, headers.UDPLen)
	s.packet = headers.AppendUDP(s.packet, s.port, stamp.Port, 0)
	all := len(p.agents) * (len(p.agents) - 1) * plainPorts
	a.sessions = append(a.sessions, s)
	k := from*(len(p.agents)-1)*plainPorts + len(a.sessions) - 1
	p.flights.add(flight{at: plainInterval * time.Duration(k) / time.Duration(all), session: s})
	return nil
}

// address of an interface of a switch: its node and its port, both from 1.
func (p *Plain) address(iface int) netip.Addr {
	g := p.network.Graph()
	return netip.AddrFrom4([4]byte{10, 1, byte(g.Node(iface) + 1), byte(g.Port(iface))})
}

// host is the address of a host.
func (p *Plain) host(k int) netip.Addr { return netip.AddrFrom4([4]byte{10, 2, 0, byte(k + 1)}) }

// PlainSource is the address that the reports of an agent come from.
func PlainSource(k int) netip.Addr { return netip.AddrFrom4([4]byte{127, 19, 0, byte(k + 1)}) }

// Graph is the network's.
func (p *Plain) Graph() *topo.Graph { return p.network.Graph() }

// Script holds the faults.
func (p *Plain) Script() []PlainFault { return p.script }

// Sessions is the number of sessions.
func (p *Plain) Sessions() (n int) {
	for k := range p.agents {
		n += len(p.agents[k].sessions)
	}
	return n
}

// Inventory returns the names of agents and hosts as the text of an inventory (docs/inventory.md).
func (p *Plain) Inventory() string {
	var nodes, hosts strings.Builder
	for k := range p.agents {
		a := &p.agents[k]
		fmt.Fprintf(&nodes, "  - {id: %d, name: agent %s}\n", probe.AgentNode(a.edge), a.edge)
		fmt.Fprintf(&hosts, "  - {prefix: %s/32, name: host at %s}\n", a.addr, a.edge)
	}
	return "nodes:\n" + nodes.String() + "hosts:\n" + hosts.String()
}

// Towards is the address by which packets from a switch come to a neighbour, and by which that answers traces. It is
// invalid where there is no such link.
func (p *Plain) Towards(node, peer string) (to netip.Addr) {
	g := p.network.Graph()
	at, ok := g.Lookup(node)
	if !ok {
		return to
	}
	lo, hi := g.Interfaces(at)
	for i := lo; i < hi; i++ {
		if n := g.Neighbor(i); n >= 0 && g.NodeName(n) == peer {
			return p.address(g.Peer(i))
		}
	}
	return to
}

// off reports whether the host of an agent is off.
func (p *Plain) off(k int, at time.Duration) bool {
	at %= plainRepeat
	for i := range p.script {
		if f := &p.script[i]; f.Off == p.agents[k].edge && at >= f.From && at < f.Until {
			return true
		}
	}
	return false
}

// plainClock is the estimate that hosts have of their clocks, which are right.
var plainClock = stamp.NewErrorEstimate(true, false, time.Microsecond)

// wall is a time in ns since 1970.
func (p *Plain) wall(at time.Duration) int64 { return p.start + int64(at) }

// Run runs the network until a time from its start. The function send gets each datagram of an agent for the duration of
// the call.
func (p *Plain) Run(until time.Duration, send func(agent int, payload []byte)) {
	for k := range p.agents {
		p.agents[k].reports.Send = func(b []byte) { send(k, b) }
	}
	for len(p.flights.list) > 0 {
		next := min(p.flights.list[0].at, p.turned+plainTurn)
		if next > until {
			break
		}
		p.network.Run(next, func(emu.Datagram) {}) // its switches report nothing
		if next == p.turned+plainTurn {
			p.turned = next
			p.turn()
			continue
		}
		f := heap.Pop(&p.flights).(flight)
		switch {
		case f.packet == nil:
			p.request(&f)
		case f.back:
			f.session.Look(p.wall(f.at), int64(f.at))
			_ = f.session.Receive(f.packet, p.wall(f.at)) // it is counted
		default:
			p.answer(&f)
		}
	}
}

// request sends the next request of a session. A host that is off sends none.
func (p *Plain) request(f *flight) {
	s, at := f.session, f.at
	p.flights.add(flight{at: at + plainInterval, session: s})
	if p.off(s.from, at) {
		return
	}
	b := s.Append(nil, p.wall(at), int64(at), plainClock)
	p.carry(s, b, at, false)
}

// carry sends a packet through the network.
func (p *Plain) carry(s *plainSession, b []byte, at time.Duration, back bool) {
	f := s.flow()
	if back {
		f.From, f.To, f.SrcPort, f.DstPort = f.To, f.From, f.DstPort, f.SrcPort
	}
	if takes, routers, ok := p.network.Cross(&f); ok {
		p.flights.add(flight{at: at + takes, session: s, packet: b, routers: routers, back: back})
	}
}

func (s *plainSession) flow() emu.Flow {
	return emu.Flow{From: s.from, To: s.to, Proto: headers.ProtoUDP, SrcPort: s.port, DstPort: stamp.Port}
}

// answer answers a request. A host that is off answers none.
func (p *Plain) answer(f *flight) {
	s := f.session
	if p.off(s.to, f.at) {
		return
	}
	a := stamp.Arrival{
		From: netip.AddrPortFrom(p.agents[s.from].addr, s.port), To: netip.AddrPortFrom(p.agents[s.to].addr, stamp.Port),
		At: p.wall(f.at), Steady: int64(f.at), TTL: uint8(plainTTL - f.routers),
	}
	if b, _, err := p.agents[s.to].reflector.Reply(nil, f.packet, &a, a.At, plainClock); err == nil {
		p.carry(s, b, f.at, true)
	}
}

// turn counts what is lost, and reports it, as agents do once a second. Ways are traced less often.
func (p *Plain) turn() {
	trace := p.turned-p.traced >= plainTrace || p.traced == 0
	if trace {
		p.traced = p.turned
	}
	for k := range p.agents {
		a := &p.agents[k]
		if p.off(k, p.turned) {
			continue
		}
		for _, s := range a.sessions {
			s.Turn(int64(p.turned))
			if trace {
				p.trace(s)
			}
			counts := s.Since()
			counts.Path, counts.Epoch = uint32(s.SSID), s.watch.Epoch
			if trace {
				a.reports.Way(s.packet, counts.Path, counts.Epoch, s.watch.Hops)
			}
			for range min(s.Missed-s.missed, probe.MostReports) {
				a.reports.Missing(s.packet)
			}
			s.missed = s.Missed
			if counts.Sent|counts.Received|counts.Missed|counts.Late != 0 {
				a.reports.Counts(s.packet, &counts)
			}
		}
		a.reports.Flush()
	}
}

// trace follows the way of a session. All routers answer.
func (p *Plain) trace(s *plainSession) {
	t, f := stamp.NewTrace(1, s.Routers()), s.flow()
	for _, ttl := range t.Round() {
		if at, ok := p.network.Expire(&f, ttl); ok {
			t.Observe(t.AppendPayload(p.buf[:0], ttl), p.address(at))
		}
	}
	s.watch.Step(t.Hops())
}

// Play runs the network by the clock, and sends the reports of each agent to an address over UDP, from an address of its
// own, until ctx ends. Its time passes speed times as fast as that of a clock.
func (p *Plain) Play(ctx context.Context, to netip.AddrPort, speed int) error {
	sockets := make([]*net.UDPConn, len(p.agents))
	for k := range sockets {
		c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(PlainSource(k), 0)), net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer c.Close()
		sockets[k] = c
	}
	began, at := time.Now(), time.Duration(0)
	for retry.Sleep(ctx, playStep) {
		now := time.Duration(speed) * time.Since(began)
		if behind := now - at - time.Duration(speed)*maxLag; behind > 0 { // the machine slept: that time is left out
			began, now = began.Add(behind/time.Duration(speed)), now-behind
		}
		at = now
		p.Run(at, func(k int, payload []byte) { _, _ = sockets[k].Write(payload) }) // a datagram that is lost is lost
	}
	return nil
}
