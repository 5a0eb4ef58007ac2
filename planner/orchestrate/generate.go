package orchestrate

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/topo"
)

// Model holds the parameters by which a topology becomes a problem. The defaults are those of the paper's evaluation.
type Model struct {
	// BothSides is set if a flow passes both interfaces of the links on its way and to its endpoints, as the paper's
	// text says. Otherwise it passes only the directions that it takes, which fits the paper's numbers.
	BothSides bool

	DemandMin, DemandMax       int64   // items, drawn evenly
	CapacityMean, CapacityStdv float64 // items, normally distributed, rounded, at least 1
	Seed                       uint64

	// Parts leaves out flows between nodes that no way joins. Without it a topology that is not connected is an error.
	Parts bool

	// Pairs are the flows, from node to node, with packet rates where they are known; nil stands for all ordered pairs.
	Pairs []Pair
}

// Pair is a flow between the endpoints at two nodes.
type Pair struct {
	Src, Dst int
	Rate     float64 // packets a second; 0 if not known
}

// DefaultModel is the set-up of the paper's evaluation.
func DefaultModel() Model {
	return Model{DemandMin: 4, DemandMax: 10, CapacityMean: 35, CapacityStdv: 5, Seed: 1}
}

// Validate returns what is wrong with the numbers of the model.
func (m *Model) Validate() error {
	switch {
	case m.DemandMin < 1 || m.DemandMax < m.DemandMin || m.DemandMax > 1<<30:
		return fmt.Errorf("demands of %d to %d items: must be 1 or more, in this order", m.DemandMin, m.DemandMax)
	case !(m.CapacityMean >= 1 && m.CapacityMean <= 1<<30) || !(m.CapacityStdv >= 0 && m.CapacityStdv <= 1<<30):
		return fmt.Errorf("capacities of %v items, deviation %v: must be at least 1 and 0", m.CapacityMean, m.CapacityStdv)
	}
	return nil
}

// maxPassed bounds the interfaces of all flows together, 4 bytes each in several arrays.
const maxPassed = 1 << 27

