package survey

import (
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
)

// clue is an equation for one hop: what its node contributes to a digest.
type clue struct {
	packet pint.Packet
	role   pint.Role
	want   uint32
}

// slack is how many bits the clues for an id must have beyond those of the id. With these, an id that fits them all by
// chance is rare.
const slack = 12

// block is how many ids are tested together.
const block = 4096

// maxClues bounds the clues for one hop that are used.
const maxClues = 64

// clues lists the equations in which a hop is the only writer that is no node of the map.
func (s *surveyor) clues(m *Map, a *account, h int) (list []clue) {
	for i := range s.equations {
		e := &s.equations[i]
		if e.writers>>h&1 == 0 || a.anonymous(e.writers&^(1<<h)) || len(list) == maxClues {
			continue
		}
		list = append(list, clue{e.packet, e.packet.Role(e.writers, h+1), a.rest(m, e, h)})
	}
	return list
}

func (c *clue) fits(m *Map, id uint32) bool { return m.scheme.Value(&c.packet, c.role, id) == c.want }

// enough reports whether clues distinguish one id in many from all others.
func (s *surveyor) enough(m *Map, clues int) bool {
	return clues >= m.equations(max(minNamed, bits.Len32(s.ids)+slack))
}

// search finds the one id that explains all clues. There is none if several do.
func (s *surveyor) search(m *Map, clues []clue) (id uint32, ok bool) {
	if s.ids == 0 || !s.enough(m, len(clues)) {
		return 0, false
	}
	s.list, s.values = grown(s.list, block), grown(s.values, block)
	for from := uint32(0); from < s.ids; from += block {
		list := s.list[:min(block, s.ids-from)]
		for i := range list {
			list[i] = from + uint32(i)
		}
		m.scheme.Values(s.values[:len(list)], &clues[0].packet, clues[0].role, list)
		for i, x := range s.values[:len(list)] {
			if x != clues[0].want || slices.ContainsFunc(clues[1:], func(c clue) bool { return !c.fits(m, list[i]) }) {
				continue
			}
			if ok {
				return 0, false
			}
			id, ok = list[i], true
		}
	}
	s.steps += int(s.ids / 8) // eight are hashed at a time
	return id, ok
}

// sprayed reports whether nodes of the map explain clues for a missing node. One of them explains many, or those that
// could be at the place explain most. A flow that takes several paths looks like that.
func (s *surveyor) sprayed(m *Map, clues []clue, places []int32) bool {
	s.values = grown(s.values, len(m.nodes))
	counts := make([]int32, len(m.nodes))
	for i := range clues {
		m.scheme.Values(s.values, &clues[i].packet, clues[i].role, m.nodes)
		for u, x := range s.values {
			if x == clues[i].want {
				counts[u]++
			}
		}
	}
	s.steps += len(clues) * len(m.nodes) / 4
	if int(slices.Max(counts))*5 >= max(15, len(clues)*2) {
		return true
	}
	explained := 0
	for i := range clues {
		if slices.ContainsFunc(places, func(u int32) bool { return clues[i].fits(m, m.nodes[u]) }) {
			explained++
		}
	}
	return 2*explained > len(clues)
}
