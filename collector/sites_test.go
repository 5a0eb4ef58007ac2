package collector

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

var testSites = []Site{
	{ID: 1, Name: "berlin", Exporters: []string{"10.1.0.0/16", "2001:db8:1::/48"}},
	{ID: 2, Name: "bonn", Exporters: []string{"10.1.2.0/24", "10.2.0.0/16"}},
}

// sender is a source whose datagrams all come from one exporter.
type sender struct {
	canned
	from netip.Addr
}

func (s *sender) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	return s.canned.Run(ctx, func(worker int, b *ingest.Batch) {
		for i := range b.Frames {
			b.Frames[i].Src = netip.AddrPortFrom(s.from, 5000)
		}
		handle(worker, b)
	})
}

// sendFrom replays the same datagrams from each of some addresses.
func sendFrom(t *testing.T, sites []Site, change func(*program), addrs ...string) (*Collector, *keeper) {
	t.Helper()
	var sources []Source
	for _, a := range addrs {
		s := &sender{canned{workers: 1, batches: 30, frames: datagrams(t, 20),
			times: func(_, batch int) int64 { return 1e18 + int64(batch)*int64(10*time.Millisecond) }}, netip.MustParseAddr(a)}
		sources = append(sources, Source{Name: a, Source: s})
	}
	keep := &keeper{}
	c := newEngine(t, func(p *program) {
		p.Exporters.Sites = sites
		if change != nil {
			change(p)
		}
	}, Options{Policy: Replay, Seed: 7, Sources: sources, Writers: []sink.WindowWriter{keep}})
	if err := run(t, c); err != nil {
		t.Fatal(err)
	}
	return c, keep
}

// seen sums the reports of hops, and returns the nodes that exporters and paths name, each by site.
func seen(windows []*sink.Window) (hops map[inference.HopKey]uint64, exporters, paths map[string]map[uint8]bool) {
	hops, exporters, paths = map[inference.HopKey]uint64{}, map[string]map[uint8]bool{}, map[string]map[uint8]bool{}
	add := func(m map[string]map[uint8]bool, key string, node uint32) {
		if m[key] == nil {
			m[key] = map[uint8]bool{}
		}
		m[key][uint8(node>>24)] = true
	}
	for _, w := range windows {
		for i := range w.Hops {
			hops[w.Hops[i].HopKey] += w.Hops[i].Count
		}
		for i := range w.Exporters {
			add(exporters, w.Exporters[i].Addr.String(), w.Exporters[i].Node)
		}
		for i := range w.Flows {
			for k := range w.Flows[i].Hops {
				add(paths, w.Flows[i].Key.String(), w.Flows[i].Hops[k].Node)
			}
		}
	}
	return hops, exporters, paths
}

// TestSitesDoNotMix sends the same reports from two sites and from none: each has the hops that it has alone, under numbers of
// its own.
func TestSitesDoNotMix(t *testing.T) {
	_, alone := sendFrom(t, nil, nil, "10.9.0.1")
	want, _, _ := seen(alone.windows)
	if len(want) == 0 {
		t.Fatal("no hops")
	}
	_, three := sendFrom(t, testSites, nil, "10.1.0.1", "10.1.2.1", "10.9.0.1")
	got, exporters, _ := seen(three.windows)
	if len(got) != 3*len(want) {
		t.Errorf("%d hops in three parts of the network, %d in one", len(got), len(want))
	}
	for k, n := range want {
		for site := range uint32(3) {
			k := inference.HopKey{Node: site<<names.NodeBits | k.Node, EgressIf: k.EgressIf}
			if got[k] != n {
				t.Errorf("hop %s: %d reports, want %d", k, got[k], n)
			}
		}
	}
	for addr, site := range map[string]uint8{"10.1.0.1": 1, "10.1.2.1": 2, "10.9.0.1": 0} { // the longest prefix wins
		if s := exporters[addr]; len(s) != 1 || !s[site] {
			t.Errorf("exporter %s is in the sites %v, want %d", addr, s, site)
		}
	}
	_, six := sendFrom(t, testSites, nil, "2001:db8:1::1")
	if got, _, _ := seen(six.windows); len(got) != len(want) {
		t.Errorf("%d hops from IPv6, want %d", len(got), len(want))
	} else {
		for k := range got {
			if k.Node>>names.NodeBits != 1 {
				t.Errorf("hop %s from IPv6 is not in site 1", k)
			}
		}
	}
}

