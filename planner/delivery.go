package planner

import (
	"encoding/json"
	"errors"
	"io"
)

// DeliveryProblem asks where measurement points send their data: over which paths to which servers, with as few servers
// as can be, in time, within what links, switches and servers have left, and without losing too much.
//
// Rates, capacities and loads are in Gbit/s, latencies and deadlines in milliseconds, probabilities plain.
type DeliveryProblem struct {
	Nodes []DeliveryNode `json:"nodes"`
	Links []DeliveryLink `json:"links"`
	DeliveryRules
}

// NodeKind says what a node does in a delivery problem.
type NodeKind string

// The kinds of nodes.
const (
	PointNode  NodeKind = "point"  // measures and sends
	ServerNode NodeKind = "server" // receives
	SwitchNode NodeKind = "switch" // forwards
)

// DeliveryNode is a point (rate, deadline, loss), a server (capacity, load) or a switch (capacity, load, up).
type DeliveryNode struct {
	ID       string   `json:"id"`
	Kind     NodeKind `json:"kind"`
	Rate     float64  `json:"rate_gbps,omitempty"`
	Deadline float64  `json:"deadline_ms,omitempty"`
	Loss     float64  `json:"loss,omitempty"` // tolerated probability of loss
	Capacity float64  `json:"capacity_gbps,omitempty"`
	Load     float64  `json:"load_gbps,omitempty"`
	Up       float64  `json:"up"` // probability of working; 1 if left out
}

// DeliveryLink joins two nodes. Its capacity is shared by both directions.
type DeliveryLink struct {
	A        string  `json:"a"`
	B        string  `json:"b"`
	Latency  float64 `json:"latency_ms"`
	Capacity float64 `json:"capacity_gbps"`
	Load     float64 `json:"load_gbps,omitempty"`
	Up       float64 `json:"up"` // probability of working; 1 if left out
}

// UnmarshalJSON reads a node. A probability of working that is left out is 1.
func (n *DeliveryNode) UnmarshalJSON(b []byte) error {
	type plain DeliveryNode
	v := plain{Up: 1}
	if err := json.Unmarshal(b, &v); err != nil {
		return InElement(err, "node %q", v.ID)
	}
	*n = DeliveryNode(v)
	return nil
}

// UnmarshalJSON reads a link. A probability of working that is left out is 1.
func (l *DeliveryLink) UnmarshalJSON(b []byte) error {
	type plain DeliveryLink
	v := plain{Up: 1}
	if err := json.Unmarshal(b, &v); err != nil {
		return InElement(err, "link %q %q", v.A, v.B)
	}
	*l = DeliveryLink(v)
	return nil
}

// LossTest is how the probability of loss is judged. Elements are links and the switches between.
type LossTest string

// The tests. A point tolerates a probability of loss F and has the rate R.
const (
	// LossPath lets a point use only paths whose elements all work with a probability of at least 1-F, path by path.
	LossPath LossTest = "path"
	// LossJoint wants that the elements of all its paths work together with a probability of at least 1-F.
	LossJoint LossTest = "joint"
	// LossExact wants that what is reserved on paths that work is less than R with a probability of at most F. Where no
	// more than R is reserved this is LossJoint.
	LossExact LossTest = "exact"
	// LossChernoff bounds that probability by exp(-(mu/2a)(1-R/mu)²), mu the expected reservation on paths that work and
	// a the largest reservation on one. It needs mu > R, and paths without common elements: those are refused.
	LossChernoff LossTest = "chernoff"
)

// DeliveryRules are what the paper leaves open. The zero value is the default.
type DeliveryRules struct {
	LossTest   LossTest `json:"loss_test,omitempty"`   // LossPath if empty
	Reserve    float64  `json:"reserve,omitempty"`     // reserved rate over rate, at least 1; 1 if left out
	TransitAll bool     `json:"transit_all,omitempty"` // points and servers forward too
}

// What an added link is like, and the time that a switch takes. The candidates are links of points.
const (
	AddedLatency  = 1.0 // ms
	AddedCapacity = 100.0
	AddedUp       = 0.999
	SwitchLatency = 0.001 // ms
)

// Test is the test of loss, with its default.
func (r *DeliveryRules) Test() LossTest {
	if r.LossTest == "" {
		return LossPath
	}
	return r.LossTest
}

// Reserved is what has to be reserved for a point of the given rate.
func (r *DeliveryRules) Reserved(rate float64) float64 {
	if r.Reserve > 1 {
		return rate * r.Reserve
	}
	return rate
}

