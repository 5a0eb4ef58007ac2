package topo

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// allPaths lists the costs of all paths from a to b without repeated nodes.
func allPaths(g *Graph, a, b int) (costs []int64) {
	seen := make([]bool, g.NumNodes())
	var walk func(v int, cost int64)
	walk = func(v int, cost int64) {
		if v == b {
			costs = append(costs, cost)
			return
		}
		seen[v] = true
		lo, hi := g.Interfaces(v)
		for i := lo; i < hi; i++ {
			if w := g.Neighbor(i); w >= 0 && !seen[w] {
				walk(w, cost+int64(g.Attr(i).Weight))
			}
		}
		seen[v] = false
	}
	walk(a, 0)
	slices.Sort(costs)
	return costs
}

func TestKShortestPaths(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(5)
		b := NewBuilder("test")
		for i := range n {
			b.AddNode(string(rune('a'+i)), NoTier)
		}
		for range r.IntN(11) {
			at := func() LinkEnd { return LinkEnd{Node: r.IntN(n), Attr: Attr{Weight: 1 + r.Uint32N(4)}} }
			b.AddLink(at(), at())
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		want := allPaths(g, 0, n-1)
		for _, k := range []int{1, 3, len(want) + 5} {
			paths := g.KShortestPaths(0, n-1, k)
			if len(paths) != min(k, len(want)) {
				t.Fatalf("seed %d: %d paths, want %d of %d", seed, len(paths), k, len(want))
			}
			for i, p := range paths {
				if p.Cost != want[i] {
					t.Fatalf("seed %d: path %d costs %d, want %d", seed, i, p.Cost, want[i])
				}
				at, cost := 0, int64(0)
				for _, i := range p.Interfaces {
					if g.Node(int(i)) != at {
						t.Fatalf("seed %d: path %v leaves where it is not", seed, p)
					}
					at, cost = g.Neighbor(int(i)), cost+int64(g.Attr(int(i)).Weight)
				}
				if at != n-1 || cost != p.Cost {
					t.Fatalf("seed %d: path %v ends at %d and costs %d", seed, p, at, cost)
				}
				for _, q := range paths[:i] {
					if slices.Equal(p.Interfaces, q.Interfaces) {
						t.Fatalf("seed %d: path %v twice", seed, p)
					}
				}
			}
		}
	}
}

func TestDiameter(t *testing.T) {
	for spec, want := range map[string]int{"fat-tree:4": 4, "leaf-spine:2,3": 2, "random:1,0,1": 0} {
		g, err := Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Diameter(); got != want {
			t.Errorf("%s: diameter %d, want %d", spec, got, want)
		}
	}
}
