package load

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/planner/topo"
)

func read(t *testing.T, file string) *topo.Graph {
	t.Helper()
	g, err := Topology(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLoadZoo(t *testing.T) {
	for _, c := range []struct {
		file         string
		nodes, links int
		first        string
	}{
		{"Abilene.gml", 11, 14, "New York"},
		{"Interoute.gml", 110, 158, ""}, // parallel links and a link from a node to itself
		{"Bren.gml", 37, 38, ""},        // labels that stand for several nodes
	} {
		g := read(t, c.file)
		if g.NumNodes() != c.nodes || g.NumLinks() != c.links {
			t.Errorf("%s: %d nodes and %d links, want %d and %d", c.file, g.NumNodes(), g.NumLinks(), c.nodes, c.links)
		}
		if c.first != "" && g.NodeName(0) != c.first {
			t.Errorf("%s: first node %q, want %q", c.file, g.NodeName(0), c.first)
		}
	}
}

func TestLoadYAML(t *testing.T) {
	g := read(t, "lab.yaml")
	if g.Name() != "lab" || g.NumNodes() != 4 || g.NumLinks() != 3 || g.NumInterfaces() != 8 {
		t.Fatalf("%s: %d nodes, %d links, %d interfaces, want lab: 4, 3, 8", g.Name(), g.NumNodes(), g.NumLinks(), g.NumInterfaces())
	}
	a, b := g.Ends(0)
	if g.Port(a) != 3 || g.Port(b) != 1 || g.Tier(0) != topo.Edge || g.NodeName(3) != "7" {
		t.Errorf("ports %d and %d, tier %v, last node %q, want 3, 1, edge, 7", g.Port(a), g.Port(b), g.Tier(0), g.NodeName(3))
	}
	want := topo.Attr{Weight: 10, Bandwidth: 100e9, Delay: 10 * time.Microsecond}
	if g.Attr(a) != want {
		t.Errorf("attributes %+v, want %+v", g.Attr(a), want)
	}
	want.Weight = 20
	if g.Attr(b) != want {
		t.Errorf("attributes of the reverse %+v, want %+v", g.Attr(b), want)
	}
}

func TestLoadGraphML(t *testing.T) {
	g := read(t, "ring.graphml")
	if g.NumNodes() != 3 || g.NumLinks() != 4 || g.NodeName(0) != "Paris & Nord" || g.NodeName(2) != "2" {
		t.Fatalf("%d nodes, %d links, %q, %q", g.NumNodes(), g.NumLinks(), g.NodeName(0), g.NodeName(2))
	}
	x, _ := g.Ends(0)
	y, _ := g.Ends(1)
	if got, want := [...]topo.Attr{g.Attr(x), g.Attr(y)}, [...]topo.Attr{{Weight: 5, Bandwidth: 10e9}, {Weight: 7}}; got != want {
		t.Errorf("attributes %+v, want %+v", got, want)
	}
}

func TestLoadRepetita(t *testing.T) {
	g := read(t, "pair.graph")
	if g.NumNodes() != 2 || g.NumLinks() != 2 {
		t.Fatalf("%d nodes, %d links, want 2 and 2", g.NumNodes(), g.NumLinks())
	}
	var got []uint32
	for l := range g.NumLinks() {
		a, b := g.Ends(l)
		got = append(got, g.Attr(a).Weight, g.Attr(b).Weight)
	}
	if want := []uint32{3, 5, 4, 1}; !slices.Equal(got, want) {
		t.Errorf("weights %v, want %v: the first edge pairs with the first back", got, want)
	}
	for _, file := range []string{"pair.demands", "pair.demands.gz"} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Demands(file, bytes.NewReader(b), g)
		if want := []Demand{{0, 1, 1.5e6}, {1, 0, 0}}; err != nil || !slices.Equal(d, want) {
			t.Errorf("Demands(%s) = %v, %v, want %v", file, d, err, want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"two words", "x.txt", "\nhello world\n", "x.txt:2: two words make a network of one link in a file named .edges alone"},
		{"two words, no extension", "x", "hello world\n", "x:1: two words"},
		{"edge list, three words", "x.edges", "a b\nc\n", "x.edges:2: 1 words, want two nodes"},
		{"edge list, weight", "x.edges", "a b 0\n", `x.edges:1: weight "0"`},
		{"edge list, not a number", "x.edges", "# c\na b NaN\n", `x.edges:2: weight "NaN"`},
		{"edge list, negative", "x.edges", "a b -1\n", `x.edges:1: weight "-1"`},
		{"edge list, empty", "x.edges", "# nothing\n", "x.edges: no nodes"},
		{"edge list, long line", "x.edges", "a b\n" + strings.Repeat("x", maxLine+1), "x.edges:2: line longer"},
		{"gml, no graph", "x.gml", "Creator \"x\"\n", "x.gml: no graph"},
		{"gml, cut", "x.gml", "graph [\n node [\n id 1\n", "x.gml:4: the file ends inside a list"},
		{"gml, string cut", "x.gml", "graph [\n label \"abc\n", "x.gml:2: the file ends inside a string"},
		{"gml, duplicate", "x.gml", "graph [\nnode [ id 1 ]\nnode [ id 1 ]\n]", `x.gml:3: node "1" exists since line 2`},
		{"gml, unknown", "x.gml", "graph [\nnode [ id 1 ]\nedge [ source 1\n target 2 ]\n]", `x.gml:3: link names a node "2"`},
		{"gml, nan", "x.gml", "graph [\nnode [ id 1 ]\nedge [ source 1 target 1\nweight NAN ]\n]", `x.gml:4: weight "NAN"`},
		{"gml, deep", "x.gml", "graph [\n" + strings.Repeat("a [ ", maxDepth+2), "x.gml:2: lists nested deeper"},
		{"gml, no id", "x.gml", "graph [\nnode [ label \"x\" ]\n]", "x.gml:2: node without an id"},
		{"gml, key for value", "x.gml", "graph [\nnode [ id id ]\n]", `x.gml:2: the key id has the value "id"`},
		{"graphml, not closed", "x.graphml", "<graphml>\n<graph>\n<node id='1'>", "x.graphml:3: unexpected EOF"},
		{"graphml, none", "x.graphml", "<a/>", "x.graphml: no graph element"},
		{"graphml, unknown", "x.graphml", "<graphml>\n<graph>\n<node id='1'/>\n<edge source='1' target='9'/></graph></graphml>", `x.graphml:4: link names a node "9"`},
		{"graphml, hyperedge", "x.graphml", "<graphml>\n<graph>\n<hyperedge/></graph></graphml>", "x.graphml:3: a hyperedge"},
		{"repetita, short", "x.graph", "NODES 2\nlabel x y\na 0 0\n", "x.graph:1: NODES announces 2 rows, the file has 1"},
		{"repetita, node", "x.graph", "NODES 1\nlabel x y\na 0 0\n\nEDGES 1\nlabel\ne 0 1 1 1 1\n", `x.graph:7: node "1" is none of 0..0`},
		{"repetita, one way", "x.graph", "NODES 2\nlabel x y\na 0 0\nb 0 0\n\nEDGES 1\nlabel\ne 0 1 1 1 1\n", "x.graph:8: edge from a to b has no counterpart"},
		{"repetita, huge", "x.graph", "NODES 99999999999\n", "x.graph:1: number of NODES"},
		{"repetita, no edges", "x.graph", "NODES 1\nlabel x y\na 0 0\n", "x.graph:1: no section EDGES"},
		{"yaml, key", "x.yaml", "nodes:\n  - name: a\n    teir: edge\n", `x.yaml:3: a node has no key "teir"`},
		{"yaml, tier", "x.yaml", "nodes:\n  - name: a\n    tier: top\n", `x.yaml:3: tier "top"`},
		{"yaml, unknown", "x.yaml", "nodes: [a]\nlinks:\n  - [a, b]\n", `x.yaml:3: link names a node "b"`},
		{"yaml, port twice", "x.yaml", "nodes: [a, b]\nlinks:\n  - {a: a, b: b, a_port: 1}\n  - {a: a, b: b, a_port: 1}\n", `x.yaml:4: port 1 of "a" is in use since line 3`},
		{"yaml, delay", "x.yaml", "nodes: [a, b]\nlinks:\n  - {a: a, b: b,\n     delay: -1s}\n", "x.yaml:4: delay -1s"},
		{"yaml, syntax", "x.yaml", "nodes: [a\nlinks: ]]", "x.yaml:"},
		{"yaml, alias", "x.yaml", "nodes: &a [b]\nlinks: *a\n", `x.yaml:1: "&": anchors`},
		{"yaml, deep", "x.yaml", "nodes: " + strings.Repeat("[", 100) + "\n", "x.yaml:1: nested deeper"},
		{"yaml, deep over lines", "x.yaml", "nodes:\n" + strings.Repeat("  [ \"]\"\n", 1e5), "nested deeper"},
		{"yaml, deep by dashes", "x.yaml", "nodes:\n" + strings.Repeat("- ", 1e5), "x.yaml:2: indented deeper"},
		{"yaml, many keys", "x.yaml", strings.Repeat("a: 1\n", maxYAMLKeys+1), "x.yaml:65: more than 64 keys in one mapping"},
		{"yaml, many keys further in", "x.yaml", "nodes:\n- a:\n" + strings.Repeat("    b: 1\n", maxYAMLKeys+1), "x.yaml:67: more than 64 keys in one mapping"},
		{"yaml, many keys in brackets", "x.yaml", "nodes: {\n" + strings.Repeat("a: 1,\n", maxYAMLKeys+1), "x.yaml:66: more than 64 keys in one mapping"},
		{"yaml, many words", "x.yaml", "nodes:\n" + strings.Repeat("- a\n", maxYAMLWords/2), "x.yaml:131073: more than 262144 words"},
		{"yaml, long line", "x.yaml", strings.Repeat("\"", 1e5), "x.yaml:1: line longer than 4096 bytes"},
		{"broken gzip", "x.graph.gz", "\x1f\x8bxx", "x.graph.gz: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(c.file, strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Read = %v, want %q in it", err, c.want)
			}
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("%T, want *Error", err)
			}
		})
	}
}

