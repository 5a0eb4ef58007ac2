package delivery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/opt"
)

// Plan holds where points send, and the configuration of every switch on the way.
type Plan struct {
	planner.Head
	Algorithm  string          `json:"algorithm"`
	Assignment []Assignment    `json:"assignment"`
	AddedLinks []AddedLink     `json:"added_links"`
	Unserved   []Unserved      `json:"unserved,omitempty"`
	Partial    bool            `json:"partial,omitempty"` // some points are not served
	Switches   []Configuration `json:"switches"`          // what points and switches have to know
	Stats      Stats           `json:"stats"`

	planner.Replacement // point by point
}

// Assignment is a path on which a point sends some of its rate. Its ports are a source route: the port by which it leaves
// every node but the last.
type Assignment struct {
	ID     string   `json:"id"` // of the path: point and tag
	Point  string   `json:"point"`
	Server string   `json:"server"`
	Tag    int      `json:"tag"`   // number of the path among those of the point, from 1
	Path   []string `json:"path"`  // nodes, from point to server
	Ports  []int    `json:"ports"` // one less than nodes
	Rate   float64  `json:"rate_gbps"`
	Share  float64  `json:"share"` // of what the point sends
}

// AddedLink is a link that has to be built, and why its point cannot do without.
type AddedLink struct {
	A          string `json:"a"` // the point
	B          string `json:"b"`
	PortA      int    `json:"port_a,omitempty"`
	PortB      int    `json:"port_b,omitempty"`
	Constraint string `json:"constraint,omitempty"` // as in Unserved
	Detail     string `json:"detail,omitempty"`
}

// Unserved is a point that cannot be served, and the constraint that is in the way.
type Unserved struct {
	Point      string `json:"point"`
	Constraint string `json:"constraint"` // path, deadline, loss, bandwidth, server capacity or contention
	Detail     string `json:"detail"`
}

// Configuration is the configuration of one node. A point holds its collectors and the paths to them. A node on the way
// holds the port by which the reports of a path leave it.
type Configuration struct {
	Switch     string      `json:"switch"`
	Collectors []Collector `json:"collectors,omitempty"` // of a point
	Rules      []Rule      `json:"rules"`
}

// Collector is one collector of a point.
type Collector struct {
	Collector string  `json:"collector"`
	Share     float64 `json:"share"`              // of the reports, all of a point together 1
	NextHop   string  `json:"next_hop,omitempty"` // where all paths to the collector have the same
	Rate      float64 `json:"rate_gbps"`
}

// Rule sends data with a point and a tag out of a port. At the point itself it also has the share of the reports that
// gets the tag.
type Rule struct {
	Path    string  `json:"path"` // id
	Point   string  `json:"point"`
	Tag     int     `json:"tag"`
	InPort  int     `json:"in_port,omitempty"` // none at the point itself
	OutPort int     `json:"out_port"`
	NextHop string  `json:"next_hop"`
	Share   float64 `json:"share,omitempty"` // at the point itself
	Rate    float64 `json:"rate_gbps"`
}

// Stats describes a plan. The objective is the number of servers. Two quantities come first: the weight of the points
// left out, then the links added. Each has a bound of its own. The bound of links holds for plans that leave out no
// more, that of servers for those that also add no more links. Optimal is set if all three are proven.
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

// Adopt takes over the bounds of another plan of the same problem, for a plan that claims none, and what depends on the problem alone.
func (s *Stats) Adopt(other *Stats) {
	s.Stats.Adopt(&other.Stats)
	// These are of the problem, whatever the plan.
	s.Paths, s.Capped, s.PairAcceptance, s.ServedAtFirst = other.Paths, other.Capped, other.PairAcceptance, other.ServedAtFirst
	fewer := s.LeftOut < other.LeftOut || planner.Near(s.LeftOut, other.LeftOut)
	if s.LinkBound = 0; fewer {
		s.LinkBound = min(other.LinkBound, s.Links)
	}
	if s.Links > other.Links {
		s.LowerBound = 0
	}
	s.Optimal = s.Optimal && s.LinkBound == s.Links && planner.Near(s.LowerBound, s.Objective)
}

// Route is a path with numbers for links. Links of the problem count from 0. An added link, which can only be the first
// hop, is -1.
type Route struct {
	Point, Server string
	Nodes         []string
	Links         []int
	Rate          float64
}

// NewPlan builds a plan from its routes. A path of the plan before keeps its tag; a new one gets a tag that its point
// did not use then. A nil before means no such plan. The caller fills in bounds, optimality and time, and what depends
// on all usable paths.
func NewPlan(p *Problem, algorithm string, routes []Route, added []AddedLink, before *Plan) (*Plan, error) {
	plan := &Plan{Algorithm: algorithm, Assignment: []Assignment{}, AddedLinks: append([]AddedLink{}, added...)}
	order := opt.Index[Node, int](p.Nodes, func(n *Node) string { return n.ID })
	slices.SortStableFunc(plan.AddedLinks, func(a, b AddedLink) int {
		return cmp.Or(cmp.Compare(order[a.A], order[b.A]), cmp.Compare(order[a.B], order[b.B]))
	})
	if err := plan.keepPorts(p, before); err != nil {
		return nil, err
	}
	w, err := Wire(p, plan.AddedLinks)
	if err != nil {
		return nil, err
	}
	for k := range plan.AddedLinks {
		l := &plan.AddedLinks[k]
		l.PortA, l.PortB = w.Port(len(p.Links)+k, l.A), w.Port(len(p.Links)+k, l.B)
	}
	for _, r := range routes {
		d := Assignment{Point: r.Point, Server: r.Server, Path: r.Nodes, Rate: r.Rate}
		for k, link := range r.Links {
			if link < 0 {
				link = len(p.Links) + slices.IndexFunc(plan.AddedLinks, func(l AddedLink) bool { return l.A == r.Nodes[0] && l.B == r.Nodes[1] })
			}
			d.Ports = append(d.Ports, w.Port(link, r.Nodes[k]))
		}
		plan.Assignment = append(plan.Assignment, d)
	}
	slices.SortStableFunc(plan.Assignment, func(a, b Assignment) int {
		return cmp.Or(cmp.Compare(order[a.Point], order[b.Point]), cmp.Compare(b.Rate, a.Rate), cmp.Compare(order[a.Server], order[b.Server]))
	})
	plan.tag(before)
	plan.Switches = configurations(p, w, plan.Assignment)
	plan.count(p)
	return plan, nil
}

