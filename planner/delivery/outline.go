package delivery

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/planner"
)

// Outline is the points of a plan, each with its ways, as far as the plan alone states them.
func (p *Plan) Outline() (list []planner.Element) {
	at := map[string]int{}
	for _, d := range p.Assignment {
		k, ok := at[d.Point]
		if !ok {
			k = len(list)
			at[d.Point] = k
			list = append(list, planner.Element{ID: d.Point, Covers: []string{d.Point}})
		}
		list[k].Form += fmt.Sprintf("%s over %s by %v at %v; ", d.ID, strings.Join(d.Path, " "), d.Ports, d.Rate)
	}
	return list
}
