package attention

import (
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Plan lists the probes that are to measure in detail.
type Plan struct {
	planner.Head
	Algorithm    string        `json:"algorithm"`
	Probes       []DetailProbe `json:"probes"`
	TurnedOn     []string      `json:"turned_on,omitempty"`    // probes that change to detailed measurement
	TurnedOff    []string      `json:"turned_off,omitempty"`   // probes that change to basic measurement
	OnNoProbe    []string      `json:"on_no_probe,omitempty"`  // suspicious links that no probe passes
	Partial      bool          `json:"partial,omitempty"`      // there are such links
	Instructions *Instructions `json:"instructions,omitempty"` // what the two kinds of probe carry
	Stats        Stats         `json:"stats"`

	planner.Replacement // probe by probe, of which those have changed that are turned on or off; those that are gone do not count
}

// DetailProbe is a probe that is to measure in detail.
type DetailProbe struct {
	ID         string   `json:"id"`
	Cost       float64  `json:"cost"`
	Suspicious []string `json:"suspicious"` // the suspicious links on it
}

// Instructions are the instruction bitmaps of probes and the bytes of metrics that a hop adds for them.
type Instructions struct {
	Basic         string `json:"basic"`
	Detailed      string `json:"detailed"`
	BasicBytes    int    `json:"basic_bytes"`
	DetailedBytes int    `json:"detailed_bytes"`
}

// Stats describes a plan. The objective is the cost of the detailed probes and of the changes.
type Stats struct {
	planner.Stats
	Suspicious int     `json:"suspicious"` // links
	Probes     int     `json:"probes"`     // of the problem
	Detailed   int     `json:"detailed"`   // probes
	Cost       float64 `json:"cost"`       // of the detailed probes
	AllCost    float64 `json:"all_cost"`   // of all probes
	Changes    int     `json:"changes"`    // probes that change
	Nodes      int     `json:"nodes"`      // of the search tree; 0 for methods that do not search
}

// Renumber adds how the probes of an earlier plan become those of this one. To the network it does not matter on which
// suspicious links a probe is, so that a probe in both plans is kept.
func (plan *Plan) Renumber(p *Problem, previous *Plan) error {
	before, after := plan.elements(p, previous)
	return plan.Replace(before, after, nil)
}

// CheckTransition checks the transition from an older plan to this one. The error names where it does not lead to this
// plan. It also names a suspicious link of both plans that lacks detail between two steps.
func CheckTransition(p *Problem, old, plan *Plan) error {
	before, after := plan.elements(p, old)
	return plan.CheckReplacement(before, after, nil)
}

// elements are the detailed probes of an earlier plan and of this one, with the links that are suspicious now.
func (plan *Plan) elements(p *Problem, previous *Plan) (before, after []planner.Element) {
	on := make(map[string][]string, len(p.Probes))
	suspicious := nameSet(p.Suspicious)
	for k := range p.Probes {
		t := &p.Probes[k]
		for _, l := range t.Links {
			if suspicious[l] {
				on[t.ID] = append(on[t.ID], l)
			}
		}
	}
	list := func(probes []DetailProbe) (list []planner.Element) {
		for _, d := range probes {
			list = append(list, planner.Element{ID: d.ID, Covers: on[d.ID]})
		}
		return list
	}
	return list(previous.Probes), list(plan.Probes)
}

// NewPlan names what is chosen, by the index of the probes. Bound, optimality and time are left to the caller.
func NewPlan(p *Problem, algorithm string, chosen []int32) *Plan {
	plan := &Plan{Algorithm: algorithm, Probes: make([]DetailProbe, 0, len(chosen))}
	chosen = slices.Clone(chosen)
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	suspicious, now := nameSet(p.Suspicious), nameSet(p.Detailed)
	s := &plan.Stats
	s.Suspicious, s.Probes, s.Detailed = len(suspicious), len(p.Probes), len(chosen)
	for k, next := 0, 0; k < len(p.Probes); k++ {
		t := &p.Probes[k]
		s.AllCost += t.Cost
		if next == len(chosen) || int(chosen[next]) != k {
			if now[t.ID] {
				plan.TurnedOff = append(plan.TurnedOff, t.ID)
			}
			continue
		}
		next++
		d := DetailProbe{ID: t.ID, Cost: t.Cost, Suspicious: []string{}}
		for _, l := range t.Links {
			if suspicious[l] {
				d.Suspicious = append(d.Suspicious, l)
			}
		}
		slices.Sort(d.Suspicious)
		d.Suspicious = slices.Compact(d.Suspicious)
		plan.Probes = append(plan.Probes, d)
		s.Cost += t.Cost
		if !now[t.ID] {
			plan.TurnedOn = append(plan.TurnedOn, t.ID)
		}
	}
	s.Changes = len(plan.TurnedOn) + len(plan.TurnedOff)
	s.Objective = s.Cost + p.SwitchCost*float64(s.Changes)
	return plan
}
