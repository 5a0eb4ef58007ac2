package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// tree is a depth-first search for a placement of whole interfaces. No flow exceeds its limit, at most most flows are
// used, and at most spare is left out. It branches on the interface with the fewest flows left to it. Of flows that are
// equal with respect to the missing interfaces it tries one. It leaves a node that cannot succeed by the room, or by
// the prices of a bounder.
type tree struct {
	*packing
	limit  []int64
	most   int
	price  []int64 // by interface; no new flow earns more than one. Nil where flows may all be used
	sack   opt.Knapsack
	gain   []int64 // prices of missing interfaces, 0 for the rest
	stop   func() bool
	budget int64
	levels []choices // by depth, to be used again
	rooms  []int64   // of closed flows, by falling size
	out    group     // interfaces that may be left out; spare of them are not yet
	spare  int64
	given  []int32 // copies of interfaces that were left out, one after the other
	past   *past   // an older plan of which little may change; nil for none
	moved  []int8  // by interface: copies elsewhere than they were, or left out, of those that need not change
	change int     // interfaces of which there are any
	all    bool    // all flows are in use from the start, and cost nothing
}

type choices struct {
	flows []int32
	value []int64
	same  []uint64
}

type verdict int

// These are the verdicts. Those first decide the verdict on several branches.
const (
	possible verdict = iota
	undecided
	impossible
)

func newTree(p *problem, limit []int64, most int, price []int64) *tree {
	t := &tree{packing: newPacking(p), limit: limit, most: min(most, p.flows), price: price, gain: make([]int64, p.ifaces)}
	if len(p.groups) > 0 {
		t.out = p.groups[0]
		t.spare = t.out.room
	}
	t.rooms = append([]int64(nil), limit...)
	slices.Sort(t.rooms)
	slices.Reverse(t.rooms)
	return t
}

// search visits about that many nodes. Where the answer is possible the packing is the proof.
func (t *tree) search(nodes int64, stop func() bool) verdict {
	for len(t.given) > 0 {
		t.regain(1)
	}
	t.restore(new(pack))
	for f := range int32(t.p.flows) {
		if t.all && t.pos[f] == none {
			t.open(f)
		}
	}
	if t.past != nil {
		t.moved, t.change = make([]int8, t.p.ifaces), 0
	}
	t.budget, t.stop = nodes, stop
	return t.descend(0)
}

// leaveOut leaves out one copy of i.
func (t *tree) leaveOut(i int32) {
	t.given = append(t.given, i)
	t.spare -= t.p.weight[i]
	t.lost -= t.p.weight[i]
	t.absent--
	if t.missing[i]--; t.missing[i] == 0 {
		t.wanted[i] = 0
	}
}

// regain takes back the last n copies given up.
func (t *tree) regain(n int) {
	for range n {
		i := t.given[len(t.given)-1]
		t.given = t.given[:len(t.given)-1]
		t.spare += t.p.weight[i]
		t.lost += t.p.weight[i]
		t.absent++
		t.missing[i]++
		t.wanted[i] = t.p.demand[i]
	}
}

// move records with n = 1 that a copy of i goes to flow f or is left out. With n = -1 it reverts that. It reports
// whether the change is allowed; if not, there is nothing to revert.
func (t *tree) move(f, i int32, n int8) bool {
	if t.past == nil || t.past.must[i] || f != none && t.past.was(f, i) {
		return true
	}
	if n > 0 && t.moved[i] == 0 && t.change == t.past.most {
		return false
	}
	if n > 0 && t.moved[i] == 0 {
		t.change++
	}
	if t.moved[i] += n; t.moved[i] == 0 {
		t.change--
	}
	return true
}

// saveAll saves a packing that the search found.
func (t *tree) saveAll(to *pack) {
	t.save(to)
	for _, i := range t.given {
		to.lost += t.p.weight[i]
	}
	for _, f := range t.used {
		if len(t.held[f]) == 0 {
			to.used--
		}
	}
}

func (t *tree) descend(depth int) verdict {
	if t.absent == 0 {
		return possible
	}
	if t.budget--; t.budget < 0 || t.budget%256 == 0 && t.stop() {
		t.budget = -1
		return undecided
	}
	if t.hopeless() {
		return impossible
	}
	i := t.hardest()
	if i == none {
		return impossible
	}
	if depth == len(t.levels) {
		t.levels = append(t.levels, choices{})
	}
	c := t.levels[depth]
	c.flows, c.value, c.same = c.flows[:0], c.value[:0], c.same[:0]
	t.list(&c, i)
	t.levels[depth] = c
	answer := impossible
	for _, f := range c.flows {
		if !t.move(f, i, 1) {
			continue
		}
		fresh := t.pos[f] == none
		if fresh {
			t.open(f)
		}
		t.give(f, i)
		if answer = min(answer, t.descend(depth+1)); answer == possible {
			return possible
		}
		t.carry(f, i)
		if fresh {
			t.close(f)
		}
		t.mark()
		t.move(f, i, -1)
		if t.budget < 0 {
			return undecided
		}
	}
	// Or what is missing of i, all of it, is left out: copies are placed first.
	if n := t.missing[i]; int64(n)*t.p.weight[i] <= t.spare && t.move(none, i, 1) {
		for range n {
			t.leaveOut(i)
		}
		if answer = min(answer, t.descend(depth+1)); answer == possible {
			return possible
		}
		t.regain(int(n))
		t.move(none, i, -1)
		if t.budget < 0 {
			return undecided
		}
	}
	return answer
}

