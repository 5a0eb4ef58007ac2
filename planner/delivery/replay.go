package delivery

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Replay sends the reports of all points through the configuration of a plan, hop by hop. A point splits its rate by
// the shares of its rules, and every node on the way looks up point and tag. An error names where data is dropped,
// loops, arrives elsewhere or in another amount, or exceeds a free capacity. Of the assignment, Replay uses only what
// has to arrive. Rules that no data meets are an error as well.
func Replay(p *Problem, plan *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	w, err := Wire(p, plan.AddedLinks)
	if err != nil {
		return err
	}
	r := &replay{p: p, w: w, nodes: map[string]*Node{}, rules: map[match]*Rule{}, met: map[match]bool{}, link: map[int]float64{}, node: map[string]float64{}}
	for i := range p.Nodes {
		r.nodes[p.Nodes[i].ID] = &p.Nodes[i]
	}
	r.install(plan.Switches)
	r.expect(plan.Assignment)
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Kind == PointNode {
			r.send(n)
		}
	}
	for i := range plan.Assignment {
		if d := &plan.Assignment[i]; r.want[match{point: d.Point, tag: d.Tag}] == d {
			r.bad.Add("nothing arrives on path %s", d.ID)
		}
	}
	for _, c := range plan.Switches {
		for k := range c.Rules {
			if x := &c.Rules[k]; !r.met[match{c.Switch, x.Point, x.Tag}] {
				r.bad.Add("nothing meets the rule of %s for path %s", c.Switch, x.Path)
			}
		}
	}
	overloads(p, w, r.link, r.node, &r.bad)
	return r.bad.Join()
}

// match is the key of a rule.
type match struct {
	node, point string
	tag         int
}

type replay struct {
	p     *Problem
	w     *Wiring
	nodes map[string]*Node
	rules map[match]*Rule
	first map[string][]*Rule // of points themselves, in their order
	met   map[match]bool
	want  map[match]*Assignment // by point and tag; arrivals are removed
	link  map[int]float64
	node  map[string]float64
	bad   planner.Errors
}

// install takes in the rules of all nodes.
func (r *replay) install(list []Configuration) {
	r.first = map[string][]*Rule{}
	seen := map[string]bool{}
	for _, c := range list {
		if r.nodes[c.Switch] == nil || seen[c.Switch] {
			r.bad.Add("node %q is configured, but is not there, or a second time", c.Switch)
			continue
		}
		seen[c.Switch] = true
		for k := range c.Rules {
			x := &c.Rules[k]
			key := match{c.Switch, x.Point, x.Tag}
			if r.rules[key] != nil {
				r.bad.Add("%s has two rules for tag %d of point %s", c.Switch, x.Tag, x.Point)
				continue
			}
			r.rules[key] = x
			if x.Point == c.Switch {
				r.first[c.Switch] = append(r.first[c.Switch], x)
			}
		}
	}
}

// expect remembers what has to arrive where.
func (r *replay) expect(assignment []Assignment) {
	r.want = map[match]*Assignment{}
	for i := range assignment {
		d := &assignment[i]
		key := match{point: d.Point, tag: d.Tag}
		if r.want[key] != nil {
			r.bad.Add("paths %s and %s have the same tag", r.want[key].ID, d.ID)
		}
		r.want[key] = d
	}
}

// send splits the rate of a point, and follows each part.
func (r *replay) send(n *Node) {
	rules := r.first[n.ID]
	if len(rules) == 0 {
		return
	}
	sum := 0.0
	for _, x := range rules {
		if !(x.Share > 0) || math.IsInf(x.Share, 0) {
			r.bad.Add("point %s sends a share of %v on path %s", n.ID, x.Share, x.Path)
			return
		}
		sum += x.Share
	}
	if !planner.Near(sum, 1) {
		r.bad.Add("point %s splits its reports into shares of %.6g in all", n.ID, sum)
		return
	}
	for _, x := range rules {
		r.forward(n.ID, x, x.Share*r.p.Reserved(n.Rate))
	}
}

// forward sends a rate on from the first rule, until a node has no rule for it.
func (r *replay) forward(point string, x *Rule, rate float64) {
	at, in, tag, way, ports := point, 0, x.Tag, []string{point}, []int(nil)
	path := x.Path
	for x != nil {
		if math.Abs(x.Rate-rate) > rateTolerance || x.Path != path || x.InPort != in {
			r.bad.Add("%s expects %.6f Gbit/s of path %s at port %d, and gets %.6f of path %s at port %d", at, x.Rate, x.Path, x.InPort, rate, path, in)
		}
		if at != point && x.Share != 0 {
			r.bad.Add("%s has a share of %v for path %s, which only its point has", at, x.Share, path)
		}
		r.met[match{at, point, tag}] = true
		link, to, port, ok := r.w.Link(at, x.OutPort)
		if !ok || to != x.NextHop {
			r.bad.Add("port %d of %s does not lead to %q, as the rule for path %s says", x.OutPort, at, x.NextHop, path)
			return
		}
		r.link[link] += rate
		if slices.Contains(way, to) {
			r.bad.Add("path %s goes round in circles: %s, and then %s", path, way, to)
			return
		}
		ports = append(ports, x.OutPort)
		at, in, way = to, port, append(way, to)
		n := r.nodes[at]
		x = r.rules[match{at, point, tag}]
		if n.Kind == SwitchNode {
			r.node[at] += rate
		}
		if x != nil && n.Kind != SwitchNode && !r.p.TransitAll {
			r.bad.Add("%s is a %s and does not forward, but has a rule for path %s", at, n.Kind, path)
			return
		}
	}
	r.arrive(point, tag, path, rate, way, ports)
}

// arrive compares what ends at a node with what should.
func (r *replay) arrive(point string, tag int, path string, rate float64, way []string, ports []int) {
	at := way[len(way)-1]
	if r.nodes[at].Kind != ServerNode {
		r.bad.Add("%s %s drops path %s: it has no rule for tag %d of point %s", r.nodes[at].Kind, at, path, tag, point)
		return
	}
	r.node[at] += rate
	key := match{point: point, tag: tag}
	d := r.want[key]
	if d == nil || d.ID != path || d.Server != at || !slices.Equal(d.Path, way) || !slices.Equal(d.Ports, ports) || math.Abs(d.Rate-rate) > rateTolerance || !planner.Near(d.Share*r.p.Reserved(r.nodes[point].Rate), rate) {
		r.bad.Add("%.6f Gbit/s of path %s come to %s over %s by ports %v, which is not what the assignment says", rate, path, at, way, ports)
	}
	delete(r.want, key)
}
