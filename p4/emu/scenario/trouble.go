package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/planner/topo"
)

// Trouble is something that goes wrong in a network, with a size that is the same wherever detectors are measured on it.
// Times and delays are absolute; what traffic does is relative to the rate of a line.
type Trouble struct {
	Name  string
	What  string        // description, with its size, in a sentence without a full stop
	For   time.Duration // from its beginning to its end
	At    Place         // the element that has to be named
	Kinds []string      // of findings that may name it; none if no finding is due

	happen func(s *site)
}

// Place is the kind of the element that a trouble happens at.
type Place uint8

// The places.
const (
	OnLink   Place = iota // between two switches
	AtSwitch              // a switch
	AtPort                // the interface of a switch towards a host
	AtSender              // the reports of a switch
	InFlow                // a flow
)

func (p Place) String() string {
	return [...]string{"link", "switch", "port", "exporter", "flow"}[min(p, InFlow)]
}

// Happening is a trouble at a place and a time. It holds the additions to the configuration of a network that cause it,
// and the truth about it.
type Happening struct {
	*Trouble
	From, Until time.Duration
	Script      []emu.Fault
	Flows       []emu.Flow

	// The truth: node ids and ports as in reports, 0 where the place has none.
	Node, Port uint32 // the switch and its egress interface
	Peer       uint32 // the switch at the other end of a link; of diverted flows, of one that they do not take any more
	PeerPort   uint32 // its interface towards Node
	Flow       int    // InFlow: its number
}

// String returns, for example, "link-down at link 9-17, 46s to 1m0s".
func (h *Happening) String() string {
	place := fmt.Sprintf("%v %d", h.At, h.Node)
	switch h.At {
	case OnLink:
		place += fmt.Sprintf("-%d", h.Peer)
	case AtPort:
		place += fmt.Sprintf(":%d", h.Port)
	case InFlow:
		place = fmt.Sprintf("flow %d in %d", h.Flow, h.Node)
	}
	return fmt.Sprintf("%s at %s, %v to %v", h.Name, place, h.From, h.Until)
}

// Troubles returns the table of faults.
func Troubles() []Trouble { return slices.Clone(troubles) }

// Lookup returns the line of the table with a name.
func Lookup(name string) (*Trouble, bool) {
	for i := range troubles {
		if troubles[i].Name == name {
			t := troubles[i]
			return &t, true
		}
	}
	return nil, false
}

const (
	ms = time.Millisecond
	s1 = time.Second
)

