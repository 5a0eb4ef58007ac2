package pathtrace

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// narrow lets every domain that shrank have its effect on the others, until nothing changes any more or the credit is
// used up. It removes only impossible candidates, but not all of them.
func (t *Tracer) narrow(tr *trace) {
	for !tr.dead {
		switch {
		case tr.known&^tr.excluded != 0:
			t.exclude(tr)
		case tr.bits >= tr.little && t.m.First != nil && tr.toRight|tr.toLeft != 0 && t.spread(tr):
		case tr.toXORs != 0:
			dirty := tr.toXORs
			tr.toXORs = 0
			for i := range tr.xors {
				x := &tr.xors[i]
				if x.unknown&dirty == 0 {
					continue
				}
				t.peel(tr, x)
				if t.combine(tr, x); tr.dead {
					return
				}
			}
		default:
			return
		}
	}
}

// nearby is the distance in hops from a known hop within which its node is removed, if links are known. A path hardly
// leads so far away and back. Searches exclude the rest.
const nearby = 4

// exclude takes nodes of known hops from all other hops: a path without loops visits a node once.
func (t *Tracer) exclude(tr *trace) {
	fresh := tr.known &^ tr.excluded
	tr.excluded = tr.known
	if t.m.Config.Loops || t.m.Routed { // shortest paths have no loops anyway
		return
	}
	reach := tr.k
	if t.m.First != nil {
		reach = nearby
	}
	for ; fresh != 0; fresh &= fresh - 1 {
		h := bits.TrailingZeros64(fresh)
		u := tr.node[h]
		word, bit := int(u>>6), uint64(1)<<(u&63)
		for j := max(h-reach, 0); j < min(h+reach+1, tr.k); j++ {
			if w := &tr.domain[j*tr.words+word]; j != h && *w&bit != 0 {
				*w &^= bit
				tr.size[j]--
				t.shrunk(tr, j)
			}
		}
	}
}

// peel takes the values of known hops out of a digest.
func (t *Tracer) peel(tr *trace, x *xor) {
	fresh := x.unknown & tr.known
	if fresh == 0 {
		return
	}
	s := t.m.Config.Scheme
	p := s.Packet(x.id, int(x.inst))
	x.unknown &^= fresh
	for ; fresh != 0; fresh &= fresh - 1 {
		h := bits.TrailingZeros64(fresh)
		x.rest ^= s.Value(&p, p.Role(x.writers, h+1), t.m.Nodes[tr.node[h]])
	}
}

// combine removes candidates of a digest's unknown writers that no candidates of the other ones complete to the digest.
func (t *Tracer) combine(tr *trace, x *xor) {
	switch bits.OnesCount64(x.unknown) {
	case 0:
		if x.rest != 0 {
			tr.dead = true
		}
	case 1:
		h := bits.TrailingZeros64(x.unknown)
		s := t.m.Config.Scheme
		p := s.Packet(x.id, int(x.inst))
		x.unknown = 0
		t.match(tr, h, &p, p.Role(x.writers, h+1), x.rest)
		x.rest = 0
	default:
		t.support(tr, x)
	}
}

// maxSupport is the greatest number of bits of a digest for support, which needs sets of two to that power.
const maxSupport = 13

// support is generalised arc consistency for a digest with two or more unknown writers. It makes the sets of the XORs
// that the writers before each one and those after it can have. It leaves alone digests whose writers can make
// anything.
func (t *Tracer) support(tr *trace, x *xor) {
	width := min(t.m.Config.Scheme.Width(), maxSupport)
	limit := float64(width) + 1
	if t.m.First != nil { // searches along links do the rest with less work
		limit -= 3
	}
	var hops [pint.MaxHops]int
	n, largest, log := 0, 0, 0.0
	for u := x.unknown; u != 0; u &= u - 1 {
		h := bits.TrailingZeros64(u)
		hops[n] = h
		n++
		largest = max(largest, int(tr.size[h]))
		log += t.m.Log2[tr.size[h]]
		if log-t.m.Log2[largest] > limit {
			if t.m.Sparse {
				t.single(tr, x)
			}
			return
		}
	}
	// The writer with the most candidates comes last.
	slices.SortFunc(hops[:n], func(a, b int) int { return cmp.Or(int(tr.size[a]-tr.size[b]), a-b) })
	values, start := t.candidateValues(tr, x, hops[:n])
	tr.credit -= len(values) / 16
	words, rest := (1<<width+63)/64, x.rest&(1<<width-1)
	if need := (2*n + 1) * words; cap(t.sums) < need {
		t.sums = make([]uint64, need)
	}
	before, after := t.sums[:n*words], t.sums[n*words:(2*n+1)*words] // XORs of hops[:i], and of hops[i:]
	clear(before)
	before[0] = 1
	for i := range n - 1 {
		for _, v := range values[start[i]:start[i+1]] {
			shiftInto(before[(i+1)*words:][:words], before[i*words:][:words], v)
		}
		tr.credit -= (start[i+1] - start[i]) * words / 8
	}
	last := n - 1
	t.keepSupported(tr, hops[last], values[start[last]:start[n]], before[last*words:][:words], rest)
	if tr.dead || int(tr.size[hops[last]]) > 4<<width {
		return // it has so many candidates that the other writers are free
	}
	clear(after)
	set := after[last*words:][:words]
	at := start[last]
	for _, v := range values[at:start[n]] {
		set[v>>6] |= 1 << (v & 63)
	}
	for i := last - 1; i > 0; i-- {
		for _, v := range values[start[i]:start[i+1]] {
			shiftInto(after[i*words:][:words], after[(i+1)*words:][:words], v)
		}
	}
	for i, h := range hops[:last] {
		at, removed := start[i], int32(0)
		row := tr.row(h)
		for j, w := range row {
			for ; w != 0; w &= w - 1 {
				if !meets(before[i*words:][:words], after[(i+1)*words:][:words], values[at]^rest) {
					row[j] &^= w & -w
					removed++
				}
				at++
			}
		}
		if removed > 0 {
			tr.size[h] -= removed
			t.shrunk(tr, h)
		}
	}
}

