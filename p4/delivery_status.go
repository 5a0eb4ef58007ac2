package p4

import "github.com/hopscope/hopscope/planner/delivery"

// DeliveryStatus is the status of the delivery of reports (RFT). Rates are in Gbit/s.
type DeliveryStatus struct {
	Plans   uint64 `json:"plans"`                // since the start, with changes
	Failed  uint64 `json:"failed"`               // intervals without a plan
	Why     string `json:"why,omitempty"`        // of the last failure, until an interval succeeds
	Planned int64  `json:"planned_ns,omitempty"` // when the plan was made; 0 for one of the files
	Changed int    `json:"changed"`              // points with other paths or rates in it than before
	Left    int    `json:"steps_left"`           // of the change to it; 0 once switches have all of it
	InForce bool   `json:"in_force"`             // every switch that is up holds all of it
	Entries int    `json:"entries"`              // of all switches
	Reached bool   `json:"-"`                    // switches have the present step of a change

	Servers    []ServerStatus `json:"servers"`
	Points     []PointStatus  `json:"points"`
	Paths      []PathStatus   `json:"paths"`
	Objective  float64        `json:"objective"`   // servers that are on
	LowerBound float64        `json:"lower_bound"` // that is proven
	Refused    uint64         `json:"refused"`     // reports that switches refused, as of the last reading
}

// ServerStatus is a server that receives reports if the plan selects it.
type ServerStatus struct {
	Server   string  `json:"server"`
	On       bool    `json:"on"`            // the plan selects it
	Up       bool    `json:"up"`            // its page answers, or it has none
	Why      string  `json:"why,omitempty"` // its page does not answer
	Rate     float64 `json:"rate_gbps"`     // planned
	Received float64 `json:"received_gbps"` // in its recent windows
}

// PointStatus is a switch that sends reports.
type PointStatus struct {
	Point      string  `json:"point"`
	Rate       float64 `json:"rate_gbps"`            // that the plan reserves
	Offered    float64 `json:"offered_gbps"`         // received and lost, at all servers
	Constraint string  `json:"constraint,omitempty"` // why it is not served
	Held       string  `json:"held,omitempty"`       // why it keeps its rate, although another one is measured, or none
	Refused    uint64  `json:"refused"`              // reports beyond the assigned rate, or without a path
}

// PathStatus is an assigned path. Sent and Refused are of the counters of its point.
type PathStatus struct {
	Path    string   `json:"path"`
	Point   string   `json:"point"`
	Server  string   `json:"server"`
	Nodes   []string `json:"nodes"`
	Rate    float64  `json:"rate_gbps"`
	Sent    uint64   `json:"sent"`    // reports
	Refused uint64   `json:"refused"` // reports beyond the rate
}

// Describe describes a plan, nil for none.
func (s *DeliveryStatus) Describe(c *DeliveryConfig, plan *delivery.Plan) {
	was := map[string]PathStatus{}
	for _, x := range s.Paths {
		was[x.Path] = x
	}
	before := map[string]PointStatus{}
	for _, x := range s.Points {
		before[x.Point] = x
	}
	s.Points, s.Paths, s.Objective = nil, nil, 0
	reserved, rates, why := map[string]float64{}, map[string]float64{}, map[string]string{}
	if plan != nil {
		reserved = plan.Reserved()
		for i := range plan.Assignment {
			a := &plan.Assignment[i]
			rates[a.Server] += a.Rate
			s.Paths = append(s.Paths, PathStatus{Path: a.ID, Point: a.Point, Server: a.Server, Nodes: a.Path, Rate: a.Rate, Sent: was[a.ID].Sent, Refused: was[a.ID].Refused})
		}
		for _, u := range plan.Unserved {
			why[u.Point] = u.Constraint
		}
		for _, p := range c.Points {
			if reserved[p.Name] == 0 && why[p.Name] == "" {
				why[p.Name] = "the plan does not have it"
			}
		}
	}
	for _, p := range c.Points {
		s.Points = append(s.Points, PointStatus{Point: p.Name, Rate: reserved[p.Name], Offered: before[p.Name].Offered, Constraint: why[p.Name], Held: before[p.Name].Held, Refused: before[p.Name].Refused})
	}
	if s.Servers == nil {
		for _, x := range c.Servers {
			s.Servers = append(s.Servers, ServerStatus{Server: x.Name, Up: true})
		}
	}
	for i := range s.Servers {
		x := &s.Servers[i]
		x.Rate = rates[x.Server]
		if x.On = x.Rate > 0; x.On {
			s.Objective++
		}
	}
}