// troubles is the table. Detectors, benchmarks and pages refer to its lines by name, so the sizes in a line are fixed.
// A fault of another size needs a new line.
var troubles = []Trouble{
	{"congested-line", "other traffic takes 95 % of one direction of a link", 14 * s1, OnLink,
		[]string{"high-latency", "high-queue", "drops"}, func(s *site) { s.line(emu.Fault{Kind: emu.CrossTraffic, Value: .95}) }},
	{"cut-rate", "one direction of a link keeps 10 % of its rate", 14 * s1, OnLink,
		[]string{"high-latency", "high-queue", "drops"}, func(s *site) { s.line(emu.Fault{Kind: emu.CutRate, Value: .1}) }},
	{"link-down", "a link fails, and routes follow", 14 * s1, OnLink,
		[]string{"path-change", "drops"}, func(s *site) { s.line(emu.Fault{Kind: emu.LinkDown}) }},
	{"deny-flows", "an access list of a switch drops a quarter of all flows", 8 * s1, AtSwitch,
		[]string{"drops"}, func(s *site) { s.inner(emu.Fault{Kind: emu.DenyFlows, Value: .25}) }},
	{"withdraw-route", "a switch has no route to the hosts of another one", 8 * s1, AtSwitch,
		[]string{"drops"}, withdraw},
	{"slow-switch", "the pipeline of a switch takes 8 ms longer", 12 * s1, AtSwitch,
		[]string{"high-latency"}, func(s *site) { s.inner(emu.Fault{Kind: emu.SlowSwitch, Delay: 8 * ms}) }},
	{"lose-reports", "a fifth of the datagrams of an exporter is lost", 10 * s1, AtSender,
		[]string{"exporter-loss"}, func(s *site) { s.edge(emu.Fault{Kind: emu.LoseReports, Value: .2}) }},
	{"silence-reports", "an exporter sends nothing", 16 * s1, AtSender,
		[]string{"exporter-silence"}, func(s *site) { s.edge(emu.Fault{Kind: emu.SilenceReports}) }},
	{"duplicate-reports", "a fifth of the datagrams of an exporter arrives twice", 10 * s1, AtSender,
		nil, func(s *site) { s.edge(emu.Fault{Kind: emu.DuplicateReports, Value: .2}) }},
	{"reorder-reports", "a fifth of the datagrams of an exporter is passed by the next one", 10 * s1, AtSender,
		nil, func(s *site) { s.edge(emu.Fault{Kind: emu.ReorderReports, Value: .2}) }},
	{"restart-reports", "an exporter begins to count its reports anew", 1 * s1, AtSender,
		nil, func(s *site) { s.edge(emu.Fault{Kind: emu.RestartReports}) }},
	{"divert-flows", "a switch sends all flows to one of its neighbours instead of to two", 10 * s1, AtSwitch,
		[]string{"path-change"}, divertAll},
	{"routing-loop", "three of ten flows that come down a link are sent up again", 6 * s1, OnLink,
		[]string{"routing-loop", "drops", "path-change", "high-latency", "high-queue"}, loop},
	{"forge-digests", "a switch fills the digests of half of its packets with noise", 10 * s1, AtSwitch,
		[]string{"strange-digests"}, func(s *site) { s.inner(emu.Fault{Kind: emu.ForgeDigests, Value: .5}) }},
	{"microburst", "once a second, for 25 ms, four times a line's rate comes to it", 12 * s1, OnLink,
		[]string{"high-latency", "high-queue", "drops"}, func(s *site) {
			s.line(slices.Repeat([]emu.Fault{{Kind: emu.CrossTraffic, Value: 4, For: 25 * ms}}, 12)...)
		}},
	{"gray-failure-1", "one direction of a link loses 1 % of its packets, silently", 60 * s1, OnLink,
		[]string{"packet-loss"}, func(s *site) { s.line(emu.Fault{Kind: emu.LosePackets, Value: .01}) }},
	{"gray-failure-0.1", "one direction of a link loses 0.1 % of its packets, silently", 180 * s1, OnLink,
		[]string{"packet-loss"}, func(s *site) { s.line(emu.Fault{Kind: emu.LosePackets, Value: .001}) }},
	{"slow-drain", "one direction of a link is served slower bit by bit, down to 8 % of its rate", 40 * s1, OnLink,
		[]string{"high-latency", "high-queue", "drops"}, drain},
	{"asymmetric-latency", "one direction of a link takes 5 ms longer", 20 * s1, OnLink,
		[]string{"high-latency"}, func(s *site) { s.line(emu.Fault{Kind: emu.DelayLine, Delay: 5 * ms}) }},
	{"flapping-link", "a link fails for 1.5 s, six times, every 4 s", 24 * s1, OnLink,
		[]string{"path-change", "drops"}, func(s *site) {
			s.line(slices.Repeat([]emu.Fault{{Kind: emu.LinkDown, For: 1500 * ms}}, 6)...)
		}},
	{"incast", "twice a second, 12 hosts send 8 packets each to the same host at once", 20 * s1, AtPort,
		[]string{"high-latency", "high-queue", "drops"}, incast},
	{"black-hole", "a switch loses all packets of one flow, silently", 20 * s1, InFlow,
		[]string{"black-hole", "packet-loss"}, swallow},
}

// site is where and when a trouble is about to happen.
type site struct {
	n    *emu.Network
	g    *topo.Graph
	rate int64 // of a line
	r    *rand.Rand
	out  *Happening
}

// Happen places a trouble at random, beginning at a time, where packets of flows pass by the present routes of n. The
// network with the trouble is built from the configuration of n and the additions of the happening.
func (t *Trouble) Happen(n *emu.Network, at time.Duration, r *rand.Rand) (*Happening, error) {
	if n.NumFlows() == 0 {
		return nil, fmt.Errorf("%s: the network has no flows", t.Name)
	}
	h := &Happening{Trouble: t, From: at, Until: at + t.For}
	t.happen(&site{n, n.Graph(), n.Config().LinkRate, r, h})
	if len(h.Script) == 0 && len(h.Flows) == 0 {
		return nil, fmt.Errorf("%s: there is no place for it in topology %s", t.Name, n.Config().Topology)
	}
	return h, nil
}

// AddTo adds what happens to a configuration.
func (h *Happening) AddTo(c *emu.Config) {
	c.Script = append(c.Script, h.Script...)
	c.ExtraFlows = append(c.ExtraFlows, h.Flows...)
}

// tries is how often a place is drawn before it is given up.
const tries = 1000

// route returns the interfaces on the way of a random flow between switches that are links apart, or none.
func (s *site) route(links int) []int {
	for range tries {
		if route, ok := s.n.Route(s.r.IntN(s.n.NumFlows())); ok && len(route) > links {
			return route
		}
	}
	return nil
}

// name is the name of the switch that an interface belongs to.
func (s *site) name(iface int) string { return s.g.NodeName(s.g.Node(iface)) }

// id is its node id.
func (s *site) id(iface int) uint32 { return s.n.NodeID(s.g.Node(iface)) }

// onLink places the fault at the link behind an interface, and returns the names of both ends.
func (s *site) onLink(iface int) (node, peer string) {
	back, h := s.g.Peer(iface), s.out
	h.Node, h.Port = s.id(iface), uint32(s.g.Port(iface))
	h.Peer, h.PeerPort = s.id(back), uint32(s.g.Port(back))
	return s.name(iface), s.name(back)
}

