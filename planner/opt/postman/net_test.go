package postman

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/topo"
)

func never() bool { return false }

// randomNet is a multigraph of up to n nodes and m links: parallel links, links from a node to itself, isolated nodes, several
// components. A directed one has both directions of a link. Edges that want refuses are left out.
func randomNet(r *rand.Rand, n, m int, directed bool, want func() bool) *Net {
	x := &Net{Directed: directed, Nodes: 1 + r.IntN(n)}
	for l := range 1 + r.IntN(m) {
		a, b := r.IntN(x.Nodes), r.IntN(x.Nodes)
		if want == nil || want() {
			x.Add(a, b, 2*l, 2*l+1)
		}
		if directed && (want == nil || want()) {
			x.Add(b, a, 2*l+1, 2*l)
		}
	}
	x.Finish()
	return x
}

// netOf has the links of a topology as edges, labelled by interfaces.
func netOf(g *topo.Graph) *Net {
	n := &Net{Nodes: g.NumNodes()}
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		n.Add(g.Node(x), g.Node(y), x, y)
	}
	n.Finish()
	return n
}

func generated(t testing.TB, spec string) *topo.Graph {
	t.Helper()
	g, err := topo.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// matched is the weight of the best matching.
func matched(n int, pairs []opt.Pair) (sum int64) {
	mate, _, _ := opt.Match(n, pairs, never)
	weight := map[[2]int32]int64{}
	for _, p := range pairs {
		k := [2]int32{min(p.U, p.V), max(p.U, p.V)}
		weight[k] = max(weight[k], p.Weight)
	}
	for v, u := range mate {
		if int(u) > v {
			sum += weight[[2]int32{int32(v), u}]
		}
	}
	return sum
}

// Straight trails are a cover with as few trails as there can be, whatever the net.
func TestStraight(t *testing.T) {
	for seed := range uint64(testkit.Rounds(600, 3000)) {
		r := rand.New(rand.NewPCG(seed, 20))
		n := randomNet(r, 25, 90, seed%2 == 1, func() bool { return r.IntN(6) > 0 })
		checkTrails(t, seed, n, n.straight())
	}
	n := netOf(generated(t, "grid:5,7"))
	var lengths []int
	for _, trail := range n.straight() {
		lengths = append(lengths, len(trail))
	}
	slices.Sort(lengths) // four columns, two rows and a third with the ring around
	if want := []int{4, 4, 4, 4, 6, 6, 6, 4 + 20}; !slices.Equal(lengths, want) {
		t.Errorf("lengths on a grid %v, want %v", lengths, want)
	}
}

// checkTrails reports where trails do not walk every edge of n once, or are more than the fewest.
func checkTrails(t *testing.T, seed uint64, n *Net, trails [][]int32) {
	t.Helper()
	used := make([]bool, n.Edges())
	for k, trail := range trails {
		for i, h := range trail {
			if used[h>>1] || !n.Walkable(h) || i > 0 && n.Head(trail[i-1]) != n.From[h] {
				t.Fatalf("seed %d: trail %d does not hold at %d", seed, k, i)
			}
			used[h>>1] = true
		}
	}
	if slices.Contains(used, false) {
		t.Fatalf("seed %d: an edge is left out", seed)
	}
	if want := n.Bound(0); len(trails) != want {
		t.Fatalf("seed %d: %d trails, want %d", seed, len(trails), want)
	}
}

// Random moves leave a cover what it is, and their own account of it right.
func TestAnneal(t *testing.T) {
	for seed := range uint64(testkit.Rounds(200, 600)) {
		r := rand.New(rand.NewPCG(seed, 21))
		n := randomNet(r, 25, 120, seed%2 == 1, nil)
		trails := n.Euler(false)
		if len(trails) == 0 {
			continue
		}
		b := newBalancer(n, trails)
		a := newAnnealer(b)
		a.run(50*n.Edges(), 20, 1, 0, never)
		checkTrails(t, seed, n, trails)
		parts := Cut(trails, func(_, length int) int { return (length + 5) / 6 })
		count := len(parts)
		a = newAnnealer(newBalancer(n, clone(parts)))
		a.shorten(4, 50, never)
		cost := 0
		for _, part := range a.trails {
			cost += max(0, len(part)-4) * max(0, len(part)-4)
		}
		if cost != a.cost || len(a.trails) != count {
			t.Fatalf("seed %d: %d trails at cost %d, said to be %d at %d", seed, len(a.trails), cost, count, a.cost)
		}
		for k, part := range a.trails {
			for i, h := range part {
				if a.where[h] != (place{int32(k), int32(i)}) || a.where[h^1].trail >= 0 {
					t.Fatalf("seed %d: edge %d of trail %d is noted elsewhere", seed, i, k)
				}
			}
		}
	}
}

// Local moves from the plain plan never make the lengths less equal.
func TestBalanceLowersSquares(t *testing.T) {
	squares := func(trails [][]int32) (s int) {
		for _, t := range trails {
			s += len(t) * len(t)
		}
		return s
	}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		n := randomNet(r, 40, 200, seed%2 == 1, func() bool { return r.IntN(5) > 0 })
		trails := n.Euler(false)
		before := squares(trails)
		n.Balance(trails, never)
		if after := squares(trails); after > before {
			t.Fatalf("seed %d: squares %d after %d", seed, after, before)
		}
	}
}

