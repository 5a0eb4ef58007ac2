package solve

import (
	"fmt"
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// brute tries everything: the fewest flows and the smallest largest load, or -1 where nothing is possible. Items are
// handed out one by one where demands may be split, interface by interface where not.
func brute(p *orchestrate.Problem) (flows, level int64) {
	b := newBrute(p)
	b.next(0)
	if b.lost > 0 {
		return -1, -1
	}
	return b.flows, b.level
}

// bruter tries everything, also to leave things out: first of all the least weight, in sixtieths, then the objectives.
type bruter struct {
	p     *orchestrate.Problem
	on    [][]int
	load  []int64
	out   int64 // so far
	same  func(i int, shares map[int]int64) bool
	churn int

	lost, flows, level int64
}

func newBrute(p *orchestrate.Problem) *bruter {
	b := &bruter{p: p, on: make([][]int, len(p.Interfaces)), load: make([]int64, len(p.Flows)), lost: -1}
	for f := range p.Flows {
		for _, i := range p.Flows[f].Interfaces {
			b.on[i] = append(b.on[i], f)
		}
	}
	return b
}

// share gives at most want items of interface i to its flows from the k-th on, and leaves out the rest.
func (b *bruter) share(i, k int, want int64, shares map[int]int64) {
	d := b.p.Interfaces[i].Demand
	if want == 0 || k == len(b.on[i]) {
		out := want * 60 / d * b.p.Interfaces[i].Worth()
		changed := 0
		if b.same != nil && !b.same(i, shares) {
			changed = 1
		}
		if b.churn -= changed; b.same == nil || b.churn >= 0 {
			b.out += out
			b.next(i + 1)
			b.out -= out
		}
		b.churn += changed
		return
	}
	f := b.on[i][k]
	for n := int64(0); n <= min(d, want, b.p.Flows[f].Capacity-b.load[f]); n++ {
		if !b.p.Split && n != 0 && n != d {
			continue
		}
		b.load[f] += n
		if n > 0 && shares != nil {
			shares[f] = n
		}
		b.share(i, k+1, want-n, shares)
		delete(shares, f)
		b.load[f] -= n
	}
}

func (b *bruter) next(i int) {
	if b.lost >= 0 && b.out > b.lost {
		return
	}
	if i < len(b.p.Interfaces) {
		var shares map[int]int64
		if b.same != nil {
			shares = map[int]int64{}
		}
		b.share(i, 0, b.p.Interfaces[i].Demand*int64(b.p.Copies()), shares)
		return
	}
	var used, top int64
	for _, v := range b.load {
		if v > 0 {
			used++
		}
		top = max(top, v)
	}
	if b.lost < 0 || b.out < b.lost {
		b.lost, b.flows, b.level = b.out, used, top
	}
	b.flows, b.level = min(b.flows, used), min(b.level, top)
}

// tiny draws a problem that brute can solve. Many have no solution.
func tiny(r *rand.Rand) *orchestrate.Problem {
	p := &orchestrate.Problem{Redundancy: 1 + r.IntN(4)/3, Split: r.IntN(3) == 0}
	ifaces, flows, demand, room := 1+r.IntN(5), 1+r.IntN(6), int64(1+r.IntN(6)), int64(2+r.IntN(12))
	if p.Split {
		ifaces, flows, demand, room = 1+r.IntN(3), 1+r.IntN(5), 1+demand%3, 1+room%6
	}
	for i := range ifaces {
		p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: fmt.Sprintf("i%d", i), Demand: 1 + r.Int64N(demand)})
	}
	dense := 0.3 + 0.6*r.Float64()
	for f := range flows {
		q := orchestrate.Flow{ID: fmt.Sprintf("f%d", f), Capacity: r.Int64N(room + 1)}
		for _, i := range r.Perm(ifaces) {
			if r.Float64() < dense {
				q.Interfaces = append(q.Interfaces, int32(i))
			}
		}
		p.Flows = append(p.Flows, q)
	}
	return p
}

// network draws a problem like those of networks: paths of random lengths, and enough flows.
func network(r *rand.Rand, ifaces, flows int) *orchestrate.Problem {
	p := &orchestrate.Problem{}
	for i := range ifaces {
		p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: fmt.Sprintf("i%d", i), Demand: 4 + r.Int64N(7)})
	}
	for f := range flows {
		q := orchestrate.Flow{ID: fmt.Sprintf("f%d", f), Capacity: 25 + r.Int64N(20), Rate: float64(1 + r.IntN(100))}
		for _, i := range r.Perm(ifaces)[:2+r.IntN(min(8, ifaces-1))] {
			q.Interfaces = append(q.Interfaces, int32(i))
		}
		p.Flows = append(p.Flows, q)
	}
	for i := range ifaces { // every interface has a flow of its own
		p.Flows = append(p.Flows, orchestrate.Flow{ID: fmt.Sprintf("own%d", i), Capacity: 25, Interfaces: []int32{int32(i)}})
	}
	return p
}

// after returns a Stop that says so after being asked n times.
func after(n int) func() bool {
	return func() bool { n--; return n < 0 }
}
