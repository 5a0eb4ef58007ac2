package opt

import "slices"

// Nearest visits nodes by their distance from one or more sources (E. Dijkstra, "A note on two problems in connexion with
// graphs", Numerische Mathematik 1, 1959): O(E log E) for E calls of Reach. Lengths are not negative. Equally near nodes
// come in the order of their numbers. The graph is the caller's, which calls Reach for what each node leads to:
//
//	s.Begin(nodes, none)
//	s.Reach(source, 0)
//	for v, d, ok := s.Next(); ok; v, d, ok = s.Next() {
//		s.Reach(w, d+length) // for every edge from v to w
//	}
type Nearest[D int64 | float64] struct {
	Dist    []D // by node, as far as known; that of Begin where nothing is
	none    D
	reached []int32
	queue   Heap[nearestItem[D]]
}

type nearestItem[D int64 | float64] struct {
	dist D
	node int32
}

// Begin forgets the last search. Nodes that are not reached have the distance none. It takes as long as that search, and
// O(nodes) once.
func (s *Nearest[D]) Begin(nodes int, none D) {
	if len(s.Dist) != nodes || s.none != none {
		s.Dist, s.none, s.reached = slices.Repeat([]D{none}, nodes), none, s.reached[:0]
	}
	for _, v := range s.reached {
		s.Dist[v] = none
	}
	s.reached, s.queue.Items = s.reached[:0], s.queue.Items[:0]
	s.queue.Less = func(a, b *nearestItem[D]) bool { return a.dist < b.dist || a.dist == b.dist && a.node < b.node }
}

// Reach adds a way of length d to v, and reports whether it is shorter than all before.
func (s *Nearest[D]) Reach(v int32, d D) bool {
	old := s.Dist[v]
	if old != s.none && d >= old {
		return false
	}
	if old == s.none {
		s.reached = append(s.reached, v)
	}
	s.Dist[v] = d
	s.queue.Push(nearestItem[D]{d, v})
	return true
}

// Next returns the nearest node that was not visited, and its distance. The result ok is false if there is none.
func (s *Nearest[D]) Next() (v int32, d D, ok bool) {
	for len(s.queue.Items) > 0 {
		if x := s.queue.Pop(); x.dist == s.Dist[x.node] {
			return x.node, x.dist, true
		}
	}
	return -1, 0, false
}
