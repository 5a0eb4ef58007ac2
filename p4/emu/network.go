package emu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/emu/sim"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/planner/topo"
)

// Network is the emulated network. It is not safe for concurrent use.
type Network struct {
	cfg   Config
	graph *topo.Graph // with one interface for every host
	now   int64       // virtual ns
	epoch int64       // device time at virtual 0

	ports    []port             // by interface
	queues   []sim.Queue        // by interface
	counts   []decode.HopCounts // by interface
	switches []device
	slower   []int64 // by switch: pipeline delay added by a fault
	hosts    []host

	psPerByte int64      // of lines without faults
	line      *pint.Line // with a plan: the computation of a line's load
	lines     []line     // by interface; nil if no fault of the script is one of lines

	routes sim.Routes
	flows  []flow
	extra  []extraFlow // state of Config.ExtraFlows
	alias  sim.Alias   // which flow the next Poisson packet belongs to
	probes []pathProbe

	packets []packet
	found   func(pkt int32, load uint32) // notes the load of the line that a packet left by
	spare   []int32
	events  sim.Events
	timers  []timer
	reroute int32 // timer that rebuilds the routes
	script  []fault

	planner planner
	control control

	measured programs.Pass // of the packet that a program has
	shown    programs.Shown
	passes   []*programs.Packet // that no packet is in
	mirrored []byte             // the last report of a program
	fabric   fabric
	routers  [3]*programs.Switch // for packets of hosts: of switches that only forward, of other people's dialects, and of hopscope.p4

	agents  []*prober
	agentOf map[int32]*prober // by host

	traffic, jitter, crossing, delivery, losing *rand.Rand

	emit    func(Datagram)
	stats   Stats
	hops    uint64 // that packets and probes have left, for benchmarks
	journey Journey
}

// port is an interface of the graph, in one place.
type port struct {
	node   int32
	peer   int32 // interface at the other end, or -1
	number int32
	host   int32 // behind it, or -1
}

// device is one switch. Fields that every packet needs come first.
type device struct {
	dialect Dialect
	faulty  bool // a fault below is not at rest
	ours    bool // hopscope.p4 writes INT into packets of hosts
	id      uint32
	salt    uint32
	clock   int64 // device time at virtual 0
	written written

	plans  pintplan.HeldPlans
	acl    uint64
	forged uint64 // share of packets whose digests become noise, in 2^-64

	noRoute []int32 // destinations (indexes of switches with hosts) withdrawn by a fault
	diverts []divert
	// swallowed are the flows whose packets vanish in this switch.
	swallowed []int32
	exporter

	tables *p4.Store // nil until the control plane writes or reads
}

// host is one host. Its own line to the switch has a queue without bound in bytes, but a host that is 10 ms behind
// stops offering packets.
type host struct {
	node    int32 // switch
	iface   int32 // of the switch, towards the host
	edge    int32 // index among switches with hosts
	free    int64
	lastDue int64 // as in queue
	v4      [4]byte
	v6      [16]byte
	addr    netip.Addr // as seen by the collector
}

const hostBacklog = 10e6

// maxRoutes bounds the memory of the routes: 256 MB, were every switch to use all its interfaces towards all others.
const maxRoutes = 1 << 26

