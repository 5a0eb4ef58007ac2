package solve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/delivery"
)

// random makes a small problem: up to 3 points, 3 servers and 4 switches.
func random(rng *rand.Rand) *delivery.Problem {
	p := new(delivery.Problem)
	points, servers, switches := 1+rng.IntN(3), 1+rng.IntN(3), rng.IntN(5)
	for i := range points {
		p.Nodes = append(p.Nodes, delivery.Node{ID: fmt.Sprint("p", i), Kind: delivery.PointNode, Rate: float64(5 + rng.IntN(35)), Deadline: float64(1 + rng.IntN(14)), Loss: 0.005 + rng.Float64()*0.05, Up: 1})
	}
	for i := range servers {
		p.Nodes = append(p.Nodes, delivery.Node{ID: fmt.Sprint("s", i), Kind: delivery.ServerNode, Capacity: float64(30 + rng.IntN(30)), Load: float64(rng.IntN(10)), Up: 1})
	}
	for i := range switches {
		p.Nodes = append(p.Nodes, delivery.Node{ID: fmt.Sprint("w", i), Kind: delivery.SwitchNode, Capacity: 60, Load: float64(rng.IntN(60)), Up: 0.985 + rng.Float64()*0.015})
	}
	for a := range p.Nodes {
		for b := range a {
			if rng.IntN(5) < 2 {
				p.Links = append(p.Links, delivery.Link{A: p.Nodes[a].ID, B: p.Nodes[b].ID, Latency: float64(1 + rng.IntN(5)), Capacity: 60, Load: float64(rng.IntN(60)), Up: 0.985 + rng.Float64()*0.015})
			}
		}
	}
	return p
}

// way is a path as the oracle sees it.
type way struct {
	point, server int
	keys          []string
	up            float64
}

// oracle solves small problems by enumeration of sets of added links, smaller ones first, and sets of servers. A
// separate simplex method, with Bland's rule and without bounds of variables, decides whether rates fit.
type oracle struct {
	p      *delivery.Problem
	link   map[[2]int]*delivery.Link
	points []int
	server []int
}

func newOracle(p *delivery.Problem) *oracle {
	o := &oracle{p: p, link: map[[2]int]*delivery.Link{}}
	id := map[string]int{}
	for i, n := range p.Nodes {
		id[n.ID] = i
		switch n.Kind {
		case delivery.PointNode:
			o.points = append(o.points, i)
		case delivery.ServerNode:
			o.server = append(o.server, i)
		}
	}
	for i := range p.Links {
		l := &p.Links[i]
		o.link[[2]int{id[l.A], id[l.B]}], o.link[[2]int{id[l.B], id[l.A]}] = l, l
	}
	return o
}

// ways lists all usable paths, depth first.
func (o *oracle) ways() (list []way) {
	for _, s := range o.points {
		x := o.p.Nodes[s]
		var walk func(at int, seen []int, keys []string, latency, up float64)
		walk = func(at int, seen []int, keys []string, latency, up float64) {
			n := o.p.Nodes[at]
			if at != s && n.Kind == delivery.ServerNode && latency <= x.Deadline+1e-9 && up >= 1-x.Loss-1e-12 {
				list = append(list, way{s, at, slices.Clone(keys), up})
			}
			if at != s {
				if n.Kind != delivery.SwitchNode {
					if !o.p.TransitAll {
						return
					}
					latency += delivery.SwitchLatency
				} else {
					latency, up = latency+delivery.SwitchLatency, up*n.Up
					keys = append(keys, n.ID)
				}
			}
			for to := range o.p.Nodes {
				l := o.link[[2]int{at, to}]
				if l == nil || slices.Contains(seen, to) || latency+l.Latency > x.Deadline+1e-9 {
					continue
				}
				walk(to, append(seen[:len(seen):len(seen)], to), append(keys[:len(keys):len(keys)], "link "+fmt.Sprint(min(at, to), " ", max(at, to))), latency+l.Latency, up*l.Up)
			}
		}
		walk(s, []int{s}, nil, 0, 1)
	}
	return list
}

