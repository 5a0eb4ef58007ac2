package survey

import (
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// firstTTL is that of senders that are as they should be.
const firstTTL = 255

// maxPlaces is how many nodes of the map may be the one that calls itself otherwise, before none of them is named.
const maxPlaces = 6

// errors appends the errors of the map that explain a flow, as far as enough equations support them.
func (s *surveyor) errors(m *Map, a *account, dst []inference.MapError) []inference.MapError {
	from := len(dst)
	s.identify(m, a)
	if !a.fits() {
		return dst
	}
	if a.shift > 0 {
		if a.silent >= m.equations(minSilent) && a.unmapped|a.unlinked == 0 {
			dst = append(dst, inference.MapError{Kind: inference.LowTTL, Node: uint32(firstTTL - a.shift)})
		}
		return dst
	}
	for w := a.unmapped; w != 0; w &= w - 1 {
		dst = s.unknownNode(m, a, bits.TrailingZeros64(w), dst)
	}
	if a.unmapped == 0 && a.unlinked != 0 {
		dst = s.linkless(m, a, dst)
	}
	slices.SortFunc(dst[from:], inference.MapError.Compare)
	dst = append(dst[:from], slices.Compact(dst[from:])...)
	return dst[:min(len(dst), from+window.MaxMapErrors)]
}

// identify searches the ids of strangers. One that is on the map is no stranger, but not where the map has it.
func (s *surveyor) identify(m *Map, a *account) {
	a.ids = make([]uint32, len(a.path))
	for h, u := range a.path {
		if u != offMap {
			a.ids[h] = m.nodes[u]
		}
	}
	for w := a.unmapped; w != 0; w &= w - 1 {
		h := bits.TrailingZeros64(w)
		if !a.beside(m, h) {
			continue
		}
		id, ok := s.search(m, s.clues(m, a, h))
		if !ok {
			continue
		}
		a.ids[h] = id
		u, known := m.index[id]
		if !known {
			a.named |= 1 << h
			continue
		}
		a.path[h] = u
		a.unmapped &^= 1 << h
		for _, g := range [2]int{h - 1, h} {
			if g >= a.shift && g+1 < len(a.path) && a.path[g] != offMap && a.path[g+1] != offMap && !m.linked(a.path[g], a.path[g+1]) {
				a.unlinked |= 1 << g
			}
		}
		s.judge(m, a, ^uint64(0))
	}
}

// beside reports whether the nodes on both sides of a stranger are certain, and at least one is there.
func (a *account) beside(m *Map, h int) bool {
	sides := 0
	for _, g := range [2]int{h - 1, h + 1} {
		if g < a.shift || g >= len(a.path) {
			continue
		}
		if a.path[g] == offMap || a.witnesses[g] < m.equations(minBeside) {
			return false
		}
		sides++
	}
	return sides > 0
}

// unknownNode appends the error of a node that is not on the map. It holds the node's id if the digests give it, and
// the nodes of the map that it may stand for.
func (s *surveyor) unknownNode(m *Map, a *account, h int, dst []inference.MapError) []inference.MapError {
	if !a.beside(m, h) {
		return dst
	}
	var sides [2]int32
	var ids [2]uint32
	for i, g := range [2]int{h - 1, h + 1} {
		sides[i], ids[i] = offMap, inference.NoNode
		if g >= a.shift && g < len(a.path) {
			sides[i], ids[i] = a.path[g], a.ids[g]
		}
	}
	if ids[0] > ids[1] {
		ids[0], ids[1] = ids[1], ids[0]
	}
	e := inference.MapError{Kind: inference.Unnamed, A: ids[0], B: ids[1]}
	if a.named>>h&1 == 0 {
		list := s.clues(m, a, h)
		places := m.common(sides[0], sides[1], 1<<m.scheme.Width()/4, nil)
		if len(list) < m.equations(minUnnamed) || m.first == nil || s.sprayed(m, list, places) {
			return dst
		}
		return append(dst, e)
	}
	e.Kind, e.Node = inference.Foreign, a.ids[h]
	dst = append(dst, e)
	for _, u := range m.common(sides[0], sides[1], maxPlaces, nil) {
		dst = append(dst, inference.MapError{Kind: inference.Renamed, A: m.nodes[u], Node: a.ids[h]})
	}
	return dst
}

// linkless appends two kinds of errors: neighbours that the map does not link, and pairs of nodes that would be linked
// in each other's place.
func (s *surveyor) linkless(m *Map, a *account, dst []inference.MapError) []inference.MapError {
	for w := a.unlinked; w != 0; w &= w - 1 {
		h := bits.TrailingZeros64(w)
		if min(a.witnesses[h], a.witnesses[h+1]) < m.equations(minSide) || a.witnesses[h]+a.witnesses[h+1] < m.equations(minBoth) {
			return dst
		}
	}
	for w := a.unlinked; w != 0; w &= w - 1 {
		h := bits.TrailingZeros64(w)
		dst = append(dst, inference.MapError{Kind: inference.Unlinked, A: min(a.ids[h], a.ids[h+1]), B: max(a.ids[h], a.ids[h+1])})
	}
	swap := func(x, y int32) {
		if a.linkedIf(m, x, y) {
			p, q := m.nodes[x], m.nodes[y]
			dst = append(dst, inference.MapError{Kind: inference.Swapped, A: min(p, q), B: max(p, q)})
		}
	}
	h := bits.TrailingZeros64(a.unlinked)
	x, y := a.path[h], a.path[h+1]
	if m.first == nil {
		return dst
	}
	for _, z := range m.neighbours(x) {
		swap(y, z)
	}
	for _, z := range m.neighbours(y) {
		swap(x, z)
	}
	return s.instead(m, a, dst)
}

// linkedIf reports whether all neighbours on a path would be linked if two nodes stood in each other's place.
func (a *account) linkedIf(m *Map, x, y int32) bool {
	swapped := func(u int32) int32 {
		switch u {
		case x:
			return y
		case y:
			return x
		}
		return u
	}
	for h := a.shift + 1; h < len(a.path); h++ {
		if !m.linked(swapped(a.path[h-1]), swapped(a.path[h])) {
			return false
		}
	}
	return x != y
}

// instead appends the error of a node of the map that is seen between two others in place of another one.
func (s *surveyor) instead(m *Map, a *account, dst []inference.MapError) []inference.MapError {
	for h := a.shift; h < len(a.path); h++ {
		around := uint64(0)
		if h > a.shift {
			around |= 1 << (h - 1)
		}
		if h < len(a.path)-1 {
			around |= 1 << h
		}
		if a.unlinked&^around != 0 || around&(around-1) == 0 {
			continue
		}
		for _, u := range m.common(a.path[h-1], a.path[h+1], maxPlaces, nil) {
			dst = append(dst, inference.MapError{Kind: inference.Renamed, A: m.nodes[u], Node: a.ids[h]})
		}
	}
	return dst
}
