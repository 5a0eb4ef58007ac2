package solve

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// search improves a packing for Concentrate by large-neighbourhood search. It empties a few flows that meet, fills
// spare room of others with their interfaces, and opens new flows for the rest. Simulated annealing decides what stays.
// Fewer flows always stay. As many stay if the sum of the squared loads grows, since full flows leave others to be
// emptied.
type search struct {
	*packing
	rnd     *opt.SplitMix
	free    []int32 // interfaces with missing copies, one entry a copy
	fill    filler
	sack    opt.Knapsack
	heat    float64
	noise   float64 // of the values of new flows in this step
	byRoom  []int32 // flows through the interfaces, as in flowItem, the largest first; nil until wanted
	large   int64   // worth of room beyond the taken one, in sixteenths
	effort  int64   // steps of inner loops so far
	removed []int32
}

func newSearch(p *problem, rnd *opt.SplitMix) *search {
	return &search{packing: newPacking(p), rnd: rnd, heat: 0.25}
}

// start takes over an assignment, and completes it.
func (s *search) start(at []int32) {
	s.assign(at)
	s.free = s.absentees(s.free[:0])
	s.repair(math.MaxInt)
	s.mark()
}

// assign takes over an assignment.
func (s *packing) assign(at []int32) {
	for i, f := range at {
		if f == none {
			continue
		}
		if s.pos[f] == none {
			s.open(f)
		}
		s.give(f, int32(i))
	}
	s.mark()
}

// try makes one step, and reports whether the packing has fewer flows than before.
func (s *search) try() bool {
	s.mark()
	s.noise = noises[s.rnd.Below(len(noises))]
	s.effort += 32
	before, value := len(s.used), s.value
	s.ruin()
	s.collect()
	s.repair(before)
	if s.enough() && len(s.used) < before {
		return true
	}
	if !s.enough() || len(s.used) > before {
		s.undo()
		return false
	}
	if loss := value - s.value; loss > 0 && loss > -s.heat*math.Log(1-s.rnd.Float()) {
		s.undo()
	}
	return false
}

// ruin empties one to six flows: a little loaded one, and others that pass what it carries.
func (s *search) ruin() {
	n := 1 + s.rnd.Below(6)
	s.removed = s.removed[:0]
	if len(s.used) == 0 {
		return
	}
	f := s.used[s.rnd.Below(len(s.used))]
	for range s.rnd.Below(4) {
		if g := s.used[s.rnd.Below(len(s.used))]; s.load[g] < s.load[f] {
			f = g
		}
	}
	for {
		s.removed = append(s.removed, f)
		if len(s.removed) == n {
			break
		}
		// The next one passes something that one of those carries, or at least meets its path.
		next := int32(none)
		for range 8 {
			g := s.removed[s.rnd.Below(len(s.removed))]
			list := s.held[g]
			if s.rnd.Below(4) == 0 {
				list = s.p.path(g)
			}
			if len(list) == 0 {
				continue
			}
			near := s.over[list[s.rnd.Below(len(list))]]
			h := near[s.rnd.Below(len(near))]
			if !slices.Contains(s.removed, h) {
				next = h
				break
			}
		}
		if next == none {
			break
		}
		f = next
	}
	for _, f := range s.removed {
		s.empty(f)
	}
}

// collect lists what the journal freed, together with what was missing before.
func (s *search) collect() {
	s.free = s.free[:0]
	for _, c := range s.journal {
		if c.kind == accepted {
			s.free = append(s.free, c.iface)
		}
	}
	if s.absent > len(s.free) {
		s.free = s.absentees(s.free[:0])
	}
}

// repair carries as much of free as it can, with at most limit flows.
func (s *search) repair(limit int) {
	d := s.p.demand
	s.rnd.Shuffle(s.free) // the largest first, among equals in any order
	slices.SortStableFunc(s.free, func(a, b int32) int { return cmp.Compare(d[b], d[a]) })
	if n := len(s.free); s.p.spare() > 0 && n > 0 { // mostly another one is left out
		k := s.rnd.Below(n)
		held := s.free[k]
		s.free = append(append(s.free[:k], s.free[k+1:]...), held)
	}
	left := s.free[:0]
	for _, i := range s.free {
		if f := s.bestFit(i); f != none {
			s.give(f, i)
		} else {
			left = append(left, i)
		}
	}
	s.free = left
	for len(s.free) > 0 && len(s.used) < limit && !s.enough() {
		hard := 0
		for k, i := range s.free {
			if len(s.p.through(i)) < len(s.p.through(s.free[hard])) {
				hard = k
			}
		}
		i := s.free[hard]
		f := s.bestNew(i)
		if f == none {
			s.free[hard] = s.free[len(s.free)-1] // stays missing
			s.free = s.free[:len(s.free)-1]
			continue
		}
		s.open(f)
		s.give(f, i)
		s.fillUp(f)
		left := s.free[:0]
		for k, j := range s.free {
			if s.missing[j] > 0 && !slices.Contains(s.free[:k], j) || s.p.copies > 1 && s.missing[j] > 0 {
				left = append(left, j)
			}
		}
		s.free = left
	}
}

