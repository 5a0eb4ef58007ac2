package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/querymix/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

const (
	tracedPaths = 500       // for each width
	triedPaths  = 100       // for each width and coding
	maxDigests  = 1_000_000 // of a path that stays unknown
)

// tracing measures how many packets the collector takes to trace paths of a topology, where the planner would otherwise
// ask its model, which knows no links.
type tracing struct {
	graph   *topo.Graph
	network *collector.Network
	routing pathtrace.Routing
	seed    uint64
	step    func(query string, tau float64, xor []float64, width querymix.Width) // tells of progress
}

func newTracing(g *topo.Graph, routing pathtrace.Routing, seed uint64) *tracing {
	ids := make([]uint32, g.NumNodes())
	for i := range ids {
		ids[i] = uint32(i)
	}
	return &tracing{graph: g, network: networkOf(g, ids), routing: routing, seed: seed}
}

// measure fills in the packets of static queries that have none, for shortest paths of as many switches as they say, and
// chooses their coding if they have none.
func (t *tracing) measure(ctx context.Context, p *querymix.Problem) error {
	for i := range p.Queries {
		q := &p.Queries[i]
		if q.Aggregation != querymix.Static {
			continue
		}
		var open []int // widths
		for k, w := range q.Widths {
			if w.Packets == 0 && w.Total() <= p.Bits {
				open = append(open, k)
			}
		}
		if len(open) == 0 {
			continue
		}
		if q.Tau == 0 && q.XOR == nil {
			if err := t.code(ctx, p, q, open); err != nil {
				return err
			}
		}
		for _, k := range open {
			var err error
			if q.Widths[k].Packets, err = t.packets(ctx, p, q, k, tracedPaths, math.Inf(1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// code finds the coding with the fewest packets, as the geometric mean over widths, among the paper's and some in which
// more hops write: a decoder that knows links gains more from those.
func (t *tracing) code(ctx context.Context, p *querymix.Problem, q *querymix.Query, widths []int) error {
	type coding struct {
		tau float64
		xor []float64
	}
	tau, xor := solve.Hybrid(q.Hops)
	layers := pint.MultiLayerRevised(1, q.Hops)
	best, least := coding{tau, xor}, math.Inf(1)
	fewest := make([]float64, len(q.Widths)) // by width
	for k := range fewest {
		fewest[k] = math.Inf(1)
	}
	for _, c := range []coding{best, {layers.Tau, layers.P}, {0.75, []float64{0.5}}, {0.5, []float64{0.5}}, {0.25, []float64{0.5}}} {
		q.Tau, q.XOR = c.tau, c.xor
		sum := 0.0
		for _, k := range widths {
			n, err := t.packets(ctx, p, q, k, triedPaths, 2*fewest[k])
			if err != nil {
				return err
			}
			sum += math.Log(n)
			if fewest[k] = min(fewest[k], n); math.IsInf(n, 1) {
				break
			}
		}
		if sum < least {
			best, least = c, sum
		}
	}
	q.Tau, q.XOR = best.tau, best.xor
	return nil
}

// packets is the mean number of packets to a path in one of the query's widths, or infinite if it is above the limit.
func (t *tracing) packets(ctx context.Context, p *querymix.Problem, q *querymix.Query, width, paths int, limit float64) (float64, error) {
	w := q.Widths[width]
	t.step(q.Name, q.Tau, q.XOR, w)
	hash := pint.HashMix
	if p.Hash == "crc" {
		hash = pint.HashCRC
	}
	fail := func(err error) (float64, error) { return 0, fmt.Errorf("query %q: width %s: %w", q.Name, w, err) }
	scheme, err := pint.New(pint.Config{Hash: hash, Seed: p.Seed, Bits: w.Bits, Instances: w.Instances, Tau: q.Tau, P: q.XOR})
	if err != nil {
		return fail(err)
	}
	model, err := pathtrace.NewModel(pathtrace.Config{Scheme: scheme, Nodes: t.network.Nodes, Links: t.network.Links, Routing: t.routing})
	if err != nil {
		return fail(err)
	}
	rng := rand.New(rand.NewPCG(t.seed, uint64(q.Hops)))
	tracer := pathtrace.New(model)
	var flow pathtrace.Flow
	var path []uint32
	most := min(limit*float64(paths), maxDigests)
	sum := 0
	for range paths {
		if path, err = t.path(rng, q.Hops, path[:0]); err != nil {
			return fail(err)
		}
		for known := false; !known; {
			id := rng.Uint32()
			known = tracer.Add(&flow, id, q.Hops, scheme.Digest(id, path)) == pathtrace.Decoded
			if sum++; float64(sum) > most {
				if math.IsInf(limit, 1) {
					return fail(fmt.Errorf("%d paths of %d switches take more than %d packets", paths, q.Hops, maxDigests))
				}
				return math.Inf(1), nil
			}
			if sum&1023 == 0 && ctx.Err() != nil {
				return fail(context.Cause(ctx))
			}
		}
		tracer.Release(&flow)
	}
	return float64(sum) / float64(paths), nil
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
