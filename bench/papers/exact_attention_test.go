package papers_test

import (
	"fmt"
	"testing"

	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/attention/solve"
)

// TestAttention chooses detailed probes: a set cover with costs of changes, of which some links are on no probe.
func TestAttention(t *testing.T) {
	s := start(t)
	for k := range instances {
		r := random(1, k)
		p := &attention.Problem{SwitchCost: float64(r.IntN(3))}
		links := 4 + r.IntN(20)
		for i := range 3 + r.IntN(14) {
			probe := attention.Trace{ID: fmt.Sprint("p", i), Cost: float64(1 + r.IntN(9))}
			for l := range links {
				if r.IntN(4) == 0 {
					probe.Links = append(probe.Links, fmt.Sprint("l", l))
				}
			}
			p.Probes = append(p.Probes, probe)
			if r.IntN(3) == 0 {
				p.Detailed = append(p.Detailed, probe.ID)
			}
		}
		for l := range links {
			if r.IntN(3) > 0 {
				p.Suspicious = append(p.Suspicious, fmt.Sprint("l", l))
			}
		}
		plan, err := solve.Plan(p, solve.Options{Partial: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := attention.Check(p, plan); err != nil {
			t.Errorf("instance %d: %v", k, err)
		}
		hold(t, fmt.Sprint("instance ", k), p, &plan.Stats.Stats, attentionTruth(t, s, p))
	}
}

func attentionTruth(t *testing.T, s *solver, p *attention.Problem) truth {
	m := new(model)
	on := map[string]bool{}
	for _, id := range p.Detailed {
		on[id] = true
	}
	constant := 0.0 // of probes that are turned off: what is not chosen costs as well
	passes := map[string][]term{}
	for i, probe := range p.Probes {
		cost := probe.Cost + p.SwitchCost
		if on[probe.ID] {
			cost = probe.Cost - p.SwitchCost
			constant += p.SwitchCost
		}
		m.choice(cost)
		for _, l := range probe.Links {
			passes[l] = append(passes[l], term{i, 1})
		}
	}
	var want truth
	for _, l := range p.Suspicious {
		if len(passes[l]) == 0 {
			want.leftOut++
			continue
		}
		m.least(1, passes[l]...)
	}
	_, cost, ok := s.solve(t, m)
	if !ok {
		t.Fatal("a cover by all probes is none")
	}
	want.objective = cost + constant
	return want
}
