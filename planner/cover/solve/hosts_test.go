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