// TestSitesOfOneAddress holds that a site changes the numbers of nodes and nothing else.
func TestSitesOfOneAddress(t *testing.T) {
	_, plain := sendFrom(t, nil, nil, "10.2.0.1")
	_, strange := sendFrom(t, testSites, nil, "10.9.0.1")
	_, other := sendFrom(t, nil, nil, "10.9.0.1")
	for i := range other.prints {
		if strange.prints[i] != other.prints[i] {
			t.Errorf("window %d of an exporter in no site is\n%.300s\nwithout sites\n%.300s", i, strange.prints[i], other.prints[i])
		}
	}
	_, placed := sendFrom(t, testSites, nil, "10.2.0.1")
	if len(placed.windows) != len(plain.windows) {
		t.Fatalf("%d windows, want %d", len(placed.windows), len(plain.windows))
	}
	for i, w := range placed.windows {
		a, b := *w.Window, *plain.windows[i].Window
		if a.Reports != b.Reports || len(a.Flows) != len(b.Flows) || len(a.Exporters) != len(b.Exporters) {
			t.Errorf("window %d: %d reports, %d flows, %d exporters; without sites %d, %d, %d", i, a.Reports, len(a.Flows), len(a.Exporters), b.Reports, len(b.Flows), len(b.Exporters))
		}
	}
	_, _, paths := seen(placed.windows)
	for flow, s := range paths {
		if len(s) != 1 || !s[2] {
			t.Errorf("%s passes the sites %v, want 2", flow, s)
		}
	}
}

// TestNodeWithoutRoom sends nodes that cannot be distinguished from others: their reports are refused, counted and logged.
func TestNodeWithoutRoom(t *testing.T) {
	list := names.Sites{{ID: 1, Name: "berlin"}}
	s, err := exporters.NewSites(&Exporters{Sites: testSites[:1]})
	if err != nil {
		t.Fatal(err)
	}
	report := func(from string, node uint32, hops ...uint32) *decode.Report {
		r := &decode.Report{Format: decode.INTMD, Has: decode.HasExporter | decode.HasNodeID, Exporter: decode.AddrFrom(netip.MustParseAddr(from)), NodeID: node}
		for _, h := range hops {
			*r.AddHop() = decode.Hop{Has: decode.HopNodeID, NodeID: h}
		}
		return r
	}
	w := s.Placer()
	for _, c := range []struct {
		r  *decode.Report
		ok bool
	}{
		{report("10.1.0.1", 1, 2, 3), true},
		{report("10.1.0.1", 1<<24, 2), false},
		{report("10.1.0.1", 1, 2, 1<<24|1), false},
		{report("10.9.0.1", 1<<24|5, 2), false},
		{report("10.9.0.1", 5, 1<<24|2), false},
		{report("10.9.0.1", 2<<24|5, 3<<24), true},
	} {
		id, known := s.NodeOf(&c.r.Exporter, c.r.NodeID)
		first := w.Place([]*decode.Report{c.r})
		if c.ok && (!known || id != c.r.NodeID) {
			t.Errorf("%s: node %d, %v, of a report of node %d", c.r.Exporter, id, known, c.r.NodeID)
		}
		if got := c.r.Err.Reason == 0; got != c.ok {
			t.Errorf("%s: accepted %v, want %v", c.r.Exporter, got, c.ok)
		}
		if !c.ok && s.Refusals() == 1 && first != c.r || first != nil && s.Refusals() != 1 {
			t.Errorf("the first refused report is reported, and no other: %v", first)
		}
		if site, _ := list.Split(c.r.NodeID); c.r.Exporter.String() == "10.9.0.1" && site.ID != 0 {
			t.Errorf("node %d of an exporter in no site is reported as one of %s", c.r.NodeID, site.Name)
		}
	}
	if n := s.Refusals(); n != 4 {
		t.Errorf("%d refused, want 4", n)
	}
	r := report("10.1.0.1", 1)
	r.Has &^= decode.HasExporter | decode.HasNodeID
	r.NodeID = 9 << 24 // left over
	if w.Place([]*decode.Report{r}); r.Err.Reason != 0 || r.NodeID != 9<<24 {
		t.Error("a number that is not there was read")
	}

	// The exporters of the load are far below 2^24, and so is 10.9.0.1's number that is made to look like one of site 1.
	var log bytes.Buffer
	frames := datagrams(t, 5)[:1]
	src := &sender{canned{workers: 1, batches: 3, frames: frames, times: func(int, int) int64 { return 1e18 }}, netip.MustParseAddr("10.1.0.1")}
	frames[0][4] = 1 // the node of the report group: its upper eight bits
	c := newEngine(t, func(p *program) { p.Exporters.Sites = testSites }, Options{Policy: Replay, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Sources: []Source{{Name: "a", Source: src}}})
	if err := run(t, c); err != nil {
		t.Fatal(err)
	}
	if b := c.Balances()[0]; b.Received != 3 || b.Stored != 0 || b.Dropped["malformed"] != 3 || b.Unsettled != 0 {
		t.Errorf("%s", LedgerLine(&b))
	}
	if n := scrapeValue(t, c, mSitesRefused.Name); n != 3 {
		t.Errorf("%v refused reports counted, want 3", n)
	}
	if n := strings.Count(log.String(), "no room beside its site"); n != 1 {
		t.Errorf("reported %d times, want once: %s", n, log.String())
	}
}

