package planner

// Probe is one path of a plan: a walk through the network.
type Probe struct {
	ID        string   `json:"id"`
	Nodes     []string `json:"nodes"`               // in walking order
	Links     []string `json:"links,omitempty"`     // names of the links walked, one less than nodes
	Ports     []int    `json:"ports,omitempty"`     // egress port of every node but the last
	Agent     string   `json:"agent,omitempty"`     // node whose agent sends the probe
	Collector string   `json:"collector,omitempty"` // node whose agent receives it
	Route     string   `json:"route,omitempty"`     // hex of what the sender writes to make it go this way
}

// Stats says how good a plan is. LowerBound is a proven bound of the objective, on its better side: no plan can be
// below it. Optimal means that the objective is proven to be the best there is.
type Stats struct {
	Objective  float64 `json:"objective"`
	LowerBound float64 `json:"lower_bound"`
	Optimal    bool    `json:"optimal"`
	Seconds    float64 `json:"seconds"` // time taken, filled in by who has a clock
}

// CheckBound adds to bad what cannot be true of an objective that is to be small: a bound above it, or optimality that
// the bound does not prove.
func (s *Stats) CheckBound(bad *Errors) {
	if s.LowerBound > s.Objective && !Near(s.LowerBound, s.Objective) {
		bad.Add("the lower bound %v is above the objective %v", s.LowerBound, s.Objective)
	}
	if s.Optimal && !Near(s.LowerBound, s.Objective) {
		bad.Add("called optimal with objective %v and lower bound %v", s.Objective, s.LowerBound)
	}
}
