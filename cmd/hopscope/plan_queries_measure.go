package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/hopscope/hopscope/cmd/collector"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/topo"
)

const (
	tracedPaths = 500       // for each width
	maxDigests  = 1_000_000 // of a path that stays unknown
)

// tracing measures how many packets the collector takes to trace paths of a topology, where the planner would otherwise
// ask its model, which knows no links.
type tracing struct {
	graph   *topo.Graph
	network *collector.Network
	routing pathtrace.Routing
	seed    uint64
	step    func(query string, width planner.Width) // tells of progress
}

func newTracing(g *topo.Graph, routing pathtrace.Routing, seed uint64) *tracing {
	ids := make([]uint32, g.NumNodes())
	for i := range ids {
		ids[i] = uint32(i)
	}
	return &tracing{graph: g, network: collector.NetworkOf(g, ids), routing: routing, seed: seed}
}

// measure fills in the packets of static queries that have none, for shortest paths of as many switches as they say.
func (t *tracing) measure(ctx context.Context, p *planner.QueryProblem) error {
	hash := pint.HashMix
	if p.Hash == "crc" {
		hash = pint.HashCRC
	}
	for i := range p.Queries {
		q := &p.Queries[i]
		if q.Aggregation != planner.Static {
			continue
		}
		if q.Tau == 0 && q.XOR == nil {
			q.Tau, q.XOR = querymix.Hybrid(q.Hops)
		}
		for k := range q.Widths {
			w := &q.Widths[k]
			if w.Packets > 0 || w.Total() > p.Bits {
				continue
			}
			t.step(q.Name, *w)
			scheme, err := pint.New(pint.Config{Hash: hash, Seed: p.Seed, Bits: w.Bits, Instances: w.Instances, Tau: q.Tau, P: q.XOR})
			if err == nil {
				w.Packets, err = t.packets(ctx, scheme, q.Hops)
			}
			if err != nil {
				return fmt.Errorf("query %q: width %s: %w", q.Name, w, err)
			}
		}
	}
	return nil
}

// packets is the mean number of packets to a path of that many hops.
func (t *tracing) packets(ctx context.Context, scheme *pint.Scheme, hops int) (float64, error) {
	model, err := pathtrace.NewModel(pathtrace.Config{Scheme: scheme, Nodes: t.network.Nodes, Links: t.network.Links, Routing: t.routing})
	if err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(t.seed, uint64(hops)))
	tracer := pathtrace.New(model)
	var flow pathtrace.Flow
	var path []uint32
	sum := 0
	for range tracedPaths {
		if path, err = t.path(rng, hops, path[:0]); err != nil {
			return 0, err
		}
		n := 1
		for id := rng.Uint32(); tracer.Add(&flow, id, hops, scheme.Digest(id, path)) != pathtrace.Decoded; id = rng.Uint32() {
			if n++; n > maxDigests {
				return 0, fmt.Errorf("a path of %d switches stays unknown after %d packets", hops, maxDigests)
			}
			if n&1023 == 0 && ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
		}
		sum += n
		tracer.Release(&flow)
	}
	return float64(sum) / tracedPaths, nil
}

// path draws a path of that many switches with as few hops as can be, between edge switches if there are such.
func (t *tracing) path(rng *rand.Rand, hops int, path []uint32) ([]uint32, error) {
	g := t.graph
	edge := false
	for v := range g.NumNodes() {
		edge = edge || g.Tier(v) == topo.Edge
	}
	distance := make([]int, g.NumNodes()) // to the end, and 1 more; 0 is not known
	for _, to := range rng.Perm(g.NumNodes()) {
		if edge && g.Tier(to) != topo.Edge {
			continue
		}
		clear(distance)
		distance[to] = 1
		var begins []int
		for queue := []int{to}; len(queue) > 0; queue = queue[1:] {
			v := queue[0]
			if distance[v] == hops {
				if !edge || g.Tier(v) == topo.Edge {
					begins = append(begins, v)
				}
				continue
			}
			for i, end := g.Interfaces(v); i < end; i++ {
				if u := g.Neighbor(i); distance[u] == 0 {
					distance[u] = distance[v] + 1
					queue = append(queue, u)
				}
			}
		}
		if len(begins) == 0 {
			continue
		}
		v := begins[rng.IntN(len(begins))]
		path = append(path, uint32(v))
		for v != to {
			lo, hi := g.Interfaces(v)
			if u := g.Neighbor(lo + rng.IntN(hi-lo)); distance[u] == distance[v]-1 {
				v = u
				path = append(path, uint32(v))
			}
		}
		return path, nil
	}
	return nil, fmt.Errorf("topology %s has no shortest path of %d switches", g.Name(), hops)
}
