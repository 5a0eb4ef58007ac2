package pathtrace

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
)

// spread keeps at every hop only neighbours of the candidates of the hops beside it, in one sweep in each direction. It
// reports whether it did something. Steps without credit stay noted for the next time.
func (t *Tracer) spread(tr *trace) bool {
	done := !tr.paired && t.m.Dist != nil && t.pair(tr)
	for h := 0; tr.toRight>>h != 0; h++ {
		h += bits.TrailingZeros64(tr.toRight >> h)
		if h == tr.k-1 {
			tr.toRight &^= 1 << h
		} else if t.affords(tr, h) {
			tr.toRight &^= 1 << h
			t.revise(tr, h, h+1)
			done = true
		}
	}
	for below := ^uint64(0); tr.toLeft&below != 0; {
		h := bits.Len64(tr.toLeft&below) - 1
		below = 1<<h - 1
		if h == 0 {
			tr.toLeft &^= 1
		} else if t.affords(tr, h) {
			tr.toLeft &^= 1 << h
			t.revise(tr, h, h-1)
			done = true
		}
	}
	return done && !tr.dead
}

// affords reports whether the links of a hop's candidates are followed: only if they are few, unless a search asks for
// all. Where digests are narrow more of them count as few, because it takes longer until they are fewer, and more
// digests share the work.
func (t *Tracer) affords(tr *trace, h int) bool {
	return tr.size[h] <= 256>>min(t.m.Config.Scheme.Width(), 3) || tr.wide && tr.credit > 0
}

// revise keeps those candidates of hop to that are next to a candidate of hop from. The removed ones were no neighbours
// of any candidate of hop from, so that hop from need not be revised in turn.
func (t *Tracer) revise(tr *trace, from, to int) {
	back := &tr.toLeft
	if to < from {
		back = &tr.toRight
	}
	before := *back
	if t.reduce(tr, from, to) {
		*back &= before | ^(1 << to)
	}
}

// reduce does the same as revise, and also drops candidates that are too far from known hops. It reports whether there
// were none of the latter.
func (t *Tracer) reduce(tr *trace, from, to int) bool {
	m, source, row := t.m, tr.row(from), tr.row(to)
	if tr.size[to] < tr.size[from]+int32(tr.words) { // it is less work to look from hop to
		tr.credit -= int(tr.size[to]) / 4
		t.reachable(tr, source, to)
		return true
	}
	tr.credit -= int(tr.size[from]) / 4
	reach := t.reach
	clear(reach)
	for i, w := range source {
		for ; w != 0; w &= w - 1 {
			for _, x := range m.Neighbours(uint16(i<<6 + bits.TrailingZeros64(w))) {
				reach[x>>6] |= 1 << (x & 63)
			}
		}
	}
	for i, w := range row {
		reach[i] &= w
	}
	pure := m.Dist == nil || tr.known == 0 || !t.keepDistant(tr, to, reach)
	t.intersect(tr, to, reach)
	return pure
}

// reachable keeps those candidates of a hop that have a neighbour in a set.
func (t *Tracer) reachable(tr *trace, source []uint64, to int) {
	row, removed := tr.row(to), int32(0)
	for i, w := range row {
	candidates:
		for ; w != 0; w &= w - 1 {
			for _, x := range t.m.Neighbours(uint16(i<<6 + bits.TrailingZeros64(w))) {
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

// keepDistant removes nodes that are too far from known hops. On a shortest path, the distances from the first and the
// last known hop must be exactly right. Otherwise the nearest known hops on either side must not be too far. It reports
// whether it removed some.
func (t *Tracer) keepDistant(tr *trace, h int, set []uint64) (removed bool) {
	a, b := bits.TrailingZeros64(tr.known), bits.Len64(tr.known)-1
	exact := t.m.Routed
	if !exact {
		if before := tr.known & (1<<h - 1); before != 0 {
			a = bits.Len64(before) - 1
		}
		if after := tr.known >> h; after != 0 {
			b = h + bits.TrailingZeros64(after)
		}
	}
	rowA, rowB := t.m.Distances(tr.node[a]), t.m.Distances(tr.node[b])
	da, db := uint8(max(a-h, h-a)), uint8(max(b-h, h-b))
	for i := range set {
		for w := set[i]; w != 0; w &= w - 1 {
			u := i<<6 + bits.TrailingZeros64(w)
			if rowA[u] > da || rowB[u] > db || exact && (rowA[u] != da || rowB[u] != db) {
				set[i] &^= w & -w
				removed = true
			}
		}
	}
	return removed
}

// fewCandidates is how many candidates a hop may have to be paired with others.
const fewCandidates = 8

// pair keeps, at hops with few candidates, only those that are near enough to one of the next such hop on either side.
func (t *Tracer) pair(tr *trace) bool {
	tr.paired = true
	var hops [pint.MaxHops]int
	few := hops[:0]
	for h, n := range tr.size {
		if n <= fewCandidates {
			few = append(few, h)
		}
	}
	changed := false
	for i := 1; i < len(few); i++ {
		changed = t.near(tr, few[i], few[i-1]) || changed
	}
	for i := len(few) - 1; i > 0; i-- {
		changed = t.near(tr, few[i-1], few[i]) || changed
	}
	return changed
}

// near keeps the candidates of hop h that are near enough to some candidate of another one.
func (t *Tracer) near(tr *trace, h, other int) bool {
	if tr.size[h] == 1 && tr.size[other] > 1 {
		return false // the distance will narrow the other hop, when the two are compared the other way round
	}
	var space [fewCandidates]uint16
	list := space[:0]
	for i, w := range tr.row(other) {
		for ; w != 0; w &= w - 1 {
			list = append(list, uint16(i<<6+bits.TrailingZeros64(w)))
		}
	}
	row, removed, hops := tr.row(h), int32(0), uint8(max(h-other, other-h))
	for i, w := range row {
	candidates:
		for ; w != 0; w &= w - 1 {
			distances := t.m.Distances(uint16(i<<6 + bits.TrailingZeros64(w)))
			for _, u := range list {
				if d := distances[u]; d == hops || d < hops && !t.m.Routed {
					continue candidates
				}
			}
			row[i] &^= w & -w
			removed++
		}
	}
	if removed > 0 {
		tr.size[h] -= removed
		t.shrunk(tr, h)
	}
	return removed > 0
}
