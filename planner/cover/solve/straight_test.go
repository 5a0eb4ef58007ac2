package solve

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/rounds"
	"github.com/hopscope/hopscope/planner/cover"
)

// Straight trails are a cover with as few trails as there can be, whatever the net.
func TestStraight(t *testing.T) {
	for seed := range uint64(rounds.Of(600, 3000)) {
		r := rand.New(rand.NewPCG(seed, 20))
		n := newNet(&cover.Problem{Graph: randomGraph(t, r, 25, 90), Directed: seed%2 == 1}, func(int) bool { return r.IntN(6) > 0 })
		checkTrails(t, seed, n, n.straight())
	}
	n := newNet(&cover.Problem{Graph: generated(t, "grid:5,7")}, nil)
	var lengths []int
	for _, trail := range n.straight() {
		lengths = append(lengths, len(trail))
	}
	slices.Sort(lengths) // four columns, two rows and a third with the ring around
	if want := []int{4, 4, 4, 4, 6, 6, 6, 4 + 20}; !slices.Equal(lengths, want) {
		t.Errorf("lengths on a grid %v, want %v", lengths, want)
	}
}

// checkTrails says in what trails do not walk every edge of n once, or are more than the fewest.
func checkTrails(t *testing.T, seed uint64, n *net, trails [][]int32) {
	t.Helper()
	used := make([]bool, n.edges())
	for k, trail := range trails {
		for i, h := range trail {
			if used[h>>1] || !n.walkable(h) || i > 0 && n.head(trail[i-1]) != n.node[h] {
				t.Fatalf("seed %d: trail %d does not hold at %d", seed, k, i)
			}
			used[h>>1] = true
		}
	}
	if slices.Contains(used, false) {
		t.Fatalf("seed %d: an edge is left out", seed)
	}
	if want := n.bound(0); len(trails) != want {
		t.Fatalf("seed %d: %d trails, want %d", seed, len(trails), want)
	}
}

// Random moves leave a cover what it is, and their own account of it right.
func TestAnneal(t *testing.T) {
	for seed := range uint64(rounds.Of(200, 600)) {
		r := rand.New(rand.NewPCG(seed, 21))
		n := newNet(&cover.Problem{Graph: randomGraph(t, r, 25, 120), Directed: seed%2 == 1}, nil)
		trails := n.euler(false)
		if len(trails) == 0 {
			continue
		}
		b := newBalancer(n, trails)
		a := newAnnealer(b)
		a.run(50*n.edges(), 20, 1, 0, never)
		checkTrails(t, seed, n, trails)
		parts := cut(trails, func(_, length int) int { return (length + 5) / 6 })
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
