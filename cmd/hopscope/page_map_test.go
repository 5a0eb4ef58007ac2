package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// The map of a fat-tree has its pods and planes, and the ports of its links; a fabric of two tiers has no pods.
func TestMapOfTopology(t *testing.T) {
	g, err := topo.FatTree(6)
	if err != nil {
		t.Fatal(err)
	}
	ids, numbers := g.IDs()
	if numbers {
		t.Error("names such as core-0 are taken for numbers")
	}
	m := mapOf(g, ids)
	if len(m.Nodes) != 45 || len(m.Links) != g.NumLinks() {
		t.Fatalf("%d nodes, %d links", len(m.Nodes), len(m.Links))
	}
	for i, n := range m.Nodes {
		var pod, plane int
		switch kind, rest, _ := strings.Cut(n.Name, "-"); {
		case kind == "core":
			plane = i/3 + 1
		default:
			pod = int(rest[0]-'0') + 1
		}
		if n.ID != uint32(i) || n.Pod != pod || n.Plane != plane || n.Placed {
			t.Errorf("node %d: %+v, want pod %d, plane %d", i, n, pod, plane)
		}
	}
	for l, link := range m.Links {
		a, b := g.Ends(l)
		want := atlas.Link{Name: g.LinkName(l), A: atlas.LinkEnd{Node: uint32(g.Node(a)), Port: uint32(g.Port(a))}, B: atlas.LinkEnd{Node: uint32(g.Node(b)), Port: uint32(g.Port(b))}}
		if link != want {
			t.Errorf("link %d: %+v, want %+v", l, link, want)
		}
	}
	if g, err = topo.LeafSpine(3, 5); err != nil {
		t.Fatal(err)
	}
	ids, _ = g.IDs()
	if m = mapOf(g, ids); slices.ContainsFunc(m.Nodes, func(n atlas.Node) bool { return n.Pod != 0 || (n.Plane == 1) != (n.Tier == "core") }) {
		t.Errorf("leaves and spines: %+v", m.Nodes)
	}
}

// The page draws what its own setting names, or else the network of PINT. Hosts are not drawn, numbers in names are node ids,
// and those of a site have its number.
func TestPageMap(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	yaml := file("lab.yaml", "nodes:\n  - {name: \"7\"}\n  - {name: \"9\"}\n  - {name: \"11\", host: true}\nlinks:\n  - {a: \"7\", b: \"9\", bandwidth_gbps: 10}\n  - {a: \"7\", b: \"11\"}\n")
	cfg := defaultConfig()
	if m, err := pageMap(&cfg); m != nil || err != nil {
		t.Errorf("without a topology: %v, %v", m, err)
	}
	cfg.PINT.Topology = "fat-tree:4"
	if m, err := pageMap(&cfg); err != nil || len(m.Nodes) != 20 {
		t.Errorf("%v, %v", m, err)
	}
	cfg.Web.Topology = yaml
	m, err := pageMap(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Nodes) != 2 || m.Nodes[0].ID != 7 || m.Nodes[1].ID != 9 || len(m.Links) != 1 || m.Links[0].Speed != 10e9 {
		t.Errorf("%+v", m)
	}
	cfg.Web.Topology = filepath.Join(dir, "none.gml")
	if _, err := pageMap(&cfg); err == nil || !strings.Contains(err.Error(), "none.gml") {
		t.Errorf("a file that is not there: %v", err)
	}
	var out, errOut strings.Builder
	conf := file("c.yaml", "web:\n  topology: "+cfg.Web.Topology+"\n")
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&errOut)
	root.SetArgs([]string{"config", "check", conf})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "web.topology") {
		t.Errorf("config check: %v\n%s%s", err, &out, &errOut)
	}
}

// TestMapNamesNodes holds that a node has the name of the map in all places, such as the answer to `hopscope top`.
func TestMapNamesNodes(t *testing.T) {
	cfg := defaultConfig()
	cfg.Ports, cfg.UDP.Listen = nil, []string{"127.0.0.1:0"}
	cfg.Web.Listen, cfg.Web.Topology = "127.0.0.1:0", "fat-tree:4"
	col, err := openLive(&cfg, collector.Options{Log: slog.New(slog.DiscardHandler)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer col.Close()
	f := inference.Finding{Kind: inference.HopSilence, Element: inference.ElementOfNode(2)}
	if got, want := col.Names().Headline(&f), "No packets at core-2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := namesOf(&atlas.Map{Nodes: []atlas.Node{{ID: 7, Name: "7"}, {ID: 8, Name: "9"}}}); len(got) != 1 || got[0].ID != 8 {
		t.Errorf("names that are numbers: %+v", got)
	}
}
