package solve

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/attention"
)

// severalCovers makes a problem of probes that pass every link once in each of several covers, 5 to 25 links a probe.
func severalCovers(seed uint64, covers, links, percent int) *attention.Problem {
	rng := rand.New(rand.NewPCG(seed, uint64(covers)))
	p := new(attention.Problem)
	for c := range covers {
		order := rng.Perm(links)
		for len(order) > 0 {
			n := min(5+rng.IntN(21), len(order))
			t := attention.Trace{ID: fmt.Sprintf("%d/%d", c, len(p.Probes)), Cost: float64(n)}
			for _, l := range order[:n] {
				t.Links = append(t.Links, fmt.Sprint("l", l))
			}
			order = order[n:]
			p.Probes = append(p.Probes, t)
		}
	}
	for _, l := range rng.Perm(links)[:links*percent/100] {
		p.Suspicious = append(p.Suspicious, fmt.Sprint("l", l))
	}
	return p
}

// planned is a plan that holds.
func planned(t *testing.T, p *attention.Problem, o Options) *attention.Plan {
	t.Helper()
	plan, err := Plan(p, o)
	if err == nil {
		err = attention.Check(p, plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestSeveralCovers: with three and four covers no row has two columns. The least costs are those that HiGHS proved.
func TestSeveralCovers(t *testing.T) {
	for _, tt := range severalCoversLeast {
		p := severalCovers(tt.seed, tt.covers, tt.links, tt.percent)
		s := planned(t, p, Options{}).Stats
		if s.Objective != tt.least || !s.Optimal {
			t.Errorf("%+v: cost %v, bound %v, optimal %v", tt, s.Objective, s.LowerBound, s.Optimal)
		}
	}
}

var severalCoversLeast = []struct {
	seed                   uint64
	covers, links, percent int
	least                  float64
}{
	{1, 3, 400, 10, 275}, {2, 3, 400, 20, 350}, {3, 3, 400, 30, 381}, {4, 4, 400, 10, 215}, {5, 4, 400, 20, 347},
	{1, 3, 2000, 3, 524}, {1, 3, 2000, 10, 1219}, {2, 3, 2000, 10, 1263}, {1, 4, 2000, 3, 521},
}

// TestNeverAboveGreedy: whenever the search ends, its cost is at most that of a greedy choice, and its bound is valid.
func TestNeverAboveGreedy(t *testing.T) {
	for seed := range uint64(30) {
		p := severalCovers(seed, 2+int(seed%3), 300, 10+int(seed%20))
		best := planned(t, p, Options{}).Stats
		greedy := min(planned(t, p, Options{Method: Greedy}).Stats.Objective, planned(t, p, Options{Method: GreedyLinks}).Stats.Objective)
		for _, n := range []int{0, 1, 2, 3, 5, 9, 20, 50} {
			left := n
			s := planned(t, p, Options{Stop: func() bool { left--; return left < 0 }}).Stats
			if s.Objective > greedy || s.LowerBound > best.Objective || s.Objective < best.Objective {
				t.Fatalf("seed %d, %d looks at the clock: cost %v, bound %v; greedy %v, least %v", seed, n, s.Objective, s.LowerBound, greedy, best.Objective)
			}
		}
	}
}
