package pathtrace

import (
	"math"

	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// turns returns for each node one, and with what probability a path that follows a link goes from there to any one
// neighbour.
func turns(m *prior.Model) (even, turns []float64) {
	even, turns = make([]float64, len(m.Nodes)), make([]float64, len(m.Nodes))
	for u := range even {
		even[u] = 1
		if m.First == nil {
			continue
		}
		if n := len(m.Neighbours(uint16(u))); n > 0 {
			turns[u] = (1 - jumped) / float64(n)
		}
	}
	return even, turns
}

// none returns the likelihood of the digests of a hop for a node with which none of them agrees. It is relative to a
// node that is not known.
func (x *loose) none(h int) float64 { return math.Exp2(max(x.base[h], -120)) }

// one is that of a node which some agree with.
func (x *loose) one(h, v int, u uint16) float64 {
	return math.Exp2(min(max(float64(x.like[h*v+int(u)])+x.base[h], -120), 200))
}

// sum adds up all ways forward and backward, and settles the hops of which one node has nearly all.
func (t *Tracer) sum(f *Flow, x *loose) {
	m, v := t.m, len(t.m.Nodes)
	copy(x.forward[:v], x.even)
	x.restrict(m, x.forward[:v], f.Ingress)
	for h := range x.k - 1 {
		scale := 1 / x.weighed(h, x.forward[h*v:][:v])
		for u, p := range x.turns {
			x.next[u] *= p
		}
		step(m, x.forward[(h+1)*v:][:v], x.next, x.even, scale)
	}
	copy(x.back, x.even)
	x.restrict(m, x.back, f.Egress)
	x.settled = 0
	for h := x.k - 1; h >= 0; h-- {
		x.choose(h, x.forward[h*v:][:v])
		if h > 0 {
			scale := 1 / x.weighed(h, x.back)
			step(m, x.back, x.next, x.turns, scale)
		}
	}
}

// weighed puts into next the sums of ways to the nodes of a hop times the likelihood of its digests. It returns their
// sum.
func (x *loose) weighed(h int, ways []float64) float64 {
	none, sum := x.none(h)+strayed, 0.0
	next := x.next[:len(ways)]
	for u, w := range ways {
		w *= none
		next[u] = w
		sum += w
	}
	for _, u := range x.agreed[h] {
		w := ways[u] * (x.one(h, len(ways), u) + strayed)
		sum += w - next[u]
		next[u] = w
	}
	return sum
}

// choose settles a hop.
func (x *loose) choose(h int, forward []float64) {
	sum, place, there := 0.0, 0.0, 0
	back := x.back[:len(forward)]
	for u, w := range forward {
		w *= back[u]
		sum += w
		if w > place {
			place, there = w, u
		}
	}
	none := x.none(h)
	known, most, best := sum*none, place*none, there
	for _, u := range x.agreed[h] {
		way, l := forward[u]*back[u], x.one(h, len(forward), u)
		known += way * (l - none)
		if w := way * l; w > most {
			most, best = w, int(u)
		}
	}
	unknown := sum * strayed
	total := known + unknown
	x.chance[h], x.missed[h], x.node[h] = most/total, unknown/total, uint16(best)
	if x.chance[h] >= settledAt {
		x.settled |= 1 << h
	} else if x.missed[h] > 0.5 {
		x.node[h] = uint16(there)
	}
}

// restrict makes nodes unlikely that are not among the ends.
func (x *loose) restrict(m *prior.Model, to []float64, end uint16) {
	set := m.End(end)
	if set == nil {
		return
	}
	for u := range to {
		if !has(set, uint16(u)) {
			to[u] *= jumped
		}
	}
}

// step adds to each node what its neighbours have, times its own share, and with a small probability what any node has.
// The total, times scale, is one, which keeps sums from growing. Forward, a giving node divides what it has among its
// neighbours; backward, a taking node does.
func step(m *prior.Model, to, from, shares []float64, scale float64) {
	jump := jumped / float64(len(to))
	if m.First == nil {
		jump /= jumped
	}
	for u := range to {
		to[u] = jump
	}
	if m.First == nil {
		return
	}
	at := m.First[0]
	for u, end := range m.First[1:] {
		sum := 0.0
		for _, w := range m.Peers[at:end] {
			sum += from[w]
		}
		to[u] += sum * scale * shares[u]
		at = end
	}
}
