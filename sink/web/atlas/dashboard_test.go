package atlas

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference/names"
)

// dashboardNames are a leaf with a named interface, and two nodes of the same name.
var dashboardNames = names.New([]names.Node{
	{ID: 5, Name: "leaf-5", Interfaces: []names.Interface{{ID: 3, Name: "Ethernet3"}}}, {ID: 7, Name: "spine"}, {ID: 8, Name: "spine"},
}, nil, nil)

// A dashboard is read in each form of YAML, and links by number and by name.
func TestReadDashboard(t *testing.T) {
	d, err := ReadDashboard(`# of the night shift
title: "Spine: both"
panels:
  - link: 7:3
    title: Uplink
    show: queue
  - {link: "leaf-5:Ethernet3"}
  - path: [5:3, 7:1, leaf-5:3]
  - path:
      - leaf-5
      - 9:2
  - flow: 10.0.0.1:80 > 10.0.0.2:5001 tcp
  - flow: "[2001:db8::1]:80 > [2001:db8::2]:90 udp"
  - link: spine:1
  - link: 5:Ethernet3
`)
	if err != nil {
		t.Fatal(err)
	}
	d.Resolve(dashboardNames)
	if d.Title != "Spine: both" || len(d.Panels) != 8 {
		t.Fatalf("%+v", d)
	}
	want := []Panel{
		{Title: "Uplink", Kind: "link", Of: []string{"7:3"}, Show: "queue", Hops: []HopName{{"7", "3"}}},
		{Kind: "link", Of: []string{"leaf-5:Ethernet3"}, Show: "latency", Hops: []HopName{{"5", "3"}}},
		{Kind: "path", Of: []string{"5:3", "7:1", "leaf-5:3"}, Show: "latency", Hops: []HopName{{"5", "3"}, {"7", "1"}, {"5", "3"}}},
		{Kind: "path", Of: []string{"leaf-5", "9:2"}, Show: "latency", Hops: []HopName{{"5", "0"}, {"9", "2"}}},
		{Kind: "flow", Of: []string{"10.0.0.1:80 > 10.0.0.2:5001 tcp"}, Show: "latency"},
		{Kind: "flow", Of: []string{"[2001:db8::1]:80 > [2001:db8::2]:90 udp"}, Show: "latency"},
		{Kind: "link", Of: []string{"spine:1"}, Show: "latency", Problem: `"spine:1" is the name of several: write it by number, as in 7:3`},
		{Kind: "link", Of: []string{"5:Ethernet3"}, Show: "latency", Hops: []HopName{{"5", "3"}}},
	}
	for i := range want {
		if !reflect.DeepEqual(d.Panels[i], want[i]) {
			t.Errorf("panel %d: %+v, want %+v", i+1, d.Panels[i], want[i])
		}
	}
	d.Resolve(nil)
	if p := d.Panels[1].Problem; !strings.Contains(p, "is no link: write node:interface by number") {
		t.Errorf("without names: %q", p)
	}
}

// Each problem has its line and what to do.
func TestDashboardProblems(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "holds no dashboard",
		"title: x\n":              "line 1: has no panels",
		"panels: 7\n":             "line 1: panels is a list",
		"- 7\n":                   "a dashboard is keys with values",
		"panels:\n  - lnk: 7:3\n": `line 2: "lnk" is no key of a panel: it has flow, link, path, show, title`,
		"panels:\n  - title: x\n": "the panel shows nothing: give it link, path or flow",
		"panels:\n  - 7:3\n":      "line 2: a panel is keys with values",
		"panels:\n  - link: 7:3\n    flow: 10.0.0.1:80 > 10.0.0.2:5001 tcp\n": "line 3: a panel is of one thing: make the flow a panel of its own",
		"panels:\n  - link: 7:3\n    show: speed\n":                           `line 3: show: "speed" is not latency, queue or use`,
		"panels:\n  - link: 7:3\n    link: 7:4\n":                             "line 3",
		"panels:\n  - show: use\n    flow: 10.0.0.1:80 > 10.0.0.2:5001 tcp\n": "line 2: a flow has no use: show its latency or queue",
		"panels:\n  - flow: nonsense\n":                                       "line 2: ",
		"panels:\n  - path: 7:3\n":                                            "line 2: a path is a list of 1 to 16 links in order",
		"panels:\n  - link: [7]\n":                                            "line 2: is no text",
		"panels:\n  - link:\n":                                                "line 2: is no text",
		"a: &x 1\npanels: *x\n":                                               "line 1: anchors, aliases",
		"panels: [[[[1]]]]\n":                                                 "line 1: lists and mappings are nested too deeply",
		"panels: [\n":                                                         "is no YAML",
		"title: " + strings.Repeat("x", 101) + "\npanels:\n  - link: 7:3\n":   "line 1: a title has at most 100 bytes",
		strings.Repeat("# comment\n", 1000):                                   "has more than 8192 bytes: divide it",
		"panels:\n" + strings.Repeat("  - link: 7:3\n", maxPanels+1):          "has 33 panels, at most 32",
		"panels:\n  - link: 7:3\n---\npanels:\n  - link: 7:3\n":               "or several",
		"panels:\n  - lnk: 7:3\n  - link: 7:3\n    show: speed\n":             `line 4: show: "speed"`, // beside the first
	} {
		if _, err := ReadDashboard(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// A file that became wrong is in the list with its problem.
func TestReadDashboards(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for name, text := range map[string]string{good: "panels:\n  - link: leaf-5:3\n", bad: "panels:\n  - show: x\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := ReadDashboards([]string{good, bad, filepath.Join(dir, "none.yaml")}, dashboardNames).Dashboards
	if len(list) != 3 || list[0].Title != "good" || list[0].Panels[0].Hops[0].Node != "5" || !strings.Contains(list[1].Problem, "bad.yaml: line 2: show: ") || list[2].Problem == "" || list[2].Name != "none" {
		t.Errorf("%+v", list)
	}
}

// No text makes the reader fail otherwise than with an error, and what it reads it bounds.
func FuzzReadDashboard(f *testing.F) {
	f.Add("title: x\npanels:\n  - link: 7:3\n  - path: [5:3, 7:1]\n    show: queue\n")
	f.Add("panels: [{flow: '10.0.0.1:80 > 10.0.0.2:5001 tcp'}]")
	f.Add("panels: [[[")
	f.Add("? x\n: - y")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ReadDashboard(text)
		if err != nil {
			return
		}
		d.Resolve(dashboardNames)
		if len(d.Panels) == 0 || len(d.Panels) > maxPanels {
			t.Fatalf("%d panels", len(d.Panels))
		}
		for _, p := range d.Panels {
			if p.Kind == "" || len(p.Of) == 0 || len(p.Of) > maxPathHops || (p.Kind != "flow") != (len(p.Hops) == len(p.Of)) && p.Problem == "" {
				t.Fatalf("%+v", p)
			}
		}
	})
}
