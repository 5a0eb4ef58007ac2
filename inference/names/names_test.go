package names

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

var some = New([]Node{
	{ID: 18, Name: "spine-1", Site: "berlin"},
	{ID: 17, Name: "leaf-3", Site: "berlin", Interfaces: []Interface{{ID: 4, Name: "Ethernet4"}, {ID: 3, Name: "Ethernet3", Speed: 10e9}}},
	{ID: 9},
}, []Host{
	{netip.MustParsePrefix("10.0.0.0/8"), "everybody", ""}, {netip.MustParsePrefix("10.0.1.0/24"), "web", ""}, {netip.MustParsePrefix("10.0.1.7/32"), "db-7", ""},
}, map[uint8]string{25: "no route"})

func TestText(t *testing.T) {
	for _, c := range [][2]string{
		{"latency of node 17 interface 3: p99 9ms", "latency of node leaf-3 (17) interface Ethernet3 (3): p99 9ms"},
		{"node 17 interface 99", "node leaf-3 (17) interface 99"},
		{"node 9 and node 170, node 18.", "node 9 and node 170, node spine-1 (18)."},
		{"link 17:3–18 is slow, link 17–18, link 5:1–17:4", "link leaf-3 (17):Ethernet3 (3)–spine-1 (18) is slow, link leaf-3 (17)–spine-1 (18), link 5:1–leaf-3 (17):Ethernet4 (4)"},
		{"node 17 dropped 3 packets for reason 25, the last of 10.0.0.17:80 > 10.0.0.18:17 udp", "node leaf-3 (17) dropped 3 packets for reason no route (25), the last of 10.0.0.17:80 > 10.0.0.18:17 udp"},
		{"for reason 26 or for reason 2500", "for reason 26 or for reason 2500"},
		{"node 99999999999999999999", "node 99999999999999999999"},
		{"nodes 17 and anode 17 interface", "nodes 17 and anode 17 interface"},
		{"nodes 17 and 18 look swapped", "nodes leaf-3 (17) and spine-1 (18) look swapped"},
		{"node 914 speaks between 17 and 9 and next to 18", "node 914 speaks between leaf-3 (17) and 9 and next to spine-1 (18)"},
		{"1 flow is sent in turn, one of them, 10.0.0.1:1 > 10.0.0.2:2 tcp, by 17:3-9 and 17:4-18-9", "1 flow is sent in turn, one of them, 10.0.0.1:1 > 10.0.0.2:2 tcp, by leaf-3 (17):Ethernet3 (3) > 9 and leaf-3 (17):Ethernet4 (4) > spine-1 (18) > 9"},
		{"went 17:3-18:1 and now goes 17:4-9-(3 more)", "went leaf-3 (17):Ethernet3 (3) > spine-1 (18):1 and now goes leaf-3 (17):Ethernet4 (4) > 9-(3 more)"},
		{"vanished on the way 17-18, which others pass", "vanished on the way leaf-3 (17) > spine-1 (18), which others pass"},
		{"4 probes did not come to the agent with node id 17", "4 probes did not come to the agent with node id leaf-3 (17)"},
		{"packets to port 3 of node 17", "packets to port Ethernet3 (3) of node leaf-3 (17)"},
		{"node 17 dropped 3 packets; nearly all of them were to leave by interface 3, which", "node leaf-3 (17) dropped 3 packets; nearly all of them were to leave by interface Ethernet3 (3), which"},
		{"interface 17:3 dropped 3 packets for reason 25, all at interface 4", "interface leaf-3 (17):Ethernet3 (3) dropped 3 packets for reason no route (25), all at interface Ethernet4 (4)"},
		{"interface 3 of nothing, by 10.0.0.1:1 > 10.0.0.2:2 tcp, on 17 packets", "interface 3 of nothing, by 10.0.0.1:1 > 10.0.0.2:2 tcp, on 17 packets"},
		{"interface 17:3", "interface leaf-3 (17):Ethernet3 (3)"},
		{"route 17 to 18, route 10.17.0.0/16", "route leaf-3 (17) to spine-1 (18), route 10.17.0.0/16"},
		{"", ""},
	} {
		if got := some.Text(c[0]); got != c[1] {
			t.Errorf("Text(%q)\n%q, want\n%q", c[0], got, c[1])
		}
		var none *Names
		if got := none.Text(c[0]); got != c[0] {
			t.Errorf("without names: %q, want %q", got, c[0])
		}
	}
}

