package scenario

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/topo"
)

// Into is a leaf-spine network of switches that run the program rft, with a host at each leaf, and a collector behind both
// spines. Hosts send flows. One of eight packets carries INT of its whole path; the others carry what an assignment of flows
// to interfaces says. Reports of leafs take the paths of a plan of delivery, once there is one.
type Into struct {
	graph  *topo.Graph
	fabric *program.Fabric
	info   *p4rt.Info

	mu    sync.Mutex // fabric and flows
	flows []intoFlow
	began int // flows
	round int // packets of every flow
}

// intoFlow is a flow from the host of a leaf.
type intoFlow struct {
	key  decode.FlowKey
	from int // node
}

// These are of the network. Its node ids do not meet those of the other networks of the demonstration.
const (
	intoTopology = "leaf-spine:2,4"
	intoFirst    = 101 // node id
	intoHost     = 400 // port of a leaf to its host
	intoReports  = 401 // port to the collector, for reports without a path
	intoServer   = 402 // port of a spine to the collector
	intoFlows    = 24
	intoEvery    = 20 * time.Millisecond // between packets of a flow
	intoChange   = 1500                  // rounds of packets after which a flow ends and another begins

	// IntoProgram is the program of its switches.
	IntoProgram = "rft"
	// IntoCollector is the server of its reports.
	IntoCollector = "collector"
	// IntoReportBytes is the size of most of its reports, with their headers.
	IntoReportBytes = 200

	intoRate     = 0.0006 // Gbit/s of reports of a leaf, before any is measured
	intoCapacity = 0.0008 // Gbit/s of a link that are for reports
)

// NewInto makes the network. Its switches have empty tables, and its flows no way yet.
func NewInto() (*Into, error) {
	x := &Into{}
	var err error
	if x.graph, err = topo.Parse(intoTopology); err != nil {
		return nil, err
	}
	if x.fabric, err = program.NewFabric(x.graph, IntoProgram); err != nil {
		return nil, err
	}
	pipeline, err := p4rt.BMv2(IntoProgram)
	if err != nil {
		return nil, err
	}
	x.info = pipeline.Info
	for n := range x.graph.NumNodes() {
		x.fabric.Switch(n).Mirror(1, intoReports)
	}
	for range intoFlows {
		x.begin()
	}
	return x, nil
}

// Graph is its topology.
func (x *Into) Graph() *topo.Graph { return x.graph }

// NodeIDs are the ids by which its switches report, in the order of the graph.
func (x *Into) NodeIDs() []uint32 {
	ids := make([]uint32, x.graph.NumNodes())
	for n := range ids {
		ids[n] = uint32(intoFirst + n)
	}
	return ids
}

// Installer writes the tables of a switch.
func (x *Into) Installer(node int) p4rt.Installer {
	return p4rt.NewStored(x.info, x.fabric.Switch(node).Count, func(do func(*p4.Store)) {
		x.mu.Lock()
		defer x.mu.Unlock()
		do(x.fabric.Switch(node).Store())
	})
}

// leaf reports whether a node has a host.
func (x *Into) leaf(n int) bool { return x.graph.Tier(n) == topo.Edge }

// Fixed are the entries of a switch beside its assignments: routes, ports, the header of reports, and INT in one of eight
// packets.
func (x *Into) Fixed(n int) []p4.Entry {
	entry := func(table, action string, match []p4.Match, params ...uint64) p4.Entry {
		return p4.Entry{Table: table, Action: action, Match: match, Params: p4.Uints(params...)}
	}
	list := []p4.Entry{
		entry("egress.device", "set_device", nil, uint64(intoFirst+n), 0),
		entry("egress.envelope.collector", "send", []p4.Match{p4.Number(1)}, 1, 1, uint64(intoSource|n+1), 0x7f000001, 1, 32766, 900),
	}
	for to := range x.graph.NumNodes() {
		for choice := range 2 { // the lowest bit of an address selects the spine
			port, ok := x.next(n, to, choice)
			if !ok {
				continue
			}
			for last := choice; last < 32; last += 2 {
				match := p4.Match{Value: p4.Uint(uint64(10<<24 | 101<<16 | to<<8 | last)), Prefix: 32}
				list = append(list, entry("ingress.forward.forwarding4", "forward", []p4.Match{match}, uint64(port), 1, 1))
			}
		}
	}
	if x.leaf(n) {
		watch := entry("ingress.watch", "track", slices.Repeat([]p4.Match{p4.Masked(0, 0)}, 5), math.MaxUint32/8, 0xf000, 0, 16, 0)
		watch.Priority = 1
		list = append(list, watch,
			entry("ingress.ingress_port", "host", []p4.Match{p4.Number(intoHost)}, 0, 0),
			entry("egress.egress_port", "to_host", []p4.Match{p4.Number(intoHost)}, 1500, 1, 1))
	}
	return list
}

// intoSource is the network 127.20.0.0 of the addresses that reports come from: that of a switch ends in its node, from 1 on.
const intoSource = 127<<24 | 20<<16

