package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
)

// Printed is a solution of section V under the constraints as the text prints them. Equations 4 and 5 are of a point and
// a path: what other points and paths carry is not counted, which allows overload. Every node forwards, since a node of a
// wide area network that measures or stores has no reason to stop. It is here to compare counts with the text, and makes
// no plan.
type Printed struct {
	Nearest bool // a point sends to one server, the nearest by links
	Late    bool // deadlines are ignored
	Lossy   bool // tolerated losses are ignored
	Links   bool // algorithm 3 adds links; points share the room of servers, as in line 9 of algorithm 1
}

// printedNetwork is a problem with the links of every node.
type printedNetwork struct {
	p      *delivery.Problem
	at     map[string]int
	beside [][]int // links
}

func newPrintedNetwork(p *delivery.Problem) *printedNetwork {
	n := &printedNetwork{p: p, at: map[string]int{}, beside: make([][]int, len(p.Nodes))}
	for v := range p.Nodes {
		n.at[p.Nodes[v].ID] = v
	}
	for l := range p.Links {
		n.join(l)
	}
	return n
}

func (n *printedNetwork) join(l int) {
	for _, end := range []string{n.p.Links[l].A, n.p.Links[l].B} {
		n.beside[n.at[end]] = append(n.beside[n.at[end]], l)
	}
}

// over is the other end of a link.
func (n *printedNetwork) over(l, v int) int {
	if x := n.at[n.p.Links[l].A]; x != v {
		return x
	}
	return n.at[n.p.Links[l].B]
}

// printedPath is a path to a server, with its least free capacity.
type printedPath struct {
	nodes               []int
	latency, up, widest float64
}

// printedSteps bounds the search for the paths of a point. Of those that need more, what is not found is not used.
const printedSteps = 200_000

// paths finds the paths of a point that a solution may use, until one is answered with true.
func (n *printedNetwork) paths(from int, s *Printed, found func(*printedPath) bool) {
	point := &n.p.Nodes[from]
	on, steps := make([]bool, len(n.p.Nodes)), 0
	var search func(x printedPath) bool
	search = func(x printedPath) bool {
		v := x.nodes[len(x.nodes)-1]
		if n.p.Nodes[v].Kind == delivery.ServerNode && found(&x) {
			return true
		}
		on[v] = true
		defer func() { on[v] = false }()
		for _, l := range n.beside[v] {
			link, to := &n.p.Links[l], n.over(l, v)
			if steps++; steps > printedSteps {
				return true
			}
			y := printedPath{append(x.nodes, to), x.latency + link.Latency, x.up * link.Up, min(x.widest, link.Residual())}
			if node := &n.p.Nodes[to]; node.Kind == delivery.SwitchNode {
				y.latency, y.up, y.widest = y.latency+delivery.SwitchLatency, y.up*node.Up, min(y.widest, node.Residual())
			}
			if on[to] || y.widest <= 0 || !s.Late && y.latency > point.Deadline || !s.Lossy && y.up < 1-point.Loss {
				continue
			}
			if search(y) {
				return true
			}
		}
		return false
	}
	search(printedPath{nodes: []int{from}, up: 1, widest: math.Inf(1)})
}

// nearest is the server with the fewest links to a node, or -1.
func (n *printedNetwork) nearest(from int) int {
	seen := make([]bool, len(n.p.Nodes))
	seen[from] = true
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if n.p.Nodes[v].Kind == delivery.ServerNode {
			return v
		}
		for _, l := range n.beside[v] {
			if to := n.over(l, v); !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return -1
}

// PrintedResult counts points, links and servers. Points in time and reliable ones are served by such paths alone.
type PrintedResult struct{ Points, Served, InTime, Reliable, Links, Servers int }

// Plan serves the points of a problem one by one, and links those that cannot be.
func (s *Printed) Plan(p *delivery.Problem) (r PrintedResult) {
	q := *p
	q.Links = slices.Clone(p.Links)
	n := newPrintedNetwork(&q)
	taken := map[int]float64{} // by server
	serve := func(v int) bool {
		point, only := &q.Nodes[v], -1
		left, inTime, reliable := point.Rate, true, true
		if s.Nearest {
			only = n.nearest(v)
		}
		takes := map[int]float64{}
		n.paths(v, s, func(x *printedPath) bool {
			to := x.nodes[len(x.nodes)-1]
			if s.Nearest && to != only {
				return false
			}
			rate := min(left, x.widest)
			if s.Links {
				rate = min(rate, q.Nodes[to].Residual()-taken[to]-takes[to])
			}
			if rate > 1e-9 {
				takes[to] += rate
				left -= rate
				inTime, reliable = inTime && x.latency <= point.Deadline, reliable && x.up >= 1-point.Loss
			}
			return left <= 1e-9
		})
		if left > 1e-9 {
			return false
		}
		for to, rate := range takes {
			taken[to] += rate
		}
		r.Served++
		if inTime {
			r.InTime++
		}
		if reliable {
			r.Reliable++
		}
		return true
	}
	var hubs []int
	for v := range q.Nodes {
		if q.Nodes[v].Kind != delivery.PointNode {
			continue
		}
		if r.Points++; serve(v) || !s.Links {
			continue
		}
		if hubs == nil {
			hubs = n.hubs(s)
		}
		for _, to := range hubs {
			l := len(q.Links)
			q.Links = append(q.Links, delivery.Link{A: q.Nodes[v].ID, B: q.Nodes[to].ID, Latency: delivery.AddedLatency, Capacity: delivery.AddedCapacity, Up: delivery.AddedUp})
			n.join(l)
			if serve(v) {
				r.Links++
				break
			}
			q.Links = q.Links[:l]
			n.beside[v], n.beside[to] = n.beside[v][:len(n.beside[v])-1], n.beside[to][:len(n.beside[to])-1]
		}
	}
	r.Servers = len(taken)
	return r
}

// hubs are the nodes of algorithm 3, and behind them the servers: nodes on usable paths by descending degree, as many as
// there are points. The pseudo-code sorts the other way round.
func (n *printedNetwork) hubs(s *Printed) (list []int) {
	on, points := make([]bool, len(n.p.Nodes)), 0
	var servers []int
	for v := range n.p.Nodes {
		switch n.p.Nodes[v].Kind {
		case delivery.PointNode:
			points++
			n.paths(v, s, func(x *printedPath) bool {
				for _, u := range x.nodes {
					on[u] = n.p.Nodes[u].Kind != delivery.PointNode
				}
				return false
			})
		case delivery.ServerNode:
			servers = append(servers, v)
		}
	}
	for v := range on {
		if on[v] {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(x, y int) int { return len(n.beside[y]) - len(n.beside[x]) })
	return append(list[:min(len(list), points)], servers...)
}
