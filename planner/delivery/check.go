package delivery

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Check returns where a plan does not answer its problem, or makes false claims about itself.
func Check(p *Problem, plan *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	w, err := Wire(p, plan.AddedLinks)
	if err != nil {
		return err
	}
	c := &deliveryCheck{p: p, w: w, nodes: map[string]*Node{}}
	for i := range p.Nodes {
		c.nodes[p.Nodes[i].ID] = &p.Nodes[i]
	}
	byPoint := map[string][]Assignment{}
	servers, ids := map[string]bool{}, map[string]bool{}
	for _, d := range plan.Assignment {
		if ids[d.ID] {
			c.bad.Add("path %s is there twice", d.ID)
		}
		ids[d.ID] = true
		if c.path(d) {
			byPoint[d.Point] = append(byPoint[d.Point], d)
			servers[d.Server] = true
		}
	}
	served, points, leftOut := 0, 0, 0.0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Kind != PointNode {
			continue
		}
		points++
		if len(byPoint[n.ID]) > 0 {
			served++
			c.point(n, byPoint[n.ID])
			continue
		}
		leftOut += n.Worth()
		if !slices.ContainsFunc(plan.Unserved, func(u Unserved) bool { return u.Point == n.ID && u.Constraint != "" }) {
			c.bad.Add("point %s is not served, and the plan does not say why", n.ID)
		}
	}
	s := &plan.Stats
	if plan.Partial != (served < points) || len(plan.Unserved) != points-served {
		c.bad.Add("%d of %d points are served; the plan says partial %v and names %d", served, points, plan.Partial, len(plan.Unserved))
	}
	if !planner.Near(s.LeftOut, leftOut) {
		c.bad.Add("points of weight %v are left out, the statistics say %v", leftOut, s.LeftOut)
	}
	if s.Served != served || s.Points != points || s.Servers != len(servers) || s.Links != len(plan.AddedLinks) || s.Objective != float64(len(servers)) {
		c.bad.Add("%d of %d points, %d servers and %d links; the statistics say %d of %d, %d and %d", served, points, len(servers), len(plan.AddedLinks), s.Served, s.Points, s.Servers, s.Links)
	}
	if s.LinkBound > s.Links || s.Optimal && s.LinkBound != s.Links {
		c.bad.Add("%d links, at least %d, called optimal: %v", s.Links, s.LinkBound, s.Optimal)
	}
	s.CheckBound(&c.bad)
	plan.CheckClaims(&c.bad, "points")
	c.reporting(plan.Switches, byPoint)
	if err := Replay(p, plan); err != nil {
		c.bad.Add("the configuration: %w", err)
	}
	return c.bad.Join()
}

type deliveryCheck struct {
	p     *Problem
	w     *Wiring
	nodes map[string]*Node
	bad   planner.Errors
}

const (
	rateTolerance    = 1e-6 // Gbit/s, of sums
	latencyTolerance = 1e-6 // ms
	upTolerance      = 1e-9
)

// countedPaths bounds the paths of a point whose states [LossExact] counts: with each they double.
const countedPaths = 12

