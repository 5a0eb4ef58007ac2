package solve

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/cover"
)

// No probe goes on at a host, however probes are made equal and cut.
func TestBalanceWithHosts(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 22))
		p := &cover.Problem{Graph: randomGraph(t, r, 20, 60), Directed: seed%3 == 0, Hosts: make([]bool, 0)}
		for range p.Graph.NumNodes() {
			p.Hosts = append(p.Hosts, r.IntN(4) == 0)
		}
		if seed%2 == 0 {
			p.MaxHops = 1 + r.IntN(8)
		}
		checked(t, seed, p, Options{Balanced: true, Partial: true})
	}
}

// No way from or to a depot leads through a host, and no probe of an older plan is kept that passes a present host.
func TestDepotsWithHosts(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 23))
		p := &cover.Problem{Graph: randomGraph(t, r, 9, 14), Directed: seed%3 == 0, Depots: []int{0}}
		n := p.Graph.NumNodes()
		if d := r.IntN(n); d > 0 {
			p.Depots = append(p.Depots, d)
		}
		if seed%2 == 0 {
			p.MaxHops = 2 + r.IntN(8)
		}
		old := checked(t, seed, p, Options{Partial: true})
		q := *p
		for range n {
			q.Hosts = append(q.Hosts, r.IntN(4) == 0)
		}
		checked(t, seed, &q, Options{Partial: true})
		if seed%5 == 0 {
			p.Depots, q.Depots = nil, nil
			old = checked(t, seed, p, Options{})
		}
		if len(old.Probes) == 0 {
			continue
		}
		plan, err := Replan(&q, old, Options{Partial: true})
		if err == nil {
			err = cover.Check(&q, plan)
		}
		if err == nil {
			err = cover.CheckTransition(&q, old, plan)
		}
		if err != nil {
			t.Fatalf("seed %d, hosts %v, depots %v: %v", seed, q.Hosts, q.Depots, err)
		}
	}
}