// keepPorts sets the ports of added links that a plan before has too to those there, if these are free.
func (plan *Plan) keepPorts(p *Problem, before *Plan) error {
	if before == nil {
		return nil
	}
	w, err := Wire(p, nil)
	if err != nil {
		return err
	}
	for k := range plan.AddedLinks {
		l := &plan.AddedLinks[k]
		at := slices.IndexFunc(before.AddedLinks, func(o AddedLink) bool { return o.A == l.A && o.B == l.B })
		if at < 0 {
			continue
		}
		o := &before.AddedLinks[at]
		if _, _, _, ok := w.Link(o.A, o.PortA); !ok {
			l.PortA = o.PortA
		}
		if _, _, _, ok := w.Link(o.B, o.PortB); !ok {
			l.PortB = o.PortB
		}
	}
	return nil
}

// tag numbers the paths of every point.
func (plan *Plan) tag(before *Plan) {
	taken := map[string]map[int]bool{}
	claim := func(point string, tag int) {
		if taken[point] == nil {
			taken[point] = map[int]bool{}
		}
		taken[point][tag] = true
	}
	old := map[string]int{}
	if before != nil {
		for i := range before.Assignment {
			d := &before.Assignment[i]
			claim(d.Point, d.Tag)
			old[d.way()] = d.Tag
		}
	}
	next := map[string]int{}
	for i := range plan.Assignment {
		d := &plan.Assignment[i]
		if d.Tag = old[d.way()]; d.Tag == 0 {
			for next[d.Point]++; taken[d.Point][next[d.Point]]; next[d.Point]++ {
			}
			d.Tag = next[d.Point]
		}
		d.ID = fmt.Sprintf("%s/%d", d.Point, d.Tag)
	}
}

// way distinguishes the path from others, whatever its tag.
func (d *Assignment) way() string { return fmt.Sprintf("%q %v", d.Path, d.Ports) }

// configurations returns the configuration of every node, points first, and sets the shares of paths.
func configurations(p *Problem, w *Wiring, assignment []Assignment) []Configuration {
	sum := map[string]float64{}
	for i := range assignment {
		sum[assignment[i].Point] += assignment[i].Rate
	}
	at := map[string]*Configuration{}
	get := func(node string) *Configuration {
		if at[node] == nil {
			at[node] = &Configuration{Switch: node}
		}
		return at[node]
	}
	for i := range assignment {
		d := &assignment[i]
		d.Share = d.Rate / sum[d.Point]
		get(d.Point).collect(d)
		in := 0
		for k, port := range d.Ports {
			r := Rule{Path: d.ID, Point: d.Point, Tag: d.Tag, InPort: in, OutPort: port, NextHop: d.Path[k+1], Rate: d.Rate}
			if k == 0 {
				r.Share = d.Share
			}
			c := get(d.Path[k])
			c.Rules = append(c.Rules, r)
			_, _, in, _ = w.Link(d.Path[k], port)
		}
	}
	list := []Configuration{}
	for _, points := range []bool{true, false} {
		for i := range p.Nodes {
			if c := at[p.Nodes[i].ID]; c != nil && (p.Nodes[i].Kind == PointNode) == points {
				slices.SortStableFunc(c.Collectors, func(a, b Collector) int { return cmp.Compare(b.Rate, a.Rate) })
				list = append(list, *c)
			}
		}
	}
	return list
}

// collect adds a path of the point to its collectors.
func (c *Configuration) collect(d *Assignment) {
	k := slices.IndexFunc(c.Collectors, func(x Collector) bool { return x.Collector == d.Server })
	if k < 0 {
		k = len(c.Collectors)
		c.Collectors = append(c.Collectors, Collector{Collector: d.Server, NextHop: d.Path[1]})
	}
	x := &c.Collectors[k]
	x.Rate += d.Rate
	x.Share += d.Share
	if x.NextHop != d.Path[1] {
		x.NextHop = ""
	}
}

// count fills in the figures of the statistics.
func (plan *Plan) count(p *Problem) {
	s := &plan.Stats
	served, servers := map[string]bool{}, map[string]bool{}
	for i := range plan.Assignment {
		served[plan.Assignment[i].Point] = true
		servers[plan.Assignment[i].Server] = true
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Kind != PointNode {
			continue
		}
		if s.Points++; served[n.ID] {
			s.Served++
			continue
		}
		plan.Partial = true
		s.LeftOut += n.Worth()
	}
	s.Links, s.Servers, s.Objective = len(plan.AddedLinks), len(servers), float64(len(servers))
	s.Acceptance = float64(s.Served) / float64(max(1, s.Points))
}
