package delivery

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Plan says where points send.
type Plan struct {
	Algorithm  string       `json:"algorithm"`
	Assignment []Assignment `json:"assignment"`
	AddedLinks []AddedLink  `json:"added_links"`
	Unserved   []Unserved   `json:"unserved,omitempty"`
	Partial    bool         `json:"partial,omitempty"` // some points are not served
	Switches   []Reporting  `json:"switches"`          // the configuration of the points
	Stats      Stats        `json:"stats"`
}

// Assignment is a path on which a point sends some of its rate.
type Assignment struct {
	Point  string   `json:"point"`
	Server string   `json:"server"`
	Path   []string `json:"path"` // nodes, from point to server
	Rate   float64  `json:"rate_gbps"`
}

// AddedLink is a link that has to be built, and why its point cannot do without.
type AddedLink struct {
	A          string `json:"a"` // the point
	B          string `json:"b"`
	Constraint string `json:"constraint,omitempty"` // as in Unserved
	Detail     string `json:"detail,omitempty"`
}

// Unserved is a point that cannot be served, and the constraint that is in the way.
type Unserved struct {
	Point      string `json:"point"`
	Constraint string `json:"constraint"` // path, deadline, loss, bandwidth, server capacity or contention
	Detail     string `json:"detail"`
}

// Reporting is the configuration of a point: the collectors that it reports to, each with its share of the reports.
type Reporting struct {
	Switch     string      `json:"switch"`
	Collectors []Collector `json:"collectors"`
}

// Collector is one collector of a point.
type Collector struct {
	Collector string  `json:"collector"`
	Share     float64 `json:"share"`    // of the reports, all of a point together 1
	NextHop   string  `json:"next_hop"` // of the largest path
	Rate      float64 `json:"rate_gbps"`
}

// Stats describes a plan. The objective is the number of servers; what comes first, the points served and then
// the links added, is beside it with a bound of its own. Optimal says that all three are proven.
type Stats struct {
	planner.Stats
	Points         int     `json:"points"`
	Served         int     `json:"served"`
	ServedAtFirst  int     `json:"served_without_links"` // without added links, by the same method
	Links          int     `json:"links"`                // added
	LinkBound      int     `json:"links_lower_bound"`
	Servers        int     `json:"servers"`
	Paths          int     `json:"paths"`            // usable ones of all points
	Capped         int     `json:"capped,omitempty"` // points with more usable paths than were looked at
	Acceptance     float64 `json:"acceptance"`
	PairAcceptance float64 `json:"pair_acceptance"` // point and server pairs with a usable path
	Nodes          int     `json:"nodes"`           // of the search
}

// NewPlan puts a plan together. Bounds, optimality and time are left to the caller, and so is what depends on all
// usable paths.
func NewPlan(p *Problem, algorithm string, assignment []Assignment, added []AddedLink) *Plan {
	plan := &Plan{Algorithm: algorithm, Assignment: assignment, AddedLinks: added, Switches: []Reporting{}}
	if plan.Assignment == nil {
		plan.Assignment = []Assignment{}
	}
	if plan.AddedLinks == nil {
		plan.AddedLinks = []AddedLink{}
	}
	order := map[string]int{}
	for i := range p.Nodes {
		order[p.Nodes[i].ID] = i
	}
	slices.SortStableFunc(plan.Assignment, func(a, b Assignment) int {
		return cmp.Or(cmp.Compare(order[a.Point], order[b.Point]), cmp.Compare(b.Rate, a.Rate), cmp.Compare(order[a.Server], order[b.Server]))
	})
	slices.SortStableFunc(plan.AddedLinks, func(a, b AddedLink) int { return cmp.Compare(order[a.A], order[b.A]) })
	s := &plan.Stats
	servers := map[string]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Kind != PointNode {
			continue
		}
		s.Points++
		r := Reporting{Switch: n.ID}
		sum, largest := 0.0, []float64{}
		for _, d := range plan.Assignment {
			if d.Point != n.ID {
				continue
			}
			sum += d.Rate
			servers[d.Server] = true
			k := slices.IndexFunc(r.Collectors, func(c Collector) bool { return c.Collector == d.Server })
			if k < 0 {
				k = len(r.Collectors)
				r.Collectors = append(r.Collectors, Collector{Collector: d.Server})
				largest = append(largest, 0)
			}
			r.Collectors[k].Rate += d.Rate
			if d.Rate > largest[k] {
				largest[k], r.Collectors[k].NextHop = d.Rate, d.Path[1]
			}
		}
		if sum == 0 {
			plan.Partial = true
			continue
		}
		for k := range r.Collectors {
			r.Collectors[k].Share = r.Collectors[k].Rate / sum
		}
		slices.SortStableFunc(r.Collectors, func(a, b Collector) int { return cmp.Compare(b.Rate, a.Rate) })
		plan.Switches = append(plan.Switches, r)
		s.Served++
	}
	s.Links, s.Servers, s.Objective = len(plan.AddedLinks), len(servers), float64(len(servers))
	s.Acceptance = float64(s.Served) / float64(max(1, s.Points))
	return plan
}