// Delivery is the network of reports: leafs are points, both spines lead to the collector, and links have a share for reports.
func (x *Into) Delivery() (p *delivery.Problem, points []p4.DeliveryPoint) {
	p = &delivery.Problem{Nodes: []delivery.Node{{ID: IntoCollector, Kind: delivery.ServerNode, Capacity: 1, Up: 1}}}
	link := func(a, b string, portA, portB int) {
		p.Links = append(p.Links, delivery.Link{A: a, B: b, PortA: portA, PortB: portB, Latency: 1, Capacity: intoCapacity, Up: 1})
	}
	for n := range x.graph.NumNodes() {
		name := x.graph.NodeName(n)
		if !x.leaf(n) {
			p.Nodes = append(p.Nodes, delivery.Node{ID: name, Kind: delivery.SwitchNode, Capacity: 1, Up: 1})
			link(name, IntoCollector, intoServer, len(p.Links)+1)
			p.Links[len(p.Links)-1].Capacity = 1
			continue
		}
		p.Nodes = append(p.Nodes, delivery.Node{ID: name, Kind: delivery.PointNode, Rate: intoRate, Deadline: 100, Loss: 0.5})
		points = append(points, p4.DeliveryPoint{Name: name, Address: intoAddress(n).String()})
		for spine := range x.graph.NumNodes() {
			if !x.leaf(spine) {
				link(name, x.graph.NodeName(spine), x.graph.Port(x.graph.Between(n, spine)), x.graph.Port(x.graph.Between(spine, n)))
			}
		}
	}
	return p, points
}

// intoAddress is the address that reports of a switch come from.
func intoAddress(node int) netip.Addr { return netip.AddrFrom4([4]byte{127, 20, 0, byte(node + 1)}) }

// next is the port from a switch towards a leaf.
func (x *Into) next(n, to, choice int) (port int, ok bool) {
	switch {
	case !x.leaf(to):
		return 0, false
	case n == to:
		return intoHost, true
	case !x.leaf(n):
		return x.graph.Port(x.graph.Between(n, to)), true
	}
	for spine := range x.graph.NumNodes() {
		if x.leaf(spine) {
			continue
		}
		if choice == 0 {
			return x.graph.Port(x.graph.Between(n, spine)), true
		}
		choice--
	}
	return 0, false
}

// begin begins another flow, between leafs that take turns.
func (x *Into) begin() {
	var leafs []int
	for n := range x.graph.NumNodes() {
		if x.leaf(n) {
			leafs = append(leafs, n)
		}
	}
	k, turn := x.began, x.began/len(leafs)
	x.began++
	from := leafs[k%len(leafs)]
	to := leafs[(k+1+turn%(len(leafs)-1))%len(leafs)]
	host := func(n int) decode.Addr {
		return decode.AddrFrom(netip.AddrFrom4([4]byte{10, 101, byte(n), byte(2 + turn%8)}))
	}
	x.flows = append(x.flows, intoFlow{from: from, key: decode.FlowKey{Src: host(from), Dst: host(to), SrcPort: uint16(10000 + k), DstPort: 5001, Proto: headers.ProtoUDP, IPVersion: 4}})
}

// Play sends packets of all flows, and the reports of switches from an address of the loopback network each, until ctx
// ends.
func (x *Into) Play(ctx context.Context, to netip.AddrPort) error {
	conns := make([]*net.UDPConn, x.graph.NumNodes())
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	for n := range conns {
		from := netip.AddrPortFrom(intoAddress(n), 0)
		var err error
		if conns[n], err = net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to)); err != nil {
			return err
		}
	}
	began := time.Now()
	x.mu.Lock()
	x.fabric.Clock = func() uint64 { return uint64(time.Since(began).Microseconds()) + 1_000_000 } // by which paths are charged
	x.mu.Unlock()
	for retry.Sleep(ctx, intoEvery) {
		reports, err := x.step()
		if err != nil {
			return err
		}
		for _, r := range reports {
			_, _ = conns[r.Node].Write(r.Bytes) // a collector that is gone loses reports, as with any exporter
		}
	}
	return nil
}

// The payload of a report begins behind Ethernet, IPv4 and UDP. The last byte of the IPv4 source is its switch.
const (
	reportAt     = 42
	reportSource = 29
)

// step sends a packet of every flow, and returns the payloads of the reports that reach the collector, with the switches that
// made them.
func (x *Into) step() (reports []program.Arrival, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.round++; x.round%intoChange == 0 {
		x.flows = x.flows[1:]
		x.begin()
	}
	payload := binary.BigEndian.AppendUint64(make([]byte, 0, 300), uint64(x.round))[:300]
	for _, f := range x.flows {
		b := headers.AppendEthernet(nil, headers.MAC{5: 1}, headers.MAC{5: 2}, headers.EtherIPv4)
		b = headers.AppendIPv4(b, &headers.IPv4{TTL: 64, Proto: f.key.Proto, ID: uint16(x.round), Src: [4]byte(f.key.Src[12:]), Dst: [4]byte(f.key.Dst[12:])}, 8+len(payload))
		b = append(headers.AppendUDP(b, f.key.SrcPort, f.key.DstPort, len(payload)), payload...)
		left, err := x.fabric.Send(f.from, program.Frame{Port: intoHost, Bytes: b})
		if err != nil {
			return nil, fmt.Errorf("flow %v: %w", f.key, err)
		}
		for _, a := range left {
			switch {
			case a.Port != intoReports && a.Port != intoServer:
			case len(a.Bytes) < reportAt:
				return nil, errors.New("a report is shorter than its headers")
			default:
				a.Node, a.Bytes = int(a.Bytes[reportSource])-1, a.Bytes[reportAt:]
				reports = append(reports, a)
			}
		}
	}
	return reports, nil
}