// fits reports whether the points can all be served by these servers.
func (o *oracle) fits(ways []way, points, servers []int) bool {
	var rows [][]float64 // coefficients, right side; at most
	var right []float64
	var use []way
	for _, w := range ways {
		if slices.Contains(points, w.point) && slices.Contains(servers, w.server) {
			use = append(use, w)
		}
	}
	row := func(on func(way) bool, most float64) {
		r := make([]float64, len(use))
		for k, w := range use {
			if on(w) {
				r[k] = 1
			}
		}
		rows, right = append(rows, r), append(right, most)
	}
	for _, s := range servers {
		row(func(w way) bool { return w.server == s }, o.p.Nodes[s].Residual())
	}
	for i := range o.p.Nodes {
		if n := &o.p.Nodes[i]; n.Kind == delivery.SwitchNode {
			row(func(w way) bool { return slices.Contains(w.keys, n.ID) }, n.Residual())
		}
	}
	for key, l := range o.link {
		if key[0] < key[1] {
			name := "link " + fmt.Sprint(key[0], " ", key[1])
			row(func(w way) bool { return slices.Contains(w.keys, name) }, l.Residual())
		}
	}
	for k := range use {
		if o.p.PathLimit > 0 {
			r := make([]float64, len(use))
			r[k] = 1
			rows, right = append(rows, r), append(right, o.p.PathLimit)
		}
	}
	want := 0.0
	for _, i := range points {
		rate := o.p.Reserved(o.p.Nodes[i].Rate)
		want += rate
		row(func(w way) bool { return w.point == i }, rate)
	}
	return mostSum(rows, right, len(use)) >= want-1e-6
}

// mostSum is the largest sum of variables from 0 with rows at most right.
func mostSum(rows [][]float64, right []float64, n int) float64 {
	m := len(rows)
	t := make([][]float64, m+1)
	for i := range t {
		t[i] = make([]float64, n+m+1)
		if i < m {
			copy(t[i], rows[i])
			t[i][n+i], t[i][n+m] = 1, right[i]
		} else {
			for k := range n {
				t[i][k] = -1
			}
		}
	}
	basis := make([]int, m)
	for i := range basis {
		basis[i] = n + i
	}
	for {
		c := slices.IndexFunc(t[m][:n+m], func(x float64) bool { return x < -1e-9 })
		if c < 0 {
			return t[m][n+m]
		}
		r := -1
		for i := range m {
			if t[i][c] > 1e-9 && (r < 0 || t[i][n+m]/t[i][c] < t[r][n+m]/t[r][c]-1e-12 || t[i][n+m]/t[i][c] <= t[r][n+m]/t[r][c]+1e-12 && basis[i] < basis[r]) {
				r = i
			}
		}
		f := t[r][c]
		for k := range t[r] {
			t[r][k] /= f
		}
		for i := range t {
			if g := t[i][c]; i != r && g != 0 {
				for k := range t[i] {
					t[i][k] -= g * t[r][k]
				}
			}
		}
		basis[r] = c
	}
}

// subsets calls f with all subsets of a size until it is true.
func subsets(all []int, size int, f func([]int) bool) bool {
	var from func(i int, some []int) bool
	from = func(i int, some []int) bool {
		if len(some) == size {
			return f(some)
		}
		for ; i < len(all); i++ {
			if from(i+1, append(some, all[i])) {
				return true
			}
		}
		return false
	}
	return from(0, make([]int, 0, size))
}

// fewestServers is the least number of servers that serve points, or -1.
func (o *oracle) fewestServers(ways []way, points []int) int {
	for n := range len(o.server) + 1 {
		if subsets(o.server, n, func(s []int) bool { return o.fits(ways, points, s) }) {
			return n
		}
	}
	return -1
}

// without returns the most points that can be served without added links, and the fewest servers for as many.
func (o *oracle) without() (served, servers int) {
	ways := o.ways()
	for n := len(o.points); ; n-- {
		servers = math.MaxInt
		subsets(o.points, n, func(points []int) bool {
			if s := o.fewestServers(ways, points); s >= 0 {
				servers = min(servers, s)
			}
			return false
		})
		if servers < math.MaxInt {
			return n, servers
		}
	}
}

