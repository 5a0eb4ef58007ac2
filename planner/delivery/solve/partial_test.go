package solve

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
)

// scarce makes a small problem in which often not every point can be served, even with links. Servers have little room,
// and some points tolerate no loss or no delay. Points have weights.
func scarce(rng *rand.Rand) *delivery.Problem {
	p := random(rng)
	if rng.IntN(4) == 0 {
		p.PathLimit = float64(8 + rng.IntN(20))
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch n.Kind {
		case delivery.PointNode:
			n.Weight = []float64{0, 1, 2, 3, 0.5, 2.5}[rng.IntN(6)]
			switch rng.IntN(6) {
			case 0:
				n.Loss = 0
			case 1:
				n.Deadline = 0.5
			}
		case delivery.ServerNode:
			n.Load = float64(rng.IntN(40))
		}
	}
	return p
}

// best is the lexicographic optimum: weight left out, added links, servers. It looks at up to three links, and gives -1
// where those are not enough.
func (o *oracle) best(noLinks bool) (left float64, links, servers int) {
	weight := func(points []int) (sum float64) {
		for _, i := range o.points {
			if !slices.Contains(points, i) {
				sum += o.p.Nodes[i].Worth()
			}
		}
		return sum
	}
	var candidates [][2]int
	for _, i := range o.points {
		for v := range o.p.Nodes {
			if !noLinks && o.p.Nodes[v].Kind != delivery.PointNode && o.link[[2]int{i, v}] == nil {
				candidates = append(candidates, [2]int{i, v})
			}
		}
	}
	with := func(some []int, f func()) {
		for _, k := range some {
			c := candidates[k]
			l := &delivery.Link{Latency: delivery.AddedLatency, Capacity: delivery.AddedCapacity, Up: delivery.AddedUp}
			o.link[c], o.link[[2]int{c[1], c[0]}] = l, l
		}
		f()
		for _, k := range some {
			c := candidates[k]
			delete(o.link, c)
			delete(o.link, [2]int{c[1], c[0]})
		}
	}
	var sets [][]int
	for n := range len(o.points) + 1 {
		subsets(o.points, n, func(points []int) bool { sets = append(sets, slices.Clone(points)); return false })
	}
	all := make([]int, len(candidates))
	for k := range all {
		all[k] = k
	}
	left = math.Inf(1)
	with(all, func() {
		ways := o.ways()
		for _, points := range sets {
			if w := weight(points); w < left && o.fits(ways, points, o.server) {
				left = w
			}
		}
	})
	sets = slices.DeleteFunc(sets, func(points []int) bool { return weight(points) > left })
	for n := range min(3, len(candidates)) + 1 {
		servers = math.MaxInt
		subsets(all, n, func(some []int) bool {
			with(some, func() {
				ways := o.ways()
				for _, points := range sets {
					if s := o.fewestServers(ways, points); s >= 0 {
						servers = min(servers, s)
					}
				}
			})
			return false
		})
		if servers < math.MaxInt {
			return left, n, servers
		}
	}
	return left, -1, -1
}

// TestPartialAgainstOracle holds that a plan that leaves points out is as good, as proven and as bounded as any other.
func TestPartialAgainstOracle(t *testing.T) {
	seeds := uint64(testkit.Rounds(150, 500))
	partial, linked, unproven := 0, 0, 0
	for seed := range seeds {
		p := scarce(rand.New(rand.NewPCG(seed, 21)))
		o := newOracle(p)
		for _, noLinks := range []bool{false, true} {
			plan, err := Plan(p, Options{Partial: true, NoLinks: noLinks})
			if err == nil {
				err = delivery.Check(p, plan)
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			left, links, servers := o.best(noLinks)
			s := &plan.Stats
			if !planner.Near(s.LeftOut, left) || s.LeftOutBound > left+1e-9 {
				t.Errorf("seed %d, no links %v: weight %v left out (bound %v), want %v", seed, noLinks, s.LeftOut, s.LeftOutBound, left)
				continue
			}
			if links >= 0 && (s.Links != links || s.LinkBound > links || s.Servers != servers || s.LowerBound > float64(servers)) {
				t.Errorf("seed %d, no links %v: %d links (bound %d), %d servers (bound %v), want %d and %d", seed, noLinks, s.Links, s.LinkBound, s.Servers, s.LowerBound, links, servers)
			}
			if links < 0 && s.Links < 4 {
				t.Errorf("seed %d: %d links, and three are not enough", seed, s.Links)
			}
			if left > 0 {
				partial++
			}
			if links > 0 {
				linked++
			}
			if !s.Optimal {
				unproven++
			}
		}
	}
	t.Logf("%d plans are partial, %d with links; %d are not proven", partial, linked, unproven)
	if partial < int(seeds)/2 || linked < int(seeds)/4 || unproven > int(seeds)/50 {
		t.Errorf("%d plans are partial, %d have links, %d are not proven", partial, linked, unproven)
	}
}

// TestPartialPlan holds that one point that can never be served spoils nothing. Two others that fit one server are
// served, with the one link that they need, and that is proven.
func TestPartialPlan(t *testing.T) {
	p, err := delivery.Read(strings.NewReader(`{"nodes":[
		{"id":"never","kind":"point","rate_gbps":10,"deadline_ms":0.5,"loss":0.1},
		{"id":"a","kind":"point","rate_gbps":10,"deadline_ms":5,"loss":0.1},
		{"id":"b","kind":"point","rate_gbps":10,"deadline_ms":5,"loss":0.1},
		{"id":"w","kind":"switch","capacity_gbps":100},
		{"id":"s","kind":"server","capacity_gbps":20},{"id":"r","kind":"server","capacity_gbps":10}],
		"links":[{"a":"never","b":"w","latency_ms":1,"capacity_gbps":100},{"a":"a","b":"w","latency_ms":1,"capacity_gbps":100},
		{"a":"w","b":"s","latency_ms":1,"capacity_gbps":10},{"a":"w","b":"r","latency_ms":1,"capacity_gbps":10}]}`))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Plan(p, Options{Partial: true})
	if err == nil {
		err = delivery.Check(p, plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.Stats; s.Served != 2 || s.Links != 1 || s.LinkBound != 1 || s.Servers != 1 || s.LeftOut != 1 || s.LeftOutBound != 1 || !s.Optimal {
		t.Errorf("statistics %+v, want 2 points served with one link by one server, proven", s)
	}
	if len(plan.Unserved) != 1 || plan.Unserved[0].Constraint != "deadline" {
		t.Errorf("unserved %+v, want the point that has no time", plan.Unserved)
	}
}
