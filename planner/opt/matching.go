package opt

import (
	"math"
	"slices"
)

// Pair is a pair of nodes that may be matched.
type Pair struct {
	U, V   int32
	Weight int64 // above 0
}

// Match finds a matching of greatest total weight in a graph of n nodes: mate[v] is the partner of v, or -1. It also
// returns the dual solution that proves it.
//
// Match is Edmonds' blossom algorithm in its primal-dual form (J. Edmonds, "Maximum matching and a polyhedron with
// 0,1-vertices", 1965; Z. Galil, "Efficient algorithms for finding maximum matching in graphs", ACM Computing Surveys
// 18(1), 1986). The trees of all unmatched nodes grow together, so that these share one dual value. The search ends
// when that value is 0. It never grows, so it changes at most W times, where W is the greatest weight. Each change
// looks at all pairs: O(m W) in all. Weights are distances in links here, which are small. That beats the lists of
// least slack of the O(n³) form. A pair that lengthens the matching removes two trees, and the others stay. This costs
// O(m n) at worst for all pairs, but mostly trees are small.
//
// If stop ends the search early, the matching is valid, but neither the greatest nor proven.
func Match(n int, pairs []Pair, stop func() bool) (mate []int32, proof Duals, done bool) {
	m := newMatcher(n, pairs)
	m.greedy()
	for v := range int32(n) {
		if m.mate[v] < 0 {
			m.grow(v, outer, -1)
		}
	}
	for done = true; ; {
		for m.search() && done {
			done = !stop()
		}
		if !done || !m.adjust() {
			break
		}
	}
	mate = make([]int32, n)
	for v, h := range m.mate {
		if mate[v] = -1; h >= 0 {
			mate[v] = m.end[h]
		}
	}
	return mate, m.proof(), done
}

// Duals proves a matching. For every pair, the values of its nodes and twice those of all blossoms around both sum up
// to at least twice the weight. Half the values of all nodes, plus (size-1)/2 times the value of each blossom, sum up
// to the weight of the matching.
type Duals struct {
	Node     []int64
	Blossoms []Blossom
}

// Blossom is an odd set of nodes with its dual value.
type Blossom struct {
	Nodes []int32
	Value int64
}

// Labels of blossoms in the forest of alternating paths.
const (
	free  uint8 = iota
	outer       // roots, and nodes reached by a matched pair
	inner       // nodes reached by an unmatched pair
)

// matcher holds the state. Blossoms are numbered from 0, and the first n are the nodes themselves. Half h belongs to pair
// h/2 and leads to node end[h]; its other half is h^1.
type matcher struct {
	n      int
	end    []int32
	weight []int64   // by pair
	adj    [][]int32 // halves that lead away from a node

	mate []int32 // of a node: the half that leads to its partner, or -1
	dual []int64 // of a node or blossom, twice the value for nodes

	lead   []int32   // towards the node that stands for all of an outermost blossom; see outermost
	size   []int32   // of a blossom, by the node that stands for it
	top    []int32   // outermost blossom, by the node that stands for it
	parent []int32   // blossom around a blossom, or -1
	base   []int32   // node of a blossom that is matched outside of it, or not at all
	parts  [][]int32 // of a blossom, round its circuit, from the one with the base
	links  [][]int32 // the half that leads from a part to the next
	spare  []int32   // numbers of blossoms that are not in use

	label   []uint8   // of an outermost blossom
	entry   []int32   // the half that leads into it from its parent in the tree; -1 for roots
	tree    []int32   // node that is the root of its tree
	members [][]int32 // by root: the nodes of its tree
	felled  []int32   // nodes of trees that are no more
	queue   []int32   // outer nodes to search from
	mark    []bool    // of ancestor
}

