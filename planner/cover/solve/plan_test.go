package solve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
)

// randomGraph is a multigraph of up to n nodes: parallel links, links from a node to itself, isolated nodes, several
// components.
func randomGraph(t *testing.T, r *rand.Rand, n, m int) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder("test")
	n = 1 + r.IntN(n)
	for i := range n {
		b.AddNode(fmt.Sprintf("n%d", i), topo.NoTier)
	}
	for range 1 + r.IntN(m) {
		b.AddLink(topo.LinkEnd{Node: r.IntN(n)}, topo.LinkEnd{Node: r.IntN(n)})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func generated(t testing.TB, spec string) *topo.Graph {
	t.Helper()
	g, err := topo.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// checked plans and checks.
func checked(t testing.TB, seed uint64, p *cover.Problem, o Options) *cover.Plan {
	t.Helper()
	plan, err := Plan(p, o)
	if err != nil {
		t.Fatalf("seed %d, %+v: %v", seed, o, err)
	}
	if err := cover.Check(p, plan); err != nil {
		t.Fatalf("seed %d, %s on %d nodes, directed %v, hops %d, depots %v: %v", seed, plan.Algorithm, p.Graph.NumNodes(), p.Directed, p.MaxHops, p.Depots, err)
	}
	return plan
}

// fewest is the smallest number of trails, computed from degrees and components as the graph gives them.
func fewest(g *topo.Graph) int {
	of, count := g.Components()
	odd, links := make([]int, count), make([]int, count)
	for v := range g.NumNodes() {
		odd[of[v]] += g.Degree(v) % 2
		links[of[v]] += g.Degree(v)
	}
	sum := 0
	for c := range odd {
		if links[c] > 0 {
			sum += max(1, odd[c]/2)
		}
	}
	return sum
}

func TestUndirectedCover(t *testing.T) {
	for seed := range uint64(testkit.Rounds(1000, 3000)) {
		r := rand.New(rand.NewPCG(seed, 4))
		g := randomGraph(t, r, 30, 90)
		p := &cover.Problem{Graph: g}
		want := fewest(g)
		plain := checked(t, seed, p, Options{})
		if !plain.Stats.Optimal || plain.Stats.Probes != want {
			t.Fatalf("seed %d: %d probes, optimal %v, want %d", seed, plain.Stats.Probes, plain.Stats.Optimal, want)
		}
		even := checked(t, seed, p, Options{Balanced: true})
		if even.Stats.Probes != want {
			t.Fatalf("seed %d: %d probes balanced, want %d", seed, even.Stats.Probes, want)
		}
		for _, m := range []Method{Paper, PaperBalanced, IntBalance} {
			if paper := checked(t, seed, p, Options{Method: m, Seed: seed}); paper.Stats.Probes != want {
				t.Fatalf("seed %d: %s has %d probes, want %d", seed, m, paper.Stats.Probes, want)
			}
		}
		if dfs := checked(t, seed, p, Options{Method: DFS}); dfs.Stats.Probes < want {
			t.Fatalf("seed %d: dfs has %d probes, fewer than %d", seed, dfs.Stats.Probes, want)
		}
	}
}

// Between leaves of a fabric all lengths are even, and stay so.
func TestEvenLengths(t *testing.T) {
	g := generated(t, "leaf-spine:3,9")
	plan := checked(t, 0, &cover.Problem{Graph: g, Depots: []int{3, 4, 5, 6, 7, 8}}, Options{})
	if s := plan.Stats; s.Shortest%2 != 0 || s.Longest%2 != 0 || s.Longest-s.Shortest > 2 {
		t.Errorf("lengths from %d to %d, want even ones that differ by at most 2", s.Shortest, s.Longest)
	}
}

func TestDirectedCover(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 6))
		g := randomGraph(t, r, 20, 60)
		p := &cover.Problem{Graph: g, Directed: true}
		links, count := map[int32]bool{}, 0
		of, _ := g.Components()
		for l := range g.NumLinks() {
			x, _ := g.Ends(l)
			if c := of[g.Node(x)]; !links[c] {
				links[c] = true
				count++
			}
		}
		plan := checked(t, seed, p, Options{Balanced: seed%2 == 0})
		if plan.Stats.Probes != count || !plan.Stats.Optimal || plan.Stats.Links != 2*g.NumLinks() {
			t.Fatalf("seed %d: %d probes of %d directions, want %d of %d", seed, plan.Stats.Probes, plan.Stats.Links, count, 2*g.NumLinks())
		}
		// Ports that cannot be addressed take directions away, and the rest is no longer balanced.
		p.MaxPort = 1 + r.IntN(6)
		o := Options{Balanced: true, Partial: true}
		plan = checked(t, seed, p, o)
		if !plan.Stats.Optimal {
			t.Fatalf("seed %d: %v probes, bound %v", seed, plan.Stats.Objective, plan.Stats.LowerBound)
		}
		if missed := 2*g.NumLinks() - plan.Stats.Links; missed != len(plan.NotProbed) {
			t.Fatalf("seed %d: %d directions are not probed, %d are named", seed, missed, len(plan.NotProbed))
		}
	}
}

