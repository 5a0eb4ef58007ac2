package postman

import (
	"math"

	"github.com/hopscope/hopscope/planner/opt"
)

// AugmentDirected adds to a directed net further traversals of least total weight. After that, every node but depots is
// left as often as it is entered. Without them, walks between depots would have to balance every node one by one. The
// result is a bound of the weight of all further traversals, and exact if stop did not end the search.
//
// This is a flow of least cost, from nodes that are entered more often to those that are left more often. All depots
// are one node that takes and gives any number (J. Edmonds and R. Karp, "Theoretical improvements in algorithmic
// efficiency for network flow problems", Journal of the ACM 19, 1972). Nodes have potentials. No edge costs less than
// the difference of the potentials of its ends, so that these prove a bound at any time.
func (n *Net) AugmentDirected(depot []bool, weight []int64, stop func() bool) (bound int64) {
	f := &flow{Net: n, weight: weight, count: make([]int64, n.Edges()), place: make([]int32, n.Nodes)}
	f.excess, f.potential = make([]int64, n.Nodes+1), make([]int64, n.Nodes+1)
	for v := range f.place {
		if f.place[v] = int32(v); depot[v] {
			f.place[v] = int32(n.Nodes)
			f.depots = append(f.depots, int32(v))
		}
	}
	for e := range n.Edges() {
		f.excess[f.goal(int32(2*e))]++
		f.excess[f.tail(int32(2*e))]--
	}
	need := make([]int64, len(f.excess))
	for v, x := range f.excess {
		need[v] = -x
	}
	for f.search() && !stop() {
		f.push()
	}
	for v, x := range need {
		bound += x * f.potential[v]
	}
	original := n.Edges()
	for e := range original {
		for range f.count[e] {
			n.repeat(e)
		}
	}
	n.Finish()
	return max(0, bound)
}

type flow struct {
	*Net
	weight    []int64 // by edge
	count     []int64 // further traversals, by edge
	place     []int32 // of a node: itself, or the one place of all depots
	depots    []int32
	excess    []int64 // by place: how often more it is come to than left
	potential []int64
	near      opt.Nearest[int64]
}

func (f *flow) tail(h int32) int32 { return f.place[f.From[h]] }
func (f *flow) goal(h int32) int32 { return f.place[f.From[h^1]] }

// cost of a half: that of its edge, or what is gained by taking a further traversal back.
func (f *flow) cost(h int32) (cost int64, ok bool) {
	if h&1 == 0 {
		return f.weight[h>>1], true
	}
	return -f.weight[h>>1], f.count[h>>1] > 0
}

// each calls do for the halves that leave a place, until do returns false.
func (f *flow) each(v int32, do func(h int32) bool) {
	if int(v) < f.Nodes {
		for _, h := range f.Out(v) {
			if do(h) {
				return
			}
		}
		return
	}
	for _, d := range f.depots {
		for _, h := range f.Out(d) {
			if do(h) {
				return
			}
		}
	}
}

// search raises the potentials by the distances from all places with an excess, and reports whether there is one.
func (f *flow) search() bool {
	f.near.Begin(len(f.excess), math.MaxInt64)
	for v, x := range f.excess {
		if x > 0 {
			f.near.Reach(int32(v), 0)
		}
	}
	farthest := int64(-1)
	for v, dist, ok := f.near.Next(); ok; v, dist, ok = f.near.Next() {
		farthest = dist
		f.each(v, func(h int32) bool {
			w := f.goal(h)
			if c, ok := f.cost(h); ok {
				f.near.Reach(w, dist+c+f.potential[v]-f.potential[w])
			}
			return false
		})
	}
	if farthest < 0 {
		return false
	}
	for v, d := range f.near.Dist {
		f.potential[v] += min(d, farthest)
	}
	return true
}

// push moves excess along edges that cost just the difference of potentials, as far as it finds ways.
func (f *flow) push() {
	seen := make([]bool, len(f.excess))
	next := make([][]int32, len(f.excess)) // halves of a place that have not failed
	var way []int32
	enter := func(v int32) {
		if seen[v] = true; next[v] == nil {
			next[v] = append(f.tight(v), -1)
		}
	}
	for v := range int32(len(f.excess)) {
		for f.excess[v] > 0 && !seen[v] {
			at := v
			way = way[:0]
			enter(at)
			for f.excess[at] >= 0 {
				h := next[at][0]
				if h < 0 { // nothing leads on from here
					if len(way) == 0 {
						break
					}
					at = f.tail(way[len(way)-1])
					way = way[:len(way)-1]
					next[at] = next[at][1:]
					continue
				}
				w := f.goal(h)
				if _, ok := f.cost(h); !ok || seen[w] {
					next[at] = next[at][1:]
					continue
				}
				at, way = w, append(way, h)
				enter(at)
			}
			if f.excess[at] < 0 {
				f.augment(v, at, way)
				for _, h := range way {
					seen[f.tail(h)], seen[f.goal(h)] = false, false
				}
			}
		}
	}
}

// augment moves as much of the excess of v as can go along a way to a place that lacks some.
func (f *flow) augment(v, to int32, way []int32) {
	amount := min(f.excess[v], -f.excess[to])
	for _, h := range way {
		if h&1 == 1 {
			amount = min(amount, f.count[h>>1])
		}
	}
	for _, h := range way {
		if f.count[h>>1] += amount; h&1 == 1 {
			f.count[h>>1] -= 2 * amount
		}
	}
	f.excess[v] -= amount
	f.excess[to] += amount
}

// tight lists the halves that leave a place and cost just the difference of potentials.
func (f *flow) tight(v int32) (list []int32) {
	f.each(v, func(h int32) bool {
		if c, ok := f.cost(h); ok && c+f.potential[v]-f.potential[f.goal(h)] == 0 {
			list = append(list, h)
		}
		return false
	})
	return list
}