func newMatcher(n int, pairs []Pair) *matcher {
	m := &matcher{n: n, end: make([]int32, 2*len(pairs)), weight: make([]int64, len(pairs)), adj: make([][]int32, n)}
	var most int64
	for k, p := range pairs {
		m.end[2*k], m.end[2*k+1] = p.V, p.U
		m.weight[k] = p.Weight
		m.adj[p.U] = append(m.adj[p.U], int32(2*k))
		m.adj[p.V] = append(m.adj[p.V], int32(2*k+1))
		most = max(most, p.Weight)
	}
	ints := func(size int) []int32 { return slices.Repeat([]int32{-1}, size) }
	m.lead, m.size = ints(n), make([]int32, n)
	m.mate, m.top, m.parent, m.base, m.entry = ints(n), ints(n), ints(2*n), ints(2*n), ints(2*n)
	m.tree, m.members = ints(2*n), make([][]int32, n)
	m.dual, m.label, m.mark = make([]int64, 2*n), make([]uint8, 2*n), make([]bool, 2*n)
	m.parts, m.links = make([][]int32, 2*n), make([][]int32, 2*n)
	for v := range n {
		m.dual[v] = most
		m.assign(int32(v), int32(v))
		m.base[v] = int32(v)
		m.spare = append(m.spare, int32(2*n-1-v))
	}
	return m
}

func (m *matcher) slack(h int32) int64 {
	return m.dual[m.end[h]] + m.dual[m.end[h^1]] - 2*m.weight[h>>1]
}

// greedy matches along tight pairs.
func (m *matcher) greedy() {
	for v := range int32(m.n) {
		for _, h := range m.adj[v] {
			if w := m.end[h]; m.mate[v] < 0 && m.mate[w] < 0 && m.slack(h) == 0 {
				m.mate[v], m.mate[w] = h, h^1
			}
		}
	}
}

// fell makes the blossoms of a tree free, since its root is matched. Outer nodes of other trees that they border on are
// searched from once more.
func (m *matcher) fell(root int32) {
	for _, b := range m.members[root] {
		if m.label[b] == free || m.parent[b] >= 0 || m.tree[b] != root {
			continue // it has become part of another blossom, or is none any more
		}
		m.felled = m.leaves(m.felled, b)
		if m.label[b], m.entry[b] = free, -1; int(b) >= m.n && m.dual[b] == 0 {
			m.dissolve(b)
		}
	}
	m.members[root] = m.members[root][:0]
}

// border queues the outer nodes that border on what was felled.
func (m *matcher) border() {
	for _, v := range m.felled {
		for _, h := range m.adj[v] {
			if w := m.end[h]; m.label[m.outermost(w)] == outer && m.slack(h) == 0 {
				m.queue = append(m.queue, w)
			}
		}
	}
	m.felled = m.felled[:0]
}

// outermost is the outermost blossom of a node. Blossoms grow by a few nodes at a time, so that what they hold is kept as
// sets to be united (R. Tarjan, "Efficiency of a good but not linear set union algorithm", Journal of the ACM 22, 1975).
func (m *matcher) outermost(v int32) int32 { return m.top[m.leader(v)] }

func (m *matcher) leader(v int32) int32 {
	for m.lead[v] != v {
		m.lead[v] = m.lead[m.lead[v]]
		v = m.lead[v]
	}
	return v
}

// assign makes nodes those of the outermost blossom b.
func (m *matcher) assign(b int32, nodes ...int32) {
	for _, v := range nodes {
		m.lead[v] = nodes[0]
	}
	m.size[nodes[0]], m.top[nodes[0]] = int32(len(nodes)), b
}

// grow labels the outermost blossom of v, which half h leads into.
func (m *matcher) grow(v int32, label uint8, h int32) {
	b := m.outermost(v)
	root := v
	if h >= 0 {
		root = m.tree[m.outermost(m.end[h^1])]
	}
	m.enter(b, root, label, h)
	if label == outer {
		m.queue = m.leaves(m.queue, b)
		return
	}
	mate := m.mate[m.base[b]]
	m.grow(m.end[mate], outer, mate)
}

// enter makes an outermost blossom a part of a tree.
func (m *matcher) enter(b, root int32, label uint8, entry int32) {
	m.label[b], m.entry[b], m.tree[b] = label, entry, root
	m.members[root] = append(m.members[root], b)
}