// path checks one path. The load of all of them together is checked by [Replay].
func (c *deliveryCheck) path(d Assignment) bool {
	point, server := c.nodes[d.Point], c.nodes[d.Server]
	name := fmt.Sprintf("point %s, server %s", d.Point, d.Server)
	if point == nil || server == nil || point.Kind != PointNode || server.Kind != ServerNode || len(d.Path) < 2 || d.Path[0] != d.Point || d.Path[len(d.Path)-1] != d.Server {
		c.bad.Add("%s: the path does not lead from a point to a server", name)
		return false
	}
	if !(d.Rate > 0) || math.IsInf(d.Rate, 0) {
		c.bad.Add("%s: the rate is %v", name, d.Rate)
		return false
	}
	if len(d.Ports) != len(d.Path)-1 {
		c.bad.Add("%s: %d ports of %d nodes; the path needs one of every node but the last", name, len(d.Ports), len(d.Path))
		return false
	}
	latency, up, seen := 0.0, 1.0, map[string]bool{}
	for i, id := range d.Path {
		n := c.nodes[id]
		if n == nil || seen[id] {
			c.bad.Add("%s: node %s of the path is not there, or a second time", name, id)
			return false
		}
		seen[id] = true
		if i > 0 {
			link, to, _, ok := c.w.Link(d.Path[i-1], d.Ports[i-1])
			if !ok || to != id {
				c.bad.Add("%s: there is no link %s %s at port %d", name, d.Path[i-1], id, d.Ports[i-1])
				return false
			}
			l := c.w.attributes(link)
			latency += l.Latency
			up *= l.Up
		}
		if i > 0 && i < len(d.Path)-1 {
			if n.Kind != SwitchNode && !c.p.TransitAll {
				c.bad.Add("%s: %s is a %s and does not forward", name, id, n.Kind)
				return false
			}
			latency += SwitchLatency
			if n.Kind == SwitchNode {
				up *= n.Up
			}
		}
	}
	if d.Rate > c.p.Limit()+rateTolerance {
		c.bad.Add("%s: the path carries %.6f Gbit/s, the limit of a path is %.6f", name, d.Rate, c.p.PathLimit)
	}
	if latency > point.Deadline+latencyTolerance {
		c.bad.Add("%s: the path takes %.6g ms, the deadline is %.6g", name, latency, point.Deadline)
	}
	if c.p.Test() == LossPath && up < 1-point.Loss-upTolerance {
		c.bad.Add("%s: the path works with a probability of %.6f, asked is %.6f", name, up, 1-point.Loss)
	}
	return true
}

// overloads names what carries more than it has free.
func overloads(p *Problem, w *Wiring, link map[int]float64, node map[string]float64, bad *planner.Errors) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if load := node[n.ID]; n.Kind != PointNode && load > n.Residual()+rateTolerance {
			bad.Add("%s %s gets %.6f Gbit/s, free are %.6f", n.Kind, n.ID, load, n.Residual())
		}
	}
	for k := range w.links {
		l := w.attributes(k)
		if load := link[k]; load > l.Residual()+rateTolerance {
			bad.Add("%s gets %.6f Gbit/s, free are %.6f", w.name(k), load, l.Residual())
		}
	}
}

// point checks all paths of a point together.
func (c *deliveryCheck) point(n *Node, paths []Assignment) {
	sum := 0.0
	for _, d := range paths {
		sum += d.Rate
	}
	if want := c.p.Reserved(n.Rate); math.Abs(sum-want) > rateTolerance {
		c.bad.Add("point %s gets %.6f Gbit/s, not %.6f", n.ID, sum, want)
	}
	switch c.p.Test() {
	case LossJoint:
		up := 1.0
		for _, x := range c.elements(paths) {
			up *= x.up
		}
		if up < 1-n.Loss-upTolerance {
			c.bad.Add("point %s: all its paths work with a probability of %.6f, asked is %.6f", n.ID, up, 1-n.Loss)
		}
	case LossExact:
		if len(paths) > countedPaths {
			c.bad.Add("point %s: %d paths are more than the %d whose states are counted", n.ID, len(paths), countedPaths)
		} else if loss := c.lossOf(n.Rate, paths); loss > n.Loss+upTolerance {
			c.bad.Add("point %s: less than its rate arrives with a probability of %.6f, tolerated is %.6f", n.ID, loss, n.Loss)
		}
	case LossChernoff:
		mu, top, shared := 0.0, 0.0, false
		for _, d := range paths {
			up := 1.0
			for _, x := range c.elements([]Assignment{d}) {
				up *= x.up
			}
			mu += up * d.Rate
			top = max(top, d.Rate)
		}
		for _, x := range c.elements(paths) {
			shared = shared || len(x.users) > 1
		}
		if loss := math.Exp(-mu / (2 * top) * (1 - n.Rate/mu) * (1 - n.Rate/mu)); mu <= n.Rate || shared || loss > n.Loss+upTolerance {
			c.bad.Add("point %s: the bound of its loss is %.6f (expected %.6f Gbit/s, elements shared: %v), tolerated is %.6f", n.ID, loss, mu, shared, n.Loss)
		}
	}
}

