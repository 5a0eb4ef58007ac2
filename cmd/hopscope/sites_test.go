package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
)

// TestSitesOfReplay replays a capture whose exporters are in a site. Text for people has the site beside the number of
// the device, and points have a number that is unique among sites.
func TestSitesOfReplay(t *testing.T) {
	dir := t.TempDir()
	lines := filepath.Join(dir, "series.jsonl")
	inventory := writeFile(t, "nodes: [{id: 1, site: berlin, name: leaf}, {id: 1, site: bonn, name: spine}]\n")
	settings := writeFile(t, "inventory: "+inventory+"\nexporters: {sites: [{id: 3, name: berlin, exporters: [0.0.0.0/0]}, {id: 4, name: bonn}]}\n"+
		"jsonl: {enabled: true, path: "+lines+", spool: {enabled: false}}\n")
	out, err := program("replay", "testdata/fabric-tna.pcap", "--profile", "fabric-tna", "--config", settings).Output()
	if err != nil || !strings.Contains(string(out), "leaf (berlin/1)") || strings.Contains(string(out), "50331649") {
		t.Errorf("%v\n%s", err, out)
	}
	series, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	hops := 0
	for line := range strings.Lines(string(series)) {
		if !strings.Contains(line, `"measurement":"hop"`) {
			continue
		}
		hops++
		if !strings.Contains(line, `"node":"503316`) { // 3 * 2^24 and a little
			t.Errorf("a hop without its site: %s", line)
		}
	}
	if hops == 0 {
		t.Errorf("no hops in %s", series)
	}
	table, _, err := runDecode(t.Context(), "testdata/fabric-tna.pcap", "--profile", "fabric-tna", "--format", "table", "--names", inventory, "--config", settings)
	if err != nil || !strings.Contains(table, "leaf (berlin/1)") {
		t.Errorf("%v\n%s", err, table)
	}
	plain, _, err := runDecode(t.Context(), "testdata/fabric-tna.pcap", "--profile", "fabric-tna", "--config", settings)
	if err != nil || strings.Contains(plain, "503316") {
		t.Errorf("JSON lines have other numbers than the wire: %v\n%s", err, plain)
	}
}

// TestSitesAsked asks a page that shows two nodes with one number.
func TestSitesAsked(t *testing.T) {
	called := names.New([]names.Node{{ID: 1<<24 | 7, Name: "leaf"}}, nil, nil).WithSites(names.Sites{{ID: 1, Name: "berlin"}, {ID: 2, Name: "bonn"}})
	page, err := web.New(web.DefaultConfig(), web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil },
		Names: func() *names.Names { return called }})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 0).UnixNano()
	slow := inference.Summary{Count: 3, P50: 1234, P90: 1500, P99: 2_345_678, Max: 2_500_000}
	w := sink.NewWindow("here", &inference.Window{End: at, Reports: 6, Hops: []inference.HopStats{
		{HopKey: inference.HopKey{Node: 1<<24 | 7, EgressIf: 3}, Count: 3, Latency: slow},
		{HopKey: inference.HopKey{Node: 2<<24 | 7, EgressIf: 3}, Count: 3, Latency: slow},
		{HopKey: inference.HopKey{Node: 7, EgressIf: 3}, Count: 3, Latency: slow}},
	}, []inference.Finding{
		{ID: 1, Kind: inference.HighLatency, Severity: inference.Critical, Start: at, Node: 1<<24 | 7, EgressIf: 3, Text: "latency of node 16777223 interface 3"},
		{ID: 2, Kind: inference.HighLatency, Severity: inference.Critical, Start: at, Node: 2<<24 | 7, EgressIf: 3, Text: "latency of node 33554439 interface 3"}})
	if err := page.WriteWindow(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	for _, c := range [][]string{
		{"top", "leaf (berlin/7)", "\nbonn/7", "\n7 "},
		{"findings", "latency of node leaf (berlin/7) interface 3", "latency of node bonn/7 interface 3"},
	} {
		out, err := program(c[0], "--url", server.URL).Output()
		for _, want := range c[1:] {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("hopscope %s: %v\n%s\nwant %q", c[0], err, out, want)
			}
		}
	}
}