// packet is one packet in the network. Fields that every switch needs come first.
type packet struct {
	live    uint32 // number of its event; other events with this packet are stale
	kind    uint8
	carries Dialect // Off if no INT
	// sampled packets are reported on.
	sampled bool
	pint    bool   // carries a digest, and no INT
	waiting bool   // a probe in its queue; its next event is leaving it
	wide    bool   // a probe of an agent, with INT behind its route
	words   uint8  // of a block of its INT instructions
	segment bool   // the switch sends it to the port of a segment
	labels  int8   // of segments ahead
	onLine  uint16 // bytes

	node    int32 // switch that it is on the way to, or in
	in, out int32 // interfaces of that switch; out is -1 before it is known
	peer    int32 // interface at the other end of out, or -1
	then    int32 // switch that it belongs to
	flow    int32
	dst     int32 // host
	hash    uint32

	arrived int64 // at node
	queued  int64
	found   int64  // bytes in the queue
	start   int64  // of sending
	next    int64  // arrival at the next node
	delay   int64  // of the pipeline there
	due     int64  // when it has passed that pipeline
	load    uint32 // of the line, when it had left; see Hop

	sim.Frame
	added int // bytes between cut and the end of the stack
	hops  []Hop

	shim int        // offset of the INT shim
	cut  int        // offset of what the source node inserted, at or before the shim
	owed sim.Change // for the L4 checksum; the block of the source node settles it

	id    uint16
	asked uint16 // the instruction bitmap in its INT header

	stamped  bool  // with an epoch
	epoch    uint8 // of the plan that its digest follows
	hop      uint8 // of the last switch that wrote the digest
	missed   bool  // a switch did not write it, and no decoder can read it
	digestID uint32
	digest   uint64

	pass              *programs.Packet // in the program of its switch; nil where the program has nothing left to write
	depth, depthAfter uint32           // packets in the queue when a probe entered and left it
	key               decode.FlowKey   // kept only for an observer
}

// Kinds of packets.
const (
	data uint8 = iota
	sourceRouted
)

type timer struct {
	kind uint8
	arg  int32
}

// Kinds of timers.
const (
	timerPoisson uint8 = iota
	timerExtra         // arg: index of the flow
	timerProbe         // arg: index of the probe
	timerBegin         // arg: index of the fault
	timerEnd           // arg: index of the fault
	timerRoutes        //
	timerCross         // arg: index of the fault
	timerReports       // arg: switch * 64 + hardware id
	timerRequest       // arg: index of the control plane's request
	timerAgent         // arg: index of the agent
)

// New builds the network. Nothing runs before Run or Play.
func New(cfg Config, seed uint64) (*Network, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("emulated network: %w", err)
	}
	source := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	n := &Network{
		cfg: cfg, epoch: cfg.Epoch.UnixNano(),
		traffic: source(1), jitter: source(2), crossing: source(3), delivery: source(4),
		losing: source(6), agentOf: map[int32]*prober{},
	}
	if err := n.buildRouters(); err != nil {
		return nil, err
	}
	n.control.Channel = sim.Channel{
		Gap: int64(cfg.ControlGap), Delay: int64(cfg.ControlDelay), Jitter: int64(cfg.ControlJitter), Loss: cfg.ControlLoss, Rand: source(7),
		Events: &n.events, Timer: func(call int) int32 { return n.timer(timerRequest, call) },
	}
	n.found = func(pkt int32, load uint32) { n.packets[pkt].load = load }
	if err := n.buildGraph(source(5)); err != nil {
		return nil, fmt.Errorf("emulated network: %w", err)
	}
	if err := n.buildQueues(); err != nil {
		return nil, fmt.Errorf("emulated network: %w", err)
	}
	if cfg.Plan != nil {
		n.planner.share = probability(cfg.PINTShare)
		n.planner.looped = make([]time.Duration, len(n.queues))
		n.planner.plan = cfg.Plan
		if err := n.holdEverywhere(cfg.Plan); err != nil {
			return nil, fmt.Errorf("emulated network: %w", err)
		}
	}
	n.reroute = n.timer(timerRoutes, 0)
	n.routes.Rebuild(n.graph, n.queues)
	var errs []error
	errs = append(errs, n.buildFlows(), n.buildProbes(), n.buildAgents(), n.buildScript())
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("emulated network: %w", err)
	}
	return n, nil
}

