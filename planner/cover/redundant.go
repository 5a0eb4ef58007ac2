package cover

import (
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner"
)

// tries is how many second covers are compared.
const tries = 8

// redundant gives a second cover that walks every link in the direction that the first does not: a failure of one queue
// or of one probe leaves every link in sight. When a link fails, it takes a probe of each cover with it, and what both
// have in common is out of sight; so of several second covers, cut at random, the one is taken with which that is least.
func (c *coverer) redundant(walks []planner.Walk) (first, second []planner.Walk) {
	r := rand.New(rand.NewPCG(c.o.Seed, 1))
	var back []int32
	for _, w := range walks {
		for _, i := range w {
			back = append(back, int32(c.p.Graph.Peer(int(i))))
		}
	}
	least := math.MaxInt
	for try := 0; try < tries && (try == 0 || !c.o.Stop()); try++ {
		n := c.oriented(back)
		for v := range n.nodes {
			adj := n.adj[n.first[v]:n.first[v+1]]
			r.Shuffle(len(adj), func(i, j int) { adj[i], adj[j] = adj[j], adj[i] })
		}
		s := c.along(n)
		if b := planner.Blind(c.p, walks, s); b < least {
			least, second = b, s
		}
	}
	return walks, second
}

// oriented is the directed net of links that are left by the given interfaces.
func (c *coverer) oriented(ifaces []int32) *net {
	g := c.p.Graph
	n := &net{directed: true, nodes: g.NumNodes()}
	for _, i := range ifaces {
		n.add(g.Node(int(i)), g.Neighbor(int(i)), int(i), g.Peer(int(i)))
	}
	n.finish()
	return n
}

// along covers an oriented net.
func (c *coverer) along(n *net) []planner.Walk {
	trails := n.euler(c.o.Balanced || c.p.MaxHops > 0)
	if c.o.Balanced {
		n.balance(trails, c.o.Stop)
	}
	if c.p.MaxHops > 0 {
		trails = n.limit(trails, c.p.MaxHops, c.o.Stop)
	}
	return n.walks(trails)
}
