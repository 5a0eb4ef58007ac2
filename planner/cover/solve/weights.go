package solve

import (
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt/postman"
)

// weights returns the least weight of a traversal of every edge. A probe at a link has as many labels of switches as
// links since its depot, and one more.
func (c *coverer) weights(n *postman.Net) (weight []int64, sum int64) {
	weight = make([]int64, n.Edges())
	for e := range weight {
		i := int(n.Label[2*e])
		weight[e] = c.p.Weigh(i)
		if c.p.Minimise == cover.Bytes {
			before := c.ways.from[n.From[2*e]]
			if other := c.ways.from[n.From[2*e+1]]; !c.p.Directed {
				before = min(before, other)
			}
			weight[e] = c.p.Size.At(int(before) + 1)
		}
		sum += weight[e]
	}
	return weight, sum
}

// weighted reports whether traversals count anything but links.
func (c *coverer) weighted() bool { return c.p.Minimise != "" && c.p.Minimise != cover.Links }

// duplicate adds the second traversals to n, and sets the bound.
func (c *coverer) duplicate(n *postman.Net, depot []bool) {
	if !c.weighted() && !c.p.Directed {
		original := n.Edges()
		_, bound := n.Augment(depot, c.o.Stop)
		c.bound = original + bound
		return
	}
	weight, sum := c.weights(n)
	if c.p.Directed {
		sum += n.AugmentDirected(depot, weight, c.o.Stop)
	} else {
		sum += n.AugmentWeighted(depot, weight, c.o.Stop)
	}
	c.bound = int(sum)
}

// objective is the number of probes, or with depots what the walks between them count.
func (c *coverer) objective(walks []cover.Walk) float64 {
	if c.p.Depots == nil {
		return float64(len(walks))
	}
	sum := int64(0)
	for _, w := range walks {
		sum += c.p.Length(w)
	}
	return float64(sum)
}
