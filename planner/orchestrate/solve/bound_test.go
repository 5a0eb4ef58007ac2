package solve

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// TestBounder compares bounds with optima, at every step on the way to them.
func TestBounder(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	met, problems := 0, 0
	for n := range testkit.Rounds(600, 3000) {
		in := tiny(r)
		want, _ := brute(in)
		if want < 0 {
			continue
		}
		p := newProblem(in)
		b := newBounder(p, in.Split)
		rnd := opt.SplitMix(n)
		var start pack
		if s := newSearch(p, &rnd); !in.Split {
			s.start(p.concentrateHeuristic())
			s.save(&start)
		}
		b.offerPack(&start)
		for !b.done {
			b.run(1, math.MaxInt64, func() bool { return false })
			if b.bound > want {
				t.Fatalf("seed %d, problem %d: bound %d in round %d, optimum %d: %+v", seed, n, b.bound, b.rounds, want, in)
			}
		}
		problems++
		if b.bound == want {
			met++
		}
	}
	t.Logf("the bound is the optimum in %d of %d problems", met, problems)
	if met*10 < problems*9 {
		t.Errorf("seed %d: the bound is the optimum in %d of %d problems only", seed, met, problems)
	}
}

// TestBounderRing has a known bound. Each of 2n interfaces of a ring is passed by two flows, and each flow passes two.
// So n flows are needed, and fractions of flows do no better than halves.
func TestBounderRing(t *testing.T) {
	const n = 15
	p := &orchestrate.Problem{Objective: orchestrate.Concentrate}
	for i := range 2*n + 1 {
		p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: string(rune('A' + i)), Demand: 1})
		p.Flows = append(p.Flows, orchestrate.Flow{ID: string(rune('A' + i)), Capacity: 2, Interfaces: []int32{int32(i), int32((i + 1) % (2*n + 1))}})
	}
	plan, err := Plan(p, Options{Stop: after(10000)})
	if err != nil {
		t.Fatal(err)
	}
	// n and a half flows by the linear programme, rounded up.
	if s := plan.Stats; s.Objective != n+1 || !s.Optimal {
		t.Errorf("%v flows, bound %v, want %d", s.Objective, s.LowerBound, n+1)
	}
}

// TestLevel compares the level of transports with splitting by brute force.
func TestLevel(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range testkit.Rounds(600, 3000) {
		in := tiny(r)
		for !in.Split {
			in = tiny(r)
		}
		_, want := brute(in)
		p := newProblem(in)
		got, _, short, _ := p.level(1, false, func() bool { return false })
		if want < 0 != (len(short) > 0) || want >= 0 && got != want {
			t.Fatalf("seed %d, problem %d: level %d, short %v, want %d: %+v", seed, n, got, short, want, in)
		}
	}
}