// Where lengths are said to be even they are, and stay so.
func TestBalanceUnits(t *testing.T) {
	even := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 12))
		n := randomNet(r, 8, 12, seed%2 == 1, nil)
		trails := n.Euler(false)
		b := &balancer{Net: n, trails: trails}
		units := b.units()
		n.Balance(trails, never)
		for k, trail := range trails {
			if u := units[n.Comp[n.From[trail[0]]]]; len(trail)%u != 0 {
				t.Fatalf("seed %d: trail %d has %d links, said to be a multiple of %d", seed, k, len(trail), u)
			} else if u == 2 && len(trails) > 1 {
				even++
			}
		}
	}
	if even < 100 {
		t.Errorf("%d trails of even lengths, too few to say anything", even)
	}
}

// The matching by nearest pairs and dual prices finds what the one with all pairs finds.
func TestDepotsPriced(t *testing.T) {
	for seed := range uint64(4) {
		g := generated(t, fmt.Sprintf("random:%d,%d,%d", 1000, 1500, seed))
		depot := make([]bool, g.NumNodes())
		depot[0] = true
		n := netOf(g)
		j := &joiner{Net: n, depot: depot, copied: make([]bool, n.Edges()), gone: make([]bool, n.Edges()), odd: make([]bool, n.Nodes)}
		for v := range int32(n.Nodes) {
			j.odd[v] = len(n.Out(v))%2 == 1 && !depot[v]
		}
		j.leaves()
		var pairs []opt.Pair
		var all []int32
		place := map[int32]int32{}
		for v, odd := range j.odd {
			if odd {
				place[int32(v)] = int32(len(all))
				all = append(all, int32(v))
			}
		}
		j.dist, j.via, j.to = make([]int32, n.Nodes), make([]int32, n.Nodes), make([]int32, n.Nodes)
		for v := range j.dist {
			j.dist[v] = -1
		}
		copy(j.to, j.toDepots())
		j.count()
		cost := int64(0)
		for k, v := range all {
			cost += int64(j.to[v])
			j.search(v, func(u int32) bool {
				if w := int64(j.to[u] + j.to[v] - j.dist[u]); j.odd[u] && place[u] > int32(k) && w > 0 {
					pairs = append(pairs, opt.Pair{U: int32(k), V: place[u], Weight: w})
				}
				return false
			}, int32(n.Nodes))
		}
		cost -= matched(len(all), pairs)
		for _, c := range j.copied {
			if c {
				cost++
			}
		}
		copies, bound := netOf(g).Augment(depot, never)
		if len(all) <= exactTargets {
			t.Errorf("seed %d: %d nodes are matched without prices", seed, len(all))
		}
		if int64(copies) != cost || bound != copies {
			t.Errorf("seed %d: %d copies, bound %d, want %d", seed, copies, bound, cost)
		}
	}
}

