package pathtrace

import "math/bits"

// narrowLayer is the largest domain from which neighbours are always followed; from larger ones only while there is
// credit.
const narrowLayer = 64

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
	return tr.size[h] <= narrowLayer || tr.credit >= int(tr.size[h])
}

// revise keeps those candidates of hop to that are next to a candidate of hop from.
func (t *Tracer) revise(tr *trace, from, to int) {
	m := t.m
	reach := t.reach
	clear(reach)
	for i, w := range tr.row(from) {
		for ; w != 0; w &= w - 1 {
			u := uint16(i<<6 + bits.TrailingZeros64(w))
			for _, x := range m.neighbours(u) {
				reach[x>>6] |= 1 << (x & 63)
			}
		}
	}
	tr.credit -= int(tr.size[from]) / 2
	if m.dist != nil && tr.known != 0 {
		t.keepDistant(tr, to, reach)
	}
	t.intersect(tr, to, reach)
}

// keepDistant removes nodes that are not as far from the first and the last known hop as a shortest path makes them.
func (t *Tracer) keepDistant(tr *trace, h int, set []uint64) {
	a, b := bits.TrailingZeros64(tr.known), bits.Len64(tr.known)-1
	rowA := t.m.dist[int(tr.node[a])*len(t.m.nodes):][:len(t.m.nodes)]
	rowB := t.m.dist[int(tr.node[b])*len(t.m.nodes):][:len(t.m.nodes)]
	da, db := uint8(max(a-h, h-a)), uint8(max(b-h, h-b))
	row := tr.row(h)
	for i := range set {
		for w := set[i] & row[i]; w != 0; w &= w - 1 {
			u := i<<6 + bits.TrailingZeros64(w)
			if rowA[u] != da || rowB[u] != db {
				set[i] &^= w & -w
			}
		}
	}
}
