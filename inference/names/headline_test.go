package names

import (
	"math"
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// TestHeadline holds the line of each kind: the place by its name, and the figures that the finding has.
func TestHeadline(t *testing.T) {
	named := New([]Node{{ID: 17, Name: "leaf-3", Interfaces: []Interface{{ID: 3, Name: "Ethernet3"}}, DropReasons: map[uint8]string{9: "shaper"}}, {ID: 18, Name: "spine-1"}},
		nil, map[uint8]string{25: "no route"})
	port, other := inference.ElementOfHop(inference.HopKey{Node: 17, EgressIf: 3}), inference.ElementOfHop(inference.HopKey{Node: 5, EgressIf: 4})
	node, link := inference.ElementOfNode(17), inference.ElementOfLink(17, 18)
	addr := func(s string) decode.Addr { return decode.AddrFrom(netip.MustParseAddr(s)) }
	key := decode.FlowKey{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2"), SrcPort: 80, DstPort: 5001, Proto: 6, IPVersion: 4}
	flow := inference.ElementOfFlow(key)
	exporter := inference.ElementOfExporter(inference.ExporterKey{Addr: addr("10.9.0.1"), Node: 17})
	probe := key
	probe.Proto, probe.DstPort = 17, 862
	for _, c := range []struct {
		f    inference.Finding
		want string
	}{
		{inference.Finding{Kind: inference.HighQueue, Element: port, Statistic: "p50 queue", Value: 53812}, "Queue at leaf-3, Ethernet3: 53.8 kB, usually empty"},
		{inference.Finding{Kind: inference.HighQueue, Element: other, Statistic: "p99 queue", Value: 1.5e6, Baseline: 999.6}, "p99 queue at node 5, port 4: 1.5 MB, usually 1 kB"},
		{inference.Finding{Kind: inference.HighLatency, Element: port, Statistic: "p99 latency", Value: 1234567, Baseline: 4200}, "p99 latency at leaf-3, Ethernet3: 1.23 ms, usually 4.2 µs"},
		{inference.Finding{Kind: inference.HighLatency, Element: port, Statistic: "lowest latency", Value: 5e3, Baseline: 1e3, Resting: true}, "Lowest latency at leaf-3, Ethernet3: was 5 µs, usually 1 µs"},
		{inference.Finding{Kind: inference.LowLatency, Element: flow, Statistic: "p50 latency", Value: 2e9, Baseline: 3e9, End: 1}, "Latency of flow 10.0.0.1:80 > 10.0.0.2:5001 tcp: was 2 s, usually 3 s"},
		{inference.Finding{Kind: inference.HighLatency, Element: link, Statistic: "time on the link", Value: 5.2e6, Baseline: 2e5}, "Time on link leaf-3 – spine-1: 5.2 ms there and back, usually 200 µs"},
		{inference.Finding{Kind: inference.HighUtilization, Element: port, Statistic: "highest utilisation", Value: .973, Baseline: .4}, "Link use at leaf-3, Ethernet3: 97.3 %, usually 40 %"},
		{inference.Finding{Kind: inference.StuckValues, Element: port, Statistic: "queue", Value: 1200, Baseline: 1200}, "Unchanging queue at leaf-3, Ethernet3: 1.2 kB"},
		{inference.Finding{Kind: inference.HopSilence, Element: port}, "No packets at leaf-3, Ethernet3"},
		{inference.Finding{Kind: inference.ExporterSilence, Element: exporter, Value: 12, Baseline: 1}, "No reports of exporter 10.9.0.1, leaf-3: 12 windows, longest pause before 1 window"},
		{inference.Finding{Kind: inference.ExporterSilence, Element: inference.ElementOfCollector(), Value: 4}, "No reports of several exporters: 4 windows"},
		{inference.Finding{Kind: inference.ExporterLoss, Element: inference.ElementOfAddress(addr("10.9.0.1")), Value: .0312, Baseline: .01}, "Lost reports of exporter 10.9.0.1: 3.12 %, limit 1 %"},
		{inference.Finding{Kind: inference.PacketLoss, Element: link, Statistic: "loss", Value: .021, Baseline: .001}, "Lost packets on link leaf-3 – spine-1: 2.1 %, limit 0.1 %"},
		{inference.Finding{Kind: inference.PacketLoss, Element: node, Statistic: "loss", Value: .021, Baseline: .001}, "Packets without a last report at leaf-3: 2.1 %, limit 0.1 %"},
		{inference.Finding{Kind: inference.BlackHole, Element: flow, Value: 1, Baseline: .001}, "Vanished packets of flow 10.0.0.1:80 > 10.0.0.2:5001 tcp: 100 %, limit 0.1 %"},
		{inference.Finding{Kind: inference.InterfaceErrors, Element: port, Statistic: "errors in", Value: .02, Baseline: .001}, "Inbound errors at leaf-3, Ethernet3: 2 %, limit 0.1 %"},
		{inference.Finding{Kind: inference.InterfaceDiscards, Element: port, Statistic: "discards out", Value: 1, Baseline: .001}, "Outbound discards at leaf-3, Ethernet3"},
		{inference.Finding{Kind: inference.PacketDrops, Node: 17, Reason: 25, Value: 120, Flow: key}, "Drops at leaf-3: 120 a window, no route"},
		{inference.Finding{Kind: inference.PacketDrops, Node: 17, Reason: 9, Value: 1}, "Drops at leaf-3: 1 a window, shaper"},
		{inference.Finding{Kind: inference.PacketDrops, Element: port, Node: 17, EgressIf: 3, Reason: 77, Value: 1}, "Drops at leaf-3, Ethernet3: 1 a window, reason 77"},
		{inference.Finding{Kind: inference.PacketDrops, Node: 17, Reason: inference.ProbeMissing, Statistic: inference.MissingProbes, Value: 3}, "Missing probes at leaf-3: 3 a window"},
		{inference.Finding{Kind: inference.PacketDrops, Element: node, Node: 17, Reason: inference.ProbeUnsent, Statistic: inference.UnsentProbes, Value: 3, Evidence: 2}, "Unsent probes at leaf-3: 3 a window"},
		{inference.Finding{Kind: inference.PathChanged, Element: link, Value: 12}, "Change of path on link leaf-3 – spine-1: 12 flows"},
		{inference.Finding{Kind: inference.PathChanged, Element: flow, Value: 3}, "Change of path of flow 10.0.0.1:80 > 10.0.0.2:5001 tcp: 3 times"},
		{inference.Finding{Kind: inference.PathChanged, Value: 3}, "Change of path"},
		{inference.Finding{Kind: inference.InventoryError, Element: inference.ElementOfRoute(17, 9), Value: 1}, "Wrong topology on the route from leaf-3 to node 9: 1 flow"},
		{inference.Finding{Kind: inference.HighLatency, Element: node, Statistic: "p50 latency", Value: math.NaN(), Baseline: math.Inf(1)}, "Latency at leaf-3"},
		{inference.Finding{Kind: inference.HighQueue, Element: link, SeenAt: port, Evidence: 3, Statistic: "p50 queue", Value: 53800, Baseline: 100}, "Fault on link leaf-3 – spine-1: queue 53.8 kB at leaf-3, Ethernet3, usually 100 B"},
		{inference.Finding{Kind: inference.HighQueue, Element: port, SeenAt: port, Evidence: 3, Statistic: "p50 queue", Value: 53800, Baseline: 100}, "Queue at leaf-3, Ethernet3: 53.8 kB, usually 100 B"},
		{inference.Finding{Kind: inference.HopSilence, Element: node, SeenAt: other, Evidence: 2}, "Fault at leaf-3: no packets at node 5, port 4"},
	} {
		if got := named.Headline(&c.f); got != c.want {
			t.Errorf("%v: %q, want %q", c.f.Kind, got, c.want)
		}
	}
	for _, k := range inference.Kinds() { // also of a kind without a name for anything
		f := inference.Finding{Kind: k}
		if got := (*Names)(nil).Headline(&f); got == "" {
			t.Errorf("%v has no headline", k)
		}
	}
}
