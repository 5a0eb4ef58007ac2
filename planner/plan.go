package planner

import "fmt"

// Probe is one path of a plan: a walk through the network.
type Probe struct {
	ID        string   `json:"id"`
	Nodes     []string `json:"nodes"`               // in walking order
	Links     []string `json:"links,omitempty"`     // names of the links walked, one less than nodes
	Ports     []int    `json:"ports,omitempty"`     // egress port of every node but the last
	Agent     string   `json:"agent,omitempty"`     // node whose agent sends the probe
	Collector string   `json:"collector,omitempty"` // node whose agent receives it

	// The names of the sending and receiving agents, and the ports of the nodes that they are behind, where several
	// agents are possible. A node that is itself the host has no such port.
	AgentHost     string `json:"agent_host,omitempty"`
	AgentPort     int    `json:"agent_port,omitempty"`
	CollectorHost string `json:"collector_host,omitempty"`
	CollectorPort int    `json:"collector_port,omitempty"`

	Route string `json:"route,omitempty"` // hex of what the sender writes to make it go this way
}

// Stats rates a plan. LowerBound is a proven bound of the objective, on its better side: no plan can be below it.
// Optimal means that the objective is proven to be the best possible.
//
// A partial plan leaves something out. Leaving out less is better than any objective. LowerBound then holds for the
// plans that leave out no more than this one, and Optimal is about both.
type Stats struct {
	Objective    float64 `json:"objective"`
	LowerBound   float64 `json:"lower_bound"`
	Optimal      bool    `json:"optimal"`
	LeftOut      float64 `json:"left_out,omitempty"`             // weight of what is not served
	LeftOutBound float64 `json:"left_out_lower_bound,omitempty"` // proven: no plan leaves out less
	Proof        Proof   `json:"proof,omitempty"`                // of a plan that was read
	Seconds      float64 `json:"seconds"`                        // time taken, set by a caller that has a clock
}

// Proof is the outcome of checking a plan's claims about its own optimality.
type Proof string

// The outcomes. A claim that is refuted is an error instead.
const (
	Verified Proof = "verified"              // the bounds were proven once more
	Claimed  Proof = "claimed, not verified" // nothing contradicts them
)

// Hold compares the claims of a plan with another plan of the same problem, which was optimised as far as possible and
// has proven bounds. It sets Proof, or returns an error if the other plan contradicts the claims.
func (s *Stats) Hold(other *Stats) error {
	below := func(a, b float64) bool { return a < b && !Near(a, b) }
	switch {
	case below(other.LeftOut, s.LeftOutBound):
		return fmt.Errorf("the plan says that at least %v must be left out, but %v is enough", s.LeftOutBound, other.LeftOut)
	case !below(s.LeftOut, other.LeftOut) && below(other.Objective, s.LowerBound):
		return fmt.Errorf("the plan says that no objective is below %v, but there is a plan with %v", s.LowerBound, other.Objective)
	case s.Optimal && below(other.LeftOut, s.LeftOut):
		return fmt.Errorf("the plan is called optimal and leaves out %v, but %v is enough", s.LeftOut, other.LeftOut)
	}
	s.Proof = Claimed
	if !below(other.LeftOutBound, s.LeftOutBound) && !below(other.LeftOut, s.LeftOut) && !below(other.LowerBound, s.LowerBound) {
		s.Proof = Verified
	}
	return nil
}

// Adopt takes over the bounds of another plan of the same problem, for a plan that claims none.
func (s *Stats) Adopt(other *Stats) {
	s.LeftOutBound = min(other.LeftOutBound, s.LeftOut)
	if s.LeftOut < other.LeftOut || Near(s.LeftOut, other.LeftOut) { // else the bound of the objective is of plans that leave out less
		s.LowerBound = min(other.LowerBound, s.Objective)
	}
	s.Optimal = Near(s.LowerBound, s.Objective) && Near(s.LeftOutBound, s.LeftOut)
}

// Claim gives a plan that is called optimal the bounds that follow, where it has none of its own. It marks the bound of
// the objective as given, so that it is a claim to be proven.
func (s *Stats) Claim(given Given) {
	if s.Optimal && !given["stats.lower_bound"] {
		s.LowerBound, given["stats.lower_bound"] = s.Objective, true
	}
	if s.Optimal && !given["stats.left_out_lower_bound"] {
		s.LeftOutBound = s.LeftOut
	}
}

// CheckBound adds to bad what is impossible for an objective that is minimised: a bound above it, or optimality that
// the bound does not prove.
func (s *Stats) CheckBound(bad *Errors) {
	for _, c := range [...]struct {
		what         string
		value, bound float64
	}{{"objective", s.Objective, s.LowerBound}, {"weight left out", s.LeftOut, s.LeftOutBound}} {
		if !(c.bound <= c.value) && !Near(c.bound, c.value) {
			bad.Add("the lower bound %v is above the %s %v", c.bound, c.what, c.value)
		}
		if s.Optimal && !Near(c.bound, c.value) {
			bad.Add("called optimal with %s %v and lower bound %v", c.what, c.value, c.bound)
		}
	}
}
