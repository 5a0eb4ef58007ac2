package solve

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/querymix"
)

// random makes a small problem, whose packets are given.
func random(rng *rand.Rand) *querymix.Problem {
	p := &querymix.Problem{Bits: 4 + rng.IntN(13)}
	for q := range 1 + rng.IntN(4) {
		query := querymix.Query{Name: fmt.Sprint("q", q), Value: "node", Aggregation: querymix.Static, Hops: 5}
		switch rng.IntN(4) {
		case 0:
			query.Within = float64(1 + rng.IntN(60))
		case 1:
			query.Frequency = querymix.Fraction(1+rng.IntN(16)) / 16
		case 2:
			query.Within, query.Frequency = float64(1+rng.IntN(60)), querymix.Fraction(1+rng.IntN(4))/16
		}
		query.Weight = float64(rng.IntN(4))
		bits := 0
		for range 1 + rng.IntN(3) {
			bits += 1 + rng.IntN(6)
			query.Widths = append(query.Widths, querymix.Width{Bits: bits, Instances: 1, Packets: float64(1 + rng.IntN(40))})
		}
		p.Queries = append(p.Queries, query)
	}
	return p
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestPlanAgainstOracle(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	plans, divided := 0, 0
	for n := range testkit.Rounds(250, 3000) {
		p := random(rng)
		o := oracle{p}
		want := o.objective()
		plan, err := Plan(p, Options{})
		if (err == nil) != (want != nil) {
			t.Fatalf("seed %d, problem %d: %s\nPlan: %v, the oracle has %v", seed, n, text(p), err, want)
		}
		if err != nil {
			continue
		}
		plans++
		if err := querymix.Check(p, plan); err != nil {
			t.Fatalf("seed %d, problem %d: %s\n%s\n%v", seed, n, text(p), text(plan), err)
		}
		exact, _ := want.Float64()
		if got := plan.Stats.Objective; math.Abs(got-exact) > 1e-9*exact || !plan.Stats.Optimal {
			t.Fatalf("seed %d, problem %d: %s\nobjective %v (optimal %v), want %v", seed, n, text(p), got, plan.Stats.Optimal, exact)
		}
		if len(plan.Sets) > 1 {
			divided++
		}
		// For the widths of the plan no query can be helped without harm to one that is worse off.
		widths := make([]int, len(p.Queries))
		for q := range widths {
			for k, w := range p.Queries[q].Widths {
				if w.Bits == plan.Queries[q].Bits {
					widths[q] = k
				}
			}
		}
		for q, x := range o.fair(widths) {
			exact, _ := x.Float64()
			if got := 1 / plan.Queries[q].Ratio; math.Abs(got-exact) > 1e-7*exact+1e-9 {
				t.Fatalf("seed %d, problem %d: %s\n%s\nquery %d: progress %v, want %v", seed, n, text(p), text(plan), q, got, exact)
			}
		}
	}
	if plans < testkit.Rounds(83, 1000) || divided < testkit.Rounds(41, 500) {
		t.Errorf("seed %d: %d plans, %d with several sets: the problems are too plain", seed, plans, divided)
	}
}

// Every width that is not chosen is said to be as bad as it is.
func TestOtherWidths(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	for n := range 300 {
		p := random(rng)
		o := oracle{p}
		plan, err := Plan(p, Options{})
		if err != nil {
			continue
		}
		widths := make([]int, len(p.Queries))
		for q := range widths {
			for k, w := range p.Queries[q].Widths {
				if w.Bits == plan.Queries[q].Bits {
					widths[q] = k
				}
			}
		}
		for q := range widths {
			chosen := widths[q]
			for k, w := range plan.Queries[q].Widths {
				if k == chosen || w.Reason != "" {
					continue
				}
				widths[q] = k
				want := 0.0
				if rate := o.rate(widths); rate != nil {
					x, _ := rate.Float64()
					want = 1 / x
				}
				if math.Abs(w.Objective-want) > 1e-9*want {
					t.Fatalf("seed %d, problem %d: %s\nquery %d with width %s: objective %v, want %v", seed, n, text(p), q, w.Width(), w.Objective, want)
				}
			}
			widths[q] = chosen
		}
	}
}

func TestPartial(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	left, lowered := 0, 0
	// One problem in fifty lowers frequencies: of so many, fewer than 50 do in less than one run in a million.
	for n := range testkit.Rounds(750, 7500) {
		p := random(rng)
		_, err := Plan(p, Options{})
		plan, perr := Plan(p, Options{Partial: true})
		if perr != nil {
			if err == nil || !strings.Contains(perr.Error(), "no query fits") {
				t.Fatalf("seed %d, problem %d: %s\n%v", seed, n, text(p), perr)
			}
			continue
		}
		if plan.Partial != (err != nil) || plan.Stats.Optimal == false {
			t.Fatalf("seed %d, problem %d: %s\npartial %v, and without: %v", seed, n, text(p), plan.Partial, err)
		}
		if err := querymix.Check(p, plan); err != nil {
			t.Fatalf("seed %d, problem %d: %s\n%s\n%v", seed, n, text(p), text(plan), err)
		}
		weight := 0.0
		for _, l := range plan.LeftOut {
			for _, q := range p.Queries {
				if q.Name == l.Name {
					weight += max(q.Weight, 1)
				}
			}
		}
		if s := plan.Stats; s.LeftOut != weight || s.LeftOutBound != weight {
			t.Fatalf("seed %d, problem %d: %s\n%v left out, at least %v, want %v", seed, n, text(p), s.LeftOut, s.LeftOutBound, weight)
		}
		if len(plan.LeftOut) > 0 {
			left++
		}
		if plan.Held > 0 {
			lowered++
			// Any more, and the frequencies cannot be held.
			q := *p
			q.Queries = nil
			for _, d := range plan.Queries {
				for _, o := range p.Queries {
					if o.Name == d.Name {
						o.Frequency *= querymix.Fraction(plan.Held * (1 + 1e-6))
						if o.Frequency > querymix.MinShare {
							q.Queries = append(q.Queries, o)
						}
					}
				}
			}
			if want := (&oracle{&q}).objective(); want != nil && len(q.Queries) == len(plan.Queries) {
				t.Fatalf("seed %d, problem %d: %s\nheld %v, but more is possible", seed, n, text(p), plan.Held)
			}
		}
	}
	if left < testkit.Rounds(5, 100) || lowered < testkit.Rounds(1, 50) {
		t.Errorf("seed %d: queries left out in %d problems, frequencies lowered in %d", seed, left, lowered)
	}
}

// large makes a problem of many queries, with several widths each.
func large(rng *rand.Rand, queries, widths int) *querymix.Problem {
	p := &querymix.Problem{Bits: 16 + rng.IntN(49)}
	for q := range queries {
		query := querymix.Query{Name: fmt.Sprint("q", q), Value: "node", Aggregation: querymix.Static, Hops: 5}
		if rng.IntN(4) == 0 {
			query.Frequency = querymix.Fraction(rng.Float64() / float64(queries))
		}
		bits, packets := 0, 20+1000*rng.Float64()
		for range 1 + rng.IntN(widths) {
			bits += 1 + rng.IntN(6)
			query.Widths = append(query.Widths, querymix.Width{Bits: bits, Instances: 1, Packets: packets})
			packets *= 0.4 + 0.6*rng.Float64()
			packets = max(packets, 1)
		}
		p.Queries = append(p.Queries, query)
	}
	return p
}

// Problems too large for an oracle are proven by their prices, which querymix.Check compares with all sets.
func TestLarge(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 4))
	for n := range 60 {
		p := large(rng, 5+rng.IntN(20), 1)
		plan, err := Plan(p, Options{})
		if err == nil {
			err = querymix.Check(p, plan)
		}
		if err != nil || !plan.Stats.Optimal {
			t.Fatalf("seed %d, problem %d: %s\n%s\n%v", seed, n, text(p), text(plan), err)
		}
	}
}

