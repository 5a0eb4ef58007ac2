package solve

import "slices"

// refills is how often flows are filled again in one step of squeeze.
const refills = 60

// squeeze looks for a packing with one flow less where something may be left out. It closes a flow, or closes two and
// opens another one. Then it empties a few of the others and fills them with the most valuable missing interfaces,
// until no more is left out than allowed. It reports success; otherwise everything is as before.
func (s *search) squeeze() bool {
	s.mark()
	if len(s.used) < 2 {
		return false
	}
	closed := 1 + s.rnd.Below(2)
	for range closed {
		f := s.used[s.rnd.Below(len(s.used))]
		for range s.rnd.Below(3) {
			if g := s.used[s.rnd.Below(len(s.used))]; s.load[g] < s.load[f] {
				f = g
			}
		}
		s.empty(f)
	}
	s.collect()
	if closed == 2 && len(s.free) > 0 {
		s.noise = noises[s.rnd.Below(len(noises))]
		if f := s.bestNew(s.free[s.rnd.Below(len(s.free))]); f != none {
			s.open(f)
		}
	}
	value := make([]int64, s.p.ifaces)
	for range refills {
		if s.enough() {
			break
		}
		from, before := len(s.journal), s.lost
		s.refill(value)
		if s.lost > before {
			s.undoTo(from)
		}
	}
	s.closeEmpty()
	if s.enough() {
		return true
	}
	s.undo()
	return false
}

// refill empties a few of the flows in use that meet and fills them again.
func (s *search) refill(value []int64) {
	if len(s.used) == 0 {
		return
	}
	s.removed = append(s.removed[:0], s.used[s.rnd.Below(len(s.used))])
	for range s.rnd.Below(4) {
		path := s.p.path(s.removed[0])
		near := s.over[path[s.rnd.Below(len(path))]]
		f := near[s.rnd.Below(len(near))]
		if !slices.Contains(s.removed, f) {
			s.removed = append(s.removed, f)
		}
	}
	for _, f := range s.removed {
		s.clear(f)
	}
	noise := noises[s.rnd.Below(len(noises))]
	for k := range s.removed { // in any order
		j := k + s.rnd.Below(len(s.removed)-k)
		s.removed[k], s.removed[j] = s.removed[j], s.removed[k]
		f := s.removed[k]
		s.effort += int64(4 * len(s.p.path(f)))
		for _, i := range s.p.path(f) {
			value[i] = 0
			if s.missing[i] > 0 {
				value[i] = int64(float64(s.p.weight[i]) * (1 + noise*s.rnd.Float()) * 256)
			}
		}
		if s.sack.Solve(s.p.path(f), s.p.room[f], 0, s.p.demand, value) > 0 {
			s.fillBest(f, &s.sack)
		}
	}
}