// buildGraph attaches the hosts to the edge switches, at their lowest free ports.
func (n *Network) buildGraph(r *rand.Rand) error {
	plain, err := topo.Parse(n.cfg.Topology)
	if err != nil {
		return err
	}
	tiers := false
	for i := range plain.NumNodes() {
		tiers = tiers || plain.Tier(i) == topo.Edge
	}
	b := plain.Extend()
	n.switches, n.slower = make([]device, plain.NumNodes()), make([]int64, plain.NumNodes())
	var edges []int
	for i := range n.switches {
		d := &n.switches[i]
		*d = device{dialect: n.cfg.Dialect, id: n.cfg.FirstNode + uint32(i), salt: uint32(r.Uint64()), clock: n.epoch}
		if s := int64(n.cfg.ClockSkew); s > 0 {
			d.clock += r.Int64N(2*s+1) - s
		}
		d.exporter.init(&n.cfg, i)
		if !tiers || plain.Tier(i) == topo.Edge {
			edges = append(edges, i)
			for range n.cfg.HostsPerEdge {
				b.AddInterface(topo.LinkEnd{Node: i})
			}
		}
	}
	if len(edges) > 1<<16 || len(edges)*n.cfg.HostsPerEdge > 1<<16 {
		return fmt.Errorf("topology %s: %d hosts; at most %d have addresses", n.cfg.Topology, len(edges)*n.cfg.HostsPerEdge, 1<<16)
	}
	if most := len(edges) * plain.NumInterfaces(); most > maxRoutes {
		return fmt.Errorf("topology %s: routes to %d switches over %d interfaces are too many to hold; at most %d together",
			n.cfg.Topology, len(edges), plain.NumInterfaces(), maxRoutes)
	}
	for name, d := range n.cfg.Dialects {
		i, ok := plain.Lookup(name)
		if !ok {
			return fmt.Errorf("dialects: topology %s has no switch %q", n.cfg.Topology, name)
		}
		n.switches[i].dialect = d
	}
	for i := range n.switches {
		n.switches[i].ours = n.cfg.ours(n.switches[i].dialect)
	}
	if n.graph, err = b.Build(); err != nil {
		return err
	}
	g := n.graph
	for i := range g.NumInterfaces() {
		if d := &n.switches[g.Node(i)]; g.Port(i) >= cpuPort {
			d.ours = false // hopscope.p4 has no such port
		}
		n.ports = append(n.ports, port{node: int32(g.Node(i)), peer: int32(g.Peer(i)), number: int32(g.Port(i)), host: -1})
	}
	for e, node := range edges {
		lo, hi := g.Interfaces(node)
		k := 0
		for i := lo; i < hi; i++ {
			if g.Peer(i) < 0 {
				n.ports[i].host = int32(len(n.hosts))
				n.hosts = append(n.hosts, host{
					node: int32(node), iface: int32(i), edge: int32(e), v4: sim.HostAddr4(e, k), v6: sim.HostAddr6(e, k),
					addr: sim.OffsetAddr(n.cfg.Exporters, 1<<16+len(n.hosts)),
				})
				k++
			}
		}
	}
	n.routes.Edges = edges
	return nil
}

func (n *Network) buildQueues() error {
	n.queues = make([]sim.Queue, n.graph.NumInterfaces())
	n.counts = make([]decode.HopCounts, len(n.queues))
	var meters []sim.Meter
	if n.cfg.Plan != nil {
		var err error
		if n.line, err = pint.NewLine(float64(n.cfg.LinkRate)/8, sim.BaseRTT); err != nil {
			return err
		}
		meters = make([]sim.Meter, len(n.queues))
	}
	n.psPerByte = max(1, 8e12/n.cfg.LinkRate)
	rings := make([]sim.Sending, sim.RingStart*len(n.queues))
	for i := range n.queues {
		n.queues[i] = sim.Queue{
			Up: true, Limit: int32(n.cfg.QueueBytes), PsPerByte: n.psPerByte, WindowEnd: sim.UtilizationWindow, Reported: -1 << 62,
			Ring: rings[sim.RingStart*i : sim.RingStart*(i+1) : sim.RingStart*(i+1)],
		}
		if meters != nil {
			n.queues[i].Meter = &meters[i]
		}
	}
	return nil
}