// Residual is the free capacity of a server or switch.
func (n *DeliveryNode) Residual() float64 { return max(0, n.Capacity-n.Load) }

// Residual is the free capacity of a link.
func (l *DeliveryLink) Residual() float64 { return max(0, l.Capacity-l.Load) }

// ReadDeliveryProblem reads and validates a problem in JSON.
func ReadDeliveryProblem(r io.Reader) (*DeliveryProblem, error) {
	p := new(DeliveryProblem)
	if err := ReadJSON(r, p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// Validate says what is wrong with the problem itself.
func (p *DeliveryProblem) Validate() error {
	var bad Errors
	if len(p.Nodes) == 0 {
		return errors.New("delivery: there are no nodes")
	}
	number := func(what, name, key string, x, lo, hi float64) {
		if !(x >= lo && x <= hi) {
			bad.Add("delivery: %s has %s %v, outside %g to %g", what+name, key, x, lo, hi)
		}
	}
	kinds := map[NodeKind]int{}
	nodes := make(map[string]bool, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case n.ID == "":
			bad.Add("delivery: node %d has no id", i)
		case nodes[n.ID]:
			bad.Add("delivery: node %s is there twice", n.ID)
		}
		nodes[n.ID] = true
		kinds[n.Kind]++
		switch n.Kind {
		case PointNode:
			number("point ", n.ID, "rate_gbps", n.Rate, 1e-5, maxRate)
			number("point ", n.ID, "deadline_ms", n.Deadline, 0, maxLatency)
			number("point ", n.ID, "loss", n.Loss, 0, 1)
		case ServerNode, SwitchNode:
			number(string(n.Kind)+" ", n.ID, "capacity_gbps", n.Capacity, 0, maxRate)
			number(string(n.Kind)+" ", n.ID, "load_gbps", n.Load, 0, maxRate)
			number(string(n.Kind)+" ", n.ID, "up", n.Up, 0, 1)
		default:
			bad.Add("delivery: node %s is a %q, which is none of point, server and switch", n.ID, n.Kind)
		}
	}
	if kinds[PointNode] == 0 {
		bad.Add("delivery: no node is a point")
	}
	if kinds[ServerNode] == 0 {
		bad.Add("delivery: no node is a server")
	}
	links := make(map[[2]string]bool, len(p.Links))
	for i := range p.Links {
		l := &p.Links[i]
		name := l.A + " " + l.B
		for _, end := range []string{l.A, l.B} {
			if !nodes[end] {
				bad.Add("delivery: link %s ends at node %q, which is not there", name, end)
			}
		}
		switch {
		case l.A == l.B:
			bad.Add("delivery: link %s joins a node with itself", name)
		case links[linkKey(l.A, l.B)]:
			bad.Add("delivery: link %s is there twice: paths are told by their nodes", name)
		}
		links[linkKey(l.A, l.B)] = true
		number("link ", name, "latency_ms", l.Latency, 0, maxLatency)
		number("link ", name, "capacity_gbps", l.Capacity, 0, maxRate)
		number("link ", name, "load_gbps", l.Load, 0, maxRate)
		number("link ", name, "up", l.Up, 0, 1)
	}
	switch p.Test() {
	case LossPath, LossJoint, LossExact, LossChernoff:
	default:
		bad.Add("delivery: loss test %q is none of path, joint, exact and chernoff", p.LossTest)
	}
	if p.Reserve != 0 && !(p.Reserve >= 1 && p.Reserve <= 16) {
		bad.Add("delivery: reserve %v is outside 1 to 16", p.Reserve)
	}
	return bad.Join()
}

const (
	maxRate    = 1e6
	maxLatency = 1e9
)

// linkKey names a link whichever way round.
func linkKey(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// DeliveryPlan says where points send.
type DeliveryPlan struct {
	Algorithm  string        `json:"algorithm"`
	Assignment []Delivery    `json:"assignment"`
	AddedLinks []AddedLink   `json:"added_links"`
	Unserved   []Unserved    `json:"unserved,omitempty"`
	Partial    bool          `json:"partial,omitempty"` // some points are not served
	Switches   []Reporting   `json:"switches"`          // the configuration of the points
	Stats      DeliveryStats `json:"stats"`
}

// Delivery is a path on which a point sends some of its rate.
type Delivery struct {
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

// DeliveryStats describes a plan. The objective is the number of servers; what comes first, the points served and then
// the links added, is beside it with a bound of its own. Optimal says that all three are proven.
type DeliveryStats struct {
	Stats
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
