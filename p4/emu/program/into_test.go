package program

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/topo"
)

// These are of the line of switches of the tests.
const (
	lineNodes  = 6
	hostPort   = 9
	reportPort = 500
	session    = 7
	intoBits   = 0xf000
)

// newLine is a line of switches, with a host at both ends and the routes from the first one to the last one.
func newLine(t *testing.T) *Fabric {
	t.Helper()
	g, err := topo.Parse(fmt.Sprintf("grid:1,%d", lineNodes))
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFabric(g, "into")
	if err != nil {
		t.Fatal(err)
	}
	for n := range lineNodes {
		s := f.Switch(n)
		port := hostPort
		if n < lineNodes-1 {
			port = g.Port(g.Between(n, n+1))
		}
		for _, c := range []string{
			fmt.Sprintf("table_set_default egress.device set_device %d 0", n+1),
			fmt.Sprintf("table_add ingress.forward.forwarding4 forward 10.0.0.2/32 => %d 1 1", port),
			fmt.Sprintf("table_add egress.egress_port to_host %d => 1500 %d 1", hostPort, session),
			fmt.Sprintf("table_add ingress.ingress_port host %d => 0 0", hostPort),
			"table_add egress.envelope.collector send 1 => 1 1 127.0.0.1 127.0.0.2 1 32766 900",
			fmt.Sprintf("mirroring_add %d %d", session, reportPort),
		} {
			if err := s.Command(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

// egress is the port by which packets leave a node of the line.
func (f *Fabric) egress(n int) int {
	if n == lineNodes-1 {
		return hostPort
	}
	return f.graph.Port(f.graph.Between(n, n+1))
}

// assign assigns interfaces of the line to a flow.
func assign(t *testing.T, f *Fabric, flow *decode.FlowKey, nodes ...int) {
	t.Helper()
	for k, n := range nodes {
		e := p4.Entry{Table: p4.AssignedName, Action: p4.CarryAction, Params: []p4.Value{p4.Uint(intoBits)}, Match: []p4.Match{
			{Value: p4.Bytes(flow.Src[12:])}, {Value: p4.Bytes(flow.Dst[12:])}, p4.Number(uint64(flow.Proto)),
			p4.Number(uint64(flow.SrcPort)), p4.Number(uint64(flow.DstPort)), p4.Number(uint64(f.egress(n)))}}
		if k == len(nodes)-1 {
			e.Action = p4.ExtractAction
			e.Params = append(e.Params, p4.Uint(session), p4.Uint(1))
		}
		if err := f.Switch(n).Put(e); err != nil {
			t.Fatal(err)
		}
	}
}

// lineFlow is a flow from one end of the line to the other.
func lineFlow(port uint16, proto uint8) *decode.FlowKey {
	at := func(s string) decode.Addr { return decode.AddrFrom(netip.MustParseAddr(s)) }
	return &decode.FlowKey{Src: at("10.0.0.1"), Dst: at("10.0.0.2"), SrcPort: port, DstPort: 5001, Proto: proto, IPVersion: 4}
}

// frameOf is a packet of a flow, with a payload of some bytes.
func frameOf(flow *decode.FlowKey, payload []byte) []byte {
	b := headers.AppendEthernet(nil, headers.MAC{5: 1}, headers.MAC{5: 2}, headers.EtherIPv4)
	ip := headers.IPv4{TTL: 64, Proto: flow.Proto, Src: [4]byte(flow.Src[12:]), Dst: [4]byte(flow.Dst[12:])}
	if flow.Proto == headers.ProtoUDP {
		b = headers.AppendIPv4(b, &ip, 8+len(payload))
		return append(headers.AppendUDP(b, flow.SrcPort, flow.DstPort, len(payload)), payload...)
	}
	b = headers.AppendIPv4(b, &ip, 20+len(payload))
	return append(headers.AppendTCP(b, &headers.TCP{SrcPort: flow.SrcPort, DstPort: flow.DstPort, Seq: 1, Window: 9}), payload...)
}

// sent is what became of a packet: the packet as a host got it, and the reports about it.
func sent(t *testing.T, f *Fabric, frame []byte) (host []byte, reports []decode.Report) {
	t.Helper()
	left, err := f.Send(0, Frame{hostPort, bytes.Clone(frame)})
	if err != nil {
		t.Fatal(err)
	}
	profile, _ := demux.Lookup("auto")
	d := demux.New(profile)
	for _, a := range left {
		if a.Port != reportPort {
			if host != nil || a.Node != lineNodes-1 {
				t.Fatalf("a frame leaves switch %d, or a second one", a.Node)
			}
			host = a.Bytes
			continue
		}
		var b decode.Batch
		if n := d.Datagram(&b, decode.Addr{}, a.Bytes[42:], 1); n != 1 || b.Reports[0].Err.Reason != 0 {
			t.Fatalf("%d reports in %x: %v", n, a.Bytes, b.Reports)
		}
		reports = append(reports, *b.Reports[0])
	}
	return host, reports
}

// nodes are the interfaces of a report, in the order of the path.
func nodes(t *testing.T, f *Fabric, r *decode.Report) (list []int) {
	t.Helper()
	for i := range r.Hops {
		n := int(r.Hops[i].NodeID) - 1
		if int(r.Hops[i].EgressIf) != f.egress(n) {
			t.Errorf("node %d reports the interface %d, want %d", n, r.Hops[i].EgressIf, f.egress(n))
		}
		list = append(list, n)
	}
	return list
}

// Whichever interfaces are assigned to a flow: a packet carries the values of these and of no others, one report leaves
// behind the last one, and the host gets what was sent. Packets of other flows are not touched.
func TestAssigned(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	for _, proto := range []uint8{headers.ProtoUDP, headers.ProtoTCP} {
		for set := 1; set < 1<<lineNodes; set++ {
			f := newLine(t)
			flow := lineFlow(uint16(r.Uint32()), proto)
			other := *flow
			other.SrcPort++
			var want []int
			for n := range lineNodes {
				if set>>n&1 == 1 {
					want = append(want, n)
				}
			}
			plain := func(flow *decode.FlowKey, payload []byte) []byte {
				host, reports := sent(t, newLine(t), frameOf(flow, payload))
				if len(reports) > 0 {
					t.Fatalf("without an assignment there are reports: %+v", reports)
				}
				return host
			}
			assign(t, f, flow, want...)
			payload := make([]byte, 100+r.IntN(900))
			host, reports := sent(t, f, frameOf(flow, payload))
			if len(reports) != 1 || !slices.Equal(nodes(t, f, &reports[0]), want) {
				t.Fatalf("interfaces %v: %d reports, the first with %+v", want, len(reports), reports)
			}
			x := &reports[0]
			if x.NodeID != uint32(want[len(want)-1]+1) || x.Flags != decode.Tracked|decode.Transit || x.Kind != decode.KindStack || x.Flow != *flow {
				t.Errorf("interfaces %v: report of node %d, kind %v, flags %v, flow %v", want, x.NodeID, x.Kind, x.Flags, x.Flow)
			}
			if !bytes.Equal(host, plain(flow, payload)) {
				t.Errorf("interfaces %v: the host gets %x", want, host)
			}
			host, reports = sent(t, f, frameOf(&other, payload))
			if len(reports) > 0 || !bytes.Equal(host, plain(&other, payload)) {
				t.Errorf("interfaces %v: a packet of another flow is reported, or changed", want)
			}
		}
	}
}

// A packet meets an assignment that is not whole, as while it is changed. Its INT ends at the port to the host at the
// latest, and no values are in it but those of assigned interfaces.
func TestAssignedInPart(t *testing.T) {
	flow := lineFlow(1, headers.ProtoUDP)
	frame := frameOf(flow, make([]byte, 200))
	want, _ := sent(t, newLine(t), frame)
	for set := 1; set < 1<<lineNodes; set++ { // interfaces that carry, and none that extracts
		f := newLine(t)
		var list []int
		for n := range lineNodes {
			if set>>n&1 == 1 {
				list = append(list, n)
				assign(t, f, flow, n)
				e := f.Switch(n).Store().Read(p4.AssignedName)[0]
				if e.Default() {
					e = f.Switch(n).Store().Read(p4.AssignedName)[1]
				}
				e.Action, e.Params = p4.CarryAction, e.Params[:1]
				if err := f.Switch(n).Put(e); err != nil {
					t.Fatal(err)
				}
			}
		}
		host, reports := sent(t, f, frame)
		if !bytes.Equal(host, want) || len(reports) != 1 || reports[0].Flags&decode.Transit == 0 {
			t.Fatalf("%v carry and none extracts: the host gets %x, reports %+v", list, host, reports)
		}
		got := nodes(t, f, &reports[0])
		if !slices.Equal(got, list) {
			t.Errorf("%v carry and none extracts: the report has %v", list, got)
		}
	}
}
