package load

import (
	"errors"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/topo"
)

func TestLoadSNDlib(t *testing.T) {
	for _, file := range []string{"sndlib.txt", "sndlib.xml"} {
		g := read(t, file)
		if g.NumNodes() != 3 || g.NumLinks() != 3 || g.NodeName(1) != "Koeln" {
			t.Fatalf("%s: %d nodes, %d links, %q", file, g.NumNodes(), g.NumLinks(), g.NodeName(1))
		}
		if p, ok := g.Place(1); !ok || p != (topo.Place{Longitude: 6.96, Latitude: 50.94}) {
			t.Errorf("%s: place of %s: %v, %v", file, g.NodeName(1), p, ok)
		}
		for l, want := range []topo.Attr{{Weight: 1, Cost: 480, Bandwidth: 10e9}, {Weight: 1, Cost: 360}, {Weight: 1, Cost: 510, Bandwidth: 2.5e9}} {
			if a, b := g.Ends(l); g.Attr(a) != want || g.Attr(b) != want {
				t.Errorf("%s: link %d: %+v and %+v, want %+v", file, l, g.Attr(a), g.Attr(b), want)
			}
		}
	}
}

const sndlibHead = "?SNDlib native format; type: network; version: 1.0\n"

func TestSNDlibNative(t *testing.T) {
	for _, c := range []struct {
		name, text string
		links      int
		placed     bool
		cost       uint32
	}{
		{"directed", "NODES (\na ( 1 2 )\nb ( 3 4 )\n)\nLINKS (\nL1 ( a b ) 1 0 7 0 ( )\nL2 ( b a ) 1 0 9 0 ( )\n)\n", 1, true, 7},
		{"parallel, one the other way round", "NODES (\na\nb\n)\nLINKS (\nL1 ( a b ) 1 0 0 0 ( )\nL2 ( b a ) 1 0 0 0 ( )\nL3 ( a b ) 1 0 0 0 ( )\n)\n", 3, false, 0},
		{"a picture", "NODES (\na ( 10 20 )\nb ( 300 40 )\n)\nLINKS (\nL1 ( a b ) 0 0 1.5 0 ( )\n)\n", 1, false, 0},
		{"sections on a line, place unknown", "LINKS ( )\nNODES (\na ( 10 20 )\nb ( 0 0 )\n)\nDEMANDS ( )\n", 0, true, 0},
	} {
		g, err := Read("net", strings.NewReader(sndlibHead+c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if _, placed := g.Place(0); g.NumLinks() != c.links || placed != c.placed {
			t.Errorf("%s: %d links, placed %v, want %d, %v", c.name, g.NumLinks(), placed, c.links, c.placed)
		}
		if g.NumLinks() > 0 {
			if a, _ := g.Ends(0); g.Attr(a).Cost != c.cost || g.Attr(a).Bandwidth != 0 {
				t.Errorf("%s: %+v, want cost %d and no bandwidth, since no unit is said", c.name, g.Attr(a), c.cost)
			}
		}
	}
}

func TestSNDlibErrors(t *testing.T) {
	const meta = "META (\nunit = MBITPERSEC\n)\nNODES (\na\nb\n)\n"
	for text, want := range map[string]string{
		"?SNDlib native format; type: solution; version: 1.0\n":    `x.txt:1: SNDlib file "?SNDlib native format; type: solution; version: 1.0"; of these only "type: network" is read`,
		sndlibHead + "NODES (\na ( 1 2 )\n":                        "x.txt:2: section NODES is not closed; the file may be cut off",
		sndlibHead + "a ( 1 2 )\n":                                 "x.txt: no nodes",
		sndlibHead + "a\n":                                         `x.txt:2: "a" begins no section; want NODES ( or LINKS (`,
		sndlibHead + "NODES (\na ( 1 )\n)\n":                       `x.txt:3: "a ( 1 )" is no node; want id ( longitude latitude )`,
		sndlibHead + "NODES (\na ( 1 x )\n)\n":                     `x.txt:3: node a: coordinate "x" is no number`,
		sndlibHead + "NODES (\na\na\n)\n":                          `x.txt:4: node "a" exists since line 3`,
		sndlibHead + meta + "LINKS (\nL ( a c ) 0 0 0 0 ( )\n)\n":  `x.txt:10: link names a node "c" that does not exist`,
		sndlibHead + meta + "LINKS (\nL a b\n)\n":                  `x.txt:10: "L a b" is no link; want id ( source target ) and four numbers`,
		sndlibHead + meta + "LINKS (\nL ( a b ) -1 0 0 0 ( )\n)\n": `x.txt:10: link L: bandwidth "-1" is no number from 0`,
	} {
		_, err := Read("x.txt", strings.NewReader(text))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Error(), want) {
			t.Errorf("Read(%q) = %v, want %s", text, err, want)
		}
	}
}

func TestSNDlibXML(t *testing.T) {
	const head = "<network>\n<networkStructure><nodes coordinatesType=\"pixel\">\n<node id='a'><coordinates><x>1</x><y>2</y></coordinates></node><node id='b'/>\n</nodes>"
	g, err := Read("net", strings.NewReader("<?xml version='1.0'?>\n"+head+"<links><link id='L'><source>a</source><target>b</target></link></links></networkStructure></network>"))
	if err != nil || g.NumLinks() != 1 {
		t.Fatalf("%v, %v", g, err)
	}
	if p, ok := g.Place(0); ok {
		t.Errorf("pixels became the place %v", p)
	}
	for text, want := range map[string]string{
		"<network>\n<node id='a'>":     "x.xml:2: unexpected EOF",
		"<network/>":                   "x.xml: no nodes",
		"<solution/>":                  "x.xml: no graph element",
		"<network>\n<node/></network>": "x.xml:2: node without a name",
		head + "\n<link><source>a</source></link></networkStructure></network>":                   `x.xml:5: link names a node "" that does not exist`,
		head + "\n<link><source>a</source><target>c</target></link></networkStructure></network>": `x.xml:5: link names a node "c"`,
		"<network>\n<unit>" + strings.Repeat("<a>", 20000):                                        "x.xml:2: ",
	} {
		_, err := Read("x.xml", strings.NewReader(text))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Error(), want) {
			t.Errorf("Read(%.200q) = %v, want %s", text, err, want)
		}
	}
}