// TestSitesInSettings reads sites from a file, with mistakes.
func TestSitesInSettings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[{id: 1, name: a, exporters: [10.1.0.0/16]}, {id: 2, name: b, exporters: [10.1.2.0/24, '2001:db8::/32']}]", ""},
		{"[{id: 1, name: a}, {id: 1, name: b}]", "a and b have the same id 1"},
		{"[{id: 1, name: a}, {id: 2, name: a}]", "two sites are called a"},
		{"[{id: 1, name: a, exporters: [10.1.0.0/16]}, {id: 2, name: b, exporters: [10.1.9.9/16]}]", "10.1.0.0/16 belongs to site a already"},
		{"[{id: 1, name: a, exporters: [10.1.0.0/16]}, {id: 2, name: b, exporters: ['::ffff:10.1.0.0/112']}]", "10.1.0.0/16 belongs to site a already"},
		{"[{id: 1, name: a, exporters: [10.1.0.0]}]", "is not a prefix such as 10.1.0.0/16"},
		{"[{id: 0, name: a}]", "id"},
		{"[{id: 256, name: a}]", "id"},
		{"[{id: 1, name: ''}]", "name"},
		{"[{id: 1}]", "name"},
		{"[{name: a}]", "id"},
		{"[{id: 1, name: a, addresses: [10.0.0.0/8, 192.168.1.1/16]}]", ""},
		{"[{id: 1, name: a, addresses: [10.0.0.0]}]", "addresses[0]"},
		{"[{id: 1, name: a, addresses: [\"fd00::/8\"]}]", "no prefix of IPv4"},
	} {
		err := settings.Load("settings.yaml", []byte("exporters: {sites: "+c.text+"}\n"), testConfig())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	s, err := exporters.NewSites(&Exporters{Sites: testSites})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		site string
		node uint32
		want string
	}{
		{"", 2 << 24, "node 0 of site bonn"}, {"", 3 << 24, ""}, {"bonn", 1<<24 - 1, ""}, {"bonn", 1 << 24, "numbers of nodes in a site are below 16777216"},
		{"mainz", 1, "pint.site: mainz is none of exporters.sites"},
	} {
		if _, err := s.OfMap(c.site, []uint32{1, c.node}); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("a map of site %q with node %d: %v, want %q", c.site, c.node, err, c.want)
		}
	}
	if _, err := (*exporters.Sites)(nil).OfMap("bonn", nil); err == nil {
		t.Error("a map of a site that is none is taken")
	}
}

