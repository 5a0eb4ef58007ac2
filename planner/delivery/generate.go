package delivery

import (
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/topo"
)

// Generate draws a problem over a topology with the distributions of the paper. One node of ten is a point and two of
// ten are servers, at least one each. Rates are 10 to 40 Gbit/s, deadlines 5 to 25 ms, tolerated losses 0.01 to 0.5,
// and latencies of links 1 to 10 ms. Links and switches have a capacity of 100 Gbit/s, of which 10 to 90 are taken.
// They work with a probability of 0.990 to 0.999. Servers have 40 Gbit/s. Parallel links are merged, and loops are
// dropped.
func Generate(g *topo.Graph, seed uint64) *Problem {
	rng := rand.New(rand.NewPCG(seed, uint64(g.NumNodes())))
	uniform := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	n := g.NumNodes()
	order := rng.Perm(n)
	share := func(part float64) int { return max(1, int(math.Round(part*float64(n)))) }
	kind := make([]NodeKind, n)
	for i, v := range order {
		switch {
		case i < share(0.1):
			kind[v] = PointNode
		case i < share(0.1)+share(0.2):
			kind[v] = ServerNode
		default:
			kind[v] = SwitchNode
		}
	}
	p := new(Problem)
	for v, k := range kind {
		x := Node{ID: g.NodeName(v), Kind: k, Up: 1}
		switch k {
		case PointNode:
			x.Rate, x.Deadline, x.Loss = uniform(10, 40), uniform(5, 25), uniform(0.01, 0.5)
		case ServerNode:
			x.Capacity = 40
		default:
			x.Capacity, x.Load, x.Up = 100, uniform(10, 90), uniform(0.990, 0.999)
		}
		p.Nodes = append(p.Nodes, x)
	}
	joined := map[[2]int]bool{}
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		a, b := g.Node(x), g.Node(y)
		if a == b || joined[[2]int{min(a, b), max(a, b)}] {
			continue
		}
		joined[[2]int{min(a, b), max(a, b)}] = true
		p.Links = append(p.Links, Link{
			A: g.NodeName(a), B: g.NodeName(b), Latency: uniform(1, 10),
			Capacity: 100, Load: uniform(10, 90), Up: uniform(0.990, 0.999),
		})
	}
	return p
}

// RelaxLoss removes the limit of loss from all points but a share of them. Experiments 1 to 3 ask that many pairs of
// origin and destination to be reliable. The first points of the problem keep it; their number is rounded up.
func RelaxLoss(p *Problem, reliable float64) {
	points := 0
	for i := range p.Nodes {
		if p.Nodes[i].Kind == PointNode {
			points++
		}
	}
	keep := int(math.Ceil(reliable*float64(points) - 1e-9))
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Kind == PointNode {
			if keep == 0 {
				n.Loss = 1
				continue
			}
			keep--
		}
	}
}
