package delivery

import (
	"encoding/json"
	"errors"
	"io"
	"math"

	"github.com/hopscope/hopscope/planner"
)

// Problem asks over which paths measurement points send their data to which servers. It uses as few servers as
// possible, and keeps deadlines, free capacities of links, switches and servers, and tolerated losses.
//
// Rates, capacities and loads are in Gbit/s, latencies and deadlines in milliseconds, probabilities plain.
type Problem struct {
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
	Rules
}

// NodeKind is the role of a node in a delivery problem.
type NodeKind string

// The kinds of nodes.
const (
	PointNode  NodeKind = "point"  // measures and sends
	ServerNode NodeKind = "server" // receives
	SwitchNode NodeKind = "switch" // forwards
)

// Node is a point (rate, deadline, loss), a server (capacity, load) or a switch (capacity, load, up).
type Node struct {
	ID       string   `json:"id"`
	Kind     NodeKind `json:"kind"`
	Rate     float64  `json:"rate_gbps,omitempty"`
	Deadline float64  `json:"deadline_ms,omitempty"`
	Loss     float64  `json:"loss,omitempty"`   // tolerated probability of loss
	Weight   float64  `json:"weight,omitempty"` // of a point, in what is left out; 1 if left out
	Capacity float64  `json:"capacity_gbps,omitempty"`
	Load     float64  `json:"load_gbps,omitempty"`
	Up       float64  `json:"up"` // probability of working; 1 if left out
}

// Link joins two nodes. Both directions share its capacity. Links between the same nodes are distinguished by their
// ports, which [Wire] assigns where they are not named.
type Link struct {
	A        string  `json:"a"`
	B        string  `json:"b"`
	PortA    int     `json:"port_a,omitempty"` // at node A, from 1
	PortB    int     `json:"port_b,omitempty"`
	Latency  float64 `json:"latency_ms"`
	Capacity float64 `json:"capacity_gbps"`
	Load     float64 `json:"load_gbps,omitempty"`
	Up       float64 `json:"up"` // probability of working; 1 if left out
}

// UnmarshalJSON reads a node. A probability of working that is left out is 1.
func (n *Node) UnmarshalJSON(b []byte) error {
	type plain Node
	v := plain{Up: 1}
	if err := json.Unmarshal(b, &v); err != nil {
		return planner.InElement(err, "node %q", v.ID)
	}
	*n = Node(v)
	return nil
}

// UnmarshalJSON reads a link. A probability of working that is left out is 1.
func (l *Link) UnmarshalJSON(b []byte) error {
	type plain Link
	v := plain{Up: 1}
	if err := json.Unmarshal(b, &v); err != nil {
		return planner.InElement(err, "link %q %q", v.A, v.B)
	}
	*l = Link(v)
	return nil
}

// LossTest is the rule by which the probability of loss is judged. Elements are links and the switches between.
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

// Rules holds readings of the paper, and limits beyond it. The zero value is the default.
type Rules struct {
	LossTest   LossTest `json:"loss_test,omitempty"`       // LossPath if empty
	Reserve    float64  `json:"reserve,omitempty"`         // reserved rate over rate, at least 1; 1 if left out
	TransitAll bool     `json:"transit_all,omitempty"`     // points and servers forward too
	PathLimit  float64  `json:"path_limit_gbps,omitempty"` // most that one path carries; 0 for no limit
}

// These are the properties of an added link, and the delay of a switch. The candidates are links of points.
const (
	AddedLatency  = 1.0 // ms
	AddedCapacity = 100.0
	AddedUp       = 0.999
	SwitchLatency = 0.001 // ms
)

// Test is the test of loss, with its default.
func (r *Rules) Test() LossTest {
	if r.LossTest == "" {
		return LossPath
	}
	return r.LossTest
}

// Limit returns the most that one path can carry, whatever it passes.
func (r *Rules) Limit() float64 {
	if r.PathLimit == 0 {
		return math.Inf(1)
	}
	return r.PathLimit
}

// Reserved returns the rate to reserve for a point of the given rate.
func (r *Rules) Reserved(rate float64) float64 {
	if r.Reserve > 1 {
		return rate * r.Reserve
	}
	return rate
}

// Worth is the weight of a point, with its default.
func (n *Node) Worth() float64 {
	if n.Weight == 0 {
		return 1
	}
	return n.Weight
}

// Residual is the free capacity of a server or switch.
func (n *Node) Residual() float64 { return max(0, n.Capacity-n.Load) }

// Residual is the free capacity of a link.
func (l *Link) Residual() float64 { return max(0, l.Capacity-l.Load) }

// Read reads and validates a problem in JSON.
func Read(r io.Reader) (*Problem, error) {
	return planner.ReadProblem(r, new(Problem))
}

// Validate returns what is wrong with the problem itself.
func (p *Problem) Validate() error {
	var bad planner.Errors
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
			if n.Weight != 0 {
				number("point ", n.ID, "weight", n.Weight, 1e-3, 1e6)
			}
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
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Weight != 0 && n.Kind != PointNode {
			bad.Add("delivery: %s %s has a weight, which only points have", n.Kind, n.ID)
		}
	}
	type port struct {
		node string
		port int
	}
	ports := map[port]bool{}
	for i := range p.Links {
		l := &p.Links[i]
		name := l.A + " " + l.B
		for _, end := range []string{l.A, l.B} {
			if !nodes[end] {
				bad.Add("delivery: link %s ends at node %q, which is not there", name, end)
			}
		}
		if l.A == l.B {
			bad.Add("delivery: link %s joins a node with itself", name)
		}
		for _, x := range []port{{l.A, l.PortA}, {l.B, l.PortB}} {
			switch {
			case x.port == 0:
			case x.port < 0 || x.port > maxPort:
				bad.Add("delivery: link %s has port %d at node %s, outside 1 to %d", name, x.port, x.node, maxPort)
			case ports[x]:
				bad.Add("delivery: link %s has port %d at node %s, where another link has it", name, x.port, x.node)
			}
			ports[x] = x.port != 0
		}
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
	if p.PathLimit != 0 {
		number("a path", "", "path_limit_gbps", p.PathLimit, 1e-3, maxRate)
	}
	if p.Reserve != 0 && !(p.Reserve >= 1 && p.Reserve <= 16) {
		bad.Add("delivery: reserve %v is outside 1 to 16", p.Reserve)
	}
	return bad.Join()
}

const (
	maxRate    = 1e6
	maxLatency = 1e9
	maxPort    = 1 << 20
)
