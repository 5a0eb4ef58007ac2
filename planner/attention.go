package planner

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// AttentionProblem asks which probes should measure in detail: every suspicious link must lie on one of them, and their
// cost should be least.
//
// Probes that change between basic and detailed measurement cost SwitchCost each, on top, so that a small change of the
// suspicious links does not turn the whole plan over. The published problem has none.
type AttentionProblem struct {
	Probes     []Trace  `json:"probes"`
	Suspicious []string `json:"suspicious"`            // names of links; a link named twice is one
	Detailed   []string `json:"detailed,omitempty"`    // probes that measure in detail now
	SwitchCost float64  `json:"switch_cost,omitempty"` // of a probe that changes, in the unit of the probes' costs
}

// Trace is a probe as attention switching sees it. Its cost is that of detailed measurement over that of basic
// measurement along the whole trace: the hops, counted as often as they are passed.
type Trace struct {
	ID    string
	Cost  float64
	Links []string
}

// MarshalJSON writes id, cost and links.
func (t Trace) MarshalJSON() ([]byte, error) {
	return json.Marshal(traceJSON{t.ID, &t.Cost, t.Links})
}

// UnmarshalJSON reads id, cost and links. A cost left out is the number of links.
func (t *Trace) UnmarshalJSON(b []byte) error {
	var j traceJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return InElement(err, "probe %q", j.ID)
	}
	*t = Trace{j.ID, float64(len(j.Links)), j.Links}
	if j.Cost != nil {
		t.Cost = *j.Cost
	}
	return nil
}

type traceJSON struct {
	ID    string   `json:"id"`
	Cost  *float64 `json:"cost,omitempty"`
	Links []string `json:"links"`
}