// bestFit returns the open flow with the least room that is enough for i.
func (s *search) bestFit(i int32) int32 {
	best, least := int32(none), int64(math.MaxInt64)
	for _, f := range s.over[i] {
		if r := s.p.room[f] - s.load[f]; r < least && s.fits(f, i) {
			best, least = f, r
		}
	}
	s.effort += int64(len(s.over[i]))
	return best
}

// noises are by how much new flows are chosen other than for their value.
var noises = [...]float64{0, 0, 0.1, 0.5}

// mostLooked bounds the flows looked at for one interface.
const mostLooked = 256

// mostLarge is the same where the largest flows are looked at first.
const mostLarge = 24

// tight sets whether the room of flows is scarce. The search then prefers large flows over flows that pass the right
// interfaces.
func (s *search) tight(scarce bool) {
	s.large = 0
	if !scarce {
		return
	}
	s.large = 64
	if s.byRoom != nil {
		return
	}
	s.byRoom = slices.Clone(s.p.flowItem)
	for i := range s.p.ifaces {
		slices.SortStableFunc(s.byRoom[s.p.flowAt[i]:s.p.flowAt[i+1]], func(f, g int32) int { return cmp.Compare(s.p.room[g], s.p.room[f]) })
	}
}

// bestNew returns the unused flow through i that can take most of what is missing, a random one of equals. Where room
// is scarce it is one of the largest.
func (s *search) bestNew(i int32) int32 {
	flows := s.p.through(i)
	at, n := s.rnd.Below(len(flows)), min(len(flows), mostLooked)
	if s.large > 0 {
		flows = s.byRoom[s.p.flowAt[i]:s.p.flowAt[i+1]]
		at = 0
	}
	best, most, looked, d := int32(none), int64(-1), 0, s.p.demand[i]
	for range n {
		f := flows[at]
		if at++; at == len(flows) {
			at = 0
		}
		room := s.p.room[f]
		if s.pos[f] != none || room < d {
			continue
		}
		sum, path := int64(0), s.p.path(f)
		s.effort += int64(len(path))
		for _, j := range path {
			sum += s.wanted[j]
		}
		sum = 16*min(sum, room) + s.large*room
		if s.noise > 0 {
			sum = int64(float64(sum) * (1 + s.noise*s.rnd.Float()))
		}
		if sum > most {
			best, most = f, sum
		}
		if looked++; s.large > 0 && looked == mostLarge {
			break
		}
	}
	return best
}

// fillUp assigns to f, which is open, the missing interfaces that fill it best.
func (s *search) fillUp(f int32) {
	s.fill.reset()
	for _, j := range s.p.path(f) {
		if s.missing[j] > 0 && s.fits(f, j) {
			s.fill.add(j, s.p.demand[j])
		}
	}
	s.effort += int64(len(s.p.path(f)))
	for _, j := range s.fill.best(s.p.room[f] - s.load[f]) {
		s.give(f, j)
	}
}

// filler finds the subset with the largest sum that fits.
type filler struct {
	items []int32
	size  []int64
	rest  []int64
	in    []bool
	top   []bool
	sum   int64
	nodes int
	out   []int32
}

func (l *filler) reset() { l.items, l.size = l.items[:0], l.size[:0] }

// add keeps the items by falling size.
func (l *filler) add(i int32, size int64) {
	k := len(l.size)
	l.items, l.size = append(l.items, i), append(l.size, size)
	for ; k > 0 && l.size[k-1] < size; k-- {
		l.items[k], l.size[k] = l.items[k-1], l.size[k-1]
	}
	l.items[k], l.size[k] = i, size
}

// maxFillNodes bounds the tree of one subset: 2¹⁰ leaves nothing to be wished for on the paths of real networks.
const maxFillNodes = 1024

func (l *filler) best(room int64) []int32 {
	n := len(l.items)
	l.rest = append(l.rest[:0], make([]int64, n+1)...)
	for k := n - 1; k >= 0; k-- {
		l.rest[k] = l.rest[k+1] + l.size[k]
	}
	l.in, l.top = append(l.in[:0], make([]bool, n)...), append(l.top[:0], make([]bool, n)...)
	l.sum, l.nodes = 0, 0
	l.descend(0, 0, room)
	l.out = l.out[:0]
	for k, in := range l.top {
		if in {
			l.out = append(l.out, l.items[k])
		}
	}
	return l.out
}

// descend decides the items from k on, and reports whether the room is filled to the last item.
func (l *filler) descend(k int, sum, room int64) bool {
	if sum > l.sum {
		l.sum = sum
		copy(l.top, l.in)
		if sum == room {
			return true
		}
	}
	if l.nodes++; k == len(l.items) || l.nodes > maxFillNodes || min(sum+l.rest[k], room) <= l.sum {
		return false
	}
	if sum+l.size[k] <= room {
		l.in[k] = true
		if l.descend(k+1, sum+l.size[k], room) {
			return true
		}
		l.in[k] = false
	}
	return l.descend(k+1, sum, room)
}