// with returns the fewest added links that serve all points, and the fewest servers with so many; -1 if none do.
func (o *oracle) with() (links, servers int) {
	var candidates [][2]int
	for _, i := range o.points {
		for v := range o.p.Nodes {
			if o.p.Nodes[v].Kind != delivery.PointNode && o.link[[2]int{i, v}] == nil {
				candidates = append(candidates, [2]int{i, v})
			}
		}
	}
	index := make([]int, len(candidates))
	for k := range index {
		index[k] = k
	}
	for n := range min(3, len(candidates)) + 1 {
		servers = math.MaxInt
		subsets(index, n, func(some []int) bool {
			for _, k := range some {
				l := &delivery.Link{Latency: delivery.AddedLatency, Capacity: delivery.AddedCapacity, Up: delivery.AddedUp}
				c := candidates[k]
				o.link[c], o.link[[2]int{c[1], c[0]}] = l, l
			}
			if s := o.fewestServers(o.ways(), o.points); s >= 0 {
				servers = min(servers, s)
			}
			for _, k := range some {
				c := candidates[k]
				delete(o.link, c)
				delete(o.link, [2]int{c[1], c[0]})
			}
			return false
		})
		if servers < math.MaxInt {
			return n, servers
		}
	}
	return -1, -1
}

func TestAgainstOracle(t *testing.T) {
	seeds := uint64(testkit.Rounds(300, 2500))
	linked, proven := 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		p := random(rng)
		o := newOracle(p)
		served, servers := o.without()
		plan, err := Plan(p, Options{NoLinks: true, Partial: true})
		if err == nil {
			err = delivery.Check(p, plan)
		}
		if err != nil {
			t.Fatalf("seed %d, no links: %v", seed, err)
		}
		if s := plan.Stats; s.Served != served || s.Servers != servers || !s.Optimal {
			t.Fatalf("seed %d, no links: %d points by %d servers, optimal %v; want %d by %d", seed, s.Served, s.Servers, s.Optimal, served, servers)
		}
		for _, method := range Methods {
			if method == Brute && seed%20 != 0 {
				continue
			}
			plan, err := Plan(p, Options{Method: method, Partial: true, Seed: seed})
			if err == nil {
				err = delivery.Check(p, plan)
			}
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, method, err)
			}
			if method != Exact {
				continue
			}
			links, servers := o.with()
			s := plan.Stats
			if links < 0 {
				if !plan.Partial && s.Links < 4 {
					t.Fatalf("seed %d: served with %d links, which cannot be", seed, s.Links)
				}
				continue
			}
			if plan.Partial || s.Links < links || s.LinkBound > links || s.Optimal && (s.Links != links || s.Servers != servers) || s.Links == links && s.LowerBound > float64(servers) {
				t.Fatalf("seed %d: %d links (bound %d), %d servers (bound %v), partial %v; want %d and %d", seed, s.Links, s.LinkBound, s.Servers, s.LowerBound, plan.Partial, links, servers)
			}
			if links > 0 {
				linked++
				if s.Optimal {
					proven++
				}
			}
		}
	}
	t.Logf("%d with added links, %d of them proven", linked, proven)
	if proven < linked*9/10 {
		t.Errorf("only %d of %d plans with added links are proven", proven, linked)
	}
}

