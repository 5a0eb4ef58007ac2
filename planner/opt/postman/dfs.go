package postman

// DFS is the first plan of INT-path. It walks along unused edges, neighbours in ascending order. At a dead end it
// returns to the last fork, where the next path begins. It does not find the fewest paths. O(V + E).
//
// Figure 2 of the paper calls itself with the current node instead of the neighbour and would never end. This is the
// algorithm of its text, with an explicit stack and all components.
func (n *Net) DFS() [][]int32 {
	w := newWalker(n.sorted())
	var trails [][]int32
	backing := make([]int32, 0, n.Edges())
	var stack []int32
	for v := range int32(n.Nodes) {
		stack = append(stack[:0], v)
		from := len(backing)
		for len(stack) > 0 {
			h := w.leave(stack[len(stack)-1])
			if h >= 0 {
				w.used[h>>1] = true
				backing = append(backing, h)
				stack = append(stack, w.Head(h))
				continue
			}
			if len(backing) > from {
				trails = append(trails, backing[from:len(backing):len(backing)])
				from = len(backing)
			}
			stack = stack[:len(stack)-1]
		}
	}
	return trails
}

// sorted is the net with the halves of a node in ascending order of their heads.
func (n *Net) sorted() *Net {
	s := *n
	s.adj = make([]int32, len(n.adj))
	next := append([]int32(nil), n.first...)
	for v := range int32(n.Nodes) {
		for _, h := range n.Out(v) {
			u := n.Head(h)
			s.adj[next[u]] = h ^ 1
			next[u]++
		}
	}
	return &s
}