// leaves appends the nodes of a blossom.
func (m *matcher) leaves(dst []int32, b int32) []int32 {
	if int(b) < m.n {
		return append(dst, b)
	}
	for _, p := range m.parts[b] {
		dst = m.leaves(dst, p)
	}
	return dst
}

// search grows the trees along tight pairs, until there are no more (false) or two trees meet (true).
func (m *matcher) search() bool {
	for len(m.queue) > 0 {
		v := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		if m.label[m.outermost(v)] != outer {
			continue // of a tree that was felled
		}
		for _, h := range m.adj[v] {
			w := m.end[h]
			if m.outermost(v) == m.outermost(w) || m.slack(h) > 0 {
				continue
			}
			switch m.label[m.outermost(w)] {
			case free:
				m.grow(w, inner, h)
			case outer:
				if a := m.ancestor(v, w); a >= 0 {
					m.contract(a, h)
				} else {
					r, s := m.tree[m.outermost(v)], m.tree[m.outermost(w)]
					m.augment(h)
					m.augment(h ^ 1)
					m.fell(r)
					m.fell(s)
					m.border()
					return true
				}
			}
		}
	}
	return false
}

// ancestor is the outermost blossom where the ways to the roots from two outer nodes meet, or -1.
func (m *matcher) ancestor(v, w int32) int32 {
	var path []int32
	found := int32(-1)
	a, b := m.outermost(v), m.outermost(w)
	for a >= 0 || b >= 0 {
		if a >= 0 {
			if m.mark[a] {
				found = a
				break
			}
			m.mark[a] = true
			path = append(path, a)
			a = m.up(a)
		}
		a, b = b, a
	}
	for _, p := range path {
		m.mark[p] = false
	}
	return found
}

// up is the next outer blossom on the way to the root, or -1.
func (m *matcher) up(b int32) int32 {
	if m.entry[b] < 0 {
		return -1
	}
	b = m.outermost(m.end[m.entry[b]^1])
	return m.outermost(m.end[m.entry[b]^1])
}

// contract makes a blossom of the circuit that half h between two outer nodes closes with the ways to their common
// ancestor.
func (m *matcher) contract(ancestor, h int32) {
	b := m.spare[len(m.spare)-1]
	m.spare = m.spare[:len(m.spare)-1]
	var parts, links []int32
	for p := m.outermost(m.end[h^1]); p != ancestor; p = m.outermost(m.end[m.entry[p]^1]) {
		parts, links = append(parts, p), append(links, m.entry[p])
	}
	parts = append(parts, ancestor)
	slices.Reverse(parts)
	slices.Reverse(links)
	links = append(links, h)
	for p := m.outermost(m.end[h]); p != ancestor; p = m.outermost(m.end[m.entry[p]^1]) {
		parts, links = append(parts, p), append(links, m.entry[p]^1)
	}
	m.parts[b], m.links[b] = parts, links
	m.base[b] = m.base[ancestor]
	m.enter(b, m.tree[ancestor], outer, m.entry[ancestor])
	m.parent[b], m.dual[b] = -1, 0
	lead := m.leader(m.base[ancestor])
	for _, p := range parts {
		if m.parent[p] = b; m.label[p] == inner { // outer nodes were searched from, or wait for it
			m.queue = m.leaves(m.queue, p)
		}
		other := m.leader(m.base[p])
		if other == lead {
			continue
		}
		if m.size[lead] < m.size[other] {
			lead, other = other, lead
		}
		m.lead[other] = lead
		m.size[lead] += m.size[other]
	}
	m.top[lead] = b
}

// augment turns the pairs round on the way from half h, which leads away from an outer node, back to its root.
func (m *matcher) augment(h int32) {
	for {
		v := m.end[h^1]
		b := m.outermost(v)
		m.rebase(b, v)
		m.mate[v] = h
		if m.entry[b] < 0 {
			return
		}
		t := m.outermost(m.end[m.entry[b]^1])
		in := m.entry[t]
		m.rebase(t, m.end[in])
		m.mate[m.end[in]] = in ^ 1
		h = in
	}
}

