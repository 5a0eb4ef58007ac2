package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	planning "github.com/hopscope/hopscope/cmd/internal/plan"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/planner/topo"
)

// tracedPaths is how many paths the planner measures for a width.
const tracedPaths = 500

// TestPlannedAnswers lets switches and the collector follow a plan. It compares the packets of flows until their paths
// are known, and the samples of every hop, with the plan.
func TestPlannedAnswers(t *testing.T) {
	const hops, flows = 5, 4000
	text, err := planQueries(t, queriesExample, "--topology", "fat-tree:8", "--routing", "distance", "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pintplan.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Queries []struct{ Packets, Share float64 }
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		t.Fatal(err)
	}
	graph, err := topo.FatTree(8)
	if err != nil {
		t.Fatal(err)
	}
	net := planning.NewTracer(graph, prior.Distance, 0, nil)
	model, err := net.Model(plan.Queries[0].Scheme)
	if err != nil {
		t.Fatal(err)
	}
	tracer := pathtrace.New(model)
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	var flow pathtrace.Flow
	var path []uint32
	var sum, square float64
	packets, sampled, highest := 0, [hops]int{}, 0
	for range flows {
		if path, err = net.Path(rng, hops, path[:0]); err != nil {
			t.Fatal(err)
		}
		n := 0.0
		for known := false; !known; n++ {
			id := rng.Uint32()
			digest := uint64(0)
			for i, node := range path {
				// Latency identifies the hop, so that a sample shows its writer.
				digest = plan.Write(digest, id, i+1, pint.Values{Node: node, Latency: 1000 << (3 * i), Utilization: uint64(1000 * (i + 1))}, rng.Uint32())
			}
			packets++
			for _, slot := range plan.Sets[plan.Set(id)].Slots {
				part := plan.Part(digest, slot)
				switch q := &plan.Queries[slot.Query]; q.Name {
				case "path":
					known = tracer.Add(&flow, id, hops, part) == pathtrace.Decoded
				case "latency":
					hop := math.Log2(q.Code.Decode(uint32(part))/1000) / 3
					sampled[int(math.Round(hop))]++
				case "utilization":
					if v := q.Code.Decode(uint32(part)); math.Abs(v/5000-1) < 0.05 {
						highest++
					}
				}
			}
		}
		if s, ok := tracer.Path(&flow, 0, nil); !ok || len(s.Nodes) != hops || s.Nodes[0] != path[0] || s.Nodes[hops-1] != path[hops-1] {
			t.Fatalf("seed %d: traced %v of %v", seed, s.Nodes, path)
		}
		tracer.Release(&flow)
		sum += n
		square += n * n
	}
	mean := sum / flows
	deviation := math.Sqrt(square/flows - mean*mean)
	// Six standard deviations of the difference to a mean of 500 in the plan: a false alarm in 5e8.
	if limit := 6 * deviation * math.Sqrt(1./flows+1./tracedPaths); math.Abs(mean-said.Queries[0].Packets) > limit {
		t.Errorf("seed %d: paths take %v packets, the plan says %v ± %v", seed, mean, said.Queries[0].Packets, limit)
	}
	// Seven standard deviations; and as the last packet of a flow always carries the path, others are in it less often.
	for i, n := range sampled {
		want := float64(packets) * said.Queries[1].Share / hops
		if math.Abs(float64(n)-want) > 7*math.Sqrt(want)+0.02*want {
			t.Errorf("seed %d: hop %d sampled in %d of %d packets, want about %v", seed, i+1, n, packets, want)
		}
	}
	if want := float64(packets) * said.Queries[2].Share; math.Abs(float64(highest)-want) > 7*math.Sqrt(want)+0.2*want {
		t.Errorf("seed %d: the busiest hop in %d of %d packets, want about %v", seed, highest, packets, want)
	}
}
