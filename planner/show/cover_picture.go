package show

import (
	"fmt"
	"io"
	"slices"

	"github.com/hopscope/hopscope/planner/cover"
)

// DrawCover draws every probe as a walk in its own color. A link has a stroke for each time that a probe passes it.
func DrawCover(w io.Writer, p *cover.Problem, plan *cover.Plan) error {
	picture, err := newPicture(p.Graph)
	if err != nil {
		return err
	}
	s := plan.Stats
	picture.Note = fmt.Sprintf("%s: %d probe%s of %d to %d links; grey is not probed", plan.Algorithm, s.Probes, plural(s.Probes), s.Shortest, s.Longest)
	walks, err := cover.Walks(p.Graph, plan.Probes)
	if err != nil {
		return err
	}
	for k, w := range walks {
		probe := plan.Probes[k]
		way := make([]int, len(w))
		for hop, i := range w {
			way[hop] = int(i)
		}
		picture.Walk(way, palette(k), "probe "+probe.ID)
		picture.Legend(palette(k), fmt.Sprintf("%s: %d hops, %s to %s", probe.ID, len(w), probe.Agent, probe.Collector))
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
