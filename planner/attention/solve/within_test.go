package solve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
)

// bruteWithin is the least cost of the choices with at most so many changes. If the fewest possible changes are more,
// these are allowed. It returns their number too.
func bruteWithin(p *attention.Problem, limit int) (least float64, fewest int) {
	on := make([]map[string]bool, len(p.Probes))
	for k, t := range p.Probes {
		on[k] = map[string]bool{}
		for _, l := range t.Links {
			on[k][l] = true
		}
	}
	best := map[int]float64{} // by changes
	for set := range 1 << len(p.Probes) {
		cost, changes := 0.0, 0
		for k, t := range p.Probes {
			in := set>>k&1 == 1
			if in {
				cost += t.Cost
			}
			if in != slices.Contains(p.Detailed, t.ID) {
				changes++
				cost += p.SwitchCost
			}
		}
		if b, ok := best[changes]; ok && b <= cost {
			continue
		}
		if !slices.ContainsFunc(p.Suspicious, func(l string) bool {
			may := false
			for k := range p.Probes {
				if on[k][l] {
					may = true
					if set>>k&1 == 1 {
						return false
					}
				}
			}
			return may
		}) {
			best[changes] = cost
		}
	}
	fewest = len(p.Probes)
	for n := range best {
		fewest = min(fewest, n)
	}
	if limit < 0 {
		limit = len(p.Probes)
	}
	limit = max(limit, fewest)
	least = math.Inf(1)
	for n, c := range best {
		if n <= limit {
			least = min(least, c)
		}
	}
	return least, fewest
}

// TestChurnAgainstBruteForce limits the changes after an earlier plan, of which some probes may be gone.
func TestChurnAgainstBruteForce(t *testing.T) {
	for seed := range uint64(testkit.Rounds(300, 900)) {
		rng := rand.New(rand.NewPCG(seed, 6))
		p := random(rng, int(seed%4))
		if seed%3 == 0 {
			p.SwitchCost = float64(rng.IntN(8)) / 2
		}
		previous := &attention.Plan{Probes: []attention.DetailProbe{{ID: "gone"}}}
		for _, x := range p.Probes {
			if rng.IntN(2) == 0 {
				previous.Probes = append(previous.Probes, attention.DetailProbe{ID: x.ID})
			}
		}
		now, k := p.After(previous), rng.IntN(7)-1
		want, forced := bruteWithin(now, k)
		for _, stopped := range []bool{false, true} {
			o := Options{Previous: previous, Churn: k, Partial: true}
			if stopped {
				left := rng.IntN(4)
				o.Stop = func() bool { left--; return left < 0 }
			}
			plan, err := Plan(p, o)
			if err == nil {
				err = attention.Check(now, plan)
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			s := plan.Stats
			if s.LowerBound > want+1e-9 || !stopped && (!s.Optimal || math.Abs(s.Objective-want) > 1e-9 || plan.Churn.Forced != forced) {
				t.Fatalf("seed %d, stopped %v: cost %v, bound %v with %d changes, %d forced; least is %v with %d forced of %d",
					seed, stopped, s.Objective, s.LowerBound, s.Changes, plan.Churn.Forced, want, forced, k)
			}
			if fewer, _ := bruteWithin(now, s.Changes-1); !stopped && s.Changes > forced && fewer <= s.Objective+1e-9 {
				t.Fatalf("seed %d: %d changes, and fewer cost %v as well", seed, s.Changes, s.Objective)
			}
			if s.Optimal && s.Objective > want+1e-9 {
				t.Fatalf("seed %d: optimal at %v, least is %v", seed, s.Objective, want)
			}
			simulate(t, now, previous, plan)
		}
	}
}

// simulate applies the steps of a transition one by one: links in detail in both plans stay in detail.
func simulate(t *testing.T, p *attention.Problem, previous, plan *attention.Plan) {
	t.Helper()
	links := map[string][]string{}
	for _, x := range p.Probes {
		links[x.ID] = x.Links
	}
	covered := func(on map[string]bool) map[string]bool {
		set := map[string]bool{}
		for id := range on {
			for _, l := range links[id] {
				if slices.Contains(p.Suspicious, l) {
					set[l] = true
				}
			}
		}
		return set
	}
	on, end := map[string]bool{}, map[string]bool{}
	for _, d := range previous.Probes {
		on[d.ID] = true
	}
	for _, d := range plan.Probes {
		end[d.ID] = true
	}
	before, after := covered(on), covered(end)
	for _, s := range plan.Transition.Steps {
		switch {
		case s.Op == planner.OpAdd && !on[s.ID]:
			on[s.ID] = true
		case s.Op == planner.OpRemove && on[s.ID]:
			delete(on, s.ID)
		default:
			t.Fatalf("step %+v", s)
		}
		now := covered(on)
		for l := range before {
			if after[l] && !now[l] {
				t.Fatalf("link %s is not looked at after step %+v", l, s)
			}
		}
	}
	if fmt.Sprint(on) != fmt.Sprint(end) {
		t.Fatalf("the steps end with %v, the plan is %v", on, end)
	}
}

// TestLeftOut: links on no probe are left out, by weight, and all else is optimal.
func TestLeftOut(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := random(rng, int(seed%4))
		served := slices.Clone(p.Suspicious)
		want := 0.0
		p.Weights = map[string]float64{}
		for k := range 1 + rng.IntN(3) {
			name, w := fmt.Sprint("nowhere", k), float64(rng.IntN(5))
			p.Suspicious = append(p.Suspicious, name, name)
			if want++; w > 0 {
				p.Weights[name] = w
				want += w - 1
			}
		}
		on := map[string]bool{}
		for _, x := range p.Probes {
			for _, l := range x.Links {
				on[l] = true
			}
		}
		for _, l := range served {
			if !on[l] {
				want++
			}
		}
		whole := *p
		whole.Weights = nil
		whole.Suspicious = slices.DeleteFunc(slices.Clone(p.Suspicious), func(l string) bool { return !on[l] })
		plan := planned(t, p, Options{Partial: true})
		if s := plan.Stats; s.LeftOut != want || s.LeftOutBound != want || !s.Optimal || math.Abs(s.Objective-brute(&whole)) > 1e-9 {
			t.Fatalf("seed %d: %+v, want %v left out and cost %v", seed, s, want, brute(&whole))
		}
		plan.Stats.LeftOut++
		if attention.Check(p, plan) == nil {
			t.Fatalf("seed %d: a wrong weight passes", seed)
		}
	}
}
