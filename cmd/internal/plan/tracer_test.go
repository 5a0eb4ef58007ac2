package plan_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/cmd/internal/plan"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/topo"
)

var _ querymix.Tracer = (*plan.Tracer)(nil)

func coding(hops int) querymix.PathCoding {
	return querymix.PathCoding{Hops: hops, Width: querymix.Width{Bits: 8, Instances: 1}, Tau: 0.75, XOR: []float64{0.5}}
}

func tree(t *testing.T) *topo.Graph {
	t.Helper()
	g, err := topo.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What a decoder knows of the network saves packets, and the same seed gives the same figure.
func TestPackets(t *testing.T) {
	g := tree(t)
	var means []float64
	for _, routing := range []prior.Routing{prior.None, prior.Distance} {
		var second float64
		for range 2 {
			mean, err := plan.NewTracer(g, routing, 3, nil).Packets(coding(5), 300, math.Inf(1))
			if err != nil {
				t.Fatal(err)
			}
			if second != 0 && mean != second {
				t.Errorf("routing %v: %v packets, and %v with the same seed", routing, mean, second)
			}
			second = mean
		}
		means = append(means, second)
	}
	if !(means[1] >= 1 && means[1] < means[0] && means[0] < 100) {
		t.Errorf("%.1f packets for any walk, %.1f for shortest paths: want fewer for shortest paths", means[0], means[1])
	}
}

func TestPacketsLimit(t *testing.T) {
	mean, err := plan.NewTracer(tree(t), prior.None, 3, nil).Packets(coding(5), 300, 1.5)
	if err != nil || !math.IsInf(mean, 1) {
		t.Errorf("Packets with a limit of 1.5: %v, %v, want +Inf", mean, err)
	}
}

func TestPacketsErrors(t *testing.T) {
	g := tree(t)
	if _, err := plan.NewTracer(g, prior.None, 3, nil).Packets(coding(7), 10, math.Inf(1)); err == nil {
		t.Error("a fat-tree has no shortest path of 7 switches, want an error")
	}
	wrong := coding(5)
	wrong.Bits = 40
	if _, err := plan.NewTracer(g, prior.None, 3, nil).Packets(wrong, 10, math.Inf(1)); err == nil {
		t.Error("digests of 40 bits: want an error")
	}
	stopped := errors.New("stopped")
	if _, err := plan.NewTracer(g, prior.None, 3, func() error { return stopped }).Packets(coding(5), 1000, math.Inf(1)); !errors.Is(err, stopped) {
		t.Errorf("Packets when stopped: %v, want %v", err, stopped)
	}
}

// Paths are shortest ones between edge switches, over links, and never over interfaces that lead out of the topology.
func TestPath(t *testing.T) {
	b := tree(t).Extend()
	for v := range 20 {
		b.AddInterface(topo.LinkEnd{Node: v})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	tracer := plan.NewTracer(g, prior.None, 1, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		for _, hops := range []int{1, 3, 5} {
			path, err := tracer.Path(rng, hops, nil)
			if err != nil || len(path) != hops {
				t.Fatalf("Path of %d switches = %v, %v", hops, path, err)
			}
			first, last := int(path[0]), int(path[hops-1])
			if g.Tier(first) != topo.Edge || g.Tier(last) != topo.Edge {
				t.Fatalf("path %v begins or ends at no edge switch", path)
			}
			if d := g.ShortestPaths(nil, last, nil).Distance(first); d != int64(hops-1) {
				t.Fatalf("path %v has %d hops, the shortest %d", path, hops-1, d)
			}
			for k := 1; k < hops; k++ {
				if g.Between(int(path[k-1]), int(path[k])) < 0 {
					t.Fatalf("path %v: no link between %d and %d", path, path[k-1], path[k])
				}
			}
		}
	}
}
