package papers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
)

// TestDelivery serves points over shared links: without new links, and with as few as can be.
func TestDelivery(t *testing.T) {
	for _, noLinks := range []bool{true, false} {
		t.Run(fmt.Sprint("no links ", noLinks), func(t *testing.T) {
			s := start(t)
			for k := range instances {
				p := network(random(4, k))
				plan, err := solve.Plan(p, solve.Options{NoLinks: noLinks, Partial: true, Stop: stopAfter(1 << 14)})
				if err != nil {
					t.Fatal(err)
				}
				if err := delivery.Check(p, plan); err != nil {
					t.Errorf("instance %d: %v", k, err)
				}
				want, links := deliveryTruth(t, s, p, noLinks)
				if got := &plan.Stats; !near(float64(got.Links), links) || float64(got.LinkBound) > links+1e-6 {
					t.Errorf("instance %d: %d links, at least %d; the fewest are %v", k, got.Links, got.LinkBound, links)
				}
				hold(t, fmt.Sprint("instance ", k), p, &plan.Stats.Stats, want)
			}
		})
	}
}

// network draws one to three points, up to three servers and a few switches, with little room.
func network(r *rand.Rand) *delivery.Problem {
	p := new(delivery.Problem)
	up := func() float64 { return 0.9 + 0.1*r.Float64() }
	for i := range 1 + r.IntN(3) {
		p.Nodes = append(p.Nodes, delivery.Node{ID: fmt.Sprint("m", i), Kind: delivery.PointNode, Rate: float64(10 + r.IntN(31)),
			Deadline: float64(3 + r.IntN(15)), Loss: 0.1 + 0.4*r.Float64(), Up: 1})
	}
	for i := range 1 + r.IntN(3) {
		p.Nodes = append(p.Nodes, delivery.Node{ID: fmt.Sprint("s", i), Kind: delivery.ServerNode, Capacity: float64(20 + r.IntN(40)), Up: 1})
	}
	for i := range r.IntN(4) {
		p.Nodes = append(p.Nodes, delivery.Node{ID: fmt.Sprint("w", i), Kind: delivery.SwitchNode, Capacity: 100, Load: float64(10 + r.IntN(81)), Up: up()})
	}
	for b := range p.Nodes {
		for a := range b {
			if r.IntN(2) == 0 {
				p.Links = append(p.Links, delivery.Link{A: p.Nodes[a].ID, B: p.Nodes[b].ID, Latency: float64(1 + r.IntN(10)),
					Capacity: 100, Load: float64(10 + r.IntN(81)), Up: up()})
			}
		}
	}
	return p
}

// way is a path of a point: what it uses of links and nodes, and the server at its end.
type way struct {
	server string
	uses   []string // names of links and switches
	added  string   // name of the link that it needs, or empty
}

// ways lists the simple paths of a point that are fast and reliable enough. They use existing links and one that may
// be added at the point.
func ways(p *delivery.Problem, m *delivery.Node) (list []way) {
	node := map[string]*delivery.Node{}
	for i := range p.Nodes {
		node[p.Nodes[i].ID] = &p.Nodes[i]
	}
	type state struct {
		at          string
		latency, up float64
		path, uses  []string
		added       string
	}
	var walk func(s state)
	step := func(s state, to, link string, latency, up float64, added bool) {
		n := node[to]
		if slices.Contains(s.path, to) || n.Kind == delivery.PointNode {
			return
		}
		s.path, s.uses = append(slices.Clone(s.path), to), append(slices.Clone(s.uses), link)
		s.latency, s.up, s.at = s.latency+latency, s.up*up, to
		if added {
			s.added = link
		}
		if n.Kind == delivery.ServerNode {
			if s.latency <= m.Deadline+1e-9 && s.up >= 1-m.Loss-1e-12 {
				list = append(list, way{to, s.uses, s.added})
			}
			return
		}
		s.latency, s.up, s.uses = s.latency+delivery.SwitchLatency, s.up*n.Up, append(s.uses, to)
		walk(s)
	}
	walk = func(s state) {
		for i := range p.Links {
			l := &p.Links[i]
			for _, ends := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
				if ends[0] == s.at {
					step(s, ends[1], l.A+" "+l.B, l.Latency, l.Up, false)
				}
			}
		}
	}
	begin := state{at: m.ID, up: 1, path: []string{m.ID}}
	walk(begin)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		joined := slices.ContainsFunc(p.Links, func(l delivery.Link) bool {
			return l.A == m.ID && l.B == n.ID || l.B == m.ID && l.A == n.ID
		})
		if !joined && n.Kind != delivery.PointNode {
			step(begin, n.ID, "new "+m.ID+" "+n.ID, delivery.AddedLatency, delivery.AddedUp, true)
		}
	}
	return list
}

// deliveryTruth serves most points, over the fewest new links, to the fewest servers.
func deliveryTruth(t *testing.T, s *solver, p *delivery.Problem, noLinks bool) (want truth, links float64) {
	m := new(model)
	room, load, uses := map[string]float64{}, map[string][]term{}, map[string]int{}
	var servers, added, unserved []term
	for _, l := range p.Links {
		room[l.A+" "+l.B] = l.Residual()
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		room[n.ID] = n.Residual()
		if n.Kind == delivery.ServerNode {
			uses[n.ID] = m.choice(0)
			servers = append(servers, term{uses[n.ID], 1})
		}
	}
	points := 0.0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Kind != delivery.PointNode {
			continue
		}
		points++
		served := m.choice(0)
		unserved = append(unserved, term{served, -1})
		rate := []term{{served, -n.Rate}}
		for _, w := range ways(p, n) {
			if w.added != "" && noLinks {
				continue
			}
			x := m.variable(0, math.Inf(1), false)
			rate = append(rate, term{x, 1})
			for _, e := range append(w.uses, w.server) {
				load[e] = append(load[e], term{x, 1})
			}
			if w.added != "" {
				if _, ok := uses[w.added]; !ok {
					uses[w.added], room[w.added] = m.choice(0), delivery.AddedCapacity
					added = append(added, term{uses[w.added], 1})
				}
			}
		}
		m.equal(0, rate...)
	}
	for e, terms := range load {
		if use, ok := uses[e]; ok {
			m.most(0, append(terms, term{use, -room[e]})...)
			continue
		}
		m.most(room[e], terms...)
	}
	cost := func(terms []term) {
		clear(m.Cost)
		for _, c := range terms {
			m.Cost[c.at] = c.value
		}
	}
	best := func(terms []term) float64 {
		cost(terms)
		_, v, ok := s.solve(t, m)
		if !ok {
			t.Fatal("a network that may serve nobody has no plan")
		}
		v = math.Round(v)
		m.most(v+1e-6, terms...)
		return v
	}
	want.leftOut = points + best(unserved)
	if len(added) > 0 {
		links = best(added)
	}
	want.objective = best(servers)
	return want, links
}
