package survey

import (
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
)

// The costs of an explanation, in bits: how much less likely it is than one without.
const (
	wrongBits   = 10 // of a digest that is wrong, besides the bits that it has by chance
	linkBits    = 10 // of two neighbours that the map does not link, besides which two
	foreignBits = 16 // of a node that the map does not have at this place
	shiftBits   = 8  // of each hop by which numbers are shifted
)

// The evidence that an explanation needs before a flow is a witness of an error.
const (
	passes     = 4   // rounds in which digests of several writers become digests of one
	mostShift  = 3   // hops by which numbers can be shifted
	minSide    = 32  // bits of equations of each of two neighbours that are not linked,
	minBoth    = 80  // of both together,
	minBeside  = 24  // of a neighbour of a stranger,
	minUnnamed = 40  // of a stranger that stays without a name,
	minNamed   = 32  // and of one whose id is found, at least; see Surveyor.enough
	minSilent  = 24  // of equations in which no hop wrote, of shifted hop numbers
	misfits    = 100 // one equation in so many may be wrong: of a flow that takes two paths, one that mixes both leaves more
)

// maxWidth is how many bits an equation counts for at most: some dialects fill wide digests with few distinct values.
const maxWidth = 10

// equations is how many equations have so many bits.
func (m *Map) equations(bits int) int {
	width := min(m.scheme.Width(), maxWidth)
	return (bits + width - 1) / width
}

// offMap stands in a path for a node that the map does not have there.
const offMap = -1

// equation is the joint value of the writers of one instance of a digest.
type equation struct {
	packet  pint.Packet
	writers uint64
	part    uint32
}

// account is an explanation of the digests of a flow.
type account struct {
	shift     int
	path      []int32 // by index, or offMap; the first ones, by which hops are shifted, too
	ids       []uint32
	named     uint64 // hops whose id was found, of nodes that are not on the map
	witnesses [pint.MaxHops]int
	silent    int // equations in which no hop wrote because hops are shifted
	right     int
	wrong     int
	cost      int32
	unmapped  uint64 // hops where the map has no fitting node
	unlinked  uint64 // bit h: the hops h and h+1 are on the map and not linked there
}

// fits reports whether next to all equations hold.
func (a *account) fits() bool { return a.wrong*misfits <= a.right }

// plain reports whether the map explains the digests.
func (a *account) plain() bool { return a.shift == 0 && a.unmapped == 0 && a.unlinked == 0 }

// surveyor finds explanations. It keeps memory between calls and has one owner.
type surveyor struct {
	ids       uint32 // node ids that are searched are below
	equations []equation
	cost      []int32 // of each node at each hop
	best      []int32 // of a path up to each node at each hop, the last one for [offMap]
	from      []int32 // the place before on that path
	values    []uint32
	list      []uint32
	steps     int
}

// DefaultIDs is the number of node ids that are searched, from 0 on.
const DefaultIDs = 1 << 20

// newSurveyor makes one that searches node ids below a limit; 0 searches none.
func newSurveyor(ids uint32) *surveyor { return &surveyor{ids: ids} }

// explain finds the cheapest explanation of the digests of a flow.
func (s *surveyor) explain(m *Map, hops int, packets []pathtrace.Packet) (best account) {
	for shift := 0; shift <= min(mostShift, hops-1); shift++ {
		s.read(m, hops, shift, packets)
		a := s.trace(m, hops, shift)
		if shift == 0 || a.cost < best.cost {
			best = a
		}
		if shift == 0 && a.plain() && a.wrong == 0 {
			break
		}
	}
	// The equations of the best one, for the search of ids.
	s.read(m, hops, best.shift, packets)
	return best
}

// read makes equations of digests. Hops by which numbers are shifted do not write.
func (s *surveyor) read(m *Map, hops, shift int, packets []pathtrace.Packet) {
	s.equations = s.equations[:0]
	mask := ^uint64(0) << shift
	for _, p := range packets {
		for inst := range m.scheme.Instances() {
			q := m.scheme.Packet(p.ID, inst)
			s.equations = append(s.equations, equation{packet: q, writers: m.scheme.Writers(&q, hops) & mask, part: m.scheme.Part(p.Digest, inst)})
		}
	}
}

// trace finds the best path in some rounds. The first one uses only digests of a single writer. Those after it peel
// digests of several with the hops that are certain already.
func (s *surveyor) trace(m *Map, hops, shift int) account {
	a := account{shift: shift, path: make([]int32, hops)}
	for h := range a.path {
		a.path[h] = offMap
	}
	settled := uint64(0)
	for range passes {
		s.weigh(m, &a, settled)
		s.walk(m, &a)
		s.judge(m, &a, settled)
		was := settled
		settled = 0
		for h := shift; h < hops; h++ {
			if a.path[h] != offMap && a.witnesses[h] > 0 {
				settled |= 1 << h
			}
		}
		if settled == was {
			break
		}
	}
	s.judge(m, &a, ^uint64(0))
	for h := shift; h < hops; h++ {
		switch {
		case a.path[h] == offMap:
			a.unmapped |= 1 << h
		case h > shift && a.path[h-1] != offMap && !m.linked(a.path[h-1], a.path[h]):
			a.unlinked |= 1 << (h - 1)
		}
	}
	a.cost = s.price(m, &a)
	return a
}

// sole returns the one writer of an equation that is not settled. Where all are, it is the one with the fewest equations.
func (a *account) sole(e *equation, settled uint64) (h int, ok bool) {
	switch open := e.writers &^ settled; {
	case e.writers == 0 || open&(open-1) != 0:
		return 0, false
	case open != 0:
		return bits.TrailingZeros64(open), true
	}
	h = bits.TrailingZeros64(e.writers)
	for w := e.writers; w != 0; w &= w - 1 {
		if g := bits.TrailingZeros64(w); a.witnesses[g] < a.witnesses[h] {
			h = g
		}
	}
	return h, true
}

