package program

import (
	"math"
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/topo"
)

// TestDelivery sends more reports than a plan assigns: each path carries its share, or its rate where that is less, and what
// exceeds it is counted. Reports go the assigned ways, and come to the assigned servers.
func TestDelivery(t *testing.T) {
	const servers, reported = 9, 290 // port of a switch; bytes of a report
	b := topo.NewBuilder("square")
	for _, n := range []string{"m", "v", "w"} {
		b.AddNode(n, topo.NoTier)
	}
	for _, l := range [][2]int{{0, 1}, {0, 2}} {
		b.AddLink(topo.LinkEnd{Node: l[0]}, topo.LinkEnd{Node: l[1]})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFabric(g, "rft")
	if err != nil {
		t.Fatal(err)
	}
	now := uint64(1_000_000)
	f.Clock = func() uint64 { return now }
	port := func(from, to int) int { return g.Port(g.Between(from, to)) }
	const gbps = 8 * reported * 100 / 1e9 // 100 reports a second
	plan := &delivery.Plan{Assignment: []delivery.Assignment{
		{ID: "m/1", Point: "m", Server: "s", Tag: 1, Path: []string{"m", "v", "s"}, Ports: []int{port(0, 1), servers}, Rate: 3 * gbps},
		{ID: "m/2", Point: "m", Server: "u", Tag: 2, Path: []string{"m", "w", "u"}, Ports: []int{port(0, 2), servers}, Rate: gbps},
	}}
	d := p4.Delivery{First: 128, Most: 600, Sources: map[string]netip.Addr{"m": netip.MustParseAddr("10.255.0.1")}, Servers: []p4.DeliveryServer{
		{Name: "s", At: netip.MustParseAddrPort("10.0.0.1:32766")}, {Name: "u", At: netip.MustParseAddrPort("10.0.0.2:32766")}}}
	entries, err := d.Entries(plan, map[string]bool{"m": true, "v": true, "w": true})
	if err != nil {
		t.Fatal(err)
	}
	for n := range g.NumNodes() {
		s := f.Switch(n)
		for _, e := range append(entries.Rules[g.NodeName(n)], entries.Shares[g.NodeName(n)]...) {
			if err := s.Put(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A packet that nothing routes makes a drop report.
	m := f.Switch(0)
	m.Mirror(1, 500)
	for _, line := range []string{"table_set_default egress.device set_device 1 0", "table_add ingress.drops report_drop 29 => 1 1"} {
		if err := m.Command(line); err != nil {
			t.Fatal(err)
		}
	}
	payload := make([]byte, 172)
	frame := packet.AppendEthernet(nil, packet.MAC{5: 1}, packet.MAC{5: 2}, packet.EtherIPv4)
	frame = packet.AppendIPv4(frame, &packet.IPv4{TTL: 9, Proto: packet.ProtoUDP, Src: [4]byte{1, 1, 1, 1}, Dst: [4]byte{2, 2, 2, 2}}, 8+len(payload))
	frame = append(packet.AppendUDP(frame, 1, 2, len(payload)), payload...)

	run := func(perSecond int) (rate map[string]float64) {
		const seconds = 50
		rate = map[string]float64{}
		for k := range seconds * perSecond {
			now += uint64(1_000_000 / perSecond)
			left, err := f.Send(0, Frame{Port: 3, Bytes: frame})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range left {
				if a.Port != servers || len(a.Bytes) != reported || get(a.Bytes, 34) != p4.TagPort+uint16(a.Node) {
					t.Fatalf("report %d leaves %s by port %d with %d bytes and tag %#x", k, g.NodeName(a.Node), a.Port, len(a.Bytes), get(a.Bytes, 34))
				}
				rate[g.NodeName(a.Node)] += 1 / float64(seconds)
			}
		}
		return rate
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > want/50 {
			t.Errorf("%s: %v reports a second, want %v", what, got, want)
		}
	}
	below := run(200)
	near("below the rates, by v", below["v"], 150)
	near("below the rates, by w", below["w"], 50)
	if n := m.Count(p4.RefusedName, 1) + m.Count(p4.RefusedName, 2); n > 0 {
		t.Errorf("%d reports refused below the rates", n)
	}
	above := run(1000)
	near("above the rates, by v", above["v"], 300)
	near("above the rates, by w", above["w"], 100)
	near("above the rates, refused of m/1", float64(m.Count(p4.RefusedName, 1))/50, 450)
	near("above the rates, refused of m/2", float64(m.Count(p4.RefusedName, 2))/50, 150)
	one, two := m.Count(p4.SentName, 1)+m.Count(p4.RefusedName, 1), m.Count(p4.SentName, 2)+m.Count(p4.RefusedName, 2)
	if one+two != 60_000 || one < 44_990 || one > 45_010 {
		t.Errorf("%d and %d reports by path, want 45000 and 15000", one, two)
	}
	// A switch on the way loses its rules: what reaches it is refused there.
	f.Replace(1, newSwitch(t, "rft"))
	for _, e := range entries.Rules["v"] {
		if e.Action == p4.RefuseAction {
			if err := f.Switch(1).Put(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	lost := run(200)
	near("without rules at v", lost["v"]+float64(f.Switch(1).Count(p4.RefusedName, 0))/50, 150)
	if lost["v"] != 0 {
		t.Errorf("%v reports a second pass a switch without a rule", lost["v"])
	}
	near("without rules at v, by w", lost["w"], 50)
}