// candidateValues returns the values of all candidates of a digest's writers, those of hops[i] from start[i] on. They
// are cut to the bits for support.
func (t *Tracer) candidateValues(tr *trace, x *xor, hops []int) (values []uint32, start [pint.MaxHops + 1]int) {
	ids := t.ids[:0]
	for i, h := range hops {
		for j, w := range tr.row(h) {
			for ; w != 0; w &= w - 1 {
				ids = append(ids, t.m.Nodes[j<<6+bits.TrailingZeros64(w)])
			}
		}
		start[i+1] = len(ids)
	}
	t.ids = ids
	if cap(t.values) < len(ids) {
		t.values = make([]uint32, max(len(ids), len(t.m.Nodes)))
	}
	values = t.values[:len(ids)]
	s := t.m.Config.Scheme
	p := s.Packet(x.id, int(x.inst))
	for i, h := range hops {
		s.Values(values[start[i]:start[i+1]], &p, p.Role(x.writers, h+1), ids[start[i]:start[i+1]])
	}
	if s.Width() > maxSupport {
		for i := range values {
			values[i] &= 1<<maxSupport - 1
		}
	}
	return values, start
}

// single keeps the candidates of each unknown writer of a digest that agree with it in those bits which no other writer
// can change.
func (t *Tracer) single(tr *trace, x *xor) {
	s := t.m.Config.Scheme
	p := s.Packet(x.id, int(x.inst))
	var constant, varies [pint.MaxHops]uint32 // of each hop's values: one of them, and the bits in which they differ
	once, twice, rest := uint32(0), uint32(0), x.rest
	for u := x.unknown; u != 0; u &= u - 1 {
		h := bits.TrailingZeros64(u)
		role := p.Role(x.writers, h+1)
		constant[h] = s.Value(&p, role, t.m.Nodes[prior.Lowest(tr.row(h))])
		for i, w := range tr.row(h) {
			for ; w != 0; w &= w - 1 {
				varies[h] |= s.Value(&p, role, t.m.Nodes[i<<6+bits.TrailingZeros64(w)]) ^ constant[h]
			}
		}
		tr.credit -= int(tr.size[h]) / 2
		twice |= once & varies[h]
		once |= varies[h]
		rest ^= constant[h]
	}
	if rest&^once != 0 {
		tr.dead = true
		return
	}
	for u := x.unknown; u != 0; u &= u - 1 {
		h := bits.TrailingZeros64(u)
		mask := varies[h] &^ twice
		if mask == 0 {
			continue
		}
		want, removed := (rest^constant[h])&mask, int32(0)
		role, row := p.Role(x.writers, h+1), tr.row(h)
		for i, w := range row {
			for ; w != 0; w &= w - 1 {
				if s.Value(&p, role, t.m.Nodes[i<<6+bits.TrailingZeros64(w)])&mask != want {
					row[i] &^= w & -w
					removed++
				}
			}
		}
		if removed > 0 {
			tr.size[h] -= removed
			t.shrunk(tr, h)
		}
	}
}

// keepSupported removes candidates of a hop whose value and rest do not give a member of others.
func (t *Tracer) keepSupported(tr *trace, h int, values []uint32, others []uint64, rest uint32) {
	at, removed := 0, int32(0)
	row := tr.row(h)
	for j, w := range row {
		for ; w != 0; w &= w - 1 {
			if v := values[at] ^ rest; others[v>>6]>>(v&63)&1 == 0 {
				row[j] &^= w & -w
				removed++
			}
			at++
		}
	}
	if removed > 0 {
		tr.size[h] -= removed
		t.shrunk(tr, h)
	}
}

// shiftInto adds to dst every member of src XOR v. Sets of less than 64 values sit in the low bits of one word.
func shiftInto(dst, src []uint64, v uint32) {
	high := int(v >> 6)
	for i, w := range src {
		if w != 0 {
			dst[i^high] |= permute(w, v)
		}
	}
}

// meets reports whether some member of a, some member of b and v have the XOR 0.
func meets(a, b []uint64, v uint32) bool {
	high := int(v >> 6)
	for i, w := range a {
		if w != 0 && permute(w, v)&b[i^high] != 0 {
			return true
		}
	}
	return false
}

// permute moves bit i of w to bit i XOR v, for the low six bits of v.
func permute(w uint64, v uint32) uint64 {
	if v&1 != 0 {
		w = w>>1&0x5555555555555555 | w&0x5555555555555555<<1
	}
	if v&2 != 0 {
		w = w>>2&0x3333333333333333 | w&0x3333333333333333<<2
	}
	if v&4 != 0 {
		w = w>>4&0x0f0f0f0f0f0f0f0f | w&0x0f0f0f0f0f0f0f0f<<4
	}
	if v&8 != 0 {
		w = w>>8&0x00ff00ff00ff00ff | w&0x00ff00ff00ff00ff<<8
	}
	if v&16 != 0 {
		w = w>>16&0x0000ffff0000ffff | w&0x0000ffff0000ffff<<16
	}
	if v&32 != 0 {
		w = w>>32 | w<<32
	}
	return w
}
