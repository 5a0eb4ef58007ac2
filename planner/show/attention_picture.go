package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/topo"
)

// The colours of attention plans.
const (
	detailColor  = "#0b7285"
	suspectColor = "#e03131"
	basicColor   = quiet
)

// drawLooked draws a topology, and which of its links are looked at closely.
func drawLooked(g *topo.Graph, p *attention.Problem, chosen, suspicious map[string]bool) (*picture, error) {
	pic, err := newPicture(g)
	if err != nil {
		return nil, err
	}
	pic.Title = "Attention: " + g.Name()
	pic.Legend(suspectColor, "suspicious")
	pic.Legend(detailColor, "also measured in detail")
	pic.Legend(basicColor, "basic metrics")
	by := map[string][]string{}
	for _, t := range p.Probes {
		if chosen[t.ID] {
			for _, l := range t.Links {
				by[l] = append(by[l], t.ID)
			}
		}
	}
	for l := range g.NumLinks() {
		name := g.LinkName(l)
		switch {
		case suspicious[name]:
			pic.Link(l, suspectColor, "suspicious, measured by "+strings.Join(by[name], ", "))
		case len(by[name]) > 0:
			pic.Link(l, detailColor, "measured in detail by "+strings.Join(by[name], ", "))
		default:
			pic.Link(l, basicColor, "basic metrics")
		}
	}
	return pic, nil
}

// drawShared draws probes as nodes, with a link where a suspicious link is on both.
func drawShared(p *attention.Problem, chosen, suspicious map[string]bool) (*picture, error) {
	b := topo.NewBuilder("suspicious links")
	node := map[string]int{}
	on := map[string][]int{}
	for _, t := range p.Probes {
		node[t.ID] = b.AddNode(t.ID, topo.NoTier)
		seen := map[string]bool{}
		for _, l := range t.Links {
			if suspicious[l] && !seen[l] {
				seen[l] = true
				on[l] = append(on[l], node[t.ID])
			}
		}
	}
	var titles []string
	joined := map[[2]int]bool{}
	for _, l := range p.Suspicious {
		for i, x := range on[l] {
			for _, y := range on[l][:i] {
				if !joined[[2]int{y, x}] {
					joined[[2]int{y, x}] = true
					b.AddLink(topo.LinkEnd{Node: y}, topo.LinkEnd{Node: x})
					titles = append(titles, l)
				}
			}
		}
	}
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	pic, err := newPicture(g)
	if err != nil {
		return nil, err
	}
	pic.Title = "Attention"
	pic.Legend(detailColor, "probe that measures in detail")
	pic.Legend(basicColor, "probe with basic metrics")
	pic.Legend(suspectColor, "suspicious link on both probes")
	for _, t := range p.Probes {
		color, kind := basicColor, "basic"
		if chosen[t.ID] {
			color, kind = detailColor, "detailed"
		}
		pic.Node(node[t.ID], color, fmt.Sprintf("%s, cost %g", kind, t.Cost))
	}
	for l, title := range titles {
		pic.Link(l, suspectColor, title)
	}
	return pic, nil
}

// DrawAttention draws the topology g; or, of an instance, probes as nodes and suspicious links as links between them.
func DrawAttention(w io.Writer, g *topo.Graph, p *attention.Problem, plan *attention.Plan) error {
	chosen := map[string]bool{}
	for _, d := range plan.Probes {
		chosen[d.ID] = true
	}
	suspicious := map[string]bool{}
	for _, l := range p.Suspicious {
		suspicious[l] = true
	}
	var pic *picture
	var err error
	if g != nil {
		pic, err = drawLooked(g, p, chosen, suspicious)
	} else {
		pic, err = drawShared(p, chosen, suspicious)
	}
	if err != nil {
		return err
	}
	pic.Note = fmt.Sprintf("%d of %d probes measure in detail, for %d suspicious links", len(plan.Probes), len(p.Probes), len(suspicious))
	return pic.Write(w)
}
