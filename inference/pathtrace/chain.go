package pathtrace

import "math/bits"

// narrowLayer is the largest domain from which neighbours are always followed; from larger ones only while there is
// credit.
const narrowLayer = 128

// spread leaves at every hop only neighbours of what the hops beside it can be, one sweep in each direction. It reports
// whether it did something; what there was no credit for stays noted.
func (t *Tracer) spread(tr *trace) bool {
	done := false
	for h := range tr.k - 1 {
		if tr.toRight>>h&1 != 0 && t.affords(tr, h) {
			tr.toRight &^= 1 << h
			t.revise(tr, h, h+1)
			done = true
		}
	}
	tr.toRight &^= 1 << (tr.k - 1)
	for h := tr.k - 1; h > 0; h-- {
		if tr.toLeft>>h&1 != 0 && t.affords(tr, h) {
			tr.toLeft &^= 1 << h
			t.revise(tr, h, h-1)
			done = true
		}
	}
	tr.toLeft &^= 1
	return done && !tr.dead
}

func (t *Tracer) affords(tr *trace, h int) bool {
	return tr.size[h] <= narrowLayer || false
}

// revise keeps those candidates of hop to that are next to a candidate of hop from.
func (t *Tracer) revise(tr *trace, from, to int) {
	m, source, row := t.m, tr.row(from), tr.row(to)
	if tr.size[to] < tr.size[from]+int32(tr.words) { // look from there
		tr.credit -= int(tr.size[to]) / 4
		t.reachable(tr, source, to)
		return
	}
	tr.credit -= int(tr.size[from]) / 4
	reach := t.reach
	clear(reach)
	for i, w := range source {
		for ; w != 0; w &= w - 1 {
			for _, x := range m.neighbours(uint16(i<<6 + bits.TrailingZeros64(w))) {
				reach[x>>6] |= 1 << (x & 63)
			}
		}
	}
	for i, w := range row {
		reach[i] &= w
	}
	if m.dist != nil && tr.known != 0 {
		t.keepDistant(tr, to, reach)
	}
	t.intersect(tr, to, reach)
}

// reachable keeps those candidates of a hop that have a neighbour in a set.
func (t *Tracer) reachable(tr *trace, source []uint64, to int) {
	row, removed := tr.row(to), int32(0)
	for i, w := range row {
	candidates:
		for ; w != 0; w &= w - 1 {
			for _, x := range t.m.neighbours(uint16(i<<6 + bits.TrailingZeros64(w))) {
				if has(source, x) {
					continue candidates
				}
			}
			row[i] &^= w & -w
			removed++
		}
	}
	if removed > 0 {
		tr.size[to] -= removed
		t.shrunk(tr, to)
	}
}

// keepDistant removes nodes that are not as far from the first and the last known hop as a shortest path makes them.
func (t *Tracer) keepDistant(tr *trace, h int, set []uint64) {
	a, b := bits.TrailingZeros64(tr.known), bits.Len64(tr.known)-1
	rowA := t.m.dist[int(tr.node[a])*len(t.m.nodes):][:len(t.m.nodes)]
	rowB := t.m.dist[int(tr.node[b])*len(t.m.nodes):][:len(t.m.nodes)]
	da, db := uint8(max(a-h, h-a)), uint8(max(b-h, h-b))
	for i := range set {
		for w := set[i]; w != 0; w &= w - 1 {
			u := i<<6 + bits.TrailingZeros64(w)
			if rowA[u] != da || rowB[u] != db {
				set[i] &^= w & -w
			}
		}
	}
}
