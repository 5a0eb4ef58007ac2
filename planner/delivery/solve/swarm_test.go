package solve

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/topo"
)

// The fitness of links is the number of paths that they add. Links of different points add different paths, so that the
// best fitness is the sum of the best of each point. The swarms come near it on networks of the size of the paper's.
func TestSwarmFitness(t *testing.T) {
	for _, genetic := range []bool{false, true} {
		reached, best := 0., 0.
		for seed := range uint64(12) {
			g, err := topo.Random(40, 50, seed)
			if err != nil {
				t.Fatal(err)
			}
			m := newModel(delivery.Generate(g, seed), opt.Never(nil))
			b := &linker{m: m, rng: rand.New(rand.NewPCG(seed, 7)), stop: m.stop}
			for _, l := range b.swarm(genetic) {
				reached += float64(len(m.by(l)))
				most := 0
				for _, other := range b.candidates(l.point) {
					most = max(most, len(m.by(other)))
				}
				best += float64(most)
			}
		}
		if best == 0 || reached < 0.95*best {
			t.Errorf("genetic %v: links add %g paths, and %g at best", genetic, reached, best)
		}
		t.Logf("genetic %v: %.1f %% of the best fitness", genetic, 100*reached/best)
	}
}
