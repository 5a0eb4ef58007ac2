package solve

import (
	"testing"

	"github.com/hopscope/hopscope/planner/cover"
)

func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name, spec string
		o          Options
		depots     bool
	}{
		{"euler/fat-tree:30", "fat-tree:30", Options{}, false},
		{"balanced/fat-tree:30", "fat-tree:30", Options{Balanced: true}, false},
		{"depots/fat-tree:30", "fat-tree:30", Options{}, true},
		{"balanced/random:1000,3000", "random:1000,3000,1", Options{Balanced: true}, false},
		{"balanced/random:100000,500000", "random:100000,500000,1", Options{Balanced: true}, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := &cover.Problem{Graph: generated(b, c.spec)}
			if c.depots { // a fifth of the edge switches
				for v := range p.Graph.NumNodes() {
					if p.Graph.Tier(v) == 1 && v%5 == 0 {
						p.Depots = append(p.Depots, v)
					}
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Plan(p, c.o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
