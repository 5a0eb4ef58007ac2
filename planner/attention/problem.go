package attention

import (
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Problem asks which probes should measure in detail. Every suspicious link must lie on one of them, at the least cost.
//
// A probe that changes between basic and detailed measurement costs SwitchCost on top. A small change of the suspicious
// links then changes few probes. The published problem has no such cost.
type Problem struct {
	Probes     []Trace  `json:"probes"`
	Suspicious []string `json:"suspicious"`            // names of links; a link named twice is one
	Detailed   []string `json:"detailed,omitempty"`    // probes that measure in detail now
	SwitchCost float64  `json:"switch_cost,omitempty"` // of a probe that changes, in the unit of the probes' costs

	// Weights are the costs of leaving suspicious links out; 1 for links without one. A link is left out only if it is
	// on no probe.
	Weights map[string]float64 `json:"weights,omitempty"`
}

// Weight is that of a suspicious link.
func (p *Problem) Weight(link string) float64 {
	if w, ok := p.Weights[link]; ok {
		return w
	}
	return 1
}

// After returns the problem with the probes of an earlier plan as those that measure in detail now. Probes that are
// gone are left out.
func (p *Problem) After(previous *Plan) *Problem {
	ids := make(map[string]bool, len(p.Probes))
	for k := range p.Probes {
		ids[p.Probes[k].ID] = true
	}
	q := *p
	q.Detailed = nil
	for _, d := range previous.Probes {
		if ids[d.ID] {
			ids[d.ID] = false
			q.Detailed = append(q.Detailed, d.ID)
		}
	}
	return &q
}

// Trace is a probe as attention switching sees it. Its cost is that of detailed measurement over that of basic
// measurement along the whole trace: the hops, counted as often as they are passed.
type Trace struct {
	ID    string   `json:"id"`
	Cost  float64  `json:"cost"`
	Links []string `json:"links"`
}

// MarshalJSON writes id, cost and links.
func (t Trace) MarshalJSON() ([]byte, error) {
	return json.Marshal(traceJSON{t.ID, &t.Cost, t.Links})
}

// UnmarshalJSON reads id, cost and links. A cost left out is the number of links.
func (t *Trace) UnmarshalJSON(b []byte) error {
	var j traceJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return planner.InElement(err, "probe %q", j.ID)
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

// Read reads and validates a problem in JSON.
func Read(r io.Reader) (*Problem, error) {
	return planner.ReadProblem(r, new(Problem))
}

// Validate returns what is wrong with the problem itself. A suspicious link without a probe is no error: such a problem
// has a partial plan.
func (p *Problem) Validate() error {
	var bad planner.Errors
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
	if len(p.Weights) > 0 {
		p.validateWeights(&bad)
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

// validateWeights lists the invalid weights, in the order of the links' names.
func (p *Problem) validateWeights(bad *planner.Errors) {
	suspicious := nameSet(p.Suspicious)
	right := func(w float64) bool { return w > 0 && w <= maxWeight }
	var wrong []string
	for l, w := range p.Weights {
		if !right(w) || !suspicious[l] {
			wrong = append(wrong, l)
		}
	}
	slices.Sort(wrong)
	for _, l := range wrong {
		if w := p.Weights[l]; !right(w) {
			bad.Add("attention: suspicious link %q weighs %v: a weight is a number above 0, up to %g", l, w, float64(maxWeight))
		}
		if !suspicious[l] {
			bad.Add("attention: link %q has a weight, but is not suspicious", l)
		}
	}
}

// maxWeight bounds weights, so that their sum stays a number.
const maxWeight = 1e9

// maxCost bounds costs so that sums of them stay exact in 53 bits.
const maxCost = 1e12
