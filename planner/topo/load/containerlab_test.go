package load

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/topo"
)

func TestLoadContainerlab(t *testing.T) {
	g := read(t, "fabric.clab.yaml")
	if g.Name() != "fabric" || g.NumNodes() != 4 || g.NumLinks() != 3 || g.NumInterfaces() != 8 {
		t.Fatalf("%s: %d nodes, %d links, %d interfaces, want fabric: 4, 3, 8", g.Name(), g.NumNodes(), g.NumLinks(), g.NumInterfaces())
	}
	for l, want := range []string{"leaf1:49--spine1:1", "leaf2:49--spine1:2", "leaf1:1--h1:1"} {
		if got := g.LinkName(l); got != want {
			t.Errorf("link %d: %s, want %s", l, got, want)
		}
	}
	if n, _ := g.Lookup("leaf2"); g.ByPort(n, 1) < 0 || g.ByPort(n, 2) < 0 {
		t.Error("the interfaces of leaf2 that lead out have no ports 1 and 2")
	}
	if p, ok := g.Place(0); !ok || p != (topo.Place{Longitude: 13.40, Latitude: 52.52}) {
		t.Errorf("place of spine1: %v, %v", p, ok)
	}
}

// A name that says no format is enough where the content does.
func TestContainerlabByContent(t *testing.T) {
	g, err := Read("lab", strings.NewReader("topology:\n  nodes:\n    a:\n    b:\n  links:\n  - endpoints: [a:eth2, b:Ethernet4]\n"))
	if err != nil || g.NumLinks() != 1 || g.LinkName(0) != "a:2--b:1" {
		t.Errorf("%v, %v", g, err)
	}
}

func TestContainerlabErrors(t *testing.T) {
	const nodes = "topology:\n  nodes:\n    a: {kind: linux}\n    b: {}\n  links:\n"
	for text, want := range map[string]string{
		"topology:\n  nodes:\n    a:\n      kind: x\n{{- if .b }}\n      env: y\n{{- end }}\n": "; templates ({{ }}) are not filled in",
		"topology:\n  nodes: [a]\n":                                      "x.yml:2: nodes: want a mapping, not Sequence",
		"topology: x\n":                                                  "x.yml:1: topology: want a mapping, not String",
		"topology:\n  links: []\n":                                       "x.yml: no nodes",
		nodes + "  - endpoints: [a:eth1, c:eth1]\n":                      `x.yml:6: link names a node "c" that is not among topology.nodes`,
		nodes + "  - endpoints: [a:eth1, b]\n":                           "x.yml:6: an endpoint without a node or an interface; write it as",
		nodes + "  - endpoints: [a:eth1]\n":                              "x.yml:6: a link of 1 endpoints, want 2",
		nodes + "  - type: veth-stitch\n    endpoints: [a:x]\n":          "x.yml:6: a link of 1 endpoints, want 2",
		nodes + "  - type: tunnel\n":                                     `x.yml:6: link of type "tunnel"; what is read is veth, veth-stitch, host`,
		nodes + "  - endpoints: [a:x, b:x]\n  - endpoints: [a:x, b:y]\n": "x.yml:7: interface a:x is in use since line 6",
		"topology:\n  nodes:\n    a:\n      labels:\n        graph-geoCoordinateLat: 95\n        graph-geoCoordinateLng: 5\n": `latitude "95" is no number`,
		"topology:\n  nodes:\n" + labNodes(maxLabNodes+1):                                                                     "x.yml:2051: more than 1024 keys in one mapping",
	} {
		_, err := Read("x.yml", strings.NewReader(text))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Error(), want) {
			t.Errorf("Read(%.80q) = %v, want %s", text, err, want)
		}
	}
}

func labNodes(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("    n" + strconv.Itoa(i) + ":\n      kind: linux\n")
	}
	return b.String()
}