func TestMaxHops(t *testing.T) {
	over, total := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := &cover.Problem{Graph: randomGraph(t, r, 30, 150), Directed: seed%3 == 0, MaxHops: 1 + r.IntN(20)}
		plan := checked(t, seed, p, Options{})
		over += int(plan.Stats.Objective - plan.Stats.LowerBound)
		total += int(plan.Stats.LowerBound)
		if m := checked(t, seed, &cover.Problem{Graph: p.Graph, MaxHops: p.MaxHops}, Options{Method: DFS}); m.Stats.Longest > p.MaxHops {
			t.Fatalf("seed %d: %d hops", seed, m.Stats.Longest)
		}
	}
	t.Logf("%d probes above the bound of %d", over, total)
	if 50*over > total {
		t.Errorf("%d probes above the bound of %d, want less than one in 50", over, total)
	}
}

// joinOracle is the least number of second traversals, by trying all sets of links.
func joinOracle(g *topo.Graph, depot []bool) int {
	best := g.NumLinks() + 1
	for set := range 1 << g.NumLinks() {
		size := 0
		odd := make([]bool, g.NumNodes())
		for l := range g.NumLinks() {
			x, y := g.Ends(l)
			times := 1
			if set>>l&1 == 1 {
				size++
				times = 2
			}
			for range times {
				odd[g.Node(x)] = !odd[g.Node(x)]
				odd[g.Node(y)] = !odd[g.Node(y)]
			}
		}
		ok := size < best
		for v := range odd {
			ok = ok && (depot[v] || !odd[v])
		}
		if ok {
			best = size
		}
	}
	return best
}

func TestDepots(t *testing.T) {
	for seed := range uint64(2500) {
		r := rand.New(rand.NewPCG(seed, 8))
		g := randomGraph(t, r, 9, 12)
		depots, depot := randomDepots(r, g)
		p := &cover.Problem{Graph: g, Depots: depots}
		of, _ := g.Components()
		connected := true
		for l := range g.NumLinks() {
			x, _ := g.Ends(l)
			connected = connected && slices.ContainsFunc(depots, func(d int) bool { return of[d] == of[g.Node(x)] })
		}
		if !connected {
			if _, err := Plan(p, Options{}); !errors.Is(err, ErrUncoverable) {
				t.Fatalf("seed %d: %v, want %v", seed, err, ErrUncoverable)
			}
			if plan := checked(t, seed, p, Options{Partial: true}); !plan.Partial {
				t.Fatalf("seed %d: the plan is not called partial", seed)
			}
			continue
		}
		plan := checked(t, seed, p, Options{})
		if want := joinOracle(g, depot); plan.Stats.Duplicated != want || !plan.Stats.Optimal {
			t.Fatalf("seed %d: %d second traversals, optimal %v, want %d", seed, plan.Stats.Duplicated, plan.Stats.Optimal, want)
		}
		more := append(slices.Clone(depots), 0)
		if slices.Contains(depots, 0) {
			continue
		}
		if plan2 := checked(t, seed, &cover.Problem{Graph: g, Depots: more}, Options{}); plan2.Stats.Duplicated > plan.Stats.Duplicated {
			t.Fatalf("seed %d: a further depot takes %d second traversals instead of %d", seed, plan2.Stats.Duplicated, plan.Stats.Duplicated)
		}
	}
}

