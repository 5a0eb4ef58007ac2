package names

import (
	"encoding/json"
	"testing"
)

var twoSites = Sites{{1, "berlin"}, {200, "bonn"}}

func TestSites(t *testing.T) {
	for _, c := range []struct {
		site   uint8
		node   uint32
		id     uint32
		ok     bool
		called string
	}{
		{0, 17, 17, true, "17"},
		{1, 17, 1<<24 | 17, true, "berlin/17"},
		{200, 17, 200<<24 | 17, true, "bonn/17"},
		{1, 0, 1 << 24, true, "berlin/0"},
		{1, 1<<24 - 1, 1<<25 - 1, true, "berlin/16777215"},
		{1, 1 << 24, 0, false, ""},
		{0, 1<<24 | 17, 0, false, ""},                  // would be berlin/17
		{0, 7<<24 | 17, 7<<24 | 17, true, "117440529"}, // there is no site 7
		{0, 1<<32 - 1, 1<<32 - 1, true, "4294967295"},
	} {
		id, ok := twoSites.Join(c.site, c.node)
		if ok != c.ok || ok && id != c.id {
			t.Errorf("node %d of site %d: %d %v, want %d %v", c.node, c.site, id, ok, c.id, c.ok)
		}
		if !ok {
			continue
		}
		if site, node := twoSites.Split(id); site.ID != c.site || node != c.node {
			t.Errorf("%d is node %d of site %d, want %d of %d", id, node, site.ID, c.node, c.site)
		}
		if got := (*Names)(nil).WithSites(twoSites).Node(id); got != c.called {
			t.Errorf("%d is called %q, want %q", id, got, c.called)
		}
		if id, ok := Sites(nil).Join(0, c.node); !ok || id != c.node {
			t.Errorf("without sites, node %d becomes %d %v", c.node, id, ok)
		}
	}
}

// TestSitesInTexts holds that people read the site and the number that the device has, and that clients of the page
// read the same.
func TestSitesInTexts(t *testing.T) {
	n := New([]Node{{ID: 1<<24 | 17, Name: "leaf", Site: "berlin", Interfaces: []Interface{{ID: 3, Name: "e3"}}}, {ID: 17, Name: "other"}}, nil, nil).
		WithReasons(map[uint8]string{1: "full"}).WithSites(twoSites)
	text, err := json.Marshal(n.Document())
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if !d.Names().Equal(n) {
		t.Errorf("%v became %v", n, d.Names())
	}
	for _, c := range [][2]string{
		{"latency of node 16777233 interface 3", "latency of node leaf (berlin/17) interface e3 (3)"},
		{"link 16777233–3355443217", "link leaf (berlin/17)–bonn/17"},
		{"node 17", "node other (17)"},
		{"10.0.0.1:80 > 10.0.0.2:17 udp left 16777233:3-17-(4 more) for 17-3355443217:1-(9 more) after 3 packets", "10.0.0.1:80 > 10.0.0.2:17 udp left leaf (berlin/17):e3 (3) > other (17) > (4 more) for other (17) > bonn/17:1-(9 more) after 3 packets"},
	} {
		if got := n.Text(c[0]); got != c[1] {
			t.Errorf("%q became %q, want %q", c[0], got, c[1])
		}
	}
	if got := (*Names)(nil).WithSites(twoSites).Text("node 16777233"); got != "node berlin/17" {
		t.Errorf("without an inventory: %q", got)
	}
	if n := New(nil, nil, nil); n.WithSites(nil) != n {
		t.Error("no sites change the names")
	}
}

func TestSitesThatCannotBe(t *testing.T) {
	for _, s := range []Sites{{{0, "a"}}, {{1, ""}}, {{1, "a"}, {1, "b"}}, {{1, "a"}, {2, "a"}}} {
		if s.Validate() == nil {
			t.Errorf("%v is valid", s)
		}
	}
	if err := twoSites.Validate(); err != nil {
		t.Error(err)
	}
}