func TestDemandsErrors(t *testing.T) {
	g, err := topo.Parse("leaf-spine:1,2")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                     "demands x.demands: the file is empty",
		"DEMANDS 2\nlabel\nd 0 1 5\n":          "demands x.demands:1: DEMANDS announces 2 rows, the file has 1",
		"DEMANDS 1\nlabel\nd 0 3 5\n":          `demands x.demands:3: node "3" is none of 0..2`,
		"DEMANDS 1\nlabel\nd 0 1 -5\n":         `demands x.demands:3: demand d: bandwidth "-5" is no number from 0`,
		"DEMANDS 1\nlabel\nd 0 1 NaN\n":        `demands x.demands:3: demand d: bandwidth "NaN" is no number from 0`,
		"DEMANDS 1\nlabel\nd 0 1\n":            "demands x.demands:3: 3 fields, want label, src, dst, rate",
		"DEMANDS 99999999999\n":                "demands x.demands:1: number of DEMANDS",
		"DEMANDS 1\nlabel\nd 0 1 5\nd 0 1 5\n": "demands x.demands:4: ",
	} {
		_, err := Demands("x.demands", strings.NewReader(text), g)
		if e, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(e.Error(), want) {
			t.Errorf("Demands(%q) = %v, want %s", text, err, want)
		}
	}
}