func (t *tree) able(f, i int32) bool {
	if t.limit[f]-t.load[f] < t.p.demand[i] || t.pos[f] == none && len(t.used) == t.most {
		return false
	}
	if t.p.copies == 1 {
		return true
	}
	// Copies go to rising flows, for they are alike.
	for _, g := range t.over[i] {
		if g >= f && t.holds(g, i) {
			return false
		}
	}
	return true
}

// hopeless reports whether a bound proves that the missing interfaces cannot be placed.
func (t *tree) hopeless() bool {
	var need, spare int64
	for i, m := range t.missing {
		need += int64(m) * t.p.demand[i]
	}
	if t.spare > 0 {
		need -= t.out.leave(t.p.demand, t.missing, t.spare)
	}
	for _, f := range t.used {
		spare += t.limit[f] - t.load[f]
	}
	for n := 0; n < t.most-len(t.used) && spare < need; n++ {
		spare += t.rooms[n]
	}
	if spare < need || t.out.room > 0 && t.useful() < need {
		return true
	}
	if t.price == nil {
		return false
	}
	// Prices of interfaces that flows in use can still carry do not pay for other flows, which cost one each.
	var worth int64
	for i, m := range t.missing {
		t.gain[i] = 0
		if m > 0 {
			t.gain[i] = t.price[i]
			worth += t.price[i] * int64(m)
		}
	}
	if t.spare > 0 {
		worth -= t.out.leave(t.gain, t.missing, t.spare)
	}
	worth -= int64(t.most-len(t.used)) * one
	for _, f := range t.used {
		if worth <= 0 {
			return false
		}
		worth -= t.sack.Solve(t.p.path(f), t.limit[f]-t.load[f], 0, t.p.demand, t.gain)
	}
	return worth > 0
}

// useful is the room of all flows, as far as what they pass is still missing.
func (t *tree) useful() (sum int64) {
	for f := range int32(t.p.flows) {
		room, use := t.limit[f]-t.load[f], int64(0)
		for _, i := range t.p.path(f) {
			if t.missing[i] > 0 && t.p.demand[i] <= room {
				use += t.p.demand[i]
			}
		}
		sum += min(room, use)
	}
	return sum
}

// hardest returns the missing interface with the fewest flows, or none where one has no flow and may not be left out.
func (t *tree) hardest() int32 {
	best, fewest := int32(none), 0
	for i, m := range t.missing {
		if m == 0 {
			continue
		}
		n := 0
		for _, f := range t.p.through(int32(i)) {
			if t.able(f, int32(i)) {
				if n++; best != none && n > fewest {
					break
				}
			}
		}
		if n == 0 && int64(m)*t.p.weight[i] <= t.spare {
			return int32(i)
		}
		if n == 0 {
			return none
		}
		if best == none || n < fewest || n == fewest && t.p.demand[i] > t.p.demand[best] {
			best, fewest = int32(i), n
		}
	}
	return best
}

// list returns the flows that i may go to, the most promising first, one of each kind.
func (t *tree) list(c *choices, i int32) {
	for _, f := range t.p.through(i) {
		if !t.able(f, i) {
			continue
		}
		room := t.limit[f] - t.load[f]
		var value int64
		same := uint64(room)
		if t.pos[f] == none {
			same ^= 1 << 63
		}
		for _, j := range t.p.path(f) {
			if t.missing[j] > 0 && t.p.demand[j] <= room {
				value += t.p.demand[j]
				r := opt.SplitMix(uint64(j) + same)
				same = r.Next()
			}
		}
		if t.p.copies == 1 && t.past == nil && slices.ContainsFunc(c.flows, func(g int32) bool { return c.same[slices.Index(c.flows, g)] == same && t.alike(f, g) }) {
			continue
		}
		value = min(value, room)
		if t.past != nil && t.past.was(f, i) {
			value += 1 << 61
		}
		if t.price != nil && t.pos[f] != none {
			value += 1<<60 - room // used flows first, the fullest of them before others
		}
		k := len(c.flows)
		c.flows, c.value, c.same = append(c.flows, f), append(c.value, value), append(c.same, same)
		for ; k > 0 && c.value[k-1] < value; k-- {
			c.flows[k], c.value[k], c.same[k] = c.flows[k-1], c.value[k-1], c.same[k-1]
		}
		c.flows[k], c.value[k], c.same[k] = f, value, same
	}
}

// alike reports whether two flows have the same room, and pass the same of what is missing and fits.
func (t *tree) alike(f, g int32) bool {
	room := t.limit[f] - t.load[f]
	if room != t.limit[g]-t.load[g] || (t.pos[f] == none) != (t.pos[g] == none) {
		return false
	}
	a, b := t.p.path(f), t.p.path(g)
	for {
		for len(a) > 0 && (t.missing[a[0]] == 0 || t.p.demand[a[0]] > room) {
			a = a[1:]
		}
		for len(b) > 0 && (t.missing[b[0]] == 0 || t.p.demand[b[0]] > room) {
			b = b[1:]
		}
		if len(a) == 0 || len(b) == 0 {
			return len(a) == len(b)
		}
		if a[0] != b[0] {
			return false
		}
		a, b = a[1:], b[1:]
	}
}
