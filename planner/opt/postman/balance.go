package postman

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// balancer makes the trails of a net about equally long by local moves. The moves keep the number of trails, every edge
// in exactly one of them, and the nodes where trails end:
//
//   - two trails that share a node exchange their tails after it;
//   - the same with one of them turned round (undirected nets);
//   - a closed part of one trail moves to another trail that visits its node.
//
// Every move lowers the sum of the squared lengths, a positive integer, so that the moves end. Trails within one unit
// of the mean of their component are not searched. Of two trails that differ by two units or more, one lies outside.
// The unit is an edge, or two edges where all lengths are even (see [balancer.units]).
type balancer struct {
	*Net
	trails [][]int32
	where  []place   // by half: where it is walked, if it is
	mean   []float64 // by trail: of its component
	unit   []int     // by trail

	queue  []int32
	queued []bool
	seen   []int32 // by node: the search that visited it last
	search int32
	own    []int32
	others []place
	buf    []int32

	work    int // edge ends looked at
	squares int // sum of the squared lengths
	ideal   int // its value for lengths as equal as possible
	saved   []savedTrail
	journal bool
}

type savedTrail struct {
	trail  int32
	halves []int32
}

type place struct{ trail, at int32 }

// move is a change of two trails. It exchanges the tail of one from place i on with that of the other from place j on.
// Or it moves the part of one from i to i2 to place j of the other.
type move struct {
	gain     int
	kind     moveKind
	from, to int32
	i, i2, j int32
}

type moveKind uint8

const (
	exchange moveKind = iota
	exchangeReversed
	transfer
)

// Balance makes trails about equally long, in place. If the local moves end too early, they start once more from trails
// that go far, and random moves follow. The better result counts.
func (n *Net) Balance(trails [][]int32, stop func() bool) {
	if len(trails) < 2 {
		return
	}
	b := newBalancer(n, trails)
	b.settleSoon(stop)
	b.shake(stop)
	for _, steps := range [...]int{equalFirst, equalSteps} {
		uneven := b.uneven()
		if uneven == 0 || stop() {
			return
		}
		if steps == equalFirst && uneven > len(trails)/20 {
			continue // a few random moves will not do
		}
		best, squares := clone(b.trails), b.squares
		if steps == equalSteps {
			b.load(n.straight())
			b.settle(stop)
		}
		newAnnealer(b).equalise(steps, stop)
		b.shake(stop)
		if b.squares > squares {
			b.load(best)
		}
	}
}

// settleSoon is settle, but it gives up when a long search gains little.
func (b *balancer) settleSoon(stop func() bool) {
	b.work = 0
	b.settle(func() bool { return stop() || b.work > settleEdge*b.Edges() })
}

// settleEdge is how many edge ends are looked at for every edge before the local moves are taken to lead nowhere.
const settleEdge = 64

func newBalancer(n *Net, trails [][]int32) *balancer {
	b := &balancer{Net: n, trails: trails}
	b.where = make([]place, len(n.From))
	for h := range b.where {
		b.where[h].trail = -1
	}
	b.seen = make([]int32, n.Nodes)
	b.queued = make([]bool, len(trails))
	b.load(trails)
	return b
}

// load takes over trails, as many as there are with the same ends, or closed.
func (b *balancer) load(trails [][]int32) {
	copy(b.trails, trails)
	sum, count := make([]int, b.Comps), make([]int, b.Comps)
	b.squares = 0
	for k, t := range b.trails {
		b.place(int32(k), 0)
		c := b.Comp[b.From[t[0]]]
		sum[c] += len(t)
		count[c]++
		b.squares += len(t) * len(t)
	}
	b.mean, b.unit = make([]float64, len(b.trails)), make([]int, len(b.trails))
	units := b.units()
	for k, t := range b.trails {
		c := b.Comp[b.From[t[0]]]
		b.mean[k], b.unit[k] = float64(sum[c])/float64(count[c]), units[c]
	}
	b.ideal = 0
	for c, k := range count {
		if k > 0 {
			u := units[c]
			q, r := sum[c]/u/k, sum[c]/u%k
			b.ideal += u * u * (r*(q+1)*(q+1) + (k-r)*q*q)
		}
	}
}

// uneven counts the trails whose length is not within one and a half units of the mean.
func (b *balancer) uneven() (count int) {
	for k, t := range b.trails {
		if math.Abs(float64(len(t))-b.mean[k]) > 1.5*float64(b.unit[k]) {
			count++
		}
	}
	return count
}

// settle makes the moves that help, from the longest trails on, until none is left.
func (b *balancer) settle(stop func() bool) {
	order := opt.Ascending[int32](len(b.trails))
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(len(b.trails[y]), len(b.trails[x])) })
	for _, k := range order {
		b.push(k)
	}
	b.run(stop)
}