// line lets faults happen to the direction of a link that a random flow takes, one after the other in equal parts of the
// time. A fault without a length takes its part whole.
func (s *site) line(faults ...emu.Fault) {
	route := s.route(1)
	if route == nil {
		return
	}
	node, peer := s.onLink(route[s.r.IntN(len(route)-1)])
	s.each(faults, node, peer)
}

func (s *site) each(faults []emu.Fault, node, peer string) {
	part := s.out.For / time.Duration(len(faults))
	for i, f := range faults {
		f.Node, f.Peer, f.At = node, peer, s.out.From+time.Duration(i)*part
		if f.For == 0 {
			f.For = part
		}
		s.out.Script = append(s.out.Script, f)
	}
}

// inner lets a fault happen in a switch that a random flow passes on its way from its first switch to its last.
func (s *site) inner(f emu.Fault) {
	if route := s.route(2); route != nil {
		s.at(f, route[1+s.r.IntN(len(route)-2)])
	}
}

// edge lets a fault happen in the switch that reports a random flow.
func (s *site) edge(f emu.Fault) {
	if route := s.route(0); route != nil {
		s.at(f, route[len(route)-1])
	}
}

// at lets a fault happen in the switch of an interface.
func (s *site) at(f emu.Fault, iface int) {
	s.out.Node = s.id(iface)
	s.each([]emu.Fault{f}, s.name(iface), f.Peer)
}

func withdraw(s *site) {
	if route := s.route(2); route != nil {
		s.at(emu.Fault{Kind: emu.WithdrawRoute, Peer: s.name(route[len(route)-1])}, route[1+s.r.IntN(len(route)-2)])
	}
}

// divertAll takes the first switch of a flow that has another neighbour of the same tier than the flow's next switch.
func divertAll(s *site) {
	for range tries {
		route := s.route(1)
		if route == nil {
			return
		}
		g, node := s.g, s.g.Node(route[0])
		next := g.Neighbor(route[0])
		lo, hi := g.Interfaces(node)
		for i := lo; i < hi; i++ {
			if p := g.Neighbor(i); p >= 0 && p != next && g.Tier(p) == g.Tier(next) {
				s.onLink(route[0])
				s.at(emu.Fault{Kind: emu.DivertFlows, Peer: g.NodeName(p), Value: 1}, route[0])
				return
			}
		}
	}
}

// loop takes a link that a flow comes down, from a switch to one that is closer to the hosts and not the last.
func loop(s *site) {
	for range tries {
		route := s.route(2)
		if route == nil {
			return
		}
		down := len(route) - 3 // leaves the switch above the last but one
		upper, lower := s.g.Node(route[down]), s.g.Neighbor(route[down])
		if s.g.Tier(lower) == topo.Edge || s.g.Tier(upper) == topo.Edge {
			continue
		}
		node, peer := s.onLink(s.g.Peer(route[down]))
		s.each([]emu.Fault{{Kind: emu.DivertFlows, Value: .3}}, node, peer)
		return
	}
}

// drain lowers a rate by the same factor every two seconds.
func drain(s *site) {
	const steps, last = 20, .08
	faults := make([]emu.Fault, steps)
	for i := range faults {
		faults[i] = emu.Fault{Kind: emu.CutRate, Value: math.Pow(last, float64(i+1)/steps)}
	}
	s.line(faults...)
}

// incast lets hosts on other switches send to the last host of a random flow.
func incast(s *site) {
	const senders, packets, bytes, every = 12, 8, 1000, 500 * ms
	_, to := s.n.FlowHosts(s.r.IntN(s.n.NumFlows()))
	port := s.n.HostInterface(to)
	var from []int
	for _, i := range s.r.Perm(s.n.NumHosts()) {
		if s.g.Node(s.n.HostInterface(i)) != s.g.Node(port) && len(from) < senders {
			from = append(from, i)
		}
	}
	if len(from) < senders {
		return
	}
	s.out.Node, s.out.Port = s.id(port), uint32(s.g.Port(port))
	for at := s.out.From; at < s.out.Until; at += every {
		for i, src := range from {
			s.out.Flows = append(s.out.Flows, emu.Flow{
				From: src, To: to, Proto: headers.ProtoTCP, SrcPort: uint16(20_000 + i), DstPort: 9100,
				Rate: float64(s.rate) / (8 * bytes), PacketBytes: bytes, Packets: packets, Start: at,
			})
		}
	}
}

// swallow takes one of the busier half of the flows, which come first, and a switch between its first and its last.
func swallow(s *site) {
	for range tries {
		i := s.r.IntN((s.n.NumFlows() + 1) / 2)
		if route, ok := s.n.Route(i); ok && len(route) > 2 {
			s.out.Flow = i
			s.at(emu.Fault{Kind: emu.SwallowFlow, Flow: i}, route[1+s.r.IntN(len(route)-2)])
			return
		}
	}
}
