package show

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// maxNodes bounds what is drawn: more cannot be distinguished.
const maxNodes = 4000

// picture is a topology to be drawn.
type picture struct {
	Title, Note string

	g      *topo.Graph
	links  []mark
	nodes  []mark
	hops   [][]hop // by link
	legend []entry
}

// mark is the mark of a node or a link; color is empty where there is none.
type mark struct{ color, title string }

// hop is something that passes a link.
type hop struct {
	color, label, title string
	forward             bool // from the first end of the link
	start               bool // of a walk
}

type entry struct {
	color, text string
	rest        bool // states how many more there are
}

// newPicture begins a picture of g.
func newPicture(g *topo.Graph) (*picture, error) {
	if g.NumNodes() > maxNodes {
		return nil, fmt.Errorf("draw %s: %d nodes, at most %d can be drawn", g.Name(), g.NumNodes(), maxNodes)
	}
	p := &picture{Title: g.Name(), g: g, links: make([]mark, g.NumLinks()), nodes: make([]mark, g.NumNodes()), hops: make([][]hop, g.NumLinks())}
	for l := range p.links {
		p.links[l].title = g.LinkName(l)
	}
	for v := range p.nodes {
		p.nodes[v].title = g.NodeName(v)
	}
	return p, nil
}

// palette returns the color of thing k of many: hues far apart, in three shades.
func palette(k int) string {
	hue := math.Mod(float64(k)*137.508, 360) // the golden angle
	return fmt.Sprintf("hsl(%.0f,%d%%,%d%%)", hue, 75-10*(k/3%3), 42+6*(k%3))
}

// quiet is the color of elements that are not special in the plan. It suits a light or dark ground.
const quiet = "quiet"

// stroke returns the attribute for a line of that color.
func stroke(color string) string {
	if color == "" || color == quiet {
		return `class="pale"`
	}
	return fmt.Sprintf(`stroke="%s"`, color)
}

// Link colours a link and sets its title.
func (p *picture) Link(l int, color, title string) {
	p.links[l] = mark{color, p.g.LinkName(l) + ": " + title}
}

// Node colours a node and sets its title.
func (p *picture) Node(v int, color, title string) {
	p.nodes[v] = mark{color, p.g.NodeName(v) + ": " + title}
}

// Hop draws traffic that leaves through interface i and passes its link. The label, if there is one, is written beside
// it where it fits, and the title shows under the pointer. Of an interface that leads out of the graph nothing is
// drawn.
func (p *picture) Hop(i int, color, label, title string) {
	p.hop(i, hop{color: color, label: label, title: title})
}

// Pass draws that something passes link l, from node from. Of a link from a node to itself both ends are that
// node, and what passes it leaves by the first.
func (p *picture) Pass(l, from int, color, title string) {
	i, j := p.g.Ends(l)
	if p.g.Node(i) != from {
		i = j
	}
	p.Hop(i, color, "", title)
}

func (p *picture) hop(i int, h hop) {
	l := p.g.Link(i)
	if l < 0 {
		return
	}
	first, _ := p.g.Ends(l)
	h.forward = i == first
	p.hops[l] = append(p.hops[l], h)
}

// Walk draws what leaves through these interfaces one after the other: its hops are numbered, its start has a dot.
func (p *picture) Walk(interfaces []int, color, name string) {
	for k, i := range interfaces {
		title := fmt.Sprintf("%s, hop %d of %d: %s to %s", name, k+1, len(interfaces), p.g.NodeName(p.g.Node(i)), p.g.NodeName(p.g.Neighbor(i)))
		p.hop(i, hop{color: color, label: fmt.Sprint(k + 1), title: title, start: k == 0})
	}
}

// Legend explains a color.
func (p *picture) Legend(color, text string) {
	p.legend = append(p.legend, entry{color: color, text: text})
}

const (
	maxLegend  = 24 // lines of the legend
	legendSide = 300
	head       = 62 // height of title and note
	margin     = 50
)

// Write writes the picture.
func (p *picture) Write(w io.Writer) error {
	c := &canvas{Title: p.Title, Desc: p.describe()}
	if f := p.fabric(); f != nil {
		f.write(c)
	} else {
		p.writeNetwork(c)
	}
	p.writeLegend(c)
	c.Text(20, 28, 18, "ink", "start", clipTo(p.Title, 18, c.Width-40))
	c.Text(20, 48, 12, "dim", "start", clipTo(p.Note, 12, c.Width-40))
	return c.Write(w)
}

// describe returns the picture in words.
func (p *picture) describe() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %d nodes and %d links. %s", p.g.Name(), p.g.NumNodes(), p.g.NumLinks(), p.Note)
	for k, e := range p.legend {
		if k == maxLegend-1 && len(p.legend) > maxLegend {
			fmt.Fprintf(&s, "; and %d more", len(p.legend)-k)
			break
		}
		fmt.Fprintf(&s, "; %s", e.text)
	}
	return s.String()
}

// writeLegend puts the legend to the right of the picture, which grows by it.
func (p *picture) writeLegend(c *canvas) {
	if len(p.legend) == 0 {
		return
	}
	legend := p.legend
	if len(legend) > maxLegend {
		more := entry{text: fmt.Sprintf("and %d more", len(legend)-maxLegend+1), rest: true}
		legend = append(slices.Clone(legend[:maxLegend-1]), more)
	}
	for k, e := range legend {
		y := float64(head + 24 + 20*k)
		if !e.rest {
			c.Add("<path d=\"M%.0f %.0fh24\" %s stroke-width=\"4\"/>", c.Width, y-4, stroke(e.color))
		}
		c.Titled(e.text, func() {
			c.Text(c.Width+32, y, 12, "ink", "start", clipTo(e.text, 12, legendSide-44))
		})
	}
	c.Width += legendSide
	c.Height = max(c.Height, float64(head+44+20*len(legend)))
}

// node draws a node.
func (p *picture) node(c *canvas, v int, x, y, r float64) {
	m := p.nodes[v]
	paint := fmt.Sprintf(`class="rim" fill="%s"`, m.color)
	switch m.color {
	case "":
		paint = `class="node rim"`
	case quiet:
		paint = `class="dot rim"`
	}
	c.Add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" %s><title>%s</title></circle>\n", x, y, r, paint, escape(m.title))
}