// Counts are the counters of a switch, as they were read last: reports by the cell of their path.
type Counts struct {
	Sent, Refused, Withheld map[int64]int64
	made                    int64 // reports, as of the last call of rose
}

// rose reports whether the switch has made reports since the last call, or has started anew. Cell 0 is of reports of others, but
// for those withheld.
func (c *Counts) rose() bool {
	if c == nil {
		return false
	}
	was := c.made
	c.made = c.Withheld[0]
	for _, cells := range []map[int64]int64{c.Sent, c.Refused} {
		for cell, n := range cells {
			if cell != 0 {
				c.made += n
			}
		}
	}
	return c.made != was
}

// Sending returns the points that may send although no server has a report of them, with true. These are those with a path to a
// server without a page, and those whose switches have made reports since the last call.
func (c *DeliveryConfig) Sending(plan *delivery.Plan, of map[string]*Counts) map[string]bool {
	sending, pages := map[string]bool{}, map[string]bool{}
	for _, p := range c.Points {
		sending[p.Name] = of[p.Name].rose()
	}
	for _, s := range c.Servers {
		pages[s.Name] = s.Page != ""
	}
	for i := 0; plan != nil && i < len(plan.Assignment); i++ {
		if a := &plan.Assignment[i]; !pages[a.Server] {
			sending[a.Point] = true
		}
	}
	return sending
}

// Count takes over the counters of switches. Those of a switch that does not answer stay.
func (s *DeliveryStatus) Count(plan *delivery.Plan, of map[string]*Counts) {
	sum := func(c *Counts) (n uint64) {
		for _, cells := range []map[int64]int64{c.Refused, c.Withheld} {
			for _, x := range cells {
				n += uint64(max(x, 0))
			}
		}
		return n
	}
	s.Refused = 0
	for _, c := range of {
		s.Refused += sum(c)
	}
	for i := range s.Paths {
		x, tag := &s.Paths[i], int64(plan.Assignment[i].Tag)
		if c := of[x.Point]; c != nil {
			x.Sent, x.Refused = uint64(max(c.Sent[tag], 0)), uint64(max(c.Refused[tag], 0))
		}
	}
	for i := range s.Points {
		if c := of[s.Points[i].Point]; c != nil {
			s.Points[i].Refused = sum(c)
		}
	}
}

// Measure takes over what servers receive, and why they are down, by their names; and what points send, if that is known.
func (s *DeliveryStatus) Measure(c *DeliveryConfig, plan *delivery.Plan, received map[string]float64, down map[string]string, rates map[string]float64, known bool) {
	s.Servers = nil
	for _, x := range c.Servers {
		s.Servers = append(s.Servers, ServerStatus{Server: x.Name, Up: down[x.Name] == "", Why: down[x.Name], Received: received[x.Name]})
	}
	s.Describe(c, plan)
	for i := range s.Points {
		if x := &s.Points[i]; known {
			x.Offered = rates[x.Point]
		}
	}
}

// HeldPoints is the number of points that keep their rate, although another one is measured, or none.
func (s *DeliveryStatus) HeldPoints() (n int) {
	for i := range s.Points {
		if s.Points[i].Held != "" {
			n++
		}
	}
	return n
}

// Hold takes over why points keep their rates.
func (s *DeliveryStatus) Hold(why map[string]string) {
	for i := range s.Points {
		s.Points[i].Held = why[s.Points[i].Point]
	}
}
