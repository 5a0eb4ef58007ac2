package papers_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/querymix/solve"
)

// TestQueryMix chooses widths of queries and the packets that carry them. Queries of which no width fits are left out.
func TestQueryMix(t *testing.T) {
	s := start(t)
	for k := range instances {
		p := queryInstance(random(6, k))
		plan, err := solve.Plan(p, solve.Options{Partial: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := querymix.Check(p, plan); err != nil {
			t.Errorf("instance %d: %v", k, err)
		}
		hold(t, fmt.Sprint("instance ", k), p, &plan.Stats.Stats, queryTruth(t, s, p))
	}
}

// queryInstance draws queries of which the first fits. All frequencies can be held, as they add up to less than 1.
func queryInstance(r *rand.Rand) *querymix.Problem {
	p := &querymix.Problem{Bits: 6 + r.IntN(11)}
	for k := range 1 + r.IntN(5) {
		q := querymix.Query{Name: fmt.Sprint("q", k), Value: "node", Aggregation: querymix.Static, Hops: 5, Weight: float64(r.IntN(4))}
		if r.IntN(2) == 0 {
			q.Within = float64(1 + r.IntN(60))
		}
		if r.IntN(2) == 0 {
			q.Frequency = querymix.Fraction(1+r.IntN(12)) / 64
		}
		bits := 0
		for range 1 + r.IntN(3) {
			if bits += 1 + r.IntN(6); k > 0 {
				bits += r.IntN(6)
			}
			q.Widths = append(q.Widths, querymix.Width{Bits: bits, Instances: 1, Packets: float64(1 + r.IntN(40))})
		}
		p.Queries = append(p.Queries, q)
	}
	return p
}

// queryTruth divides 1000 packets among all sets of coded queries that fit into one. It maximises the rate at which
// the worst query nears its goal. A query travels in one width.
func queryTruth(t *testing.T, s *solver, p *querymix.Problem) truth {
	const packets = 1000.0
	m := new(model)
	rate := m.variable(-1, 1e6, false)
	type coded struct {
		query, bits int
		need        float64 // packets until the answer
		sets        []term
	}
	var all []*coded
	var want truth
	pursued, alone := make([]bool, len(p.Queries)), make([]float64, len(p.Queries))
	some := false
	for k := range p.Queries {
		q := &p.Queries[k]
		for _, w := range q.Widths {
			if w.Total() <= p.Bits {
				all = append(all, &coded{query: k, bits: w.Total(), need: w.Packets})
				if alone[k] == 0 || w.Packets < alone[k] {
					alone[k] = w.Packets
				}
			}
		}
		if alone[k] == 0 {
			want.leftOut += q.LeftOutWeight()
			continue
		}
		pursued[k] = q.Within > 0 || q.Frequency == 0
		some = some || pursued[k]
	}
	var sum []term
	var extend func(from, room int, set []*coded)
	extend = func(from, room int, set []*coded) {
		if len(set) > 0 {
			x := m.variable(0, packets, false)
			sum = append(sum, term{x, 1})
			for _, c := range set {
				c.sets = append(c.sets, term{x, 1})
			}
		}
		for k := from; k < len(all); k++ {
			if c := all[k]; c.bits <= room && (len(set) == 0 || set[len(set)-1].query < c.query) {
				extend(k+1, room-c.bits, append(set[:len(set):len(set)], c))
			}
		}
	}
	extend(0, p.Bits, nil)
	m.most(packets, sum...)
	for k := range p.Queries {
		if alone[k] == 0 {
			continue
		}
		q := &p.Queries[k]
		goal := q.Within
		if goal == 0 {
			goal = alone[k]
		}
		var widths, carried, progress []term
		for _, c := range all {
			if c.query != k {
				continue
			}
			chosen := m.choice(0)
			widths = append(widths, term{chosen, 1})
			m.most(0, append(c.sets, term{chosen, -packets})...)
			carried = append(carried, c.sets...)
			for _, x := range c.sets {
				progress = append(progress, term{x.at, goal / c.need})
			}
		}
		m.equal(1, widths...)
		m.least(packets*max(float64(q.Frequency), querymix.MinShare), carried...)
		if pursued[k] || !some {
			m.least(0, append(progress, term{rate, -1})...)
		}
	}
	_, best, ok := s.solve(t, m)
	if !ok {
		t.Fatal("no mix holds the frequencies")
	}
	want.objective = packets / -best
	return want
}
