package solve

import "github.com/hopscope/hopscope/planner/opt"

// bipartite is a bipartite graph with capacities at its nodes; edges carry any amount. Its largest flow from left to
// right weighs as much as its cheapest vertex cover.
type bipartite struct {
	left, right    []int64 // capacity left over
	lstart, rstart []int32 // into edges by left and right node
	to             []int32 // right node of an edge; edges are numbered by their left node
	back           []int32 // edges of a right node
	from           []int32 // left node of an edge
	flow           []int64 // by edge

	llevel, rlevel []int32 // of the last search
	lnext, rnext   []int32
	queue          []int32 // left nodes, and right nodes as their complements
	last           int32   // level of the right nodes with capacity that were found first
}

func newBipartite(left, right []int64, from, to []int32) *bipartite {
	n, m, e := len(left), len(right), len(from)
	ints := make([]int32, 2*e+3*(n+m))
	cut := func(k int) []int32 {
		s := ints[:k:k]
		ints = ints[k:]
		return s
	}
	g := &bipartite{left: left, right: right, flow: make([]int64, e)}
	g.to, g.from = cut(e), cut(e)
	g.llevel, g.rlevel, g.lnext, g.rnext = cut(n), cut(m), cut(n), cut(m)
	g.queue = cut(n + m)[:0]
	lstart, edge := opt.Group(from, n)
	for k, e := range edge {
		g.to[k], g.from[k] = to[e], from[e]
	}
	g.lstart = lstart
	g.rstart, g.back = opt.Group(g.to, m)
	return g
}

// run finds a largest flow (E. A. Dinic, 1970), begun with what fits edge by edge, and returns it.
func (g *bipartite) run() int64 {
	var sum int64
	for e, u := range g.from {
		v := g.to[e]
		if d := min(g.left[u], g.right[v]); d > 0 {
			g.left[u] -= d
			g.right[v] -= d
			g.flow[e] = d
			sum += d
		}
	}
	for g.search() {
		copy(g.lnext, g.lstart)
		copy(g.rnext, g.rstart)
		for u := range g.left {
			if g.left[u] > 0 {
				d := g.pushLeft(int32(u), g.left[u])
				g.left[u] -= d
				sum += d
			}
		}
	}
	return sum
}

// search sets the distances of nodes from capacity on the left, up to capacity on the right. It reports whether it
// reached any.
func (g *bipartite) search() bool {
	const far = 1 << 30
	g.queue = g.queue[:0]
	for u := range g.llevel {
		g.llevel[u] = far
		if g.left[u] > 0 {
			g.llevel[u] = 0
			g.queue = append(g.queue, int32(u))
		}
	}
	for v := range g.rlevel {
		g.rlevel[v] = far
	}
	g.last = far
	for head := 0; head < len(g.queue); head++ {
		x := g.queue[head]
		if x >= 0 {
			level := g.llevel[x] + 1
			if level > g.last {
				break
			}
			for e := g.lstart[x]; e < g.lstart[x+1]; e++ {
				if v := g.to[e]; g.rlevel[v] == far {
					g.rlevel[v] = level
					if g.right[v] > 0 {
						g.last = level
					}
					g.queue = append(g.queue, ^v)
				}
			}
			continue
		}
		v := ^x
		level := g.rlevel[v] + 1
		if level > g.last {
			break
		}
		for _, e := range g.back[g.rstart[v]:g.rstart[v+1]] {
			if u := g.from[e]; g.flow[e] > 0 && g.llevel[u] == far {
				g.llevel[u] = level
				g.queue = append(g.queue, u)
			}
		}
	}
	return g.last < far
}

func (g *bipartite) pushLeft(u int32, want int64) int64 {
	var sum int64
	for ; g.lnext[u] < g.lstart[u+1]; g.lnext[u]++ {
		e := g.lnext[u]
		v := g.to[e]
		if g.rlevel[v] != g.llevel[u]+1 {
			continue
		}
		d := g.pushRight(v, want-sum)
		g.flow[e] += d
		if sum += d; sum == want {
			break
		}
	}
	return sum
}

func (g *bipartite) pushRight(v int32, want int64) int64 {
	sum := min(g.right[v], want)
	g.right[v] -= sum
	if sum == want || g.rlevel[v] >= g.last {
		return sum
	}
	for ; g.rnext[v] < g.rstart[v+1]; g.rnext[v]++ {
		e := g.back[g.rnext[v]]
		u := g.from[e]
		if g.flow[e] == 0 || g.llevel[u] != g.rlevel[v]+1 {
			continue
		}
		d := g.pushLeft(u, min(want-sum, g.flow[e]))
		g.flow[e] -= d
		if sum += d; sum == want {
			break
		}
	}
	return sum
}

// side is the side of a cheapest cut that a node is on. The cover of a cut is the left nodes on the sink's side and the
// right nodes on the source's side.
type side int8

const (
	free   side = iota // cheapest cuts differ
	source             // in all of them
	sink
)

// sides gives the nodes that are on one side in all cheapest cuts, after run.
func (g *bipartite) sides() (left, right []side) {
	all := make([]side, len(g.left)+len(g.right))
	left, right = all[:len(g.left)], all[len(g.left):]
	for u, c := range g.left {
		if c > 0 && left[u] == free {
			g.toSource(left, right, int32(u))
		}
	}
	for v, c := range g.right {
		if c > 0 && right[v] == free {
			g.toSink(left, right, ^int32(v))
		}
	}
	return left, right
}

// toSource puts node x (a right node as its complement) on the source's side, and with it all that residual capacity
// leads to. None of these may be on the sink's side.
func (g *bipartite) toSource(left, right []side, x int32) { g.spread(left, right, x, source) }

// toSink puts node x (a right node as its complement) on the sink's side, and with it all that has residual capacity to
// it. None of these may be on the source's side.
func (g *bipartite) toSink(left, right []side, x int32) { g.spread(left, right, x, sink) }

// spread puts node x on a side, and with it what residual capacity joins to it: forward on the source's side, backward on
// the sink's. An edge has residual capacity from left to right always, and back where it carries something.
func (g *bipartite) spread(left, right []side, x int32, on side) {
	q := g.queue[:0]
	add := func(x int32, ok bool) {
		s, i := left, x
		if x < 0 {
			s, i = right, ^x
		}
		if ok && s[i] == free {
			s[i] = on
			q = append(q, x)
		}
	}
	for add(x, true); len(q) > 0; {
		x := q[len(q)-1]
		q = q[:len(q)-1]
		if x >= 0 {
			for e := g.lstart[x]; e < g.lstart[x+1]; e++ {
				add(^g.to[e], on == source || g.flow[e] > 0)
			}
			continue
		}
		for _, e := range g.back[g.rstart[^x]:g.rstart[^x+1]] {
			add(g.from[e], on == sink || g.flow[e] > 0)
		}
	}
}