func randomDepots(r *rand.Rand, g *topo.Graph) (depots []int, depot []bool) {
	depot = make([]bool, g.NumNodes())
	for v := range depot {
		if r.IntN(3) == 0 {
			depot[v] = true
			depots = append(depots, v)
		}
	}
	if depots == nil {
		depots, depot[0] = []int{0}, true
	}
	return depots, depot
}

func TestDepotsEverywhere(t *testing.T) {
	g := generated(t, "random:60,150,3")
	all := make([]int, g.NumNodes())
	for v := range all {
		all[v] = v
	}
	plan := checked(t, 3, &cover.Problem{Graph: g, Depots: all}, Options{})
	if plan.Stats.Duplicated != 0 || plan.Stats.Probes != fewest(g) {
		t.Errorf("%d second traversals, %d probes, want 0 and %d", plan.Stats.Duplicated, plan.Stats.Probes, fewest(g))
	}
}

func TestDepotsMaxHopsAndDirections(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 9))
		g := randomGraph(t, r, 20, 60)
		depots, _ := randomDepots(r, g)
		p := &cover.Problem{Graph: g, Depots: depots, MaxHops: r.IntN(12), Directed: seed%2 == 0}
		if seed%3 == 0 {
			p.MaxPort = 1 + r.IntN(8)
		}
		plan := checked(t, seed, p, Options{Partial: true})
		if p.Directed && p.MaxHops == 0 && p.MaxPort == 0 && plan.Stats.Duplicated != 0 {
			t.Fatalf("seed %d: %d second traversals of directions that balance", seed, plan.Stats.Duplicated)
		}
	}
}

// INT-path, section on the evaluation of fabrics, with the closed forms of their degrees.
func TestFabrics(t *testing.T) {
	for k := 2; k <= 14; k += 2 {
		want := 1
		if k/2%2 == 1 {
			want = max(1, k*k/4)
		}
		plan := checked(t, 0, &cover.Problem{Graph: generated(t, fmt.Sprintf("fat-tree:%d", k))}, Options{Balanced: true})
		if plan.Stats.Probes != want || plan.Stats.Longest-plan.Stats.Shortest > 4 {
			t.Errorf("fat-tree:%d: %d probes of %d to %d, want %d", k, plan.Stats.Probes, plan.Stats.Shortest, plan.Stats.Longest, want)
		}
	}
	for s := 1; s < 8; s++ {
		for l := 1; l < 12; l++ {
			odd := 0
			if s%2 == 1 {
				odd += l
			}
			if l%2 == 1 {
				odd += s
			}
			plan := checked(t, 0, &cover.Problem{Graph: generated(t, fmt.Sprintf("leaf-spine:%d,%d", s, l))}, Options{Balanced: true})
			if plan.Stats.Probes != max(1, odd/2) {
				t.Errorf("leaf-spine:%d,%d: %d probes, want %d", s, l, plan.Stats.Probes, max(1, odd/2))
			}
		}
	}
}

