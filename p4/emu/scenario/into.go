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
	"github.com/hopscope/hopscope/planner/topo"
)

// Into is a leaf-spine network of switches that run the program into, with a host at each leaf. Hosts send flows. One of
// eight packets carries INT of its whole path; the others carry what an assignment of flows to interfaces says.
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
	intoReports  = 401 // port to the collector
	intoFlows    = 24
	intoEvery    = 20 * time.Millisecond // between packets of a flow
	intoChange   = 1500                  // rounds of packets after which a flow ends and another begins
)

// NewInto makes the network. Its switches have empty tables, and its flows no way yet.
func NewInto() (*Into, error) {
	x := &Into{}
	var err error
	if x.graph, err = topo.Parse(intoTopology); err != nil {
		return nil, err
	}
	if x.fabric, err = program.NewFabric(x.graph, "into"); err != nil {
		return nil, err
	}
	pipeline, err := p4rt.BMv2("into")
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
	return p4rt.NewStored(x.info, func(do func(*p4.Store)) {
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
	const loopback = 0x7f000001
	list := []p4.Entry{
		entry("egress.device", "set_device", nil, uint64(intoFirst+n), 0),
		entry("egress.envelope.collector", "send", []p4.Match{p4.Number(1)}, 1, 1, loopback, loopback, 1, 32766, 900),
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
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 20, 0, byte(n + 1)}), 0)
		var err error
		if conns[n], err = net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to)); err != nil {
			return err
		}
	}
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

// reportAt is where the payload of a report begins in its frame: behind Ethernet, IPv4 and UDP.
const reportAt = 42

// step sends a packet of every flow, and returns the payloads of the reports.
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
			case a.Port != intoReports:
			case len(a.Bytes) < reportAt:
				return nil, errors.New("a report is shorter than its headers")
			default:
				a.Bytes = a.Bytes[reportAt:]
				reports = append(reports, a)
			}
		}
	}
	return reports, nil
}
