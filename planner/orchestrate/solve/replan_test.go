package solve

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// shake changes the network below a plan: flows that are gone, other capacities, other paths, a new interface.
func shake(r *rand.Rand, p *orchestrate.Problem) *orchestrate.Problem {
	q := *p
	q.Interfaces, q.Flows = slices.Clone(p.Interfaces), slices.Clone(p.Flows)
	for range r.IntN(3) {
		f := &q.Flows[r.IntN(len(q.Flows))]
		switch r.IntN(3) {
		case 0:
			f.ID += "new"
		case 1:
			f.Capacity = max(0, f.Capacity+r.Int64N(7)-3)
		case 2:
			f.Interfaces = f.Interfaces[:len(f.Interfaces)*2/3]
		}
	}
	if r.IntN(3) == 0 {
		for f := range q.Flows {
			q.Flows[f].Interfaces = append(slices.Clip(q.Flows[f].Interfaces), int32(len(q.Interfaces)))
		}
		q.Interfaces = append(q.Interfaces, orchestrate.Interface{ID: "new", Demand: 1 + r.Int64N(6)})
	}
	return &q
}

// TestReplan compares plans that replace others with trying everything that changes no more.
func TestReplan(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	better, moved, changed := 0, 0, 0
	for n := 0; n < testkit.Rounds(60, 200) || changed == 0 && n < 5000; n++ { // a needless change is in one of a hundred problems or so
		p := scarce(r, false, 1+r.IntN(4)/3)
		p.Objective = []string{orchestrate.Concentrate, orchestrate.Balance}[n%2]
		old, err := Plan(p, Options{Method: Heuristic, Partial: true})
		if err != nil {
			t.Fatal(err)
		}
		q := shake(r, p)
		last := math.Inf(1)
		for _, churn := range []int{0, 1, 2, 3, -1} {
			o := Options{Seed: uint64(n), Partial: true, Previous: old, Churn: churn, Stop: after(100000)}
			name := fmt.Sprintf("seed %d, problem %d, churn %d, %+v, old %v %v", seed, n, churn, q, old.Assignment, old.Shares)
			plan, err := Plan(q, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := orchestrate.Check(q, plan); err != nil {
				t.Fatalf("%s: %v: %v", name, plan.Assignment, err)
			}
			s := &solver{in: q, p: newProblem(q), o: o}
			h := s.newPast()
			b := newBrute(q)
			b.churn = h.most
			b.same = func(i int, shares map[int]int64) bool {
				if h.must[i] {
					return true
				}
				for _, f := range h.flows[i] {
					if shares[int(f)] == 0 {
						return false
					}
				}
				return len(shares) == len(h.flows[i])
			}
			b.next(0)
			want := float64(b.flows)
			if q.Objective == orchestrate.Balance {
				want = float64(b.level)
			}
			v := plan.Stats
			if math.Abs(v.LeftOut-float64(b.lost)/60) > 1e-9 || v.Objective != want || !plan.Churn.Proven {
				t.Fatalf("%s: %v %v: left out %v, objective %v, %+v, want %v and %v", name, plan.Assignment, plan.Shares, v.LeftOut, v.Objective, plan.Churn, float64(b.lost)/60, want)
			}
			if limit := max(churn, h.count); churn >= 0 && plan.Churn.Changed > limit {
				t.Fatalf("%s: %v: %d changes", name, plan.Assignment, plan.Churn.Changed)
			}
			if spare := changes(q, h, plan); h.count == 0 && spare > 0 {
				fewer := newBrute(q)
				fewer.churn, fewer.same = spare-1, b.same
				if fewer.next(0); fewer.lost == b.lost && (q.Objective == orchestrate.Balance && fewer.level == b.level || q.Objective == orchestrate.Concentrate && fewer.flows == b.flows) {
					t.Fatalf("%s: %v %v: %d changes, and fewer are as good", name, plan.Assignment, plan.Shares, spare)
				}
				changed++
			}
			if churn > 0 || churn < 0 {
				moved++
				if v.LeftOut*1000+v.Objective < last {
					better++
				}
			}
			last = v.LeftOut*1000 + v.Objective
			whole(t, name, q, old, plan)
		}
	}
	t.Logf("more churn is better in %d of %d cases; %d times something changes that need not", better, moved, changed)
	if better == 0 || changed == 0 {
		t.Error("more churn is never better, or nothing ever changes that need not")
	}
}

// changes counts the interfaces that are not on the flows of the older plan.
func changes(p *orchestrate.Problem, h *past, plan *orchestrate.Plan) (n int) {
	uses := map[string]map[string]float64{}
	for _, e := range orchestrate.Elements(p, plan) {
		uses[e.ID] = e.Uses
	}
	for i, flows := range h.flows {
		now := uses[p.Interfaces[i].ID]
		same := len(now) == len(flows)
		for _, f := range flows {
			same = same && now[p.Flows[f].ID] > 0
		}
		if !same {
			n++
		}
	}
	return n
}

// whole takes the steps of a transition, if there are any.
func whole(t *testing.T, name string, p *orchestrate.Problem, old, plan *orchestrate.Plan) {
	t.Helper()
	if plan.Deadlock != "" {
		if len(plan.Transition.Steps) > 0 {
			t.Fatalf("%s: a deadlock, and steps: %+v", name, plan.Transition)
		}
		return
	}
	capacity := map[string]float64{}
	for _, f := range p.Flows {
		capacity[f.ID] = float64(f.Capacity)
	}
	if err := planner.Simulate(orchestrate.Elements(p, old), orchestrate.Elements(p, plan), plan.Transition.Steps, capacity); err != nil {
		t.Fatalf("%s: %+v: %v", name, plan.Transition, err)
	}
}

// TestReplanSwap has two interfaces that can only swap places. Every order of steps has a moment in which one of them
// is not served, or a flow has too much.
func TestReplanSwap(t *testing.T) {
	p := alike(3, 6, 6, 6)
	p.Objective = orchestrate.Balance
	p.Flows = p.Flows[:2]
	old := orchestrate.NewPlan(p, "test", []orchestrate.Share{{Interface: 0, Flow: 0, Items: 6}, {Interface: 1, Flow: 1, Items: 6}})
	now := orchestrate.NewPlan(p, "test", []orchestrate.Share{{Interface: 0, Flow: 1, Items: 6}, {Interface: 1, Flow: 0, Items: 6}})
	if changed, err := now.Replace(p, old); err != nil || len(now.Transition.Steps) != 0 || changed != 2 || now.Deadlock == "" {
		t.Errorf("Replace = %d, %v: %+v", changed, err, now.Replacement)
	}
	// What a plan that replaces the old one does is to change nothing.
	plan, err := Plan(p, Options{Previous: old, Churn: -1})
	if err != nil || plan.Churn.Changed != 0 || !plan.Stats.Optimal || len(plan.Transition.Keep) != 2 {
		t.Errorf("Plan = %+v, %v", plan, err)
	}
}

// TestReplanErrors requests impossible plans.
func TestReplanErrors(t *testing.T) {
	p := alike(2, 6, 3, 3, 3, 3)
	p.Objective = orchestrate.Concentrate
	old := orchestrate.NewPlan(p, "test", []orchestrate.Share{{Interface: 0, Flow: 0, Items: 3}, {Interface: 1, Flow: 1, Items: 3}, {Interface: 2, Flow: 0, Items: 3}})
	p.Interfaces[3].Demand = 6 // has room only if another one moves
	p.Flows[1].Capacity = 9
	p.Flows[0].Capacity = 6
	old.Assignment["i2"] = "f1"
	if _, err := Plan(p, Options{Previous: old, Churn: 0}); err == nil || err.Error() != `no flow was found for 1 interfaces, among them "i3", with 0 changes beside those that have to be; more churn or a partial plan may help` {
		t.Errorf("no churn: %v", err)
	}
	if plan, err := Plan(p, Options{Previous: old, Churn: 2}); err != nil || plan.Churn.Changed != 2 || plan.Churn.Forced != 1 {
		t.Errorf("churn 2: %+v, %v", plan, err)
	}
	p.Split = true
	if _, err := Plan(p, Options{Previous: old}); !errors.Is(err, ErrSplitReplan) {
		t.Errorf("split: %v", err)
	}
}
