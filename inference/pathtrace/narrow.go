package pathtrace

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
)

// narrow lets every shrunken domain have its effect on the others, until nothing changes any more or the credit is used
// up. What it removes is impossible; it does not remove all that is.
func (t *Tracer) narrow(tr *trace) {
	for !tr.dead {
		switch {
		case tr.known&^tr.excluded != 0:
			t.exclude(tr)
		case tr.bits >= tr.little && t.m.first != nil && tr.toRight|tr.toLeft != 0 && t.spread(tr):
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

// nearby is how far along links a known hop's node is looked for: it hardly gets farther away and back. Searches leave
// out what remains.
const nearby = 4

// exclude takes nodes of known hops from all other hops: a path without loops visits a node once.
func (t *Tracer) exclude(tr *trace) {
	fresh := tr.known &^ tr.excluded
	tr.excluded = tr.known
	if t.m.config.Loops || t.m.routed { // shortest paths have no loops anyway
		return
	}
	reach := tr.k
	if t.m.first != nil {
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
	s := t.m.config.Scheme
	p := s.Packet(x.id, int(x.inst))
	x.unknown &^= fresh
	for ; fresh != 0; fresh &= fresh - 1 {
		h := bits.TrailingZeros64(fresh)
		x.rest ^= s.Value(&p, p.Role(x.writers, h+1), t.m.nodes[tr.node[h]])
	}
}

// combine removes candidates of a digest's unknown writers that no candidates of the other ones complete to what the
// digest says.
func (t *Tracer) combine(tr *trace, x *xor) {
	switch bits.OnesCount64(x.unknown) {
	case 0:
		if x.rest != 0 {
			tr.dead = true
		}
	case 1:
		h := bits.TrailingZeros64(x.unknown)
		s := t.m.config.Scheme
		p := s.Packet(x.id, int(x.inst))
		x.unknown = 0
		t.match(tr, h, &p, p.Role(x.writers, h+1), x.rest)
		x.rest = 0
	default:
		t.support(tr, x)
	}
}

// maxSupport is the most bits of a digest that support looks at; it takes sets of that many powers of two.
const maxSupport = 13

// support is generalised arc consistency for a digest with two or more unknown writers: sets of the XORs that the
// writers before and after each one can make. It leaves digests alone that can be anything.
func (t *Tracer) support(tr *trace, x *xor) {
	width := min(t.m.config.Scheme.Width(), maxSupport)
	limit := float64(width) + 1
	if t.m.first != nil { // searches along links find the rest with less work
		limit -= 3
	}
	var hops [pint.MaxHops]int
	n, largest, log := 0, 0, 0.0
	for u := x.unknown; u != 0; u &= u - 1 {
		h := bits.TrailingZeros64(u)
		hops[n] = h
		n++
		largest = max(largest, int(tr.size[h]))
		log += t.m.log2[tr.size[h]]
		if log-t.m.log2[largest] > limit {
			if t.m.sparse {
				t.single(tr, x)
			}
			return
		}
	}
	// values of all candidates, hop after hop
	s := t.m.config.Scheme
	p := s.Packet(x.id, int(x.inst))
	mask := uint32(1)<<width - 1
	values, start := t.values[:0], [pint.MaxHops + 1]int{}
	for i, h := range hops[:n] {
		role := p.Role(x.writers, h+1)
		for j, w := range tr.row(h) {
			for ; w != 0; w &= w - 1 {
				values = append(values, s.Value(&p, role, t.m.nodes[j<<6+bits.TrailingZeros64(w)])&mask)
			}
		}
		start[i+1] = len(values)
	}
	t.values = values
	tr.credit -= len(values) / 2
	words := (1<<width + 63) / 64
	rest := x.rest & mask
	if n == 2 {
		a, b := values[:start[1]], values[start[1]:]
		clear(t.sums[:2*words])
		sa, sb := t.sums[:words], t.sums[words:2*words]
		for _, v := range a {
			sa[v>>6] |= 1 << (v & 63)
		}
		for _, v := range b {
			sb[v>>6] |= 1 << (v & 63)
		}
		t.keepSupported(tr, hops[0], a, sb, rest)
		t.keepSupported(tr, hops[1], b, sa, rest)
		return
	}
	tr.credit -= len(values) * words / 4
	if need := 2 * (n + 1) * words; cap(t.sums) < need {
		t.sums = make([]uint64, need)
	}
	sums := t.sums[:2*(n+1)*words]
	clear(sums)
	before := func(i int) []uint64 { return sums[i*words:][:words] }      // XORs of hops[:i]
	after := func(i int) []uint64 { return sums[(n+1+i)*words:][:words] } // XORs of hops[i:]
	before(0)[0], after(n)[0] = 1, 1
	for i := range n - 1 {
		for _, v := range values[start[i]:start[i+1]] {
			shiftInto(before(i+1), before(i), v)
		}
	}
	for i := n - 1; i > 0; i-- {
		for _, v := range values[start[i]:start[i+1]] {
			shiftInto(after(i), after(i+1), v)
		}
	}
	for i, h := range hops[:n] {
		at := start[i]
		removed := int32(0)
		row := tr.row(h)
		for j, w := range row {
			for ; w != 0; w &= w - 1 {
				if !meets(before(i), after(i+1), values[at]^rest) {
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

// single keeps the candidates of each unknown writer of a digest that agree with it in bits that no other one changes.
func (t *Tracer) single(tr *trace, x *xor) {
	s := t.m.config.Scheme
	p := s.Packet(x.id, int(x.inst))
	var constant, varies [pint.MaxHops]uint32 // of each hop's values: one of them, and the bits in which they differ
	once, twice, rest := uint32(0), uint32(0), x.rest
	for u := x.unknown; u != 0; u &= u - 1 {
		h := bits.TrailingZeros64(u)
		role := p.Role(x.writers, h+1)
		constant[h] = s.Value(&p, role, t.m.nodes[lowest(tr.row(h))])
		for i, w := range tr.row(h) {
			for ; w != 0; w &= w - 1 {
				varies[h] |= s.Value(&p, role, t.m.nodes[i<<6+bits.TrailingZeros64(w)]) ^ constant[h]
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
				if s.Value(&p, role, t.m.nodes[i<<6+bits.TrailingZeros64(w)])&mask != want {
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
