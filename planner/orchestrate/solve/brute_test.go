package solve

import (
	"fmt"
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// brute tries everything: the fewest flows and the smallest largest load, or -1 where nothing is possible. Items are
// handed out one by one where demands may be split, interface by interface where not.
func brute(p *orchestrate.Problem) (flows, level int64) {
	flows, level = -1, -1
	on := make([][]int, len(p.Interfaces))
	for f := range p.Flows {
		for _, i := range p.Flows[f].Interfaces {
			on[i] = append(on[i], f)
		}
	}
	load := make([]int64, len(p.Flows))
	var next func(i int)
	// share gives want items of interface i to its flows from the k-th on.
	var share func(i, k int, want int64)
	share = func(i, k int, want int64) {
		if want == 0 {
			next(i + 1)
			return
		}
		if k == len(on[i]) {
			return
		}
		f, d := on[i][k], p.Interfaces[i].Demand
		for n := int64(0); n <= min(d, want, p.Flows[f].Capacity-load[f]); n++ {
			if !p.Split && n != 0 && n != d {
				continue
			}
			load[f] += n
			share(i, k+1, want-n)
			load[f] -= n
		}
	}
	next = func(i int) {
		if i < len(p.Interfaces) {
			share(i, 0, p.Interfaces[i].Demand*int64(p.Copies()))
			return
		}
		var used, top int64
		for _, v := range load {
			if v > 0 {
				used++
			}
			top = max(top, v)
		}
		if flows < 0 || used < flows {
			flows = used
		}
		if level < 0 || top < level {
			level = top
		}
	}
	next(0)
	return flows, level
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

// after gives a Stop that says so after being asked n times.
func after(n int) func() bool {
	return func() bool { n--; return n < 0 }
}