func TestLoadMissing(t *testing.T) {
	if _, err := Topology("testdata/none.gml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Topology = %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := Topology("fat-three:4"); err == nil || !strings.Contains(err.Error(), "fat-tree:K") {
		t.Errorf("Topology = %v, want the generators named", err)
	}
}

// TestLoadAll loads every topology of a directory with graphs/, demands/ and index.csv, and zoo/gml/ if it was unpacked.
func TestLoadAll(t *testing.T) {
	dir := os.Getenv("HOPSCOPE_TOPOLOGIES")
	if dir == "" {
		t.Skip("HOPSCOPE_TOPOLOGIES names no directory with topologies")
	}
	f, err := os.Open(filepath.Join(dir, "index.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		number := func(name string) int { n, _ := strconv.Atoi(row[column[name]]); return n }
		g, err := Topology(filepath.Join(dir, row[column["file"]]))
		if err != nil {
			t.Error(err)
			continue
		}
		pairs := map[[2]int]bool{}
		for l := range g.NumLinks() {
			x, y := g.Ends(l)
			if a, b := g.Node(x), g.Node(y); a != b {
				pairs[[2]int{min(a, b), max(a, b)}] = true
			}
		}
		if _, n := g.Components(); n != 1 {
			t.Errorf("%s: %d components", row[0], n)
		}
		if g.NumNodes() != number("nodes") || len(pairs) != number("links") || 2*g.NumLinks() != number("directed_edges") || g.Diameter() != number("diameter") {
			t.Errorf("%s: %d nodes, %d pairs, %d links, diameter %d, want %v", row[0], g.NumNodes(), len(pairs), g.NumLinks(), g.Diameter(), row)
		}
		if file := row[column["demands_file"]]; file != "" {
			d, err := os.Open(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			demands, err := Demands(file, d, g)
			d.Close()
			if err != nil || len(demands) != number("demand_pairs") {
				t.Errorf("Demands(%s): %d, %v, want %d", file, len(demands), err, number("demand_pairs"))
			}
		}
	}
	zoo, _ := filepath.Glob(filepath.Join(dir, "zoo", "gml", "*.gml"))
	for _, file := range zoo {
		if _, err := Topology(file); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d topologies of the index, %d of the zoo", len(rows)-1, len(zoo))
}

// FuzzRead feeds arbitrary bytes to every format.
func FuzzRead(f *testing.F) {
	names := []string{"x.gml", "x.graphml", "x.graph", "x.yaml", "x.edges", "x", "x.txt"}
	kinds := map[string]byte{".gml": 0, ".graphml": 1, ".graph": 2, ".yaml": 3, ".edges": 4, ".txt": 6, ".xml": 1, ".brite": 6}
	files, _ := filepath.Glob("testdata/*.*")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && len(b) < 4096 {
			f.Add(kinds[filepath.Ext(file)], b)
		}
	}
	f.Add(byte(4), []byte("a b\nb c 3\n# x\nc c\n"))
	f.Add(byte(0), []byte("graph [\n directed 1\n node [ id 1 label \"a\" ]\n node [ id 2 label \"a\" ]\n edge [ source 1 target 2 weight 3 ]\n]"))
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		g, err := Read(names[int(kind)%len(names)], bytes.NewReader(b))
		if err != nil {
			packed := bytes.HasPrefix(b, []byte{0x1f, 0x8b}) // lines are counted behind the packing
			if e, ok := errors.AsType[*Error](err); ok && !packed && e.Line > bytes.Count(b, []byte("\n"))+bytes.Count(b, []byte("\r"))+2 {
				t.Fatalf("%v: the file has %d lines", err, bytes.Count(b, []byte("\n")))
			}
			return
		}
		seen := map[string]bool{}
		for n := range g.NumNodes() {
			if seen[g.NodeName(n)] {
				t.Fatalf("the name %q twice", g.NodeName(n))
			}
			seen[g.NodeName(n)] = true
		}
		for l := range g.NumLinks() {
			if x, y := g.Ends(l); g.Attr(x).Weight == 0 || g.Attr(y).Weight == 0 {
				t.Fatalf("link %d without a weight", l)
			}
		}
	})
}

func FuzzDemands(f *testing.F) {
	g, err := topo.Parse("leaf-spine:1,1")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("DEMANDS 1\nlabel src dest bw\nd 0 1 1.5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Demands("x.demands", bytes.NewReader(b), g)
		for _, d := range d {
			if err != nil || !(d.Rate >= 0) || d.Src >= 2 || d.Dst >= 2 {
				t.Fatalf("%+v, %v", d, err)
			}
		}
	})
}
