package draw

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/topo"
)

func TestWrite(t *testing.T) {
	b := topo.NewBuilder("<loops & parallels>")
	for _, name := range []string{"a<b", "c&d", "e\"f"} {
		b.AddNode(name, topo.NoTier)
	}
	for _, l := range [][2]int{{0, 1}, {0, 1}, {1, 0}, {2, 2}, {1, 2}} {
		b.AddLink(topo.LinkEnd{Node: l[0]}, topo.LinkEnd{Node: l[1]})
	}
	odd, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	graphs := []*topo.Graph{odd}
	for _, spec := range []string{"fat-tree:4", "leaf-spine:1,1", "random:1,0,1", "random:40,70,1"} {
		g, err := topo.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	for _, g := range graphs {
		p, err := New(g)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 30 {
			p.Legend(Color(k), "probe <x>")
		}
		if g.NumLinks() > 0 {
			p.Link(0, Color(1), "probe & hop")
		}
		p.Node(0, Color(2), "depot")
		var out, first, second strings.Builder
		if err := p.Write(&out); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		d := xml.NewDecoder(strings.NewReader(out.String()))
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", g.Name(), err)
			}
			if s, ok := token.(xml.StartElement); ok {
				count[s.Name.Local]++
			}
		}
		if count["circle"] != g.NumNodes() || count["path"] != g.NumLinks() {
			t.Errorf("%s: %d circles and %d paths, want %d and %d", g.Name(), count["circle"], count["path"], g.NumNodes(), g.NumLinks())
		}
		if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
			t.Errorf("%s: a place is no number", g.Name())
		}
		for _, again := range []*strings.Builder{&first, &second} {
			if p, err = New(g); err != nil {
				t.Fatal(err)
			}
			if err := p.Write(again); err != nil {
				t.Fatal(err)
			}
		}
		if first.String() != second.String() {
			t.Errorf("%s: two pictures differ", g.Name())
		}
	}
}

func TestTooLarge(t *testing.T) {
	g, err := topo.Parse("leaf-spine:1,4000")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(g); err == nil {
		t.Error("4001 nodes are drawn")
	}
}
