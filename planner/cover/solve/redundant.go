package solve

import (
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt/postman"
)

// tries is how many second covers are compared.
const tries = 8

// redundant returns a second cover that walks every link in the direction that the first does not. A failure of one
// queue or one probe then leaves every link in sight. A failed link takes a probe of each cover with it, and their
// common links go out of sight. Of several second covers with random cuts, the one with the smallest such loss is
// taken.
//
// Between depots the second cover walks a link as often as the first. With a limit of hops it is the first one, walked
// back, with cuts where the ways from and to the depots are short.
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
		for v := range n.Nodes {
			adj := n.Out(int32(v))
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
func (c *coverer) oriented(ifaces []int32) *postman.Net {
	g := c.p.Graph
	n := &postman.Net{Directed: true, Nodes: g.NumNodes()}
	for _, i := range ifaces {
		n.Add(g.Node(int(i)), g.Neighbor(int(i)), int(i), g.Peer(int(i)))
	}
	n.Finish()
	return n
}

// along covers an oriented net. It reports whether probes start and end where they may.
func (c *coverer) along(n *postman.Net) (list []cover.Walk, ok bool) {
	depots := c.p.Depots != nil
	n.Seed = c.o.Seed
	if !depots {
		n.Detach(c.p.Hosts)
	}
	trails := n.Euler(c.o.Balanced || depots || c.p.MaxHops > 0)
	if c.o.Balanced || depots {
		n.Balance(trails, c.o.Stop)
	}
	if depots {
		depot := c.depots()
		n.Rotate(trails, depot)
		return walks(n, trails), !c.homeless(n, trails, depot)
	}
	if c.p.MaxHops > 0 {
		trails = n.Limit(trails, c.p.MaxHops, c.o.Stop)
	}
	return walks(n, trails), true
}
