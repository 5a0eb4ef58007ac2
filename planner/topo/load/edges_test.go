package load

import (
	"os"
	"path/filepath"
	"testing"
)

// A file in ISO-8859-1 has its names.
func TestLatin1(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.graphml")
	text := "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><graphml><graph edgedefault=\"undirected\"><node id=\"K\xf6ln\"/><node id=\"b\"/><edge source=\"K\xf6ln\" target=\"b\"/></graph></graphml>"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if g, err := Topology(file); err != nil || g.NumLinks() != 1 || g.NodeName(0) != "Köln" {
		t.Errorf("%v, %v", g, err)
	}
}

// A line with the nodes of another one in reverse order is the other direction of its link, with its own weight. The
// same line twice is two links.
func TestLinksInBothDirections(t *testing.T) {
	for text, want := range map[string]int{
		"Alpha,+AA1 Beta,+BB2 4\nBeta,+BB2 Alpha,+AA1 4\nBeta,+BB2 Gamma,+CC3 7\nGamma,+CC3 Beta,+BB2 7\n": 2,
		"a b 1\na b 1\n":               2,
		"a b 1\na b 1\nb a 1\nb a 1\n": 2,
		"a b 1\nb a 9\nb c 1\n":        2,
	} {
		file := filepath.Join(t.TempDir(), "links.txt")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := Topology(file)
		if err != nil {
			t.Fatal(err)
		}
		if g.NumLinks() != want {
			t.Errorf("%q: %d links, want %d", text, g.NumLinks(), want)
		}
		if a, b := g.Ends(0); text == "a b 1\nb a 9\nb c 1\n" && (g.Attr(a).Weight != 1 || g.Attr(b).Weight != 9) {
			t.Errorf("weights %v and %v, want 1 and 9", g.Attr(a).Weight, g.Attr(b).Weight)
		}
	}
}