func (n *Network) timer(kind uint8, arg int) (id int32) {
	n.timers = append(n.timers, timer{kind, int32(arg)})
	return ^int32(len(n.timers) - 1)
}

// Now is the virtual time.
func (n *Network) Now() time.Duration { return time.Duration(n.now) }

// Graph is the topology; its interfaces include those towards the hosts.
func (n *Network) Graph() *topo.Graph { return n.graph }

// Config is the configuration that the network was built with.
func (n *Network) Config() Config { return n.cfg }

// NumHosts is the number of hosts.
func (n *Network) NumHosts() int { return len(n.hosts) }

// HostInterface is the interface of a switch that leads to host k.
func (n *Network) HostInterface(k int) int { return int(n.hosts[k].iface) }

// NodeID is the id by which switch i of the graph reports.
func (n *Network) NodeID(i int) uint32 { return n.switches[i].id }

// Run lets virtual time pass until the given moment. Reports and received probes are handed to emit in the order of
// their times; their payload is valid during the call.
func (n *Network) Run(until time.Duration, emit func(Datagram)) {
	n.emit = emit
	end := int64(until)
	for len(n.events.Heap) > 0 && n.events.Heap[0].At <= end {
		e := n.events.Next()
		n.now = e.At
		n.stats.Events++
		n.ahead()
		if e.Id >= 0 {
			if p := &n.packets[e.Id]; p.live == e.Seq {
				n.packetEvent(e.Id, p)
			}
			continue
		}
		n.timerEvent(e.Id)
	}
	n.now = max(n.now, end)
	n.emit = nil
}

func (n *Network) timerEvent(id int32) {
	t := n.timers[^id]
	switch t.kind {
	case timerPoisson:
		n.sendPoisson(id)
	case timerExtra:
		n.sendExtra(id, int(t.arg))
	case timerProbe:
		n.sendProbe(id, int(t.arg))
	case timerBegin, timerEnd:
		n.turn(int(t.arg), t.kind == timerBegin)
	case timerRoutes:
		n.routes.Rebuild(n.graph, n.queues)
	case timerCross:
		n.sendCross(id, int(t.arg))
	case timerReports:
		n.holdEnds(int(t.arg>>6), int(t.arg&63))
	case timerRequest:
		n.control.Event(n.now, int(t.arg))
	case timerAgent:
		n.agentSends(n.agents[t.arg])
	}
}

// newPacket returns an unused packet. It may move all packets.
func (n *Network) newPacket() (int32, *packet) {
	var i int32
	if k := len(n.spare); k > 0 {
		i = n.spare[k-1]
		n.spare = n.spare[:k-1]
	} else {
		i = int32(len(n.packets))
		n.packets = append(n.packets, packet{Frame: sim.Frame{Buf: make([]byte, 0, 512)}, hops: make([]Hop, 0, 8)})
	}
	p := &n.packets[i]
	*p = packet{Frame: sim.Frame{Buf: p.Buf[:0]}, hops: p.hops[:0], in: -1, out: -1, flow: -1, carries: Off}
	return i, p
}

// newPass returns the state of a packet in a program, for a packet to have until [Network.release].
func (n *Network) newPass() (x *programs.Packet) {
	k := len(n.passes) - 1
	if k < 0 {
		return programs.NewPacket()
	}
	x, n.passes = n.passes[k], n.passes[:k]
	return x
}

func (n *Network) release(p *packet) {
	if p.pass != nil {
		n.passes = append(n.passes, p.pass)
		p.pass = nil
	}
}

func (n *Network) free(i int32) {
	n.release(&n.packets[i])
	n.packets[i].live = 0
	n.spare = append(n.spare, i)
}