// ReadAttentionProblem reads and validates a problem in JSON.
func ReadAttentionProblem(r io.Reader) (*AttentionProblem, error) {
	p := new(AttentionProblem)
	if err := ReadJSON(r, p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// Validate says what is wrong with the problem itself. That a suspicious link lies on no probe is not among it: such a
// problem has a partial plan.
func (p *AttentionProblem) Validate() error {
	var bad Errors
	if len(p.Probes) == 0 {
		return errors.New("attention: there are no probes")
	}
	sum := 0.0
	ids := make(map[string]bool, len(p.Probes))
	for k := range p.Probes {
		t := &p.Probes[k]
		switch {
		case t.ID == "":
			bad.Add("attention: probe %d has no id", k)
		case ids[t.ID]:
			bad.Add("attention: probe %q is there twice", t.ID)
		}
		ids[t.ID] = true
		if !(t.Cost >= 0 && t.Cost <= maxCost) {
			bad.Add("attention: probe %q costs %v: a cost is a number from 0 to %g", t.ID, t.Cost, float64(maxCost))
		}
		sum += t.Cost
		if slices.Contains(t.Links, "") {
			bad.Add("attention: probe %q passes a link without a name", t.ID)
		}
	}
	if sum > maxCost {
		bad.Add("attention: all probes together cost %v, more than %g", sum, float64(maxCost))
	}
	if slices.Contains(p.Suspicious, "") {
		bad.Add("attention: a suspicious link has no name")
	}
	now := map[string]bool{}
	for _, id := range p.Detailed {
		switch {
		case !ids[id]:
			bad.Add("attention: probe %q, which is said to measure in detail, is not there", id)
		case now[id]:
			bad.Add("attention: probe %q is said twice to measure in detail", id)
		}
		now[id] = true
	}
	if !(p.SwitchCost >= 0 && p.SwitchCost <= maxCost) {
		bad.Add("attention: a change costs %v: a cost is a number from 0 to %g", p.SwitchCost, float64(maxCost))
	}
	return bad.Join()
}

// maxCost bounds costs so that sums of them stay exact in 53 bits.
const maxCost = 1e12

// AttentionPlan lists the probes that are to measure in detail.
type AttentionPlan struct {
	Algorithm    string         `json:"algorithm"`
	Probes       []DetailProbe  `json:"probes"`
	TurnedOn     []string       `json:"turned_on,omitempty"`    // probes that change to detailed measurement
	TurnedOff    []string       `json:"turned_off,omitempty"`   // probes that change to basic measurement
	OnNoProbe    []string       `json:"on_no_probe,omitempty"`  // suspicious links that no probe passes
	Partial      bool           `json:"partial,omitempty"`      // there are such links
	Instructions *Instructions  `json:"instructions,omitempty"` // what the two kinds of probe carry
	Stats        AttentionStats `json:"stats"`
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

// AttentionStats describes a plan. The objective is the cost of the detailed probes and of the changes.
type AttentionStats struct {
	Stats
	Suspicious int     `json:"suspicious"` // links
	Probes     int     `json:"probes"`     // of the problem
	Detailed   int     `json:"detailed"`   // probes
	Cost       float64 `json:"cost"`       // of the detailed probes
	AllCost    float64 `json:"all_cost"`   // of all probes
	Changes    int     `json:"changes"`    // probes that change
	Nodes      int     `json:"nodes"`      // of the search tree; 0 for methods that do not search
}

// NewAttentionPlan names what is chosen, by the index of the probes. Bound, optimality and time are left to the caller.
func NewAttentionPlan(p *AttentionProblem, algorithm string, chosen []int32) *AttentionPlan {
	plan := &AttentionPlan{Algorithm: algorithm, Probes: make([]DetailProbe, 0, len(chosen))}
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

// CheckAttention says in what a plan does not do what the problem asks, or tells untruths about itself.
func CheckAttention(p *AttentionProblem, plan *AttentionPlan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var bad Errors
	traces := make(map[string]*Trace, len(p.Probes))
	reachable := map[string]bool{}
	for k := range p.Probes {
		t := &p.Probes[k]
		traces[t.ID] = t
		for _, l := range t.Links {
			reachable[l] = true
		}
	}
	suspicious, listed := nameSet(p.Suspicious), nameSet(plan.OnNoProbe)
	chosen, seen, cost := map[string]bool{}, map[string]bool{}, 0.0
	for _, d := range plan.Probes {
		t := traces[d.ID]
		if t == nil || chosen[d.ID] {
			bad.Add("probe %q is listed, but is not there, or a second time", d.ID)
			continue
		}
		chosen[d.ID] = true
		cost += t.Cost
		on := nameSet(t.Links)
		for l := range on {
			seen[l] = true
		}
		for _, l := range d.Suspicious {
			if !on[l] || !suspicious[l] {
				bad.Add("probe %q is listed for link %s, which is not on it or not suspicious", d.ID, l)
			}
		}
	}
	missing := 0
	for l := range suspicious {
		switch {
		case seen[l]:
		case reachable[l]:
			bad.Add("suspicious link %s is on no probe that measures in detail", l)
		case !plan.Partial || !listed[l]:
			bad.Add("suspicious link %s is on no probe, and the plan does not say so", l)
		default:
			missing++
		}
	}
	if plan.Partial != (missing > 0) {
		bad.Add("the plan says partial %v, and misses %d links", plan.Partial, missing)
	}
	changes, now := len(chosen), nameSet(p.Detailed)
	for id := range now {
		if chosen[id] {
			changes--
		} else {
			changes++
		}
	}
	s := &plan.Stats
	if s.Changes != changes || len(plan.TurnedOn)+len(plan.TurnedOff) != changes {
		bad.Add("%d probes change, the plan says %d and lists %d", changes, s.Changes, len(plan.TurnedOn)+len(plan.TurnedOff))
	}
	for _, id := range plan.TurnedOn {
		if !chosen[id] || now[id] {
			bad.Add("probe %q is not turned on", id)
		}
	}
	for _, id := range plan.TurnedOff {
		if chosen[id] || !now[id] {
			bad.Add("probe %q is not turned off", id)
		}
	}
	if want := cost + p.SwitchCost*float64(changes); !Near(s.Objective, want) || !Near(s.Cost, cost) {
		bad.Add("the plan costs %v, with changes %v, and says %v and %v", cost, want, s.Cost, s.Objective)
	}
	s.CheckBound(&bad)
	return bad.Join()
}

func nameSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
