package solve

import (
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/cover"
)

// tries is how many second covers are compared.
const tries = 8

// redundant gives a second cover that walks every link in the direction that the first does not: a failure of one queue
// or of one probe leaves every link in sight. When a link fails, it takes a probe of each cover with it, and what both
// have in common is out of sight; so of several second covers, cut at random, the one is taken with which that is least.
//
// Between depots it walks a link as often as the first. With a limit of hops it is the first one, walked back: its cuts
// are made where the ways from and to the depots are short.
func (c *coverer) redundant(walks []cover.Walk) (first, second []cover.Walk) {
	r := rand.New(rand.NewPCG(c.o.Seed, 1))
	var back []int32
	for _, w := range walks {
		var b cover.Walk
		for k := len(w) - 1; k >= 0; k-- {
			b = append(b, int32(c.p.Graph.Peer(int(w[k]))))
		}
		back, second = append(back, b...), append(second, b)
	}
	if c.p.Depots != nil && c.p.MaxHops > 0 || c.p.Hosts != nil {
		return walks, second
	}
	least := math.MaxInt
	if c.p.Depots != nil {
		least = cover.Blind(c.p, walks, second)
	}
	for try := 0; try < tries && (try == 0 || !c.o.Stop()); try++ {
		n := c.oriented(back)
		for v := range n.nodes {
			adj := n.adj[n.first[v]:n.first[v+1]]
			r.Shuffle(len(adj), func(i, j int) { adj[i], adj[j] = adj[j], adj[i] })
		}
		s, ok := c.along(n)
		if !ok {
			continue
		}
		if b := cover.Blind(c.p, walks, s); b < least {
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

// along covers an oriented net. It reports whether probes start and end where they may.
func (c *coverer) along(n *net) (walks []cover.Walk, ok bool) {
	depots := c.p.Depots != nil
	n.seed = c.o.Seed
	if !depots {
		n.openHosts(c.p.Hosts)
	}
	trails := n.euler(c.o.Balanced || depots || c.p.MaxHops > 0)
	if c.o.Balanced || depots {
		n.balance(trails, c.o.Stop)
	}
	if depots {
		depot := c.depots()
		n.rotate(trails, depot)
		return n.walks(trails), !c.homeless(n, trails, depot)
	}
	if c.p.MaxHops > 0 {
		trails = n.limit(trails, c.p.MaxHops, c.o.Stop)
	}
	return n.walks(trails), true
}