// Generate makes the problem of a topology.
//
// Parallel links are merged, and links from a node to itself are left out. Every direction a>b of a link is an
// interface, and an endpoint at every node adds two, "in:a" and "out:a". The flow s>t takes a path with the fewest
// hops. It is found by breadth-first search from s, neighbours in ascending order of their numbers, where the first
// discovered parent wins. The flow passes in:s, the directions on its way, and out:t, in this order. Demands are drawn
// first, in the order of the interfaces: nodes ascending, neighbours ascending, then in and out of every node.
// Capacities follow in the order of the flows.
func Generate(g *topo.Graph, m Model) (*Problem, error) {
	n := g.NumNodes()
	if n < 2 {
		return nil, fmt.Errorf("topology %s: %d nodes have no flows between them", g.Name(), n)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	of, parts := g.Components()
	if parts > 1 && !m.Parts {
		other := slices.IndexFunc(of, func(c int32) bool { return c != of[0] })
		return nil, fmt.Errorf("topology %s: is not connected: no way from node %q to node %q; a partial plan would do without such flows",
			g.Name(), g.NodeName(0), g.NodeName(other))
	}
	w := newWays(g)
	p := &Problem{}
	for a := range n {
		for _, b := range w.next(a) {
			p.Interfaces = append(p.Interfaces, Interface{ID: g.NodeName(a) + ">" + g.NodeName(int(b))})
		}
	}
	core := len(p.Interfaces)
	for a := range n {
		p.Interfaces = append(p.Interfaces, Interface{ID: "in:" + g.NodeName(a)}, Interface{ID: "out:" + g.NodeName(a)})
	}
	pairs := m.Pairs
	if pairs == nil {
		if n > 4096 {
			return nil, fmt.Errorf("topology %s: all pairs of %d nodes are too many flows, name those to take", g.Name(), n)
		}
		pairs = make([]Pair, 0, n*(n-1))
		for s := range n {
			for t := range n {
				if s != t {
					pairs = append(pairs, Pair{Src: s, Dst: t})
				}
			}
		}
	}
	p.Flows = make([]Flow, 0, len(pairs))
	passed, root := 0, -1
	names := map[Pair]int{}
	for _, q := range pairs {
		switch {
		case q.Src < 0 || q.Src >= n || q.Dst < 0 || q.Dst >= n:
			return nil, fmt.Errorf("flow from node %d to node %d: topology %s has %d nodes", q.Src, q.Dst, g.Name(), n)
		case q.Src == q.Dst:
			return nil, fmt.Errorf("flow from node %q to itself", g.NodeName(q.Src))
		case of[q.Src] != of[q.Dst]:
			continue
		}
		if q.Src != root {
			root = q.Src
			w.search(root)
		}
		f := Flow{ID: g.NodeName(q.Src) + ">" + g.NodeName(q.Dst), Rate: q.Rate}
		if m.Pairs != nil {
			key := Pair{Src: q.Src, Dst: q.Dst}
			if names[key]++; names[key] > 1 {
				f.ID += "#" + strconv.Itoa(names[key])
			}
		}
		in, out := int32(core+2*q.Src), int32(core+2*q.Dst+1)
		f.Interfaces = append(f.Interfaces, in)
		if m.BothSides {
			f.Interfaces = append(f.Interfaces, in+1)
		}
		way := len(f.Interfaces)
		for b := q.Dst; b != root; b = int(w.parent[b]) {
			if m.BothSides {
				f.Interfaces = append(f.Interfaces, w.direction(b, int(w.parent[b])))
			}
			f.Interfaces = append(f.Interfaces, w.direction(int(w.parent[b]), b))
		}
		slices.Reverse(f.Interfaces[way:])
		if m.BothSides {
			f.Interfaces = append(f.Interfaces, out-1)
		}
		f.Interfaces = append(f.Interfaces, out)
		if passed += len(f.Interfaces); passed > maxPassed {
			return nil, fmt.Errorf("topology %s: the flows pass more than %d interfaces", g.Name(), maxPassed)
		}
		p.Flows = append(p.Flows, f)
	}
	if len(p.Flows) == 0 {
		return nil, fmt.Errorf("topology %s: no flows", g.Name())
	}
	r := opt.SplitMix(m.Seed)
	for k := range p.Interfaces {
		p.Interfaces[k].Demand = m.DemandMin + int64(r.Below(int(m.DemandMax-m.DemandMin+1)))
	}
	for k := range p.Flows {
		p.Flows[k].Capacity = int64(max(1, math.Round(m.CapacityMean+m.CapacityStdv*r.Normal())))
	}
	return p, nil
}

// ways finds the shortest paths in the simple graph below a multigraph.
type ways struct {
	at, to []int32 // neighbours of node a, ascending: to[at[a]:at[a+1]]
	parent []int32 // in the last search
	queue  []int32
}

func newWays(g *topo.Graph) *ways {
	n := g.NumNodes()
	w := &ways{at: make([]int32, 1, n+1), parent: make([]int32, n)}
	for a := range n {
		from := len(w.to)
		lo, hi := g.Interfaces(a)
		for i := lo; i < hi; i++ {
			if b := g.Neighbor(i); b >= 0 && b != a {
				w.to = append(w.to, int32(b))
			}
		}
		slices.Sort(w.to[from:])
		w.to = w.to[:from+len(slices.Compact(w.to[from:]))]
		w.at = append(w.at, int32(len(w.to)))
	}
	return w
}

func (w *ways) next(a int) []int32 { return w.to[w.at[a]:w.at[a+1]] }

// direction is the number of the direction from a to b.
func (w *ways) direction(a, b int) int32 {
	k, _ := slices.BinarySearch(w.next(a), int32(b))
	return w.at[a] + int32(k)
}

func (w *ways) search(root int) {
	for k := range w.parent {
		w.parent[k] = -1
	}
	w.parent[root] = int32(root)
	w.queue = append(w.queue[:0], int32(root))
	for head := 0; head < len(w.queue); head++ {
		a := w.queue[head]
		for _, b := range w.next(int(a)) {
			if w.parent[b] < 0 {
				w.parent[b] = a
				w.queue = append(w.queue, b)
			}
		}
	}
}
