package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt/postman"
)

// depotWays holds the shortest ways between depots and all nodes over what probes may pass.
type depotWays struct {
	p        *cover.Problem
	from, to []int32 // links from the nearest depot, and to it; -1 if there is no way
	by, next []int32 // interface by which that way comes in, and goes on
	labels   *labelWays
}

func newDepotWays(p *cover.Problem) *depotWays {
	n := p.Graph.NumNodes()
	d := &depotWays{p: p, labels: newLabelWays(p), from: make([]int32, n), to: make([]int32, n), by: make([]int32, n), next: make([]int32, n)}
	d.search(d.from, d.by, func(i int) (int, bool) { return i, d.usable(i) })
	d.search(d.to, d.next, func(i int) (int, bool) {
		i = p.Graph.Peer(i)
		return i, i >= 0 && d.usable(i)
	})
	return d
}

// usable: an undirected plan walks a link either way, so both must be usable, there and in [cover.Problem.Wanted].
func (d *depotWays) usable(i int) bool {
	return d.p.Usable(i) && (d.p.Directed || d.p.Usable(d.p.Graph.Peer(i)))
}

// search goes breadth first from all depots. The function step returns the direction that is walked for an interface of
// the node.
func (d *depotWays) search(dist, via []int32, step func(i int) (int, bool)) {
	for v := range dist {
		dist[v], via[v] = -1, -1
	}
	queue := make([]int, 0, len(dist))
	for _, v := range d.p.Depots {
		dist[v] = 0
		queue = append(queue, v)
	}
	for at := 0; at < len(queue); at++ {
		v := queue[at]
		lo, hi := d.p.Graph.Interfaces(v)
		for i := lo; i < hi; i++ {
			w := d.p.Graph.Neighbor(i)
			if w < 0 || dist[w] >= 0 {
				continue
			}
			if walked, ok := step(i); ok {
				dist[w], via[w] = dist[v]+1, int32(walked)
				queue = append(queue, w)
			}
		}
	}
}

// reaches reports whether a probe of at most maxHops links (0: any number) can pass interface i.
func (d *depotWays) reaches(i, maxHops int) bool {
	a, b := d.from[d.p.Graph.Node(i)], d.to[d.p.Graph.Neighbor(i)]
	return a >= 0 && b >= 0 && (maxHops == 0 || int(a)+1+int(b) <= maxHops)
}

// attach adds to trails the ways from and to the nearest depots. With a limit of hops it first cuts them into parts
// that with those ways have at most maxHops links: route first, cut second (J. Beasley, Omega 11(4), 1983). Of all cuts
// of a trail it finds one with the fewest links in total, and of those one with the fewest parts. This takes O(length
// maxHops). Edges from copies on are second traversals, which a cut may leave out.
func (d *depotWays) attach(n *postman.Net, trails [][]int32, copies, maxHops int) []cover.Walk {
	var walks []cover.Walk
	var cost, parts, back []int
	for _, t := range trails {
		m := len(t)
		node := func(k int) int32 {
			if k == 0 {
				return n.From[t[0]]
			}
			return n.Head(t[k-1])
		}
		if maxHops == 0 {
			walks = append(walks, d.close(n, t, node(0), node(m)))
			continue
		}
		cost, parts, back = append(cost[:0], 0), append(parts[:0], 0), append(back[:0], 0)
		for k := 1; k <= m; k++ {
			best, pieces, from := math.MaxInt, 0, 0
			try := func(c, p, f int) {
				if c < best || c == best && p < pieces {
					best, pieces, from = c, p, f
				}
			}
			if int(t[k-1]>>1) >= copies && cost[k-1] < math.MaxInt {
				try(cost[k-1], parts[k-1], -1)
			}
			for i := k - 1; i >= max(0, k-maxHops); i-- {
				a, b := int(d.from[node(i)]), int(d.to[node(k)])
				if cost[i] == math.MaxInt || a < 0 || b < 0 || a+k-i+b > maxHops {
					continue
				}
				try(cost[i]+a+k-i+b, parts[i]+1, i)
			}
			cost, parts, back = append(cost, best), append(parts, pieces), append(back, from)
		}
		first := len(walks)
		for k := m; k > 0; {
			i := back[k]
			if i < 0 {
				k--
				continue
			}
			walks = append(walks, d.close(n, t[i:k], node(i), node(k)))
			k = i
		}
		slices.Reverse(walks[first:])
	}
	return walks
}

// close adds the ways from and to the depots.
func (d *depotWays) close(n *postman.Net, part []int32, a, b int32) cover.Walk {
	w := make(cover.Walk, 0, int(d.from[a])+len(part)+int(d.to[b]))
	for v := a; d.from[v] > 0; v = int32(d.p.Graph.Node(int(d.by[v]))) {
		w = append(w, d.by[v])
	}
	slices.Reverse(w)
	for _, h := range part {
		w = append(w, n.Label[h])
	}
	for v := b; d.to[v] > 0; v = int32(d.p.Graph.Neighbor(int(d.next[v]))) {
		w = append(w, d.next[v])
	}
	return w
}
