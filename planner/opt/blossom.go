package opt

import "slices"

// open replaces an inner blossom by its parts. The parts on the way of even length from the entry of the tree to the
// base stay in the tree. The others become free.
func (m *matcher) open(b int32) {
	parts, links, entry, root := m.parts[b], m.links[b], m.entry[b], m.tree[b]
	m.release(b)
	c := m.end[entry]
	for m.parent[c] >= 0 {
		c = m.parent[c]
	}
	for _, p := range parts {
		m.label[p], m.entry[p] = free, -1
	}
	size := len(parts)
	way := func(k int) (int32, int) { return links[k], (k + 1) % size }
	k := slices.Index(parts, c)
	if k%2 == 0 {
		way = func(k int) (int32, int) { return links[k-1] ^ 1, k - 1 }
	}
	for k != 0 {
		m.enter(parts[k], root, inner, entry)
		var h int32
		h, k = way(k)
		m.enter(parts[k], root, outer, h)
		entry, k = way(k)
	}
	m.enter(parts[0], root, inner, entry)
}

// release makes the parts of b outermost, and its number free.
func (m *matcher) release(b int32) {
	for _, p := range m.parts[b] {
		m.parent[p] = -1
		m.assign(p, m.leaves(nil, p)...)
	}
	m.parts[b], m.links[b] = nil, nil
	m.label[b], m.entry[b], m.base[b] = free, -1, -1
	m.spare = append(m.spare, b)
}

// dissolve takes a blossom of value 0 apart, and those in it.
func (m *matcher) dissolve(b int32) {
	parts := m.parts[b]
	m.release(b)
	for _, p := range parts {
		if m.label[p], m.entry[p] = free, -1; int(p) >= m.n && m.dual[p] == 0 {
			m.dissolve(p)
		}
	}
}