// INT-path, the graph of the depth-first example.
func TestPaperExample(t *testing.T) {
	b := topo.NewBuilder("example")
	for v := range 5 {
		b.AddNode(fmt.Sprint(v), topo.NoTier)
	}
	for _, l := range [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {4, 2}} {
		b.AddLink(topo.LinkEnd{Node: l[0]}, topo.LinkEnd{Node: l[1]})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan := checked(t, 0, &cover.Problem{Graph: g}, Options{Method: DFS})
	var got []string
	for _, p := range plan.Probes {
		got = append(got, strings.Join(p.Nodes, " "))
	}
	if want := []string{"0 1 2 3 1", "3 4 2"}; !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
}

func TestErrors(t *testing.T) {
	g := generated(t, "leaf-spine:2,3")
	for _, c := range []struct {
		name string
		p    cover.Problem
		o    Options
		want string
	}{
		{"method", cover.Problem{}, Options{Method: "best"}, `there is no method "best"`},
		{"method for directed", cover.Problem{Directed: true}, Options{Method: DFS}, "dfs plans undirected covers"},
		{"depot", cover.Problem{Depots: []int{7}}, Options{}, "depot 7 is none of the 5 nodes"},
		{"depot twice", cover.Problem{Depots: []int{1, 1}}, Options{}, `depot "spine-1" is given twice`},
		{"no depot", cover.Problem{Depots: []int{}}, Options{}, "no node may send"},
		{"hops", cover.Problem{MaxHops: -1}, Options{}, "must not be negative"},
		{"skip", cover.Problem{Skip: make([]bool, 2)}, Options{}, "2 links, the topology has 6"},
		{"port", cover.Problem{MaxPort: 2}, Options{}, "link leaf-2:1--spine-0:3 cannot be covered: port 3 of spine-0 cannot be addressed: the highest is 2; a partial plan would leave it and 1 more out"},
		{"too far", cover.Problem{MaxHops: 2, Depots: []int{2}}, Options{}, "no probe of 2 hops from depot to depot passes it"},
		{"no nodes", cover.Problem{Graph: new(topo.Graph)}, Options{}, "no nodes"},
		{"redundant", cover.Problem{Redundant: true, Directed: true}, Options{}, "which a directed cover takes both of"},
	} {
		if c.p.Graph == nil {
			c.p.Graph = g
		}
		if _, err := Plan(&c.p, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
}

// Lattices have few cuts: trails meet two by two.
func TestGrids(t *testing.T) {
	for _, c := range []struct {
		spec   string
		spread int
	}{{"grid:100,100", 4}, {"grid:50,50", 4}, {"grid:30,31", 4}, {"grid:7,8", 4}, {"torus:9,30", 0}} {
		plan := checked(t, 0, &cover.Problem{Graph: generated(t, c.spec)}, Options{Balanced: true})
		if s := plan.Stats; s.Longest-s.Shortest > c.spread || !s.Optimal {
			t.Errorf("%s: lengths from %d to %d, want at most %d between them", c.spec, s.Shortest, s.Longest, c.spread)
		}
	}
	plan := checked(t, 0, &cover.Problem{Graph: generated(t, "grid:50,50"), MaxHops: 16}, Options{})
	if s := plan.Stats; s.Objective > 1.01*s.LowerBound {
		t.Errorf("%v probes of at most 16 links, more than a hundredth above %v", s.Objective, s.LowerBound)
	}
}

// INT-path, section III-C: the graph of the example of its Euler plan, whose two paths end at the four odd nodes.
func TestPaperExtraction(t *testing.T) {
	b := topo.NewBuilder("example")
	for v := range 7 {
		b.AddNode(fmt.Sprint(v+1), topo.NoTier)
	}
	for _, l := range [][2]int{{1, 4}, {4, 3}, {1, 2}, {2, 3}, {3, 1}, {5, 4}, {4, 6}, {6, 5}, {5, 7}, {7, 6}} {
		b.AddLink(topo.LinkEnd{Node: l[0] - 1}, topo.LinkEnd{Node: l[1] - 1})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Method{Paper, PaperBalanced} {
		plan := checked(t, 0, &cover.Problem{Graph: g}, Options{Method: m})
		var ends []string
		for _, p := range plan.Probes {
			ends = append(ends, p.Agent, p.Collector)
		}
		slices.Sort(ends)
		if want := []string{"1", "3", "5", "6"}; !slices.Equal(ends, want) || plan.Stats.Traversals != 10 {
			t.Errorf("%s: ends %v, want %v; %d traversals of 10 links", m, ends, want, plan.Stats.Traversals)
		}
	}
}
