package postman

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// INTBalance is INT-Balance (ICC 2023), the second published way to make lengths more equal. Segments run from odd node
// to odd node. The two shortest that share an end are joined until every odd node is the end of one.
//
// Points that the paper leaves open are decided here. The shortest segment that can be joined is joined with the
// shortest partner, earlier ones first. Circuits that pass no odd node are spliced into the first segment that they
// touch. Components without odd nodes are one circuit.
func (n *Net) INTBalance() [][]int32 {
	w := newWalker(n)
	j := &segments{Net: n, at: make([][]int32, n.Nodes)}
	j.queue.Less = func(a, b *int32) bool {
		return cmp.Or(cmp.Compare(len(j.trails[*a]), len(j.trails[*b])), cmp.Compare(*a, *b)) < 0
	}
	for v := range int32(n.Nodes) {
		if len(n.Out(v))%2 == 0 {
			continue
		}
		for w.leave(v) >= 0 {
			var trail []int32
			for u := v; len(trail) == 0 || len(n.Out(u))%2 == 0; {
				h := w.leave(u)
				w.used[h>>1] = true
				trail = append(trail, h)
				u = w.Head(h)
			}
			j.trails = append(j.trails, trail)
		}
	}
	for k := range j.trails {
		j.trails[k] = w.splice(j.trails[k])
		j.enter(int32(k))
	}
	trails := j.join()
	for v := range int32(n.Nodes) {
		if w.leave(v) >= 0 {
			trails = append(trails, slices.Clone(w.tour(v)))
		}
	}
	return trails
}

// segments are trails between odd nodes, to be joined.
type segments struct {
	*Net
	trails [][]int32
	at     [][]int32       // by node: segments that ended there, some of which are no more
	queue  opt.Heap[int32] // those that may still be joined, the shortest first
}

func (j *segments) first(k int32) int32 { return j.From[j.trails[k][0]] }
func (j *segments) last(k int32) int32  { return j.Head(j.trails[k][len(j.trails[k])-1]) }

// enter notes segment k, which is new.
func (j *segments) enter(k int32) {
	for _, v := range [...]int32{j.first(k), j.last(k)} {
		if list := j.at[v]; len(list) == 0 || list[len(list)-1] != k {
			j.at[v] = append(list, k)
		}
	}
	j.queue.Push(k)
}

// partner finds the shortest other segment that ends at v.
func (j *segments) partner(k, v int32) int32 {
	best := int32(-1)
	kept := j.at[v][:0]
	for _, x := range j.at[v] {
		if j.trails[x] == nil {
			continue
		}
		kept = append(kept, x)
		if x != k && (best < 0 || len(j.trails[x]) < len(j.trails[best])) {
			best = x
		}
	}
	j.at[v] = kept
	return best
}

// join joins segments until none can be joined, and returns the rest. A node where one end is left is done. As degrees
// are odd, no closed segment is ever alone at its node.
func (j *segments) join() (trails [][]int32) {
	for len(j.queue.Items) > 0 {
		k := j.queue.Pop()
		if j.trails[k] == nil {
			continue
		}
		x := int32(-1)
		for _, v := range [...]int32{j.first(k), j.last(k)} {
			if y := j.partner(k, v); y >= 0 && (x < 0 || len(j.trails[y]) < len(j.trails[x])) {
				x = y
			}
		}
		if x < 0 {
			trails = append(trails, j.trails[k])
			continue
		}
		a, b := j.trails[k], j.trails[x]
		switch { // turn both so that a's end is where b starts
		case j.last(k) == j.first(x):
		case j.last(k) == j.last(x):
			Reverse(b)
		case j.first(k) == j.first(x):
			Reverse(a)
		default:
			Reverse(a)
			Reverse(b)
		}
		j.trails[k], j.trails[x] = nil, nil
		j.trails = append(j.trails, append(append(make([]int32, 0, len(a)+len(b)), a...), b...))
		j.enter(int32(len(j.trails) - 1))
	}
	return trails
}
