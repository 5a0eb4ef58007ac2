package solve

import (
	"container/heap"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
)

// weightedGraph is a random multigraph of n nodes and m links with delays and costs, of which the directions differ.
func weightedGraph(t *testing.T, r *rand.Rand, n, m, most int) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder("test")
	for i := range n {
		b.AddNode(fmt.Sprintf("n%d", i), topo.NoTier)
	}
	attr := func() topo.Attr {
		return topo.Attr{Weight: 1, Cost: uint32(r.IntN(most)), Delay: time.Duration(1 + r.IntN(most))}
	}
	for range m {
		b.AddLink(topo.LinkEnd{Node: r.IntN(n), Attr: attr()}, topo.LinkEnd{Node: r.IntN(n), Attr: attr()})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The least weight of second traversals, by trying all sets of links.
func TestWeightedJoin(t *testing.T) {
	tried := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 70))
		n := 1 + r.IntN(7)
		g := weightedGraph(t, r, n, 1+r.IntN(11), 20)
		depots, depot := randomDepots(r, g)
		p := &cover.Problem{Graph: g, Depots: depots, Minimise: [...]cover.Measure{cover.Delay, cover.Cost}[seed%2]}
		plan, err := Plan(p, Options{})
		if err != nil {
			continue // not connected to a depot
		}
		if err := cover.Check(p, plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tried++
		best, all := int64(math.MaxInt64), int64(0)
		for set := range 1 << g.NumLinks() {
			sum, odd := int64(0), make([]bool, n)
			for l := range g.NumLinks() {
				x, y := g.Ends(l)
				times := 1
				if set>>l&1 == 1 {
					times = 2
				}
				sum += int64(times) * p.Weigh(x)
				for range times {
					odd[g.Node(x)] = !odd[g.Node(x)]
					odd[g.Node(y)] = !odd[g.Node(y)]
				}
			}
			if set == 0 {
				all = sum
			}
			ok := true
			for v := range odd {
				ok = ok && (depot[v] || !odd[v])
			}
			if ok {
				best = min(best, sum)
			}
		}
		if s := plan.Stats; !s.Optimal || s.Objective != float64(best) {
			t.Fatalf("seed %d: objective %v, optimal %v, want %d (each link once: %d)", seed, s.Objective, s.Optimal, best, all)
		}
	}
	if tried < 1000 {
		t.Errorf("%d graphs tried, too few to say anything", tried)
	}
}

// limitedOracle is the least total measure of probes between depots that keep to the limits and cover all that can be
// covered. It searches over all sets that probes can have covered, and returns the set of what can be covered too.
func limitedOracle(p *cover.Problem) (best int64, all int) {
	g := p.Graph
	item := func(i int) int {
		l := g.Link(i)
		if x, _ := g.Ends(l); p.Directed && x != i {
			return 2*l + 1
		}
		return 2 * l
	}
	type state struct {
		done, node, hops int
		delay            int64
	}
	reach := func(each func(s state, cost int64)) {
		dist := map[state]int64{}
		q := &stateHeap{}
		push := func(s state, d int64) {
			if old, ok := dist[s]; !ok || d < old {
				dist[s] = d
				heap.Push(q, stateItem{[4]int64{int64(s.done), int64(s.node), int64(s.hops), s.delay}, d})
			}
		}
		push(state{node: -1}, 0)
		depot := make([]bool, g.NumNodes())
		for _, v := range p.Depots {
			depot[v] = true
		}
		for q.Len() > 0 {
			x := heap.Pop(q).(stateItem)
			s := state{int(x.at[0]), int(x.at[1]), int(x.at[2]), x.at[3]}
			if dist[s] != x.cost {
				continue
			}
			if s.node < 0 {
				each(s, x.cost)
				for _, v := range p.Depots {
					push(state{done: s.done, node: v}, x.cost)
				}
				continue
			}
			if depot[s.node] && s.hops > 0 {
				push(state{done: s.done, node: -1}, x.cost)
			}
			if s.hops > 0 && p.Hosts != nil && p.Hosts[s.node] {
				continue
			}
			lo, hi := g.Interfaces(s.node)
			for i := lo; i < hi; i++ {
				next := state{s.done | 1<<item(i), g.Neighbor(i), s.hops + 1, s.delay + int64(g.Attr(i).Delay)}
				if p.MaxHops > 0 && next.hops > p.MaxHops || p.MaxDelay > 0 && next.delay > p.MaxDelay || next.hops > 12 {
					continue
				}
				cost := p.Weigh(i)
				if p.Minimise == cover.Bytes {
					cost = p.Size.At(next.hops)
				}
				if p.MaxDelay == 0 {
					next.delay = 0
				}
				push(next, x.cost+cost)
			}
		}
	}
	reach(func(s state, _ int64) { all |= s.done })
	best = math.MaxInt64
	reach(func(s state, cost int64) {
		if s.done == all {
			best = min(best, cost)
		}
	})
	return best, all
}

type stateItem struct {
	at   [4]int64
	cost int64
}
type stateHeap []stateItem

