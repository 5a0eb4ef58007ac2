package solve

import (
	"fmt"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt/postman"
)

// withoutIdleHosts gives the problem without the links of hosts where no probe may begin or end: none can pass them.
func withoutIdleHosts(p *cover.Problem) *cover.Problem {
	if p.Hosts == nil || p.Depots == nil {
		return p
	}
	q := *p
	q.SkipNode = make([]bool, p.Graph.NumNodes())
	copy(q.SkipNode, p.SkipNode)
	for v, host := range p.Hosts {
		q.SkipNode[v] = q.SkipNode[v] || host
	}
	for _, v := range p.Depots {
		q.SkipNode[v] = false
	}
	return &q
}

// idleHost gives a host at link l where no probe may begin or end, or -1.
func (c *coverer) idleHost(l int) int {
	p := c.p
	if p.Hosts == nil || p.Depots == nil {
		return -1
	}
	x, y := p.Graph.Ends(l)
	for _, v := range [...]int{p.Graph.Node(x), p.Graph.Node(y)} {
		if p.Hosts[v] && p.SkipNode[v] && !c.asked.Skipped(l) {
			return v
		}
	}
	return -1
}

// leftOutStats sets how much is left out, and how much every plan leaves out.
func (c *coverer) leftOutStats(s *cover.Stats) {
	for _, u := range c.left {
		if u.Reason != skipped {
			s.LeftOut++
		}
	}
	if s.LeftOutBound = s.LeftOut - float64(c.loose); c.loose > 0 {
		s.LowerBound = 0 // others may leave out something else
	}
}

// boundLimits is [net.bound] with hosts, where every probe to them ends, and a limit of delay.
func (c *coverer) boundLimits(n *postman.Net) int {
	p := c.p
	if p.Hosts == nil && p.MaxDelay == 0 {
		return n.Bound(p.MaxHops)
	}
	edges, _ := n.Fewest()
	trails, delay := make([]int64, n.Comps), make([]int64, n.Comps)
	start, _ := n.Ends()
	for v := range n.Nodes {
		ends := int64(start[v])
		if p.Hosts != nil && p.Hosts[v] {
			ends = 0
			for _, h := range n.Out(int32(v)) {
				if n.Walkable(h) {
					ends++
				}
			}
		}
		trails[n.Comp[v]] += ends
	}
	for e := range n.Edges() {
		delay[n.Comp[n.From[2*e]]] += c.fastest(n, int32(2*e))
	}
	sum := int64(0)
	for k, t := range trails {
		if !n.Directed {
			t = (t + 1) / 2
		}
		if edges[k] > 0 {
			t = max(t, 1)
		}
		if p.MaxHops > 0 {
			t = max(t, int64((edges[k]+p.MaxHops-1)/p.MaxHops))
		}
		if p.MaxDelay > 0 {
			t = max(t, (delay[k]+p.MaxDelay-1)/p.MaxDelay)
		}
		sum += t
	}
	return int(sum)
}

// time is the delay of walking half h.
func (c *coverer) time(n *postman.Net, h int32) int64 {
	return int64(c.p.Graph.Attr(int(n.Label[h])).Delay)
}

// fastest is the least delay of walking the edge of half h.
func (c *coverer) fastest(n *postman.Net, h int32) int64 {
	if n.Directed {
		return c.time(n, h)
	}
	return min(c.time(n, h), c.time(n, h^1))
}

// limitDelay cuts trails so that none takes longer than the limit, in either direction where that is free. The longest
// part that fits is cut off first, which takes the fewest parts of every trail.
func (c *coverer) limitDelay(n *postman.Net, trails [][]int32) [][]int32 {
	p := c.p
	if p.MaxDelay == 0 {
		return trails
	}
	var out [][]int32
	add := func(part []int32, there int64) {
		if there > p.MaxDelay {
			part = append([]int32(nil), part...)
			postman.Reverse(part)
		}
		out = append(out, part)
	}
	for _, t := range trails {
		from, there, back := 0, int64(0), int64(0)
		for k, h := range t {
			d, e := c.time(n, h), c.time(n, h^1)
			if k > from && there+d > p.MaxDelay && (n.Directed || back+e > p.MaxDelay) {
				add(t[from:k:k], there)
				from, there, back = k, 0, 0
			}
			there, back = there+d, back+e
		}
		add(t[from:len(t):len(t)], there)
	}
	return out
}

// reaches reports whether a probe within the limits, or with limited unset any probe, can pass interface i. Without depots
// it is the one link that counts.
func (c *coverer) reaches(i int, limited bool) bool {
	p := c.p
	switch {
	case c.ways == nil:
		w := cover.Walk{int32(i)}
		back := cover.Walk{int32(p.Graph.Peer(i))}
		return !limited || p.Within(w) || !p.Directed && p.Within(back)
	case !limited:
		return c.ways.reaches(i, 0)
	case c.ways.labels == nil:
		return c.ways.reaches(i, p.MaxHops)
	}
	return c.ways.labels.reaches(i) || !p.Directed && c.ways.labels.reaches(p.Graph.Peer(i))
}

// walksBetween gives walks between depots for trails, in which edges from copies on are second traversals.
func (d *depotWays) walksBetween(n *postman.Net, trails [][]int32, copies, maxHops int) []cover.Walk {
	if d.labels != nil {
		return d.labels.attach(n, trails, copies)
	}
	return d.attach(n, trails, copies, maxHops)
}

// tooFar names the limits that no probe over a link keeps to.
func (c *coverer) tooFar() string {
	limit := ""
	if c.p.MaxHops > 0 {
		limit = fmt.Sprintf("%d hops", c.p.MaxHops)
	}
	if c.p.MaxDelay > 0 {
		if limit != "" {
			limit += " and "
		}
		limit += fmt.Sprintf("%d ns", c.p.MaxDelay)
	}
	if c.p.Depots == nil {
		return fmt.Sprintf("no probe of %s passes it", limit)
	}
	return fmt.Sprintf("no probe of %s from depot to depot passes it", limit)
}
