package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// packing is an assignment of whole interfaces that a search changes step by step, and can take back to its last mark.
type packing struct {
	p       *problem
	used    []int32   // flows that are open, mostly because they carry something
	pos     []int32   // flow: where it is in used, or none
	load    []int64   // by flow
	held    [][]int32 // by flow: interfaces carried
	over    [][]int32 // by interface: open flows that pass it
	missing []int32   // by interface: copies that are not carried
	wanted  []int64   // by interface: demand, or 0 if nothing is missing
	absent  int       // sum of missing
	lost    int64     // sum of missing times weight
	journal []change
	value   float64 // sum of the squares of loads, in units of unit squared
	unit    float64
}

type change struct {
	kind        uint8
	flow, iface int32
}

const (
	opened uint8 = iota
	closed
	released
	accepted
)

func newPacking(p *problem) *packing {
	s := &packing{
		p: p, pos: slices.Repeat([]int32{none}, p.flows), load: make([]int64, p.flows), held: make([][]int32, p.flows),
		over: make([][]int32, p.ifaces), missing: slices.Clone(p.want), wanted: make([]int64, p.ifaces),
	}
	for f := range p.room {
		s.unit += float64(p.room[f]) / float64(p.flows)
	}
	for i, n := range p.want {
		s.absent += int(n)
		s.lost += int64(n) * p.weight[i]
		if n > 0 {
			s.wanted[i] = p.demand[i]
		}
	}
	return s
}

// enough reports whether no more is missing than may be left out.
func (s *packing) enough() bool { return s.lost <= s.p.spare() }

func (s *packing) square(f int32) float64 {
	v := float64(s.load[f]) / s.unit
	return v * v
}

func (s *packing) open(f int32) {
	s.pos[f] = int32(len(s.used))
	s.used = append(s.used, f)
	for _, i := range s.p.path(f) {
		s.over[i] = append(s.over[i], f)
	}
	s.journal = append(s.journal, change{opened, f, none})
}

// close drops an open flow that carries nothing.
func (s *packing) close(f int32) {
	last := s.used[len(s.used)-1]
	s.used[s.pos[f]] = last
	s.pos[last] = s.pos[f]
	s.pos[f] = none
	s.used = s.used[:len(s.used)-1]
	for _, i := range s.p.path(f) {
		s.over[i] = opt.Without(s.over[i], f)
	}
	s.journal = append(s.journal, change{closed, f, none})
}

func (s *packing) give(f, i int32) {
	s.value -= s.square(f)
	s.load[f] += s.p.demand[i]
	s.value += s.square(f)
	s.held[f] = append(s.held[f], i)
	if s.missing[i]--; s.missing[i] == 0 {
		s.wanted[i] = 0
	}
	s.absent--
	s.lost -= s.p.weight[i]
	s.journal = append(s.journal, change{released, f, i})
}

func (s *packing) carry(f, i int32) {
	s.value -= s.square(f)
	s.load[f] -= s.p.demand[i]
	s.value += s.square(f)
	s.held[f] = opt.Without(s.held[f], i)
	s.missing[i]++
	s.wanted[i] = s.p.demand[i]
	s.absent++
	s.lost += s.p.weight[i]
	s.journal = append(s.journal, change{accepted, f, i})
}

func (s *packing) mark() { s.journal = s.journal[:0] }

// undo goes back to the last mark.
func (s *packing) undo() { s.undoTo(0) }

// undoTo reverts to the state in which the journal had that many entries.
func (s *packing) undoTo(n int) {
	for k := len(s.journal) - 1; k >= n; k-- {
		switch c := s.journal[k]; c.kind {
		case opened:
			s.close(c.flow)
		case closed:
			s.open(c.flow)
		case released:
			s.carry(c.flow, c.iface)
		case accepted:
			s.give(c.flow, c.iface)
		}
		s.journal = s.journal[:k]
	}
}

func (s *packing) holds(f, i int32) bool {
	return slices.Contains(s.held[f], i)
}

// fits reports whether flow f, which passes i, can carry a copy of it on top of what it carries.
func (s *packing) fits(f, i int32) bool {
	return s.p.room[f]-s.load[f] >= s.p.demand[i] && (s.p.copies == 1 || !s.holds(f, i))
}

// pack is the stored form of a packing: pairs of flow and interface.
type pack struct {
	flow, iface []int32
	used        int
	lost        int64
}

func (k *pack) clone() pack {
	return pack{slices.Clone(k.flow), slices.Clone(k.iface), k.used, k.lost}
}

func (s *packing) save(to *pack) {
	to.flow, to.iface, to.used = to.flow[:0], to.iface[:0], len(s.used)
	to.lost = s.lost
	for _, f := range s.used {
		for _, i := range s.held[f] {
			to.flow, to.iface = append(to.flow, f), append(to.iface, i)
		}
	}
}

func (s *packing) restore(from *pack) {
	for len(s.used) > 0 {
		s.empty(s.used[len(s.used)-1])
	}
	for k, f := range from.flow {
		if s.pos[f] == none {
			s.open(f)
		}
		s.give(f, from.iface[k])
	}
	s.mark()
}

// empty takes everything from f and closes it.
func (s *packing) empty(f int32) {
	for len(s.held[f]) > 0 {
		s.carry(f, s.held[f][len(s.held[f])-1])
	}
	s.close(f)
}

// absentees appends to list the interfaces with missing copies, one entry a copy.
func (s *packing) absentees(list []int32) []int32 {
	for i, m := range s.missing {
		for range m {
			list = append(list, int32(i))
		}
	}
	return list
}

// clear takes everything from f, the first first, and leaves it open.
func (s *packing) clear(f int32) {
	for len(s.held[f]) > 0 {
		s.carry(f, s.held[f][0])
	}
}

// fillBest assigns to f the last answer of a knapsack.
func (s *packing) fillBest(f int32, sack *opt.Knapsack) {
	for n, i := range sack.Items {
		if sack.Part[n] > 0 {
			s.give(f, i)
		}
	}
}

// trim closes the flows that carry nothing.
func (s *packing) trim() {
	s.closeEmpty()
	s.mark()
}

// closeEmpty is trim, to be undone.
func (s *packing) closeEmpty() {
	for k := len(s.used) - 1; k >= 0; k-- {
		if f := s.used[k]; len(s.held[f]) == 0 {
			s.close(f)
		}
	}
}