// With equal weights the matching finds what the one by hops finds, and with others what one of all pairs finds. A search
// that is stopped at once bounds it from below.
func TestWeightedJoinPriced(t *testing.T) {
	for seed := range uint64(2) {
		g := generated(t, fmt.Sprintf("random:%d,%d,%d", 600, 900, seed))
		depot := make([]bool, g.NumNodes())
		depot[0], depot[1] = true, true
		same, plain := netOf(g), netOf(g)
		weight := make([]int64, same.Edges())
		for e := range weight {
			weight[e] = 7
		}
		copies, _ := plain.Augment(depot, never)
		if got := same.AugmentWeighted(depot, weight, never); got != 7*int64(copies) || same.Edges() != plain.Edges() {
			t.Errorf("seed %d: %d with equal weights, want %d", seed, got, 7*copies)
		}
		r := rand.New(rand.NewPCG(seed, 71))
		for e := range weight {
			weight[e] = 1 + r.Int64N(1000)
		}
		want := allPairsJoin(t, seed, g, depot, weight)
		got := netOf(g).AugmentWeighted(depot, weight, never)
		if got != want {
			t.Errorf("seed %d: weight %d, want %d", seed, got, want)
		}
		calls := 0
		for _, patience := range []int{0, 100, 400, 700} {
			calls = 0
			n := netOf(g)
			bound := n.AugmentWeighted(depot, weight, func() bool { calls++; return calls > patience })
			sum := int64(0)
			for e := len(weight); e < n.Edges(); e++ {
				x, _ := g.Ends(g.Link(int(n.Label[2*e])))
				for old := range weight {
					if y, _ := g.Ends(old); x == y {
						sum += weight[old]
					}
				}
			}
			odd := 0
			for v := range int32(n.Nodes) {
				if len(n.Out(v))%2 == 1 && !depot[v] {
					odd++
				}
			}
			if bound > want || sum < want || odd > 0 {
				t.Errorf("seed %d, stopped after %d: bound %d, optimum %d, found %d, %d nodes are odd", seed, patience, bound, want, sum, odd)
			}
		}
	}
}

func allPairsJoin(t *testing.T, seed uint64, g *topo.Graph, depot []bool, weight []int64) (sum int64) {
	n := netOf(g)
	j := &weightedJoiner{joiner: joiner{Net: n, depot: depot, copied: make([]bool, n.Edges()), gone: make([]bool, n.Edges()), odd: make([]bool, n.Nodes)}, weight: weight}
	for v := range int32(n.Nodes) {
		j.odd[v] = len(n.Out(v))%2 == 1 && !depot[v]
	}
	j.toDepots()
	j.far, j.via = make([]int64, n.Nodes), make([]int32, n.Nodes)
	for v := range j.far {
		j.far[v] = -1
	}
	var all []int32
	place := map[int32]int32{}
	for v, odd := range j.odd {
		if odd {
			place[int32(v)] = int32(len(all))
			all = append(all, int32(v))
			sum += j.home[v]
		}
	}
	var pairs []opt.Pair
	for k, v := range all {
		j.search(v, -1, func(u int32) bool {
			if w := j.home[u] + j.home[v] - j.far[u]; j.odd[u] && place[u] > int32(k) && w > 0 {
				pairs = append(pairs, opt.Pair{U: int32(k), V: place[u], Weight: w})
			}
			return false
		}, -1)
	}
	return sum - matched(len(all), pairs)
}
