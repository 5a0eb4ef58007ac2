package web

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// newNamedServer is newSceneServer with names of some nodes, interfaces and hosts. Node 99 reports nothing.
func newNamedServer(t *testing.T) *Server {
	t.Helper()
	srv := newSceneServer(t)
	n := names.New([]names.Node{
		{ID: 4, Name: "core-3", Interfaces: []names.Interface{{ID: 2, Name: "Ethernet2"}}}, {ID: 14, Name: "core-13"}, {ID: 99, Name: "spare-core"},
	}, []names.Host{{Prefix: netip.MustParsePrefix("10.1.1.0/24"), Name: "storage"}}, nil)
	srv.deps.Names = func() *names.Names { return n }
	return srv
}

// lines writes what was found as "kind total: name -> address, …; …".
func foundText(d *ask.FoundList) string {
	var groups []string
	for _, g := range d.Groups {
		var hits []string
		for _, h := range g.Hits {
			hits = append(hits, h.Name+" -> "+h.Address)
		}
		groups = append(groups, g.Kind+": "+strings.Join(hits, ", "))
	}
	return strings.Join(groups, "; ")
}

func TestFind(t *testing.T) {
	srv := newNamedServer(t)
	const core3 = "node: core-3 (4) -> #hop=4/; interface: core-3 (4) port 1 -> #hop=4/1; exporter: 192.0.2.4 -> #exporters=192.0.2.4; " +
		"finding: Latency at core-3, port 3: 412 µs, usually 6.1 µs -> #finding=000000000000000b"
	for _, c := range []struct {
		query, want string // the best of each kind
	}{
		{"", ""},
		{"no such thing", ""},
		{"core-3", core3},
		{"CORE-3", core3},
		{"core-3:2", "interface: core-3 (4) port Ethernet2 (2) -> #hop=4/2"},
		{"4:2", "interface: core-3 (4) port Ethernet2 (2) -> #hop=4/2"},
		{"core-3 ethernet2", "interface: core-3 (4) port Ethernet2 (2) -> #hop=4/2"},
		{"spare", "node: spare-core (99) -> #map=node/99"},
		{"192.0.2.7", "exporter: 192.0.2.7 -> #exporters=192.0.2.7"},
		{"storage", "host: storage (10.1.1.2) -> #flows=10.1.1.2; flow: 10.1.1.2:32865 > 10.3.0.3:5201 tcp -> #flow=10.1.1.2:32865%20%3E%2010.3.0.3:5201%20tcp"},
		{"10.1.1.2:32865 > 10.3.0.3:5201/6", "flow: 10.1.1.2:32865 > 10.3.0.3:5201 tcp -> #flow=10.1.1.2:32865%20%3E%2010.3.0.3:5201%20tcp"},
		{"000000000000000b", "finding: Latency at core-3, port 3: 412 µs, usually 6.1 µs -> #finding=000000000000000b"},
	} {
		var got ask.FoundList
		get(t, srv, "/api/find?limit=1&q="+url.QueryEscape(c.query), &got)
		if foundText(&got) != c.want || got.Query != c.query {
			t.Errorf("%q finds\n%s\nwant\n%s", c.query, foundText(&got), c.want)
		}
	}
}

// TestFindPorts: an interface without a number is no port, and its node reports all the same.
func TestFindPorts(t *testing.T) {
	srv, err := New(DefaultConfig(), sceneDeps(sceneTime))
	if err != nil {
		t.Fatal(err)
	}
	hop := func(node, port uint32) inference.HopStats {
		return inference.HopStats{HopKey: inference.HopKey{Node: node, EgressIf: port}, Count: 1}
	}
	srv.history.add(&inference.Window{End: 1e9, Hops: []inference.HopStats{hop(71, 0), hop(72, 0), hop(72, 3), hop(73, 1), hop(73, 2)}})
	var got ask.FoundList
	get(t, srv, "/api/find?q=node", &got)
	details := map[string]string{}
	for _, g := range got.Groups {
		if g.Kind == "node" {
			for _, h := range g.Hits {
				details[h.Name] = h.Detail
			}
		}
	}
	if want := map[string]string{"71": "", "72": "1 port", "73": "2 ports"}; !maps.Equal(details, want) {
		t.Errorf("nodes %v, want %v", details, want)
	}
}

