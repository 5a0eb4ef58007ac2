package solve_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
)

// TestReplan breaks a probe, adds one and changes periods. It checks the limit of changes of the new plan, and the
// claims of its transition.
func TestReplan(t *testing.T) {
	fewer, better := 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 11))
		p := random(rng, 6+rng.IntN(6), 8)
		old, err := solve.Plan(p, solve.Options{Seed: seed, Partial: true, Stop: calls(100)})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, churn := range []int{0, 1, 3, -1} {
			same, err := solve.Plan(p, solve.Options{Seed: seed + 1, Partial: true, Stop: calls(100), Previous: old, Churn: churn})
			if err != nil || same.Churn.Changed != 0 && (churn == 0 || old.Stats.Optimal) {
				t.Fatalf("seed %d: nothing is new, and with a churn of %d probes change: %+v, %v", seed, churn, same.Churn, err)
			}
		}
		if rng.IntN(2) == 0 {
			p.Probes = p.Probes[1:]
		}
		if rng.IntN(2) == 0 {
			p.Probes = append(p.Probes, schedule.Probe{ID: "new", Links: []string{"l1", "l2", "l3"}, Agent: "a0", Collector: "a1"})
		}
		if rng.IntN(2) == 0 {
			p.Links[rng.IntN(4)].Period = p.Links[rng.IntN(4)].Period
		}
		fresh, err := solve.Plan(p, solve.Options{Seed: seed, Partial: true, Stop: calls(100)})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		before := 0.0
		for _, churn := range []int{0, 1, 3, 100, -1} {
			plan, err := solve.Plan(p, solve.Options{Seed: seed, Partial: true, Stop: calls(100), Previous: old, Churn: churn})
			if err == nil {
				err = schedule.Check(p, plan)
			}
			if err != nil {
				t.Fatalf("seed %d: churn %d: %v", seed, churn, err)
			}
			s := plan.Stats
			if churn >= 0 && plan.Churn.Changed > max(churn, plan.Churn.Forced) {
				t.Errorf("seed %d: %d changes, where %d are allowed and %d have to be", seed, plan.Churn.Changed, churn, plan.Churn.Forced)
			}
			if s.LeftOut > fresh.Stats.LeftOut+1e-9 || s.LowerBound > fresh.Stats.Objective+1e-6 && s.LeftOut >= fresh.Stats.LeftOut {
				t.Errorf("seed %d: churn %d: %v left out, bound %v; a new plan has %v, %v", seed, churn, s.LeftOut, s.LowerBound, fresh.Stats.LeftOut, fresh.Stats.Objective)
			}
			if churn < 0 && planner.Near(s.LeftOut, fresh.Stats.LeftOut) && s.Objective > fresh.Stats.Objective && !planner.Near(s.Objective, fresh.Stats.Objective) {
				t.Errorf("seed %d: any changes: %v bytes/s, a new plan %v", seed, s.Objective, fresh.Stats.Objective)
			}
			if len(plan.Transition.Keep) > 0 && churn == 0 {
				fewer++
			}
			if churn == 0 {
				before = s.Objective
			} else if churn == 3 && s.Objective < before {
				better++
			}
			r, err := p.Resolve()
			if err != nil {
				t.Fatal(err)
			}
			from, _ := schedule.Elements(r, old)
			to, capacity := schedule.Elements(r, plan)
			if plan.Deadlock == "" {
				if err := planner.Simulate(from, to, plan.Transition.Steps, capacity); err != nil {
					t.Errorf("seed %d: churn %d: %v", seed, churn, err)
				}
			}
		}
	}
	if fewer < 30 || better < 5 {
		t.Errorf("%d plans keep something, %d are better with three changes", fewer, better)
	}
}

// TestReplanKeeps takes one of many probes away: all others stay in their slots.
func TestReplanKeeps(t *testing.T) {
	p := schedule.Defaults()
	for k := range 40 {
		link := fmt.Sprint("l", k/2) // two probes for every link
		p.Probes = append(p.Probes, schedule.Probe{ID: fmt.Sprint("p", k), Links: []string{link}, Agent: "a"})
	}
	old, err := solve.Plan(p, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gone := old.Probes[7].ID
	for k := range p.Probes {
		if p.Probes[k].ID == gone {
			p.Probes = append(p.Probes[:k:k], p.Probes[k+1:]...)
			break
		}
	}
	plan, err := solve.Plan(p, solve.Options{Previous: old, Churn: 1})
	if err == nil {
		err = schedule.Check(p, plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	if tr := plan.Transition; len(tr.Keep) != 19 || len(tr.Add) != 1 || len(tr.Remove) != 1 || len(tr.Change) != 0 || plan.Stats.Peak != 1 {
		t.Errorf("%+v, peak %d", tr, plan.Stats.Peak)
	}
}
