package show

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/topo"
)

// element is one of a picture, with the title that it or its group has.
type element struct {
	name, class, title, text string
	attr                     map[string]string
}

func (e *element) number(t *testing.T, key string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(e.attr[key], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		t.Fatalf("%s of %+v is no number", key, e)
	}
	return v
}

// points returns the numbers of a path.
func (e *element) points(t *testing.T) (list [][2]float64) {
	t.Helper()
	var v []float64
	for _, field := range strings.FieldsFunc(e.attr["d"], func(r rune) bool { return strings.ContainsRune("MLChvz ", r) }) {
		x, err := strconv.ParseFloat(field, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			t.Fatalf("path %s: %v", e.attr["d"], err)
		}
		v = append(v, x)
	}
	for k := 0; k+1 < len(v); k += 2 {
		list = append(list, [2]float64{v[k], v[k+1]})
	}
	return list
}

// parse reads a picture; it must be well-formed.
func parse(t *testing.T, text string) (list []element) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	var open []int     // elements
	var title []string // of the groups that are open
	for {
		token, err := d.Token()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			e.class = e.attr["class"]
			if len(title) > 0 {
				e.title = title[len(title)-1]
			}
			open = append(open, len(list))
			title = append(title, e.title)
			list = append(list, e)
		case xml.CharData:
			if len(open) > 0 {
				e := &list[open[len(open)-1]]
				e.text += string(token)
			}
		case xml.EndElement:
			e := &list[open[len(open)-1]]
			open, title = open[:len(open)-1], title[:len(title)-1]
			if e.name == "title" && len(open) > 1 {
				list[open[len(open)-1]].title = e.text
				title[len(title)-1] = e.text
			}
		}
	}
}