func (h stateHeap) Len() int           { return len(h) }
func (h stateHeap) Less(i, j int) bool { return h[i].cost < h[j].cost }
func (h stateHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *stateHeap) Push(x any)        { *h = append(*h, x.(stateItem)) }
func (h *stateHeap) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// The test has limits of hops and delay, all measures, both kinds of cover, and hosts. The plan covers what can be
// covered, its bound is valid, and its objective is near the optimum.
func TestWeightedLimits(t *testing.T) {
	sum, best, exact := 0.0, 0.0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 72))
		n := 2 + r.IntN(4)
		g := weightedGraph(t, r, n, 1+r.IntN(5), 4)
		depots, _ := randomDepots(r, g)
		p := &cover.Problem{Graph: g, Depots: depots, Directed: seed%3 == 0 && g.NumLinks() < 4,
			Minimise: [...]cover.Measure{cover.Links, cover.Delay, cover.Bytes, cover.Cost}[r.IntN(4)], Size: cover.Size{Header: 10, PerHop: 1 + r.IntN(10)}}
		if r.IntN(2) == 0 {
			p.MaxHops = 1 + r.IntN(6)
		}
		if r.IntN(2) == 0 || p.MaxHops == 0 {
			p.MaxDelay = 1 + r.Int64N(14)
		}
		if seed%5 == 0 {
			p.Hosts = make([]bool, n)
			for v := range p.Hosts {
				p.Hosts[v] = r.IntN(3) == 0
			}
		}
		plan := checked(t, seed, p, Options{Partial: true})
		want, all := limitedOracle(p)
		s, can := plan.Stats, bits.OnesCount(uint(all))
		if s.Links != can || s.LeftOut != s.LeftOutBound {
			t.Fatalf("seed %d: %d items covered, %d can be; left out %v, bound %v (%+v)", seed, s.Links, can, s.LeftOut, s.LeftOutBound, p)
		}
		if s.LowerBound > float64(want) || s.Objective < float64(want) || s.Optimal && s.Objective != float64(want) {
			t.Fatalf("seed %d: objective %v, bound %v, optimal %v; the best is %d (%+v)", seed, s.Objective, s.LowerBound, s.Optimal, want, p)
		}
		sum, best = sum+s.Objective, best+float64(want)
		if s.Objective == float64(want) {
			exact++
		}
	}
	t.Logf("%.3f of the best, %d of 1500 exact", sum/best, exact)
	if sum > 1.1*best {
		t.Errorf("%.3f of the best in all, want at most 1.1", sum/best)
	}
}

// A limit of delay without depots, and hosts that nothing passes.
func TestDelayWithoutDepots(t *testing.T) {
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 73))
		n := 2 + r.IntN(12)
		g := weightedGraph(t, r, n, 1+r.IntN(30), 9)
		p := &cover.Problem{Graph: g, Directed: seed%2 == 0, MaxDelay: 3 + r.Int64N(40), MaxHops: r.IntN(3) * r.IntN(8)}
		if seed%3 == 0 {
			p.Hosts = make([]bool, n)
			for v := range p.Hosts {
				p.Hosts[v] = r.IntN(4) == 0
			}
		}
		checked(t, seed, p, Options{Partial: true, Balanced: seed%5 == 0})
		p.MaxDelay = 0
		if s := checked(t, seed, p, Options{}).Stats; p.MaxHops == 0 && !s.Optimal {
			t.Fatalf("seed %d: %v probes, at least %v", seed, s.Objective, s.LowerBound)
		}
	}
}

// The bound of probes without depots, against all ways to cut a small graph into trails.
func TestDelayBound(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 74))
		n := 2 + r.IntN(4)
		g := weightedGraph(t, r, n, 1+r.IntN(5), 5)
		p := &cover.Problem{Graph: g, MaxDelay: 5 + r.Int64N(10)}
		if r.IntN(2) == 0 {
			p.Hosts = make([]bool, n)
			p.Hosts[r.IntN(n)] = true
		}
		best := math.MaxInt
		var extend func(done, node, probes int, delay int64)
		extend = func(done, node, probes int, delay int64) {
			if done == 1<<g.NumLinks()-1 {
				best = min(best, probes)
				return
			}
			if probes >= best {
				return
			}
			for i := range g.NumInterfaces() {
				if done>>g.Link(i)&1 == 1 {
					continue
				}
				d := int64(g.Attr(i).Delay)
				if node == g.Node(i) && delay+d <= p.MaxDelay && !(p.Hosts != nil && p.Hosts[node]) {
					extend(done|1<<g.Link(i), g.Neighbor(i), probes, delay+d)
				}
				extend(done|1<<g.Link(i), g.Neighbor(i), probes+1, d)
			}
		}
		extend(0, -1, 0, 0)
		if s := checked(t, seed, p, Options{}).Stats; s.LowerBound > float64(best) || s.Objective < float64(best) {
			t.Fatalf("seed %d: %v probes, at least %v; the best is %d", seed, s.Objective, s.LowerBound, best)
		}
	}
}

// A new plan after a failure keeps to the limits and hosts too.
func TestReplanLimits(t *testing.T) {
	kept := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 75))
		n := 3 + r.IntN(10)
		g := weightedGraph(t, r, n, 8+r.IntN(20), 9)
		p := &cover.Problem{Graph: g, Directed: seed%4 == 0, MaxHops: r.IntN(2) * (2 + r.IntN(6)), Hosts: make([]bool, n)}
		for v := range p.Hosts {
			p.Hosts[v] = r.IntN(4) == 0
		}
		switch seed % 3 {
		case 0:
			p.MaxDelay = 6 + r.Int64N(40)
		case 1:
			p.Depots, _ = randomDepots(r, g)
			p.MaxDelay = 10 + r.Int64N(60)
			p.Minimise = [...]cover.Measure{cover.Links, cover.Cost, cover.Delay}[r.IntN(3)]
		case 2:
			p.Redundant = !p.Directed
		}
		old := checked(t, seed, p, Options{Partial: true})
		p.SkipNode = make([]bool, n)
		if v := r.IntN(n); !slices.Contains(p.Depots, v) {
			p.SkipNode[v] = true
		}
		plan, err := Replan(p, old, Options{Partial: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := cover.Check(p, plan); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, p, err)
		}
		kept += plan.Kept
	}
	if kept < 500 {
		t.Errorf("%d probes kept, too few to say anything", kept)
	}
}
