package plan

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/topo"
)

// maxDigests bounds the packets of a measurement, for paths that stay unknown.
const maxDigests = 1_000_000

// Tracer measures how many packets it takes until the collector knows the path of a flow, on one topology and with one
// coding of paths. The collector's own path tracing decodes the digests that switches on random shortest paths would
// write. Plans of queries thus follow from the decoder that will read them. It is the querymix.Tracer of programs that
// make such plans, since planners import neither decoders nor inference. A Tracer may be used by one goroutine at a
// time.
type Tracer struct {
	graph   *topo.Graph
	nodes   []uint32 // ids, which are the indices
	links   [][2]int32
	weights [][2]uint32 // nil unless paths are shortest by them
	tree    *topo.Tree
	routing prior.Routing
	seed    uint64
	stop    func() error
}

// NewTracer makes a tracer whose decoder has the links of g, and the routing. The same seed gives the same figures. The
// function stop, which may be nil, is called every thousand packets. An error of it ends the measurement, and Packets
// returns it.
func NewTracer(g *topo.Graph, routing prior.Routing, seed uint64, stop func() error) *Tracer {
	if stop == nil {
		stop = func() error { return nil }
	}
	t := &Tracer{graph: g, nodes: make([]uint32, g.NumNodes()), links: g.NodePairs(), routing: routing, seed: seed, stop: stop}
	for i := range t.nodes {
		t.nodes[i] = uint32(i)
	}
	if routing == prior.Weights {
		t.weights = g.PairWeights()
	}
	return t
}

// Codings lists the revised multi-layer scheme of PINT, and some codings in which more hops write. A decoder with known
// links gains more from those than the published decoder.
func (t *Tracer) Codings(hops int) []querymix.PathCoding {
	layers := pint.MultiLayerRevised(1, hops)
	half := []float64{0.5}
	return []querymix.PathCoding{{Tau: layers.Tau, XOR: layers.P}, {Tau: 0.75, XOR: half}, {Tau: 0.5, XOR: half}, {Tau: 0.25, XOR: half}}
}

// Model makes the decoder for a scheme.
func (t *Tracer) Model(s *pint.Scheme) (*prior.Model, error) {
	return prior.NewModel(prior.Config{Scheme: s, Nodes: t.nodes, Links: t.links, Routing: t.routing, Weights: t.weights})
}

// Packets is the mean number of packets until a path is known, or infinite if it is above the limit.
func (t *Tracer) Packets(c querymix.PathCoding, paths int, limit float64) (float64, error) {
	hash := pint.HashMix
	if c.Hash == "crc" {
		hash = pint.HashCRC
	}
	scheme, err := pint.New(pint.Config{Hash: hash, Seed: c.Seed, Bits: c.Bits, Instances: c.Instances, ValueBits: min(c.Fragments*c.Bits, 32), Tau: c.Tau, P: c.XOR})
	if err != nil {
		return 0, err
	}
	model, err := t.Model(scheme)
	if err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(t.seed, uint64(c.Hops)))
	tracer := pathtrace.New(model)
	var flow pathtrace.Flow
	var path []uint32
	most := min(limit*float64(paths), maxDigests)
	sum := 0
	for range paths {
		if path, err = t.Path(rng, c.Hops, path[:0]); err != nil {
			return 0, err
		}
		for known := false; !known; {
			id := rng.Uint32()
			known = tracer.Add(&flow, id, c.Hops, scheme.Digest(id, path)) == pathtrace.Decoded
			if sum++; float64(sum) > most {
				if math.IsInf(limit, 1) {
					return 0, fmt.Errorf("%d paths of %d switches take more than %d packets", paths, c.Hops, maxDigests)
				}
				return math.Inf(1), nil
			}
			if sum&1023 == 0 {
				if err := t.stop(); err != nil {
					return 0, err
				}
			}
		}
		tracer.Release(&flow)
	}
	return float64(sum) / float64(paths), nil
}

// Path draws a path of that many switches with the fewest hops, or of the least weight if routing uses weights, and
// appends their indices. It is between edge switches if the topology has some.
func (t *Tracer) Path(rng *rand.Rand, hops int, path []uint32) ([]uint32, error) {
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
		if t.weights != nil {
			if drawn := t.lightest(rng, to, hops, edge); drawn != nil {
				return append(path, drawn...), nil
			}
			continue
		}
		begins := t.begins(to, hops, edge, distance)
		if len(begins) == 0 {
			continue
		}
		v := begins[rng.IntN(len(begins))]
		path = append(path, uint32(v))
		for v != to {
			lo, hi := g.Interfaces(v)
			if u := g.Neighbor(lo + rng.IntN(hi-lo)); u >= 0 && distance[u] == distance[v]-1 { // some lead out of the topology
				v = u
				path = append(path, uint32(v))
			}
		}
		return path, nil
	}
	return nil, fmt.Errorf("topology %s has no shortest path of %d switches", g.Name(), hops)
}

// begins lists where shortest paths of that many switches to a node begin, breadth first, and fills in the distances.
func (t *Tracer) begins(to, hops int, edge bool, distance []int) (list []int) {
	g := t.graph
	clear(distance)
	distance[to] = 1
	for queue := []int{to}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if distance[v] == hops {
			if !edge || g.Tier(v) == topo.Edge {
				list = append(list, v)
			}
			continue
		}
		for i, end := g.Interfaces(v); i < end; i++ {
			if u := g.Neighbor(i); u >= 0 && distance[u] == 0 {
				distance[u] = distance[v] + 1
				queue = append(queue, u)
			}
		}
	}
	return list
}