// TestLossTests compares stricter tests with an oracle where it knows the answer, and has the others checked.
func TestLossTests(t *testing.T) {
	for seed := range uint64(testkit.Rounds(60, 500)) {
		rng := rand.New(rand.NewPCG(seed, 11))
		p := random(rng)
		p.TransitAll = rng.IntN(3) == 0
		p.LossTest = []delivery.LossTest{delivery.LossJoint, delivery.LossExact, delivery.LossChernoff, delivery.LossPath}[seed%4]
		if p.LossTest == delivery.LossExact || p.LossTest == delivery.LossChernoff {
			p.Reserve = []float64{1, 1.5, 2, 3}[rng.IntN(4)]
		}
		for _, o := range []Options{{Partial: true}, {Partial: true, NoLinks: true}} {
			plan, err := Plan(p, o)
			if err == nil {
				err = delivery.Check(p, plan)
			}
			if err != nil {
				t.Fatalf("seed %d, %s, %+v: %v", seed, p.LossTest, o, err)
			}
			if o.NoLinks && p.Test() == delivery.LossPath {
				served, servers := newOracle(p).without()
				if s := plan.Stats; s.Served != served || s.Servers != servers {
					t.Fatalf("seed %d, transit %v: %d by %d, want %d by %d", seed, p.TransitAll, s.Served, s.Servers, served, servers)
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	ok := func() *delivery.Problem {
		return &delivery.Problem{
			Nodes: []delivery.Node{
				{ID: "m", Kind: delivery.PointNode, Rate: 30, Deadline: 5, Loss: 0.1, Up: 1},
				{ID: "w", Kind: delivery.SwitchNode, Capacity: 100, Load: 20, Up: 0.99},
				{ID: "s", Kind: delivery.ServerNode, Capacity: 40, Up: 1},
			},
			Links: []delivery.Link{{A: "m", B: "w", Latency: 2, Capacity: 100, Up: 0.99}, {A: "w", B: "s", Latency: 2, Capacity: 100, Up: 0.99}},
		}
	}
	tests := []struct {
		name, want string
		change     func(*delivery.Problem)
	}{
		{"deadline", "point m cannot be served: deadline: the nearest server is 4.001 ms away, the deadline is 3.000 ms", func(p *delivery.Problem) { p.Nodes[0].Deadline = 3 }},
		{"loss", "point m cannot be served: loss: the most reliable path in time works with a probability of 0.9703, asked is 0.9900", func(p *delivery.Problem) { p.Nodes[0].Loss = 0.01 }},
		{"link", "bandwidth: it needs 30.000 Gbit/s; of its widest path, to s, link w s has 20.000 free", func(p *delivery.Problem) { p.Links[1].Load = 80 }},
		{"switch", "switch w has 0.000 free", func(p *delivery.Problem) { p.Nodes[1].Load = 100 }},
		{"server", "server capacity: it needs 30.000 Gbit/s; the 1 servers that it reaches have 10.000 free", func(p *delivery.Problem) { p.Nodes[2].Load = 30 }},
		{"path", "path: no path through switches", func(p *delivery.Problem) { p.Links = p.Links[:1] }},
		{"no nodes", "there are no nodes", func(p *delivery.Problem) { p.Nodes = nil }},
		{"no servers", "no node is a server", func(p *delivery.Problem) { p.Nodes[2].Kind = delivery.SwitchNode }},
		{"no points", "no node is a point", func(p *delivery.Problem) { p.Nodes[0].Kind = delivery.SwitchNode }},
		{"twice", "node w is there twice", func(p *delivery.Problem) { p.Nodes = append(p.Nodes, p.Nodes[1]) }},
		{"port twice", "link w m has port 1 at node m, where another link has it", func(p *delivery.Problem) {
			p.Links[0].PortA = 1
			p.Links = append(p.Links, delivery.Link{A: "w", B: "m", PortB: 1, Up: 1})
		}},
		{"port", "link m w has port -1 at node m", func(p *delivery.Problem) { p.Links[0].PortA = -1 }},
		{"weight", "point m has weight -1, outside", func(p *delivery.Problem) { p.Nodes[0].Weight = -1 }},
		{"weight of a switch", "switch w has a weight", func(p *delivery.Problem) { p.Nodes[1].Weight = 2 }},
		{"itself", "link w w joins a node with itself", func(p *delivery.Problem) {
			p.Links = append(p.Links, delivery.Link{A: "w", B: "w", Up: 1})
		}},
		{"nowhere", `ends at node "x"`, func(p *delivery.Problem) { p.Links[0].B = "x" }},
		{"negative", "link m w has latency_ms -1", func(p *delivery.Problem) { p.Links[0].Latency = -1 }},
		{"not a number", "point m has rate_gbps NaN", func(p *delivery.Problem) { p.Nodes[0].Rate = math.NaN() }},
		{"probability", "switch w has up 2", func(p *delivery.Problem) { p.Nodes[1].Up = 2 }},
		{"kind", `node w is a "router"`, func(p *delivery.Problem) { p.Nodes[1].Kind = "router" }},
		{"test", `loss test "luck"`, func(p *delivery.Problem) { p.LossTest = "luck" }},
		{"limit", "a path has path_limit_gbps -1", func(p *delivery.Problem) { p.PathLimit = -1 }},
		{"reserve", "reserve 0.5", func(p *delivery.Problem) { p.Reserve = 0.5 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := ok()
			tt.change(p)
			if _, err := Plan(p, Options{NoLinks: true}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Plan: %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := Plan(ok(), Options{Method: "magic"}); err == nil || !strings.Contains(err.Error(), `method "magic"`) {
		t.Errorf("Plan: %v", err)
	}
	plan, err := Plan(ok(), Options{})
	if err != nil || plan.Stats.Links != 0 || plan.Stats.Servers != 1 || !plan.Stats.Optimal {
		t.Errorf("Plan = %+v, %v", plan, err)
	}
	// More than all servers have.
	p := ok()
	p.Nodes[0].Rate = 41
	if _, err := Plan(p, Options{}); err == nil || !strings.Contains(err.Error(), "server capacity") {
		t.Errorf("Plan: %v, want server capacity", err)
	}
}
