package topo

import (
	"slices"
	"strings"
	"testing"
)

func TestLinkNames(t *testing.T) {
	b := NewBuilder("names")
	x, y := b.AddNode("a--b", NoTier), b.AddNode("b", NoTier)
	b.AddLink(LinkEnd{Node: x}, LinkEnd{Node: y})
	b.AddLink(LinkEnd{Node: x, Port: 7}, LinkEnd{Node: y})
	b.AddLink(LinkEnd{Node: y}, LinkEnd{Node: y})
	b.AddInterface(LinkEnd{Node: y, Port: 4})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int{
		"a--b--b": {0, 1}, "b--a--b": {0, 1}, "a--b:7--b": {1}, "b:2--a--b:7": {1}, "b--b": {2}, g.LinkName(0): {0}, g.LinkName(2): {2},
	} {
		if got, err := g.LookupLinks(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("LookupLinks(%q) = %v, %v, want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "--", "b", "a--b", "a--b:9--b", "b:x--b", "b--c"} {
		if got, err := g.LookupLinks(name); err == nil {
			t.Errorf("LookupLinks(%q) = %v, want an error", name, got)
		}
	}
	if got := [...]int{g.HostPort(0), g.HostPort(1)}; got != [...]int{2, 4} {
		t.Errorf("host ports %v, want 2 (the lowest that no link uses) and 4 (which leads out)", got)
	}
}

// A name that fits links of two kinds is an error that names both.
func TestLinkNameFitsTwo(t *testing.T) {
	b := NewBuilder("names")
	for _, name := range []string{"a", "a--b", "b--c", "c", "c:1"} {
		b.AddNode(name, NoTier)
	}
	b.AddLink(LinkEnd{Node: 0}, LinkEnd{Node: 2})          // a:1--b--c:1
	b.AddLink(LinkEnd{Node: 1, Port: 9}, LinkEnd{Node: 3}) // a--b:9--c:1
	b.AddLink(LinkEnd{Node: 1, Port: 8}, LinkEnd{Node: 4}) // a--b:8--c:1:1
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, both := range map[string][2]string{
		"a--b--c":   {"a:1--b--c:1", "a--b:9--c:1"},
		"a--b--c:1": {"a:1--b--c:1", "a--b:8--c:1:1"}, // and the second as well
	} {
		_, err := g.LookupLinks(name)
		if err == nil || !strings.Contains(err.Error(), both[0]) || !strings.Contains(err.Error(), both[1]) {
			t.Errorf("LookupLinks(%q) = %v, want an error that names %q", name, err, both)
		}
	}
	for l := range g.NumLinks() {
		if got, err := g.LookupLinks(g.LinkName(l)); err != nil || !slices.Equal(got, []int{l}) {
			t.Errorf("LookupLinks(%q) = %v, %v, want %d", g.LinkName(l), got, err, l)
		}
	}
}