// TestSitesAreNamed reads an inventory with nodes by site. Findings and windows have the node's name, and points have
// the number that contains the site.
func TestSitesAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	text := "nodes:\n- {id: 1, name: x, site: berlin}\n- {id: 1, name: x, site: bonn}\n- {id: 1, name: lone}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, keep := sendFrom(t, testSites, func(p *program) { p.Inventory = path }, "10.1.0.1", "10.2.0.1")
	n := c.Names()
	if got := fmt.Sprint(n.Node(1<<24|1), " ", n.Node(2<<24|1), " ", n.Node(1), " ", n.Node(1<<24|9)); got != "x (berlin/1) x (bonn/1) lone (1) berlin/9" {
		t.Errorf("nodes are called %s", got)
	}
	nodes := map[string]map[string]bool{}
	for _, w := range keep.windows {
		for _, p := range w.Points() {
			for _, tag := range p.Tags {
				if tag.Key == "node" {
					if nodes[p.Measurement] == nil {
						nodes[p.Measurement] = map[string]bool{}
					}
					nodes[p.Measurement][tag.Value] = true
				}
			}
		}
	}
	for _, measurement := range []string{"hop", "exporter", "names"} {
		for _, node := range []string{"16777217", "33554433"} {
			if !nodes[measurement][node] {
				t.Errorf("no point of %s is of node %s, only of %v", measurement, node, nodes[measurement])
			}
		}
	}
	if nodes["hop"]["1"] || nodes["exporter"]["1"] {
		t.Error("a point is of a node without its site")
	}
	broken := newEngine(t, nil, Options{})
	defer broken.Close()
	cfg := testConfig()
	cfg.Inventory = path
	if _, err := New(cfg.Config, cfg.Analysis, Options{}); err == nil || !strings.Contains(err.Error(), "node 1 is listed in line 2, too") {
		t.Errorf("without sites, one number twice: %v", err)
	}
	cfg.Exporters.Sites = testSites
	for bad, want := range map[string]string{
		"nodes: [{id: 16777216, site: bonn}]":                          "numbers of nodes in a site are below 16777216",
		"nodes: [{id: 16777217, site: mainz}]":                         "would be taken for node 1 of site berlin",
		"nodes: [{id: 5, site: bonn}, {id: 5, site: bonn}]":            "node 5 is listed in line 1, too",
		"nodes: [{id: 5, site: mainz}, {id: 5, site: nowhere}]":        "node 5 is listed in line 1, too",
		"nodes: [{id: 5, site: bonn, interfaces: [{id: 1}, {id: 1}]}]": "node 5 has interface 1 in line 1, too",
	} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := New(cfg.Config, cfg.Analysis, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
}

// TestSitesOfAFleet merges what two collectors saw, each in a site of its own, in both orders.
func TestSitesOfAFleet(t *testing.T) {
	_, both := sendFrom(t, testSites, nil, "10.1.0.1", "10.2.0.1")
	want, _, _ := seen(both.windows)
	got := map[inference.HopKey]uint64{}
	for i, addr := range []string{"10.1.0.1", "10.2.0.1"} {
		// Each knows all sites, listed in another order.
		list := []Site{testSites[i], testSites[1-i]}
		_, one := sendFrom(t, list, nil, addr)
		hops, _, _ := seen(one.windows)
		for k, n := range hops {
			if got[k] != 0 {
				t.Errorf("both collectors saw hop %s", k)
			}
			got[k] += n
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("two collectors saw\n%v\none saw\n%v", got, want)
	}
}