func generate(t testing.TB, spec string) *topo.Graph {
	t.Helper()
	g, err := topo.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// odd has parallel links, a loop, and names that need care.
func odd(t testing.TB) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder("<loops & parallels>")
	for _, name := range []string{"a<b", "c&d", "e\"f", "a name that is so long that there is no room for all of it anywhere"} {
		b.AddNode(name, topo.NoTier)
	}
	for _, l := range [][2]int{{0, 1}, {0, 1}, {1, 0}, {2, 2}, {1, 2}, {3, 2}} {
		b.AddLink(topo.LinkEnd{Node: l[0]}, topo.LinkEnd{Node: l[1]})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// abroad is a network on the map, across the date line, with nodes in one place and nodes of which it is not known.
func abroad(t testing.TB) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder("abroad")
	for k, p := range []topo.Place{{Longitude: 170, Latitude: -40}, {Longitude: -170, Latitude: 20}, {Longitude: 175, Latitude: 0}, {Longitude: 175, Latitude: 0}} {
		b.AddNode(fmt.Sprint("place ", k), topo.NoTier)
		b.SetPlace(k, p)
	}
	b.AddNode("between 0 and 1", topo.NoTier)
	b.AddNode("alone", topo.NoTier)
	for _, l := range [][2]int{{0, 4}, {4, 1}, {1, 2}, {2, 3}} {
		b.AddLink(topo.LinkEnd{Node: l[0]}, topo.LinkEnd{Node: l[1]})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// irregular is a fabric with links and nodes in all wrong places.
func irregular(t testing.TB) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder("irregular")
	r := rand.New(rand.NewPCG(1, 2))
	for v := range 90 {
		b.AddNode(fmt.Sprint("n", v), topo.Tier(1+v%3))
	}
	for range 400 {
		b.AddLink(topo.LinkEnd{Node: r.IntN(90)}, topo.LinkEnd{Node: r.IntN(90)})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// hamlets has as many pods as can be drawn.
func hamlets(t testing.TB) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder("hamlets")
	b.AddNode("core", topo.Core)
	for k := 1; k < maxNodes-1; k += 2 {
		b.AddNode(fmt.Sprint("agg-", k), topo.Aggregation)
		b.AddNode(fmt.Sprint("edge-", k), topo.Edge)
		b.AddLink(topo.LinkEnd{Node: 0}, topo.LinkEnd{Node: k})
		b.AddLink(topo.LinkEnd{Node: k}, topo.LinkEnd{Node: k + 1})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// drawn draws g with walks of which every one goes on where it can, from chance.
func drawn(t testing.TB, g *topo.Graph, walks int) (text string, ways [][]int) {
	t.Helper()
	p, err := newPicture(g)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, uint64(walks)))
	for k := range walks {
		var way []int
		for v := r.IntN(g.NumNodes()); len(way) < 12; {
			lo, hi := g.Interfaces(v)
			if lo == hi {
				break
			}
			i := lo + r.IntN(hi-lo)
			way = append(way, i)
			v = g.Neighbor(i)
		}
		p.Walk(way, palette(k), fmt.Sprintf("probe <%d>", k))
		p.Legend(palette(k), fmt.Sprintf("probe <%d>: %d hops", k, len(way)))
		ways = append(ways, way)
	}
	p.Node(0, palette(2), "depot & more")
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String(), ways
}

// Every hop is a stroke of its own with an arrow that points where the hop goes; of what nothing passes there is one
// stroke.
func TestArrows(t *testing.T) {
	for _, g := range []*topo.Graph{odd(t), abroad(t), generate(t, "fat-tree:4"), generate(t, "leaf-spine:1,1"), generate(t, "random:40,70,1"), generate(t, "random:1,0,1")} {
		text, ways := drawn(t, g, 9)
		at := map[string][2]float64{}
		want, got, plain := map[string]int{}, map[string]int{}, 0
		passed := map[int]bool{}
		for k, way := range ways {
			for n, i := range way {
				want[fmt.Sprintf("%s: probe <%d>, hop %d of %d: %s to %s", g.LinkName(g.Link(i)), k, n+1, len(way), g.NodeName(g.Node(i)), g.NodeName(g.Neighbor(i)))]++
				passed[g.Link(i)] = true
			}
		}
		list := parse(t, text)
		for _, e := range list {
			if e.name == "circle" && strings.Contains(e.class, "rim") {
				name, _, _ := strings.Cut(e.title, ": ")
				at[name] = [2]float64{e.number(t, "cx"), e.number(t, "cy")}
			}
		}
		if len(at) != g.NumNodes() {
			t.Errorf("%s: %d nodes, want %d", g.Name(), len(at), g.NumNodes())
		}
		places := map[string]bool{}
		for _, e := range list {
			switch e.class {
			case "lane":
				if g := e.attr["d"]; places[g] {
					t.Errorf("two strokes are one: %s", g)
				}
				places[e.attr["d"]] = true
				if want[e.title] == 0 {
					plain++
				}
			case "arrow":
				got[e.title]++
				way := e.title[strings.LastIndex(e.title, ": ")+2:]
				from, to, _ := strings.Cut(way, " to ")
				if from == to {
					continue
				}
				p := e.points(t)
				a, b := at[from], at[to]
				ux, uy := p[0][0]-(p[1][0]+p[2][0])/2, p[0][1]-(p[1][1]+p[2][1])/2
				if dot, all := ux*(b[0]-a[0])+uy*(b[1]-a[1]), math.Hypot(ux, uy)*math.Hypot(b[0]-a[0], b[1]-a[1]); dot < 0.9*all {
					t.Errorf("%s: the arrow of %s points elsewhere", g.Name(), e.title)
				}
			}
		}
		for title, n := range want {
			if got[title] != n {
				t.Errorf("%s: %d arrows for %s, want %d", g.Name(), got[title], title, n)
			}
		}
		if len(got) != len(want) || plain != g.NumLinks()-len(passed) {
			t.Errorf("%s: %d kinds of arrow, want %d; %d strokes without, want %d", g.Name(), len(got), len(want), plain, g.NumLinks()-len(passed))
		}
	}
}

// In tables a hop is a triangle, up where it leads to a higher tier. Tables that are bundled show each way that there is.
func TestTables(t *testing.T) {
	for _, tt := range []struct {
		g      *topo.Graph
		tables int
	}{
		{generate(t, "fat-tree:8"), 8}, {generate(t, "fat-tree:30"), 30}, {generate(t, "leaf-spine:20,41"), 1}, {irregular(t), 1},
	} {
		g := tt.g
		text, ways := drawn(t, g, 40)
		var up, down, gotUp, gotDown, level, circles int
		for _, way := range ways {
			for _, i := range way {
				switch from, to := g.Tier(g.Node(i)), g.Tier(g.Neighbor(i)); {
				case from < to:
					up++
				case from > to:
					down++
				default:
					level++
				}
			}
		}
		for _, e := range parse(t, text) {
			switch {
			case e.class == "arrow up":
				gotUp++
				if p := e.points(t); p[2][1] >= p[0][1] || p[0][1] != p[1][1] {
					t.Errorf("%s: %v points down", g.Name(), p)
				}
			case e.class == "arrow down":
				gotDown++
				if p := e.points(t); p[2][1] <= p[0][1] || p[0][1] != p[1][1] {
					t.Errorf("%s: %v points up", g.Name(), p)
				}
			case e.name == "circle":
				circles++
			}
		}
		if gotUp != up || gotDown != down+level {
			t.Errorf("%s: %d triangles up and %d down, want %d and %d", g.Name(), gotUp, gotDown, up, down+level)
		}
		if circles != g.NumNodes() {
			t.Errorf("%s: %d nodes are drawn, want %d", g.Name(), circles, g.NumNodes())
		}
		if n := strings.Count(text, "links passed</text>"); n != tt.tables {
			t.Errorf("%s: %d tables, want %d", g.Name(), n, tt.tables)
		}
	}
	text, _ := drawn(t, generate(t, "leaf-spine:375,750"), 40)
	if !strings.Contains(text, `class="arrow up"`) || !strings.Contains(text, `class="arrow down"`) || len(text) > 8_000_000 {
		t.Errorf("a bundled fabric has %d bytes", len(text))
	}
}

// No picture is taller than three screens, names do not lie on each other nor outside, and the same plan gives the same
// drawn.
func TestRoom(t *testing.T) {
	for _, g := range []*topo.Graph{
		odd(t), abroad(t), irregular(t), generate(t, "fat-tree:4"), generate(t, "fat-tree:6"), generate(t, "fat-tree:8"), generate(t, "fat-tree:30"),
		generate(t, "leaf-spine:64,128"), generate(t, "leaf-spine:1,3999"), generate(t, "leaf-spine:10,45"), generate(t, "random:40,70,1"), generate(t, "grid:20,30"), generate(t, "torus:4,5"),
		generate(t, "random:300,450,1"), generate(t, "random:2000,2001,1"), generate(t, "leaf-spine:3999,1"), hamlets(t),
	} {
		text, _ := drawn(t, g, 9)
		second, _ := drawn(t, g, 9)
		if text != second {
			t.Errorf("%s: two pictures differ", g.Name())
		}
		list := parse(t, text)
		width, height := list[0].number(t, "width"), list[0].number(t, "height")
		if height > MaxHeight || width > 3000 {
			t.Errorf("%s: %v by %v pixels", g.Name(), width, height)
		}
		if list[0].attr["role"] != "img" || !strings.Contains(text, `<title id="title">`) || !strings.Contains(text, `<desc id="desc">`) || strings.Contains(text, "NaN") {
			t.Errorf("%s: no title or description, or no number", g.Name())
		}
		var boxes []box
		var texts []string
		for _, e := range list {
			if e.name != "text" {
				continue
			}
			b := textBox(e.text, e.number(t, "font-size"), spot{e.number(t, "x"), e.number(t, "y"), e.attr["text-anchor"]})
			if b.Left < 0 || b.Right > width || b.Top < 0 || b.Bottom > height {
				t.Errorf("%s: %q is outside", g.Name(), e.text)
			}
			for k, o := range boxes {
				if b.meets(o) {
					t.Fatalf("%s: %q lies on %q", g.Name(), e.text, texts[k])
				}
			}
			boxes, texts = append(boxes, b), append(texts, e.text)
		}
	}
}

// The map keeps what is west of what, across the date line too.
func TestMap(t *testing.T) {
	g := abroad(t)
	f := place(g)
	if !(f.x[0] < f.x[2] && f.x[2] < f.x[1]) || !(f.y[1] < f.y[2] && f.y[2] < f.y[0]) {
		t.Errorf("x %v, y %v", f.x, f.y)
	}
	if d := math.Hypot((f.x[2]-f.x[3])*f.width, (f.y[2]-f.y[3])*f.height); d < 20 {
		t.Errorf("two nodes of one place are %v pixels apart", d)
	}
	if !(f.x[0] <= f.x[4] && f.x[4] <= f.x[1]) {
		t.Errorf("a node without a place is at %v, its neighbours at %v and %v", f.x[4], f.x[0], f.x[1])
	}
}

// A generated grid is drawn as one.
func TestGrid(t *testing.T) {
	g := generate(t, "grid:3,4")
	f := place(g)
	for l := range g.NumLinks() {
		i, j := g.Ends(l)
		u, v := g.Node(i), g.Node(j)
		if f.x[u] != f.x[v] && f.y[u] != f.y[v] {
			t.Errorf("link %s is neither upright nor level", g.LinkName(l))
		}
	}
}

// What passes a link from a node has its arrow as a walk has.
func TestPass(t *testing.T) {
	g := generate(t, "grid:1,2")
	var text [2]string
	for way := range text {
		p, err := newPicture(g)
		if err != nil {
			t.Fatal(err)
		}
		p.Pass(0, way, palette(0), "reports")
		var b strings.Builder
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		for _, e := range parse(t, b.String()) {
			if e.class == "arrow" {
				points := e.points(t)
				if right := points[0][0] > points[1][0]; right != (way == 0) {
					t.Errorf("from node %d, the arrow is %v", way, points)
				}
				text[way] = e.title
			}
		}
	}
	if !strings.HasSuffix(text[0], ": reports") || text[0] != text[1] {
		t.Errorf("titles %q", text)
	}
}

// An interface that leads out has no link to be drawn.
func TestOut(t *testing.T) {
	b := topo.NewBuilder("out")
	b.AddNode("a", topo.NoTier)
	b.AddInterface(topo.LinkEnd{Node: 0})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPicture(g)
	if err != nil {
		t.Fatal(err)
	}
	p.Hop(0, palette(0), "1", "out")
	var text strings.Builder
	if err := p.Write(&text); err != nil || strings.Contains(text.String(), `class="arrow"`) {
		t.Errorf("%v in\n%s", err, text.String())
	}
}

func TestTooLarge(t *testing.T) {
	if _, err := newPicture(generate(t, "leaf-spine:1,4000")); err == nil {
		t.Error("4001 nodes are drawn")
	}
}

func TestText(t *testing.T) {
	if got := clipTo("a long name", 10, 40); textWidth(got, 10) > 40 || !strings.HasSuffix(got, "…") {
		t.Errorf("clipped to %q", got)
	}
	if got := wrapText("one two  three", 10, textWidth("one two", 10)); len(got) != 2 || got[0] != "one two" || got[1] != "three" {
		t.Errorf("wrapped to %q", got)
	}
	l := newLabelPlaces(box{0, 0, 100, 100})
	middle := spot{50, 50, "middle"}
	if _, ok := l.Place("name", 10, middle); !ok {
		t.Error("no room in an empty picture")
	}
	if s, ok := l.Place("name", 10, middle, spot{50, 80, "middle"}); !ok || s.Y != 80 {
		t.Errorf("the second is at %v, %v", s, ok)
	}
	if _, ok := l.Place("a name as long as a line", 10, spot{0, 20, "start"}); ok {
		t.Error("a name leaves the picture")
	}
}