// units returns by component a common divisor of the lengths of trails. It is 2 where nodes have two sides and all
// trails end on the same one, as between the leaves of a fabric, else 1. No move changes where trails end.
func (b *balancer) units() []int {
	unit := make([]int, b.Comps)
	for c := range unit {
		unit[c] = 2
	}
	side := make([]int8, b.Nodes) // 1 or -1, 0 if not seen
	var stack []int32
	for v := range int32(b.Nodes) {
		c := b.Comp[v]
		if side[v] != 0 || unit[c] == 1 {
			continue
		}
		side[v] = 1
		for stack = append(stack[:0], v); len(stack) > 0 && unit[c] == 2; {
			u := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, h := range b.Out(u) {
				switch w := b.Head(h); side[w] {
				case 0:
					side[w] = -side[u]
					stack = append(stack, w)
				case side[u]:
					unit[c] = 1
				}
			}
		}
	}
	end := make([]int8, b.Comps)
	for _, t := range b.trails {
		c := b.Comp[b.From[t[0]]]
		for _, v := range [...]int32{b.From[t[0]], b.Head(t[len(t)-1])} {
			if end[c] == 0 {
				end[c] = side[v]
			}
			if end[c] != side[v] {
				unit[c] = 1
			}
		}
	}
	return unit
}

// near reports whether a length differs from the mean of trail k's component by less than a unit.
func (b *balancer) near(k int32, length float64) bool {
	d, unit := length-b.mean[k], float64(b.unit[k])
	return -unit < d && d < unit
}

// run makes moves until none of the queued trails has one.
func (b *balancer) run(stop func() bool) {
	for at := 0; at < len(b.queue); at++ {
		if at > 1<<16 && 2*at > len(b.queue) {
			b.queue = append(b.queue[:0], b.queue[at:]...)
			at = 0
		}
		k := b.queue[at]
		b.queued[k] = false
		if stop() {
			break
		}
		if m := b.best(k); m.gain > 0 {
			b.apply(m)
			b.push(m.from)
			b.push(m.to)
		}
	}
	for _, k := range b.queue {
		b.queued[k] = false
	}
	b.queue = b.queue[:0]
}

// Shaking is bounded by the edge ends that it visits: a number for every edge, and in total a limit of some ten
// milliseconds.
const (
	shakeEdge = 4000
	shakeAll  = 2_000_000
)

// shake leaves local optima. It makes a random exchange and then the moves that help, and reverts all of it if the
// lengths are less equal than before. It ends when the sum of the squares is ideal, that of lengths as equal as
// possible, or when its budget is spent. The budget does not grow with the net; on large ones local moves have to
// suffice.
func (b *balancer) shake(stop func() bool) {
	r := rand.New(rand.NewPCG(b.Seed, 0))
	b.work, b.journal = 0, true
	for budget := min(shakeAll, shakeEdge*b.Edges()); b.squares > b.ideal && b.work < budget && !stop(); {
		before := b.squares
		b.saved = b.saved[:0]
		if !b.kick(r) {
			continue
		}
		b.run(stop)
		if b.squares > before {
			for _, s := range b.saved {
				b.trails[s.trail] = s.halves
			}
			for _, s := range b.saved {
				b.place(s.trail, 0)
			}
			b.squares = before
		}
	}
	b.journal = false
}

// kick exchanges tails of two trails at random, of which one is not near the mean if such a one is found soon.
func (b *balancer) kick(r *rand.Rand) bool {
	b.work += 10
	p := r.Int32N(int32(len(b.trails)))
	for range min(len(b.trails), 500) {
		if !b.near(p, float64(len(b.trails[p]))) {
			break
		}
		if b.work++; int(p) == len(b.trails)-1 {
			p = -1
		}
		p++
	}
	trail := b.trails[p]
	i := r.IntN(len(trail) + 1)
	v := b.From[trail[0]]
	if i > 0 {
		v = b.Head(trail[i-1])
	}
	out := b.Out(v)
	w := b.where[out[r.IntN(len(out))]]
	if w.trail < 0 || w.trail == p {
		return false
	}
	m := move{kind: exchange, from: p, to: w.trail, i: int32(i), j: w.at}
	x, all := i+len(b.trails[w.trail])-int(w.at), len(trail)+len(b.trails[w.trail])
	if !b.Directed && r.IntN(2) == 0 {
		m.kind, x = exchangeReversed, i+int(w.at)
	}
	if x == 0 || x == all {
		return false
	}
	b.apply(m)
	b.push(m.from)
	b.push(m.to)
	return true
}

// push queues trail k if it is not near the mean.
func (b *balancer) push(k int32) {
	if !b.queued[k] && !b.near(k, float64(len(b.trails[k]))) {
		b.queued[k] = true
		b.queue = append(b.queue, k)
	}
}

// place notes where the halves of trail k are, from place at on.
func (b *balancer) place(k int32, at int) {
	for i, h := range b.trails[k][at:] {
		b.where[h] = place{k, int32(at + i)}
		b.where[h^1].trail = -1
	}
}