// rebase changes the pairs in blossom b so that its node v can be matched outside of it.
func (m *matcher) rebase(b, v int32) {
	if int(b) < m.n {
		return
	}
	part := v
	for m.parent[part] != b {
		part = m.parent[part]
	}
	m.rebase(part, v)
	parts, links := m.parts[b], m.links[b]
	i := slices.Index(parts, part)
	join := func(h int32, from, to int32) {
		m.rebase(from, m.end[h^1])
		m.rebase(to, m.end[h])
		m.mate[m.end[h^1]], m.mate[m.end[h]] = h, h^1
	}
	if i%2 == 1 {
		for k := i + 1; k < len(parts); k += 2 {
			join(links[k], parts[k], parts[(k+1)%len(parts)])
		}
	} else {
		for k := i; k > 0; k -= 2 {
			join(links[k-2], parts[k-2], parts[k-1])
		}
	}
	m.parts[b] = append(slices.Clone(parts[i:]), parts[:i]...)
	m.links[b] = append(slices.Clone(links[i:]), links[:i]...)
	m.base[b] = v
}

// adjust changes the dual values so that a pair becomes tight or a blossom can be opened. It reports false if the value
// of the unmatched nodes has reached 0: then the matching is the best.
func (m *matcher) adjust() bool {
	delta, last := int64(math.MaxInt64), true
	for v := range int32(m.n) {
		if m.label[m.outermost(v)] == outer {
			delta = min(delta, m.dual[v])
		}
	}
	if delta == math.MaxInt64 {
		return false // all are matched
	}
	for k := range m.weight {
		h := int32(2 * k)
		u, v := m.outermost(m.end[h]), m.outermost(m.end[h^1])
		if u == v {
			continue
		}
		limit := int64(math.MaxInt64)
		switch lu, lv := m.label[u], m.label[v]; {
		case lu == outer && lv == outer:
			limit = m.slack(h) / 2
		case lu == outer && lv == free, lu == free && lv == outer:
			limit = m.slack(h)
		}
		if limit < delta {
			delta, last = limit, false
		}
	}
	for b := m.n; b < len(m.parent); b++ {
		if m.parts[b] != nil && m.parent[b] < 0 && m.label[b] == inner && m.dual[b] < delta {
			delta, last = m.dual[b], false
		}
	}
	for v := range int32(m.n) {
		switch m.label[m.outermost(v)] {
		case outer:
			m.dual[v] -= delta
		case inner:
			m.dual[v] += delta
		}
	}
	for b := m.n; b < len(m.parent); b++ {
		if m.parts[b] != nil && m.parent[b] < 0 {
			switch m.label[b] {
			case outer:
				m.dual[b] += delta
			case inner:
				m.dual[b] -= delta
			}
		}
	}
	if last {
		return false
	}
	for b := int32(m.n); int(b) < len(m.parent); b++ {
		if m.parts[b] != nil && m.parent[b] < 0 && m.label[b] == inner && m.dual[b] == 0 {
			m.open(b)
		}
	}
	m.queue = m.queue[:0]
	for v := range int32(m.n) {
		if m.label[m.outermost(v)] == outer {
			m.queue = append(m.queue, v)
		}
	}
	return true
}

func (m *matcher) proof() Duals {
	d := Duals{Node: m.dual[:m.n]}
	for b := int32(m.n); int(b) < len(m.parent); b++ {
		if m.parts[b] != nil && m.dual[b] > 0 {
			d.Blossoms = append(d.Blossoms, Blossom{m.leaves(nil, b), m.dual[b]})
		}
	}
	return d
}

// Lookup returns a function of two nodes: the sum of their dual values and of those of the blossoms around both.
func (d *Duals) Lookup(n int) func(u, v int32) int64 {
	around := make([][]int32, n)
	for b, x := range d.Blossoms {
		for _, v := range x.Nodes {
			around[v] = append(around[v], int32(b))
		}
	}
	return func(u, v int32) int64 {
		sum := d.Node[u] + d.Node[v]
		for _, b := range around[u] {
			if slices.Contains(around[v], b) {
				sum += 2 * d.Blossoms[b].Value
			}
		}
		return sum
	}
}
