package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/draw"
)

// drawCover draws every probe in a color of its own; a link that several pass has that of the first.
func drawCover(w io.Writer, p *cover.Problem, plan *cover.Plan) error {
	picture, err := draw.New(p.Graph)
	if err != nil {
		return err
	}
	s := plan.Stats
	picture.Note = fmt.Sprintf("%s: %d probe%s of %d to %d links; grey is not probed", plan.Algorithm, s.Probes, plural(s.Probes), s.Shortest, s.Longest)
	walks, err := cover.Walks(p.Graph, plan.Probes)
	if err != nil {
		return err
	}
	drawn := make([]bool, p.Graph.NumLinks())
	for k, w := range walks {
		probe := plan.Probes[k]
		for hop, i := range w {
			if l := p.Graph.Link(int(i)); !drawn[l] {
				drawn[l] = true
				picture.Link(l, draw.Color(k), fmt.Sprintf("probe %s, hop %d of %d", probe.ID, hop+1, len(w)))
			}
		}
		picture.Legend(draw.Color(k), fmt.Sprintf("%s: %d hops, %s to %s", probe.ID, len(w), probe.Agent, probe.Collector))
	}
	for v := range p.Graph.NumNodes() {
		if slices.Contains(p.Depots, v) {
			picture.Node(v, "#ff9800", "depot")
		}
	}
	if p.Depots != nil {
		picture.Legend("#ff9800", "depots")
	}
	return picture.Write(w)
}
