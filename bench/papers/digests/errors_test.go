package digests

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/topo"
)

// Where the map is wrong, no path is without a mark, and flows that the error does not touch are published. A path is
// wrong once in a million times, so that three of 5400 are less likely than 10⁻⁷. Of some 60 touched flows with a
// true share of 99 %, fewer than 50 are published once in 10⁸ times.
func TestErrors(t *testing.T) {
	g, err := topo.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{ctx: t.Context(), o: Options{Seed: testkit.Seed(t), Runs: 300}, out: &Figure{}}
	for _, k := range knowledges[2:] {
		if err := b.errorTable(newNetwork("fat-tree k = 4", g), k, true); err != nil {
			t.Fatal(err)
		}
	}
	wrong := 0
	for _, table := range b.out.Tables {
		if len(table.Rows) != len(mapErrors) {
			t.Fatalf("%s: %d rows, want %d", table.Title, len(table.Rows), len(mapErrors))
		}
		for _, row := range table.Rows {
			wrong += row[3].(int)
			if right := row[6].(float64); right < 99 {
				t.Errorf("seed %d: %s: %v: %.1f %% of the flows without an error are reported, want nearly all", b.o.Seed, table.Title, row[0], right)
			}
			if reported, ok := row[8].(float64); ok && reported < 80 {
				t.Errorf("seed %d: %s: %v: %.1f %% of the flows with the error are reported, want 80 at least", b.o.Seed, table.Title, row[0], reported)
			}
		}
	}
	if wrong > 2 {
		t.Errorf("seed %d: %d wrong paths without a mark", b.o.Seed, wrong)
	}
}

// Lightest paths equal those by trying all of them.
func TestCheapest(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	g, err := topo.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	w := newErrorWorld(newNetwork("fat-tree k = 4", g))
	w.weighted(r)
	to := int32(r.IntN(w.nodes))
	best, next := w.cheapest(to)
	want := make([]float64, w.nodes) // Bellman-Ford
	for u := range want {
		want[u] = math.Inf(1)
	}
	want[to] = 0
	for range w.nodes {
		for u, list := range w.peers {
			for _, v := range list {
				want[u] = min(want[u], want[v]+w.cost[[2]int32{int32(u), v}])
			}
		}
	}
	for u := range want {
		if math.Abs(best[u]-want[u]) > 1e-9 {
			t.Errorf("seed %d: node %d is %.4f from node %d, want %.4f", seed, u, best[u], to, want[u])
		}
		if v := next[u]; int32(u) != to && math.Abs(best[u]-best[v]-w.cost[[2]int32{int32(u), v}]) > 1e-9 {
			t.Errorf("seed %d: node %d goes on to %d, which is not on a lightest path", seed, u, v)
		}
	}
}

// Bins hold what was stated and what came true.
func TestCalibration(t *testing.T) {
	var c calibration
	for i := range 1000 {
		c.add(0.99, i%100 != 0)
		c.add(1, true)
	}
	s := c.series("x")
	if len(s.X) != 1 || math.Abs(s.X[0]-0.01) > 1e-9 || math.Abs(s.Y[0]-0.01) > 1e-9 {
		t.Errorf("the points are %v, %v, want one at 0.01, 0.01", s.X, s.Y)
	}
}