// best finds the move of trail p with the largest gain, or one that is good enough to end the search. A dense net has
// thousands of moves.
func (b *balancer) best(p int32) (m move) {
	trail := b.trails[p]
	b.search++
	looked := 0
	visit := func(i int) bool {
		v := b.From[trail[0]]
		if i > 0 {
			v = b.Head(trail[i-1])
		}
		if b.seen[v] == b.search {
			return false
		}
		b.seen[v] = b.search
		looked += len(b.Out(v))
		return b.at(v, p, &m) || m.gain > 0 && looked > maxLook
	}
	// From the middle outwards: cuts there are the best of long trails.
	for lo, hi := len(trail)/2, len(trail)/2+1; lo >= 0 || hi <= len(trail); lo, hi = lo-1, hi+1 {
		if lo >= 0 && visit(lo) || hi <= len(trail) && visit(hi) {
			break
		}
	}
	return m
}

// at looks for moves of trail p at node v, and reports whether the best is good enough. Good enough is a move after
// which p is as long as the mean. If p is far longer, the two trails must become nearly equal.
func (b *balancer) at(v, p int32, m *move) (good bool) {
	b.own, b.others = b.own[:0], b.others[:0]
	a, least := len(b.trails[p]), 2*b.unit[p]
	b.work += len(b.Out(v))
	for _, h := range b.Out(v) {
		w := b.where[h]
		if w.trail < 0 { // not walked from v; if it is walked to v and the trail ends there, that is a visit too
			if w = b.where[h^1]; w.trail < 0 {
				continue
			}
			if w.at++; int(w.at) != len(b.trails[w.trail]) {
				continue
			}
		}
		if w.trail == p {
			b.own = append(b.own, w.at)
		} else if d := len(b.trails[w.trail]) - a; d >= least || d <= -least {
			b.others = append(b.others, w)
		}
	}
	if len(b.others) == 0 {
		return false
	}
	slices.Sort(b.own)
	long := float64(a) > 3*b.mean[p]
	try := func(c move, was, becomes int) {
		if c.gain = was*was - becomes*becomes; c.gain > m.gain {
			*m = c
			if long {
				good = 8*max(becomes, -becomes) <= max(was, -was)
			} else {
				// The sum stays a + t, so that p becomes (a + t + becomes) / 2, or with becomes the other way round.
				good = b.near(p, float64(2*a-was+becomes)/2)
			}
		}
	}
	dense := len(b.others) > maxPairs
	for k, w := range b.others {
		t := len(b.trails[w.trail])
		diff := a - t
		for n, i := range b.own {
			try(move{kind: exchange, from: p, to: w.trail, i: i, j: w.at}, diff, 2*(int(i)+t-int(w.at))-a-t)
			if !b.Directed {
				try(move{kind: exchangeReversed, from: p, to: w.trail, i: i, j: w.at}, diff, 2*int(i+w.at)-a-t)
			}
			if n > 0 && diff > 0 && !dense {
				last := b.own[n-1]
				try(move{kind: transfer, from: p, to: w.trail, i: last, i2: i, j: w.at}, diff, diff-2*int(i-last))
			}
		}
		if dense && good {
			return true
		}
		if diff > 0 || dense {
			continue
		}
		for _, u := range b.others[:k] {
			if u.trail == w.trail { // a closed part of the other trail can come here
				lo, hi := min(u.at, w.at), max(u.at, w.at)
				try(move{kind: transfer, from: w.trail, to: p, i: lo, i2: hi, j: b.own[0]}, diff, diff+2*int(hi-lo))
			}
		}
		if good {
			return true
		}
	}
	return good
}

// maxLook is how many edge ends are looked at before any move that helps will do.
const maxLook = 20000

// maxPairs bounds the search for closed parts, and for better moves than a good one. At a node of a thousand edges,
// exchanges of tails suffice.
const maxPairs = 64

func (b *balancer) apply(m move) {
	p, t := b.trails[m.from], b.trails[m.to]
	if b.journal {
		b.save(m.from)
		b.save(m.to)
	}
	b.squares -= len(p)*len(p) + len(t)*len(t)
	i, j := int(m.i), int(m.j)
	changedP, changedT := i, j
	switch m.kind {
	case exchange:
		b.buf = append(b.buf[:0], p[i:]...)
		p = append(p[:i], t[j:]...)
		t = append(t[:j], b.buf...)
	case exchangeReversed: // the head of p goes on along the head of t, backwards; the rest is the other trail
		b.buf = append(b.buf[:0], t[:j]...)
		Reverse(b.buf)
		tail := append([]int32(nil), p[i:]...)
		Reverse(tail)
		p = append(p[:i], b.buf...)
		t, changedT = append(tail, t[j:]...), 0
	case transfer:
		b.buf = append(append(b.buf[:0], p[i:m.i2]...), t[j:]...)
		p = append(p[:i], p[m.i2:]...)
		t = append(t[:j], b.buf...)
	}
	b.trails[m.from], b.trails[m.to] = p, t
	b.squares += len(p)*len(p) + len(t)*len(t)
	b.place(m.from, changedP)
	b.place(m.to, changedT)
}

// save keeps a trail as it is before the first change of a shake.
func (b *balancer) save(k int32) {
	for _, s := range b.saved {
		if s.trail == k {
			return
		}
	}
	b.work += len(b.trails[k])
	b.saved = append(b.saved, savedTrail{k, slices.Clone(b.trails[k])})
}