// TestFindPrefix: a prefix finds the hosts and flows in it, and findings about these.
func TestFindPrefix(t *testing.T) {
	srv := newNamedServer(t)
	for _, q := range []string{"10.2.0.0/15", "10.2.1.77/15"} {
		var got ask.FoundList
		get(t, srv, "/api/find?limit=50&q="+url.QueryEscape(q), &got)
		p := netip.MustParsePrefix(q)
		for _, g := range got.Groups {
			if g.Kind != "host" && g.Kind != "flow" && g.Kind != "finding" || g.Total != len(g.Hits) || g.Total == 0 {
				t.Fatalf("%s: %d of kind %s, %d of them listed", q, g.Total, g.Kind, len(g.Hits))
			}
			for _, h := range g.Hits {
				if k := h.Name; g.Kind == "host" && !p.Contains(netip.MustParseAddr(k)) {
					t.Errorf("%s finds host %s", q, k)
				}
			}
		}
		if len(got.Groups) != 3 {
			t.Errorf("%s finds %s", q, foundText(&got))
		}
	}
}

// TestFindOrder: what is the text comes before what begins with it, and before what contains it. What is not listed is
// counted, and its table is named.
func TestFindOrder(t *testing.T) {
	srv := newNamedServer(t)
	var got ask.FoundList
	get(t, srv, "/api/find?limit=3&q=4", &got)
	if len(got.Groups) == 0 || got.Groups[0].Kind != "node" || got.Groups[0].Hits[0].Name != "core-3 (4)" {
		t.Fatalf("4 finds %s", foundText(&got))
	}
	for _, g := range got.Groups {
		if len(g.Hits) > 3 || len(g.Hits) < 3 && g.Total != len(g.Hits) {
			t.Errorf("%d of kind %s are listed of %d", len(g.Hits), g.Kind, g.Total)
		}
		if g.Total > 3 && g.Kind != "finding" && !strings.HasSuffix(g.More, "=4") {
			t.Errorf("%d of kind %s, all of them at %q", g.Total, g.Kind, g.More)
		}
	}
	if res := request(srv, http.MethodGet, "/api/find?q=4&limit=51"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("limit of 51: %s", res.Status)
	}
	get(t, srv, "/api/find?q="+strings.Repeat("x+", 50_000), &got) // is cut
}

// TestFilters: every table keeps the rows that a text finds. 4:2 is a part of 14:2.
func TestFilters(t *testing.T) {
	srv := newNamedServer(t)
	for _, c := range []struct {
		list, query string
		total       int
	}{
		{"hops", "", 80}, {"hops", "core-3", 4}, {"hops", "core", 8}, {"hops", "core-3:2", 1}, {"hops", "4:2", 2}, {"hops", "elsewhere", 0},
		{"exporters", "", 20}, {"exporters", "192.0.2.7", 1}, {"exporters", "192.0.2.0/29", 7}, {"exporters", "core-3", 1},
		{"flows", "", 26}, {"flows", "10.1.1.2:32865 > 10.3.0.3:5201 tcp", 1}, {"flows", "5201 tcp", 5},
	} {
		var got struct {
			Total int `json:"total"`
		}
		get(t, srv, "/api/"+c.list+"?q="+url.QueryEscape(c.query), &got)
		if got.Total != c.total {
			t.Errorf("%s of %q: %d, want %d", c.list, c.query, got.Total, c.total)
		}
	}
}

// TestFindHostile searches with texts that are no words.
func TestFindHostile(t *testing.T) {
	srv := newNamedServer(t)
	for _, q := range []string{" ", "::/0", "0.0.0.0/0", "::ffff:10.1.1.2/128", "%00", "\x00", "\xff", "<script>", "fe80::1%eth0", "1e9:1e9", "/", "((("} {
		var got ask.FoundList
		get(t, srv, "/api/find?q="+url.QueryEscape(q), &got)
		for _, g := range got.Groups {
			if g.Total == 0 {
				t.Errorf("%q: no thing of kind %s", q, g.Kind)
			}
		}
	}
}
