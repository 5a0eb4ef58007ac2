package attention

import (
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Outline is the probes of a plan, each with the suspicious links that it is on.
func (p *Plan) Outline() (list []planner.Element) {
	for _, d := range p.Probes {
		list = append(list, planner.Element{ID: d.ID, Covers: d.Suspicious})
	}
	return list
}

// Join gives each probe that is in both lists the links of both. A detailed probe measures its whole route in detail,
// whatever is suspicious.
func Join(before, after []planner.Element) {
	at := make(map[string]int, len(before))
	for k := range before {
		at[before[k].ID] = k
	}
	for k := range after {
		if i, ok := at[after[k].ID]; ok {
			all := slices.Concat(before[i].Covers, after[k].Covers)
			before[i].Covers, after[k].Covers = all, all
		}
	}
}