// pathElement is an element of paths that may fail.
type pathElement struct {
	up    float64
	users []int // paths
}

// elements lists links and switches of paths, each once.
func (c *deliveryCheck) elements(paths []Assignment) (list []pathElement) {
	type element struct {
		link int
		node string
	}
	at := map[element]int{}
	add := func(key element, up float64, k int) {
		i, ok := at[key]
		if !ok {
			i = len(list)
			at[key] = i
			list = append(list, pathElement{up: up})
		}
		list[i].users = append(list[i].users, k)
	}
	for k, d := range paths {
		for i := 1; i < len(d.Path); i++ {
			link, _, _, _ := c.w.Link(d.Path[i-1], d.Ports[i-1])
			add(element{link: link}, c.w.attributes(link).Up, k)
			if n := c.nodes[d.Path[i]]; i < len(d.Path)-1 && n.Kind == SwitchNode {
				add(element{-1, n.ID}, n.Up, k)
			}
		}
	}
	return list
}

// lossOf is the probability that less than rate arrives. It branches on elements that work or fail, those of most paths
// first, until the outcome is certain. Elements of the same paths count as one.
func (c *deliveryCheck) lossOf(rate float64, paths []Assignment) float64 {
	var merged []pathElement
	for _, x := range c.elements(paths) {
		if k := slices.IndexFunc(merged, func(y pathElement) bool { return slices.Equal(x.users, y.users) }); k >= 0 {
			merged[k].up *= x.up
		} else {
			merged = append(merged, x)
		}
	}
	slices.SortStableFunc(merged, func(a, b pathElement) int { return len(b.users) - len(a.users) })
	var from func(i int, works []bool) float64
	from = func(i int, works []bool) float64 {
		sum := 0.0
		for k, ok := range works {
			if ok {
				sum += paths[k].Rate
			}
		}
		if sum < rate-rateTolerance {
			return 1
		}
		if i == len(merged) {
			return 0
		}
		if !slices.ContainsFunc(merged[i].users, func(k int) bool { return works[k] }) {
			return from(i+1, works)
		}
		failed := slices.Clone(works)
		for _, k := range merged[i].users {
			failed[k] = false
		}
		return merged[i].up*from(i+1, works) + (1-merged[i].up)*from(i+1, failed)
	}
	return from(0, slices.Repeat([]bool{true}, len(paths)))
}

// reporting compares the collectors in the points' configuration with the assignment.
func (c *deliveryCheck) reporting(list []Configuration, byPoint map[string][]Assignment) {
	seen := map[string]bool{}
	for _, r := range list {
		if len(r.Collectors) == 0 {
			continue
		}
		seen[r.Switch] = true
		share := 0.0
		for _, k := range r.Collectors {
			share += k.Share
			rate, next := 0.0, true
			for _, d := range byPoint[r.Switch] {
				if d.Server == k.Collector {
					rate += d.Rate
					next = next && (k.NextHop == "" || d.Path[1] == k.NextHop)
				}
			}
			if !planner.Near(rate, k.Rate) || !next {
				c.bad.Add("%s reports %.6f Gbit/s to %s by %q, the assignment has %.6f", r.Switch, k.Rate, k.Collector, k.NextHop, rate)
			}
		}
		if !planner.Near(share, 1) {
			c.bad.Add("%s reports a share of %v in all", r.Switch, share)
		}
	}
	if len(seen) != len(byPoint) {
		c.bad.Add("%d points have collectors in their configuration, %d are served", len(seen), len(byPoint))
	}
}