// TestPlaces holds that Text parses every form in which a hop is written in a sentence.
func TestPlaces(t *testing.T) {
	k := inference.HopKey{Node: 17, EgressIf: 3}
	if got, want := some.Text(k.Place()), "node leaf-3 (17) interface Ethernet3 (3)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := some.HopNode(k)+" "+some.HopEgress(k), "leaf-3 (17) Ethernet3 (3)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	link := inference.ElementOfLink(17, 18)
	if got, want := some.Text(link.String()), "link leaf-3 (17)–spine-1 (18)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	other := inference.HopKey{Other: true}
	if got, want := some.HopNode(other)+" "+some.HopEgress(other), "other other"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := some.Path([]inference.HopKey{k, {Node: 1}, {Node: 18}}), "leaf-3 (17) > 1 > spine-1 (18)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHost(t *testing.T) {
	for _, c := range [][2]string{{"10.0.1.7", "db-7"}, {"10.0.1.8", "web"}, {"10.9.9.9", "everybody"}, {"::ffff:10.0.1.8", "web"}, {"2001:db8::1", ""}} {
		if got := some.Host(netip.MustParseAddr(c[0])); got != c[1] {
			t.Errorf("Host(%s) = %q, want %q", c[0], got, c[1])
		}
	}
}

func TestClean(t *testing.T) {
	for _, c := range [][2]string{
		{" leaf-3 ", "leaf-3"}, {"a\x1b[31mb\x00\n", "a\uFFFD[31mb\uFFFD\uFFFD"}, {"a\u202eb\u2066c", "a\uFFFDb\uFFFDc"}, {"a\xffb", "a\uFFFDb"},
		{strings.Repeat("ä", MaxName), strings.Repeat("ä", MaxName)}, {strings.Repeat("ä", MaxName+1), strings.Repeat("ä", MaxName-1) + "…"},
	} {
		if got := Clean(c[0]); got != c[1] {
			t.Errorf("Clean(%q) = %q, want %q", c[0], got, c[1])
		}
	}
	n := New([]Node{{ID: 1, Name: "\x1b]0;x\a"}}, nil, map[uint8]string{1: "\u202ex"})
	if got := n.Node(1) + n.Reason(1); strings.ContainsAny(got, "\x1b\a\u202e") {
		t.Errorf("%q holds what turns a terminal", got)
	}
}

func TestRows(t *testing.T) {
	got := some.Rows()
	want := []Row{{Node: 9}, {17, 0, "leaf-3", "berlin", "", 0}, {17, 3, "leaf-3", "berlin", "Ethernet3", 10e9}, {17, 4, "leaf-3", "berlin", "Ethernet4", 0}, {Node: 18, Name: "spine-1", Site: "berlin"}}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d is %v, want %v", i, got[i], want[i])
		}
	}
	if !some.Equal(some) || some.Equal(nil) || some.Len() != 8 {
		t.Errorf("Equal or Len (%d) is wrong", some.Len())
	}
}

// The devices' own names fill gaps of a file, and change nothing in it.
func TestWithNodes(t *testing.T) {
	n := New([]Node{{ID: 7, Name: "leaf", Interfaces: []Interface{{ID: 1, Name: "up"}, {ID: 2, Speed: 5}}}}, nil, map[uint8]string{1: "full"})
	got := n.WithNodes([]Node{
		{ID: 7, Name: "10.0.0.7", Interfaces: []Interface{{ID: 1, Name: "Ethernet0", Speed: 10}}},
		{ID: 7, Interfaces: []Interface{{ID: 3, Name: "new"}, {ID: 2, Name: "Ethernet4", Speed: 10}}},
		{ID: 9, Name: "10.0.0.9"}, {ID: 9, Name: "later", Interfaces: []Interface{{ID: 3, Speed: 4}}},
	})
	want := New([]Node{
		{ID: 7, Name: "leaf", Interfaces: []Interface{{ID: 1, Name: "up", Speed: 10}, {ID: 2, Name: "Ethernet4", Speed: 5}, {ID: 3, Name: "new"}}},
		{ID: 9, Name: "10.0.0.9", Interfaces: []Interface{{ID: 3, Speed: 4}}},
	}, nil, map[uint8]string{1: "full"})
	if !got.Equal(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if f, _ := n.FindInterface(7, 1); f.Speed != 0 {
		t.Error("the names of before have changed")
	}
	if (*Names)(nil).WithNodes(nil) != nil {
		t.Error("nothing became something")
	}
}