// A plan that is stopped holds, and its bound is one.
func TestStopped(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	for n := range 20 {
		p := large(rng, 4+rng.IntN(4), 3)
		full, err := Plan(p, Options{})
		if err != nil {
			t.Fatalf("seed %d, problem %d: %s\n%v", seed, n, text(p), err)
		}
		for _, calls := range []int{20, 200, 2000} {
			plan, err := Plan(p, Options{Stop: func() bool { calls--; return calls < 0 }})
			if err != nil {
				continue
			}
			if err := querymix.Check(p, plan); err != nil {
				t.Fatalf("seed %d, problem %d: %s\n%s\n%v", seed, n, text(p), text(plan), err)
			}
			if plan.Stats.LowerBound > full.Stats.Objective*(1+1e-9) || plan.Stats.Objective < full.Stats.LowerBound*(1-1e-9) {
				t.Fatalf("seed %d, problem %d: %s\nstopped: %+v, whole: %+v", seed, n, text(p), plan.Stats, full.Stats)
			}
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, size := range [][2]int{{3, 1}, {3, 3}, {8, 3}, {16, 1}, {16, 3}, {64, 1}} {
		rng := rand.New(rand.NewPCG(1, 1))
		var list []*querymix.Problem
		for range 10 {
			list = append(list, large(rng, size[0], size[1]))
		}
		b.Run(fmt.Sprintf("queries=%d/widths=%d", size[0], size[1]), func(b *testing.B) {
			n, nodes := 0, 0
			for b.Loop() {
				plan, err := Plan(list[n%len(list)], Options{})
				if err != nil {
					b.Fatal(err)
				}
				nodes += plan.Stats.Nodes
				n++
			}
			b.ReportMetric(float64(nodes)/float64(n), "nodes")
		})
	}
}
