package main

import (
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
)

const exampleInventory = "../../docs/examples/inventory.yaml"

// TestNamesAsked asks a page whose nodes have names, some of them made to attack the terminal.
func TestNamesAsked(t *testing.T) {
	called := names.New([]names.Node{
		{ID: 7, Name: "leaf-3", Interfaces: []names.Interface{{ID: 3, Name: "Ethernet3"}}}, {ID: 1, Name: "spine\x1b[31m-1\u202e"},
	}, []names.Host{{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Name: "web"}}, nil)
	page, err := web.New(web.DefaultConfig(), web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil },
		Names: func() *names.Names { return called }})
	if err != nil {
		t.Fatal(err)
	}
	key, err := decode.ParseFlow("10.0.0.1:80 > 10.0.0.2:53 udp")
	if err != nil {
		t.Fatal(err)
	}
	slow := inference.Summary{Count: 3, P50: 1234, P90: 1500, P99: 2_345_678, Max: 2_500_000}
	hop := inference.HopKey{Node: 7, EgressIf: 3}
	at := time.Unix(1_800_000_000, 0).UnixNano()
	w := sink.NewWindow("here", &inference.Window{End: at, Reports: 3,
		Hops:  []inference.HopStats{{HopKey: hop, Count: 3, Latency: slow}},
		Flows: []inference.FlowStats{{Key: key, Packets: 3, Hops: []inference.FlowHop{{HopKey: inference.HopKey{Node: 1, EgressIf: 2}}, {HopKey: hop, Latency: slow}}}},
	}, []inference.Finding{{ID: 1, Kind: inference.HighLatency, Severity: inference.Critical, Start: at, Node: 7, EgressIf: 3, Text: "latency of node 7 interface 3: p99 2.35ms"}})
	if err := page.WriteWindow(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"top"}, "leaf-3 (7)  Ethernet3 (3)  2.35ms"},
		{[]string{"flow"}, "spine\ufffd[31m-1\ufffd (1) > leaf-3 (7)"},
		{[]string{"flow", key.String()}, "from web to ?\n3 packets lately, path spine\ufffd[31m-1\ufffd (1) > leaf-3 (7), changed 0 times\n"},
		{[]string{"flow", key.String()}, "Ethernet3 (3)  about 1µs  about 2ms  -\n"},
		{[]string{"findings"}, "latency of node leaf-3 (7) interface Ethernet3 (3): p99 2.35ms\n"},
	} {
		out, err := program(append(c.args, "--url", server.URL)...).Output()
		if err != nil || !strings.Contains(string(out), c.want) || strings.ContainsAny(string(out), "\x1b\u202e") {
			t.Errorf("hopscope %q: %v\n%q\nwant %q", c.args, err, out, c.want)
		}
	}
}

// TestNamesOfReplay replays a capture with an inventory: people read names, and stores get numbers and the measurement names.
func TestNamesOfReplay(t *testing.T) {
	dir := t.TempDir()
	lines := filepath.Join(dir, "series.jsonl")
	path, err := filepath.Abs(exampleInventory)
	if err != nil {
		t.Fatal(err)
	}
	settings := writeFile(t, "inventory: "+path+"\njsonl: {enabled: true, path: "+lines+", spool: {enabled: false}}\n")
	out, err := program("replay", "testdata/fabric-tna.pcap", "--profile", "fabric-tna", "--config", settings).Output()
	if err != nil || !strings.Contains(string(out), "leaf-1 (1)") {
		t.Errorf("%v\n%s", err, out)
	}
	series, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	called := 0
	for line := range strings.Lines(string(series)) {
		switch {
		case strings.Contains(line, `"names"`):
			called++
		case strings.Contains(line, "leaf-1"):
			t.Errorf("a point has a name in it: %s", line)
		}
	}
	if called != 5 { // three nodes, two interfaces, in one window
		t.Errorf("%d points of names, want 5\n%s", called, series)
	}
}

func TestDecodeNames(t *testing.T) {
	out, _, err := runDecode(t.Context(), "testdata/fabric-tna.pcap", "--profile", "fabric-tna", "--format", "table", "--names", exampleInventory)
	if err != nil || !strings.Contains(out, "  leaf-1 (1)") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, c := range [][2]string{{"--names=" + exampleInventory, "add --format table"}, {"--names=none.yaml", "none.yaml"}} {
		args := []string{"testdata/fabric-tna.pcap", c[0]}
		if c[0] != "--names="+exampleInventory {
			args = append(args, "--format", "table")
		}
		if _, _, err := runDecode(t.Context(), args...); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestInventoryChecked holds that config check reports all problems of an inventory with their lines, and that the page's example has
// none.
func TestInventoryChecked(t *testing.T) {
	if n, err := inventory.ReadFile(exampleInventory, nil); err != nil || n.Len() != 7 {
		t.Errorf("%v, %v", n.Len(), err)
	}
	page, err := os.ReadFile("../../docs/inventory.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if n, err := inventory.Read("page", strings.NewReader(text), nil); err != nil || n.Len() != 4 {
		t.Errorf("the page's inventory: %v, %v", n.Len(), err)
	}
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	if err := os.WriteFile(path, []byte("nodes:\n  - {id: 1}\n  - {id: 1}\n  - {id: 2, nam: a}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := writeFile(t, "inventory: "+path+"\n")
	out, err := program("config", "check", settings).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "inventory: "+path+":3: node 1 is listed in line 2, too") || !strings.Contains(string(out), path+":4: a node has no key") {
		t.Errorf("%v\n%s", err, out)
	}
}
