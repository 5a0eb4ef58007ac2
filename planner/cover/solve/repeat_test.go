package solve

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/planner/cover"
)

// The same problem and seed give the same plan, and another seed gives another one where there are several as good.
func TestRepeat(t *testing.T) {
	differ := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 25))
		g := randomGraph(t, r, 40, 120)
		p := &cover.Problem{Graph: g, Directed: seed%4 == 0, Redundant: seed%4 == 1, MaxPort: r.IntN(9)}
		if seed%3 == 0 {
			p.MaxHops = 2 + r.IntN(9)
		}
		if seed%5 == 0 {
			p.Depots, _ = randomDepots(r, g)
		}
		o := Options{Balanced: true, Partial: true, Seed: seed}
		first, second := checked(t, seed, p, o), checked(t, seed, p, o)
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("seed %d: two plans of one problem", seed)
		}
		o.Seed += 1000
		other := checked(t, seed, p, o)
		if !reflect.DeepEqual(first.Probes, other.Probes) || !reflect.DeepEqual(first.Second, other.Second) {
			differ++
		}
	}
	if differ < 20 {
		t.Errorf("the seed made a difference to %d of 150 plans only", differ)
	}
}
