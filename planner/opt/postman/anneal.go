package postman

import (
	"math"
	"math/rand/v2"
)

// annealer makes random moves on the trails of a balancer: those that make lengths more equal always, and others seldom,
// and ever more so (S. Kirkpatrick et al., "Optimization by simulated annealing", Science 220, 1983). On a grid cuts are
// few, since its trails have one or two partners at a node. There, moves that only pass an excess on bring it to where it
// is missing.
//
// A step draws two cuts at a node. Cuts of two trails exchange their tails, or one trail is reversed before. Two cuts
// of one trail enclose a closed part, which is reversed, or moves to a third trail at the node. With free ends set
// there is a further move: cut a trail and append its tail to another one that ends at the cut. This changes where
// trails end, which is valid if these ends are cuts of longer trails.
type annealer struct {
	*balancer
	r    *rand.Rand
	most int // longest length that costs nothing; 0: the square of the length is the cost
	cost int // of all trails
	heat float64
	ends bool
	part []int32
	done func() bool // called now and then
}

func (a *annealer) price(length int) int {
	if a.most == 0 {
		return length * length
	}
	d := max(0, length-a.most)
	return d * d
}

func newAnnealer(b *balancer) *annealer {
	return &annealer{balancer: b, r: rand.New(rand.NewPCG(b.Seed, 1))}
}

// Steps for every edge to make lengths equal: for what is nearly so, and from trails that go far.
const (
	equalFirst = 8
	equalSteps = 60
)

// equalise makes lengths more equal.
func (a *annealer) equalise(steps int, stop func() bool) {
	a.done = func() bool { return a.uneven() == 0 }
	a.run(steps*a.Edges(), 3, 0.3, a.ideal, stop)
	a.squares = a.cost
}

// shorten shortens trails with more than most edges, in a number of steps per edge.
func (a *annealer) shorten(most, sweeps int, stop func() bool) {
	a.most, a.ends = most, true
	a.run(sweeps*a.Edges(), 0.2, 0.05, 0, stop)
}

// cut is a place in a trail: before its edge at.
func (a *annealer) cut(h int32) (trail, at int32) {
	if w := a.where[h]; w.trail >= 0 {
		return w.trail, w.at
	}
	w := a.where[h^1]
	return w.trail, w.at + 1
}

// run makes that many steps while it cools from one temperature to another, or until the cost is no more than enough.
func (a *annealer) run(steps int, from, to float64, enough int, stop func() bool) {
	a.cost = 0
	for _, t := range a.trails {
		a.cost += a.price(len(t))
	}
	batch := max(1024, len(a.trails))
	batches := max(1, steps/batch)
	fall := math.Pow(to/from, 1/float64(batches))
	a.heat = from
	for range batches {
		for range batch {
			if a.cost <= enough {
				return
			}
			a.step()
		}
		if stop() || a.done != nil && a.done() {
			return
		}
		a.heat *= fall
	}
}

// step draws a move and makes it if it may be made.
func (a *annealer) step() {
	h := a.r.Int32N(int32(len(a.From)))
	out := a.Out(a.From[h])
	g := out[a.r.Int32N(int32(len(out)))]
	p, i := a.cut(h)
	q, j := a.cut(g)
	if p != q {
		turned := !a.Directed && a.r.Uint32()&1 == 0
		a.exchange(p, q, i, j, turned)
		return
	}
	if i == j {
		if a.ends {
			a.slide(p, i)
		}
		return
	}
	if i > j {
		i, j = j, i
	}
	trail := a.trails[p]
	k := i + a.r.Int32N(j-i) // the part is left at its edge k
	around := a.Out(a.From[trail[k]])
	if t, at := a.cut(around[a.r.Int32N(int32(len(around)))]); t != p {
		if a.allowed(len(trail), len(a.trails[t]), len(trail)-int(j-i)) {
			a.transfer(p, t, i, j, k, at)
		}
	} else if !a.Directed && j-i <= maxTurn {
		part := trail[i:j]
		Reverse(part)
		for k, h := range part {
			a.where[h] = place{p, i + int32(k)}
			a.where[h^1].trail = -1
		}
	}
}

// transfer moves the closed part from i to j of trail p to place at of trail q, from its edge k on.
func (a *annealer) transfer(p, q, i, j, k, at int32) {
	t, u := a.trails[p], a.trails[q]
	a.cost -= a.price(len(t)) + a.price(len(u))
	a.part = append(append(append(a.part[:0], t[k:j]...), t[i:k]...), u[at:]...)
	a.trails[p] = append(t[:i], t[j:]...)
	a.trails[q] = append(u[:at], a.part...)
	a.cost += a.price(len(a.trails[p])) + a.price(len(a.trails[q]))
	a.place(p, int(i))
	a.place(q, int(at))
}

// maxTurn bounds the work of a turn, which alone does not make lengths more equal.
const maxTurn = 64

// allowed decides on two lengths, of which the first is to become another, while their sum stays.
func (a *annealer) allowed(p, q, becomes int) bool {
	if becomes < 1 || becomes >= p+q {
		return false
	}
	d := a.price(becomes) + a.price(p+q-becomes) - a.price(p) - a.price(q)
	return d <= 0 || float64(d) < a.heat*12 && a.r.Float64() < math.Exp(-float64(d)/a.heat)
}

func (a *annealer) exchange(p, q, i, j int32, turned bool) {
	m := move{kind: exchange, from: p, to: q, i: i, j: j}
	lp, lq := len(a.trails[p]), len(a.trails[q])
	becomes := int(i) + lq - int(j)
	if turned {
		m.kind, becomes = exchangeReversed, int(i+j)
	}
	if a.allowed(lp, lq, becomes) {
		a.change(m)
	}
}

// change makes a move that is allowed.
func (a *annealer) change(m move) {
	a.cost -= a.price(len(a.trails[m.from])) + a.price(len(a.trails[m.to]))
	a.apply(m)
	a.cost += a.price(len(a.trails[m.from])) + a.price(len(a.trails[m.to]))
}

// slide moves the part of trail p after cut i to a trail that ends where p does.
func (a *annealer) slide(p, i int32) {
	t := a.trails[p]
	if i == 0 || int(i) == len(t) {
		return
	}
	if !a.Directed && a.r.Uint32()&1 == 0 { // the part before the cut
		Reverse(t)
		a.place(p, 0)
		i = int32(len(t)) - i
	}
	out := a.Out(a.Head(t[len(t)-1]))
	q, j := a.cut(out[a.r.Int32N(int32(len(out)))])
	if q == p || j != 0 && int(j) != len(a.trails[q]) || a.Directed && j != 0 {
		return
	}
	if !a.allowed(len(t), len(a.trails[q]), int(i)) {
		return
	}
	a.part = append(a.part[:0], t[i:]...)
	a.cost -= a.price(len(t)) + a.price(len(a.trails[q]))
	a.trails[p] = t[:i]
	if j == 0 {
		a.trails[q] = append(a.part, a.trails[q]...)
		a.part = nil
	} else {
		Reverse(a.part)
		a.trails[q] = append(a.trails[q], a.part...)
	}
	a.cost += a.price(len(a.trails[p])) + a.price(len(a.trails[q]))
	a.place(q, int(min(j, int32(len(a.trails[q])))))
}
