package plan_test

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/cmd/internal/plan"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/planner/topo"
)

// Where routing goes by weights, paths are lightest ones, which need not be those of the fewest switches, and all equally light
// ones are drawn.
func TestPathByWeight(t *testing.T) {
	// A ring of six: over the heavy link it would be one hop.
	b := topo.NewBuilder("ring")
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		b.AddNode(name, topo.NoTier)
	}
	for v := range 6 {
		attr := topo.Attr{Weight: 2}
		if v == 5 {
			attr.Weight = 100
		}
		b.AddLink(topo.LinkEnd{Node: v, Attr: attr}, topo.LinkEnd{Node: (v + 1) % 6, Attr: attr})
	}
	b.AddLink(topo.LinkEnd{Node: 0, Attr: topo.Attr{Weight: 4}}, topo.LinkEnd{Node: 2, Attr: topo.Attr{Weight: 5}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	tracer := plan.NewTracer(g, prior.Weights, 1, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	shortcuts := 0
	for range 200 {
		for hops := 1; hops <= 6; hops++ {
			path, err := tracer.Path(rng, hops, nil)
			if err != nil || len(path) != hops {
				t.Fatalf("Path of %d switches = %v, %v", hops, path, err)
			}
			tree, sum := g.ShortestPaths(nil, int(path[hops-1]), nil), int64(0)
			for k := 1; k < hops; k++ {
				sum += int64(g.Attr(g.Between(int(path[k-1]), int(path[k]))).Weight)
				if path[k-1] == 0 && path[k] == 2 {
					shortcuts++
				}
			}
			if want := tree.Distance(int(path[0])); sum != want {
				t.Fatalf("path %v weighs %d, the lightest %d", path, sum, want)
			}
		}
	}
	if shortcuts == 0 {
		t.Error("of two equally light paths one is never drawn")
	}
	if _, err := tracer.Path(rng, 7, nil); err == nil {
		t.Error("a path of seven switches through six")
	}
}