// rest returns the part of an equation that its other writers leave for that of hop h.
func (a *account) rest(m *Map, e *equation, h int) uint32 {
	rest := e.part
	for w := e.writers &^ (1 << h); w != 0; w &= w - 1 {
		g := bits.TrailingZeros64(w)
		rest ^= m.scheme.Value(&e.packet, e.packet.Role(e.writers, g+1), m.nodes[a.path[g]])
	}
	return rest
}

// weigh fills in what each node costs at each hop: the wrong digests that it would mean. A place for [offMap] comes last.
func (s *surveyor) weigh(m *Map, a *account, settled uint64) {
	v, width := len(m.nodes), int32(m.scheme.Width())
	row := v + 1
	s.cost = grown(s.cost, row*len(a.path))
	clear(s.cost)
	s.values = grown(s.values, v)
	for i := range s.equations {
		e := &s.equations[i]
		h, ok := a.sole(e, settled)
		if !ok {
			continue
		}
		want := a.rest(m, e, h)
		m.scheme.Values(s.values, &e.packet, e.packet.Role(e.writers, h+1), m.nodes)
		cost := s.cost[h*row:][:row]
		for u, x := range s.values {
			if x != want {
				cost[u] += wrongBits + width
			}
		}
		cost[v] += width
		s.steps += v / 4
	}
}

// walk finds the cheapest path: over links, over what is no link at a price, and over [offMap] at another.
func (s *surveyor) walk(m *Map, a *account) {
	v, hops := len(m.nodes), len(a.path)
	row, jump, enter := v+1, linkBits+m.nodeBits(), m.nodeBits()
	s.best, s.from = grown(s.best, row*hops), grown(s.from, row*hops)
	copy(s.best[a.shift*row:][:v], s.cost[a.shift*row:][:v])
	s.best[a.shift*row+v] = s.cost[a.shift*row+v] + foreignBits
	for h := a.shift + 1; h < hops; h++ {
		before, now := s.best[(h-1)*row:][:row], s.best[h*row:][:row]
		from, cost := s.from[h*row:][:row], s.cost[h*row:][:row]
		least := int32(0) // the cheapest node before, whatever follows
		for u := range int32(v) {
			if before[u] < before[least] {
				least = u
			}
		}
		other, at := before[least]+jump, least
		if m.first == nil {
			other = before[least] + enter
		}
		if c := before[v] + enter; c < other {
			other, at = c, int32(v)
		}
		for u := range int32(v) {
			now[u], from[u] = other, at
			if m.first != nil {
				for _, w := range m.neighbours(u) {
					if c := before[w] + 2; c < now[u] {
						now[u], from[u] = c, w
					}
				}
			}
			now[u] += cost[u]
		}
		now[v], from[v] = min(before[least], before[v])+foreignBits+cost[v], least
		if before[v] < before[least] {
			from[v] = int32(v)
		}
		s.steps += v + len(m.peers)
	}
	at := int32(0)
	last := s.best[(hops-1)*row:][:row]
	for u := range last {
		if last[u] < last[at] {
			at = int32(u)
		}
	}
	for h := hops - 1; h >= a.shift; h-- {
		if a.path[h] = at; at == int32(v) {
			a.path[h] = offMap
		}
		if h > a.shift {
			at = s.from[h*row+int(at)]
		}
	}
}

// judge counts the equations that the path explains and those that it does not. Only those count whose writers are
// settled but for one, and all of them on the map.
func (s *surveyor) judge(m *Map, a *account, settled uint64) {
	witnesses := a.witnesses
	clear(a.witnesses[:])
	a.right, a.wrong, a.silent = 0, 0, 0
	was := account{witnesses: witnesses}
	for i := range s.equations {
		e := &s.equations[i]
		if e.writers == 0 {
			if e.part != 0 {
				a.wrong++
			} else if a.shift > 0 && s.shifted(m, e, len(a.path)) {
				a.silent++
				a.right++
			}
			continue
		}
		if _, ok := was.sole(e, settled); !ok || a.anonymous(e.writers) {
			continue
		}
		h := bits.TrailingZeros64(e.writers)
		if a.rest(m, e, h) != m.scheme.Value(&e.packet, e.packet.Role(e.writers, h+1), m.nodes[a.path[h]]) {
			a.wrong++
			continue
		}
		a.right++
		for w := e.writers; w != 0; w &= w - 1 {
			a.witnesses[bits.TrailingZeros64(w)]++
		}
	}
}

// shifted reports whether a hop would have written if hop numbers were not shifted.
func (s *surveyor) shifted(m *Map, e *equation, hops int) bool {
	return m.scheme.Writers(&e.packet, hops) != 0
}

// anonymous reports whether a writer is no node of the map.
func (a *account) anonymous(writers uint64) bool {
	for ; writers != 0; writers &= writers - 1 {
		if a.path[bits.TrailingZeros64(writers)] == offMap {
			return true
		}
	}
	return false
}

// price is the cost of an explanation: all equations, with all of their writers.
func (s *surveyor) price(m *Map, a *account) int32 {
	width := int32(m.scheme.Width())
	cost := int32(a.wrong)*(wrongBits+width) + int32(a.shift)*shiftBits
	cost += int32(bits.OnesCount64(a.unmapped)) * (foreignBits + m.nodeBits())
	cost += int32(bits.OnesCount64(a.unlinked)) * (linkBits + m.nodeBits())
	for i := range s.equations {
		if e := &s.equations[i]; e.writers != 0 && a.anonymous(e.writers) {
			cost += width
		}
	}
	return min(cost, math.MaxInt32)
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
