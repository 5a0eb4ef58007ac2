package load

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/planner/topo"
)

func TestLoadBRITE(t *testing.T) {
	g := read(t, "barabasi.brite")
	if g.NumNodes() != 4 || g.NumLinks() != 4 || g.NodeName(3) != "3" {
		t.Fatalf("%d nodes, %d links, last node %q, want 4, 4, 3", g.NumNodes(), g.NumLinks(), g.NodeName(3))
	}
	if p, ok := g.Place(3); ok {
		t.Errorf("a point of a plane became the place %v", p)
	}
	ms := time.Millisecond
	for l, want := range [][2]topo.Attr{
		{{Weight: 1, Delay: 3125 * time.Microsecond, Bandwidth: 10e6}, {Weight: 1, Delay: 3125 * time.Microsecond, Bandwidth: 10e6}},
		{{Weight: 1, Delay: 2500 * time.Microsecond, Bandwidth: 155e6}, {Weight: 1, Delay: 2500 * time.Microsecond, Bandwidth: 155e6}},
		{topo.DefaultAttr, topo.DefaultAttr},
		{{Weight: 1, Delay: 1500 * time.Microsecond, Bandwidth: 100e6}, {Weight: 1, Delay: 2 * ms, Bandwidth: 50e6}},
	} {
		if a, b := g.Ends(l); g.Attr(a) != want[0] || g.Attr(b) != want[1] {
			t.Errorf("link %d: %+v and %+v, want %+v", l, g.Attr(a), g.Attr(b), want)
		}
	}
}

// BRITE in C++ writes its heads otherwise than BRITE in Java, and a NUL behind the model.
func TestBRITEInC(t *testing.T) {
	g, err := Read("net", strings.NewReader("Topology: ( 2 Nodes, 1 Edges )\nModel ( 2 ): 2 1000 100 1 2 1 10 1024\x00\n\nNodes: (2)\n"+
		"0 913.00 639.00 1 1 -1 RT_NODE \n1 287.00 321.00 1 1 -1 RT_NODE \n\nEdges: (1):\n0 0 1 702.14 2.34 10.00 -1 -1 E_RT U\n"))
	if err != nil || g.NumLinks() != 1 {
		t.Errorf("%v, %v", g, err)
	}
}

func TestBRITEErrors(t *testing.T) {
	const head = "Topology: ( 2 Nodes, 1 Edges )\nModel (1 - RTWaxman): 2\n\n"
	const nodes = head + "Nodes: (2)\n0 1 1 1 1 -1 RT_NODE\n1 2 2 1 1 -1 RT_NODE\n"
	for text, want := range map[string]string{
		head: `x.txt: no section "Edges:"; the file may be cut off`,
		head + "Nodes: ( 3 )\n0 1 1 1 1 -1 RT_NODE\n":               `x.txt: no section "Edges:"`,
		head + "Nodes: ( 3 )\n0 1 1 1 1 -1 RT_NODE\nEdges: ( 0 )\n": "x.txt:4: Nodes: announces 2 rows more than there are; the file may be cut off",
		head + "Nodes: ( x )\n":                                     "x.txt:4: want Nodes: ( number of rows )",
		head + "Nodes: ( 1 )\n0\n":                                  "x.txt:5: 1 fields of a node, want id, x, y",
		nodes + "2 2 2 1 1 -1 RT_NODE\n":                            "x.txt:7: a row more than Nodes: announces in line 4",
		nodes + "Edges: ( 1 )\n":                                    "x.txt:7: Edges: announces 1 rows more than there are",
		nodes + "Edges: ( 1 )\n0 0 1 5\n":                           "x.txt:8: 4 fields of an edge, want id, from, to",
		nodes + "Edges: ( 1 )\n0 0 7 5 1 10 -1 -1 E_RT U\n":         `x.txt:8: link names a node "7" that does not exist`,
		nodes + "Edges: ( 1 )\n0 0 1 5 NaN 10 -1 -1 E_RT U\n":       `x.txt:8: edge 0: delay "NaN" is no number from 0`,
		nodes + "Edges: ( 1 )\n0 0 1 5 1 fast -1 -1 E_RT U\n":       `x.txt:8: edge 0: bandwidth "fast" is no number from 0`,
	} {
		_, err := Read("x.txt", strings.NewReader(text))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Error(), want) {
			t.Errorf("Read(%q) = %v, want %s", text, err, want)
		}
	}
}
