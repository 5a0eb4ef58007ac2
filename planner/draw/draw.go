// Package draw makes pictures of plans: a topology as SVG, with links and nodes coloured by what the plan says of them.
//
// Fabrics are drawn in layers, core at the top and edge at the bottom; other topologies by forces (T. Fruchterman, E.
// Reingold, "Graph drawing by force-directed placement", 1991) from a fixed start, so that the same topology always
// looks the same. The picture stands alone: no script, no font, no file besides it.
package draw

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// MaxNodes bounds what is drawn: more cannot be told apart.
const MaxNodes = 4000

// Picture is a topology to be drawn.
type Picture struct {
	Title, Note string

	g       *topo.Graph
	x, y    []float64
	layered bool
	links   []style
	nodes   []style
	legend  []entry
	width   float64
	height  float64
}

type style struct{ color, title string }

type entry struct{ color, text string }

const (
	grey   = "#c4c4c4"
	dark   = "#333333"
	margin = 60
)

// New places the nodes of g.
func New(g *topo.Graph) (*Picture, error) {
	if g.NumNodes() > MaxNodes {
		return nil, fmt.Errorf("draw %s: %d nodes, at most %d can be drawn", g.Name(), g.NumNodes(), MaxNodes)
	}
	p := &Picture{Title: g.Name(), g: g, links: make([]style, g.NumLinks()), nodes: make([]style, g.NumNodes())}
	for l := range p.links {
		p.links[l] = style{grey, g.LinkName(l)}
	}
	for v := range p.nodes {
		p.nodes[v] = style{dark, g.NodeName(v)}
	}
	p.x, p.y, p.layered = place(g)
	side := min(max(480, 90*math.Sqrt(float64(g.NumNodes()))), 4000)
	p.width, p.height = 1.4*side, side
	return p, nil
}

// Color gives the color of thing k of many: hues far apart, in three shades.
func Color(k int) string {
	hue := math.Mod(float64(k)*137.508, 360) // the golden angle
	return fmt.Sprintf("hsl(%.0f,%d%%,%d%%)", hue, 75-10*(k/3%3), 38+10*(k%3))
}

// Link colours a link and says more about it.
func (p *Picture) Link(l int, color, title string) {
	p.links[l] = style{color, p.g.LinkName(l) + ": " + title}
}

// Node colours a node and says more about it.
func (p *Picture) Node(v int, color, title string) {
	p.nodes[v] = style{color, p.g.NodeName(v) + ": " + title}
}

// Legend explains a color.
func (p *Picture) Legend(color, text string) { p.legend = append(p.legend, entry{color, text}) }

// maxLegend is how many lines of the legend are drawn.
const maxLegend = 24

// Write writes the picture.
func (p *Picture) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	legend := p.legend
	if len(legend) > maxLegend {
		more := entry{"none", fmt.Sprintf("and %d more", len(legend)-maxLegend+1)}
		legend = append(slices.Clone(legend[:maxLegend-1]), more)
	}
	side := 0.0
	if len(legend) > 0 {
		side = 260
	}
	height := max(p.height, float64(100+20*len(legend)))
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n", p.width+side, height)
	fmt.Fprintf(b, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"20\" y=\"28\" font-size=\"18\">%s</text>\n<text x=\"20\" y=\"46\" fill=\"#666\">%s</text>\n", escape(p.Title), escape(p.Note))
	p.writeLinks(b)
	radius := 6.0
	if len(p.nodes) > 300 {
		radius = 4
	}
	for v, s := range p.nodes {
		x, y := p.at(v)
		fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.0f\" fill=\"%s\" stroke=\"white\"><title>%s</title></circle>\n", x, y, radius, s.color, escape(s.title))
	}
	if len(p.nodes) <= 150 {
		for v := range p.nodes {
			x, y := p.at(v)
			y -= radius + 4
			slant := `text-anchor="middle"`
			if p.layered && len(p.nodes) > 30 { // side by side, names would run into each other
				slant = fmt.Sprintf("transform=\"rotate(-40 %.1f %.1f)\"", x, y)
			}
			fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" %s font-size=\"10\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">%s</text>\n", x, y, slant, escape(p.g.NodeName(v)))
		}
	}
	for k, e := range legend {
		y := float64(80 + 20*k)
		fmt.Fprintf(b, "<line x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\" stroke=\"%s\" stroke-width=\"4\"/><text x=\"%.0f\" y=\"%.0f\">%s</text>\n", p.width, y-4, p.width+24, y-4, e.color, p.width+32, y, escape(e.text))
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

// writeLinks draws parallel links as arcs beside each other, and links from a node to itself as loops.
func (p *Picture) writeLinks(b *bufio.Writer) {
	seen := map[[2]int]int{}
	width := 2.0
	if len(p.links) > 2000 {
		width = 0.8
	}
	for l, s := range p.links {
		i, j := p.g.Ends(l)
		u, v := p.g.Node(i), p.g.Node(j)
		key := [2]int{min(u, v), max(u, v)}
		n := seen[key]
		seen[key]++
		x1, y1 := p.at(key[0])
		x2, y2 := p.at(key[1])
		path := fmt.Sprintf("M%.1f %.1fL%.1f %.1f", x1, y1, x2, y2)
		switch {
		case u == v:
			r := float64(14 + 6*n)
			path = fmt.Sprintf("M%.1f %.1fc%.0f %.0f %.0f %.0f 0 0", x1, y1, -r, -2*r, r, -2*r)
		case n > 0:
			bend := float64((n+1)/2*(1-n%2*2)) * 14
			d := math.Hypot(x2-x1, y2-y1) + 1e-9
			path = fmt.Sprintf("M%.1f %.1fQ%.1f %.1f %.1f %.1f", x1, y1, (x1+x2)/2-(y2-y1)/d*2*bend, (y1+y2)/2+(x2-x1)/d*2*bend, x2, y2)
		}
		fmt.Fprintf(b, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"><title>%s</title></path>\n", path, s.color, width, escape(s.title))
	}
}

func (p *Picture) at(v int) (x, y float64) {
	return margin + p.x[v]*(p.width-2*margin), margin + 20 + p.y[v]*(p.height-2*margin-20)
}

func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}
