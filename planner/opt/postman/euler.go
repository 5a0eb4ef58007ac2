package postman

// walker cuts trails from a net: every edge once.
type walker struct {
	*Net
	used       []bool  // by edge
	next       []int32 // place in adj from which on node v may have unused halves
	start, end []int32 // trails that still have to start or end at a node
	stack      []step
	circuit    []int32
}

type step struct{ node, by int32 } // the half that led to the node, or -1

func newWalker(n *Net) *walker {
	w := &walker{Net: n, used: make([]bool, n.Edges()), next: make([]int32, n.Nodes)}
	copy(w.next, n.first)
	w.start, w.end = n.Ends()
	return w
}

// leave returns an unused half that leaves v, or -1.
func (w *walker) leave(v int32) int32 {
	for end := w.first[v+1]; w.next[v] < end; w.next[v]++ {
		if h := w.adj[w.next[v]]; !w.used[h>>1] && w.Walkable(h) {
			return h
		}
	}
	return -1
}

// Euler covers the net with as few trails as possible in O(V + E).
//
// First, from every node where a trail has to start, a trail runs until it can go no further. With spread set it stops
// where it may end once it is about as long as the mean. The remaining edges have no odd nodes and consist of circuits,
// which are spliced into trails that touch them. A trail takes all that it reaches; with spread set, small circuits
// first go to short trails. Components without odd nodes are one circuit.
func (n *Net) Euler(spread bool) [][]int32 {
	w := newWalker(n)
	edges, fewest := n.Fewest()
	total := 0
	for _, k := range fewest {
		total += k
	}
	trails := make([][]int32, 0, total)
	backing := make([]int32, 0, n.Edges())
	for v := range int32(n.Nodes) {
		for w.start[v] > 0 {
			from, least := len(backing), n.Edges()+1
			if spread {
				c := n.Comp[v]
				least = edges[c] / fewest[c]
			}
			backing = w.trail(backing, v, least)
			trails = append(trails, backing[from:len(backing):len(backing)])
		}
	}
	if spread {
		for k := range trails {
			c := n.Comp[n.From[trails[k][0]]]
			trails[k] = w.spliceSome(trails[k], edges[c]/fewest[c])
		}
	}
	for k := range trails {
		trails[k] = w.splice(trails[k])
	}
	for v := range int32(n.Nodes) {
		if w.leave(v) >= 0 {
			trails = append(trails, append([]int32(nil), w.tour(v)...))
		}
	}
	return trails
}

// trail walks from v to a node where a trail may end: to the first after least edges, or to where no edge is left.
func (w *walker) trail(dst []int32, v int32, least int) []int32 {
	w.start[v]--
	if !w.Directed {
		w.end[v]--
	}
	for n := 0; ; n++ {
		h := w.leave(v)
		if h < 0 || n >= least && w.end[v] > 0 {
			w.end[v]--
			if !w.Directed {
				w.start[v]--
			}
			return dst
		}
		w.used[h>>1] = true
		dst = append(dst, h)
		v = w.Head(h)
	}
}

// splice inserts every circuit that the trail touches.
func (w *walker) splice(trail []int32) []int32 {
	var out []int32 // nil until a circuit is found
	at := func(k int, v int32) {
		if w.leave(v) < 0 {
			return
		}
		if out == nil {
			out = append(make([]int32, 0, 2*len(trail)+16), trail[:k]...)
		}
		out = append(out, w.tour(v)...)
	}
	for k, h := range trail {
		at(k, w.From[h])
		if out != nil {
			out = append(out, h)
		}
	}
	at(len(trail), w.Head(trail[len(trail)-1]))
	if out == nil {
		return trail
	}
	return out
}

// tour is a circuit through v of all unused edges that can be reached (Hierholzer's algorithm with its own stack). Its
// memory is reused by the next one.
func (w *walker) tour(v int32) []int32 {
	w.circuit = w.circuit[:0]
	w.stack = append(w.stack[:0], step{v, -1})
	for len(w.stack) > 0 {
		top := w.stack[len(w.stack)-1]
		if h := w.leave(top.node); h >= 0 {
			w.used[h>>1] = true
			w.stack = append(w.stack, step{w.Head(h), h})
			continue
		}
		w.stack = w.stack[:len(w.stack)-1]
		if top.by >= 0 {
			w.circuit = append(w.circuit, top.by)
		}
	}
	for i, j := 0, len(w.circuit)-1; i < j; i, j = i+1, j-1 {
		w.circuit[i], w.circuit[j] = w.circuit[j], w.circuit[i]
	}
	return w.circuit
}

// spliceSome inserts circuits, each closed where it first comes back, until the trail is as long as most.
func (w *walker) spliceSome(trail []int32, most int) []int32 {
	if len(trail) >= most {
		return trail
	}
	out := make([]int32, 0, most+most/4+8)
	v := w.From[trail[0]]
	for k := 0; ; k++ {
		for len(out)+len(trail)-k < most && w.leave(v) >= 0 {
			for u := v; ; {
				h := w.leave(u)
				w.used[h>>1] = true
				out = append(out, h)
				if u = w.Head(h); u == v {
					break
				}
			}
		}
		if k == len(trail) {
			return out
		}
		out = append(out, trail[k])
		v = w.Head(trail[k])
	}
}
