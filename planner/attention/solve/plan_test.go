package solve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/attention"
)

// random makes a problem of up to 12 probes. The kinds are 0: anything; 1: two plans, links on one probe of each; 2:
// pairs of any probes; 3: mostly as 1, with some longer rows.
func random(rng *rand.Rand, kind int) *attention.Problem {
	n, m := 1+rng.IntN(12), rng.IntN(25)
	p := &attention.Problem{}
	fine := []float64{1, 0.5, 0.001}[rng.IntN(3)]
	for k := range n {
		p.Probes = append(p.Probes, attention.Trace{ID: fmt.Sprint("p", k), Cost: float64(rng.IntN(9)) * fine})
	}
	half := (n + 1) / 2
	for l := range m {
		name := fmt.Sprint("l", l)
		on := func(k int) { p.Probes[k].Links = append(p.Probes[k].Links, name) }
		if rng.IntN(4) > 0 {
			p.Suspicious = append(p.Suspicious, name)
		}
		switch {
		case kind == 0 || kind == 3 && rng.IntN(5) == 0:
			for range 1 + rng.IntN(5) {
				on(rng.IntN(n))
			}
		case kind == 2:
			on(rng.IntN(n))
			on(rng.IntN(n))
		default:
			on(rng.IntN(half))
			if half < n {
				on(half + rng.IntN(n-half))
			}
		}
	}
	return p
}

// brute is the least cost of all 2ⁿ choices.
func brute(p *attention.Problem) float64 {
	bit := map[string]int{}
	for _, l := range p.Suspicious {
		if _, ok := bit[l]; !ok {
			bit[l] = len(bit)
		}
	}
	links := make([]uint64, len(p.Probes))
	for k, t := range p.Probes {
		for _, l := range t.Links {
			if b, ok := bit[l]; ok {
				links[k] |= 1 << b
			}
		}
	}
	best := math.Inf(1)
	for set := range 1 << len(p.Probes) {
		var covered uint64
		cost := 0.0
		for k, t := range p.Probes {
			on := set>>k&1 == 1
			if on {
				covered |= links[k]
				cost += t.Cost
			}
			if on != slices.Contains(p.Detailed, t.ID) {
				cost += p.SwitchCost
			}
		}
		if covered == 1<<len(bit)-1 {
			best = min(best, cost)
		}
	}
	return best
}

func TestAgainstBruteForce(t *testing.T) {
	for seed := range uint64(testkit.Rounds(2500, 8000)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := random(rng, int(seed%4))
		if seed%3 == 0 {
			p.SwitchCost = float64(rng.IntN(8)) / 2
			for _, t := range p.Probes {
				if rng.IntN(3) == 0 {
					p.Detailed = append(p.Detailed, t.ID)
				}
			}
		}
		want := brute(p)
		for _, o := range []Options{{Method: Exact}, {Method: Greedy}, {Method: GreedyLinks}, {Method: FANTH},
			{Method: FANTH, Alpha: 0.4, Beta: 0.3}, {Method: Exact, Stop: func() bool { return true }}} {
			plan, err := Plan(p, o)
			if err == nil {
				err = attention.Check(p, plan)
			}
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, o, err)
			}
			s := plan.Stats
			proven := o.Stop == nil && (o.Method == Exact || o.Method == FANTH && o.Alpha == 0)
			if s.Objective < want-1e-9 || s.LowerBound > want+1e-9 || proven && (s.Objective > want+1e-9 || !s.Optimal) {
				t.Fatalf("seed %d, %s: cost %v, bound %v, optimal %v; least is %v", seed, o.Method, s.Objective, s.LowerBound, s.Optimal, want)
			}
		}
	}
}

// TestPaperExample is the worked example of the paper, which calls {2, 3, 6} at a cost of 6 its answer.
func TestPaperExample(t *testing.T) {
	p := &attention.Problem{Suspicious: []string{"1", "3", "4", "7"}}
	for i, links := range [][]string{{"2", "5"}, {"1"}, {"2", "3", "4"}, {"1", "2", "4", "6"}, {"4", "6"}, {"3", "7"}, {"1", "6", "7"}} {
		p.Probes = append(p.Probes, attention.Trace{ID: fmt.Sprint(i + 1), Cost: float64(len(links)), Links: links})
	}
	for _, m := range []Method{Exact, FANTH} {
		plan, err := Plan(p, Options{Method: m})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, d := range plan.Probes {
			ids = append(ids, d.ID)
		}
		if plan.Stats.Objective != 5 || !slices.Equal(ids, []string{"2", "5", "6"}) {
			t.Errorf("%s: %v at %v, want [2 5 6] at 5", m, ids, plan.Stats.Objective)
		}
	}
}

// TestInvariants changes a problem in ways that must not change its least cost, or must add two up.
func TestInvariants(t *testing.T) {
	cost := func(p *attention.Problem) float64 {
		plan, err := Plan(p, Options{})
		if err == nil {
			err = attention.Check(p, plan)
		}
		if err != nil {
			t.Fatal(err)
		}
		return plan.Stats.Objective
	}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 5))
		p, q := random(rng, int(seed%4)), random(rng, int(seed/4%4))
		want := cost(p)
		if len(p.Suspicious) > 0 {
			p.Suspicious = append(p.Suspicious, p.Suspicious[0])
		}
		some := p.Probes[rng.IntN(len(p.Probes))]
		p.Probes = append(p.Probes, attention.Trace{ID: "dominated", Cost: some.Cost + 1, Links: some.Links})
		rng.Shuffle(len(p.Probes), func(i, j int) { p.Probes[i], p.Probes[j] = p.Probes[j], p.Probes[i] })
		if got := cost(p); math.Abs(got-want) > 1e-9 {
			t.Fatalf("seed %d: cost %v with a link twice, a dominated probe and another order, %v without", seed, got, want)
		}
		want += cost(q)
		for _, x := range q.Probes {
			for i := range x.Links {
				x.Links[i] = "q" + x.Links[i]
			}
			p.Probes = append(p.Probes, attention.Trace{ID: "q" + x.ID, Cost: x.Cost, Links: x.Links})
		}
		for _, l := range q.Suspicious {
			p.Suspicious = append(p.Suspicious, "q"+l)
		}
		if got := cost(p); math.Abs(got-want) > 1e-9 {
			t.Fatalf("seed %d: cost %v of two apart, %v one by one", seed, got, want)
		}
	}
}

// TestTwoPlansNeedNoSearch: where every link is on one probe of each of two plans, the flow alone gives the answer.
func TestTwoPlansNeedNoSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		p := &attention.Problem{}
		n := 2 + rng.IntN(60)
		for k := range n {
			p.Probes = append(p.Probes, attention.Trace{ID: fmt.Sprint(k), Cost: float64(1 + rng.IntN(9))})
		}
		for l := range 5 * n {
			name := fmt.Sprint("l", l)
			a, b := rng.IntN(n/2), n/2+rng.IntN(n-n/2)
			p.Probes[a].Links = append(p.Probes[a].Links, name)
			p.Probes[b].Links = append(p.Probes[b].Links, name)
			p.Suspicious = append(p.Suspicious, name)
		}
		plan, err := Plan(p, Options{})
		if err == nil {
			err = attention.Check(p, plan)
		}
		if err != nil || plan.Stats.Nodes != 0 || !plan.Stats.Optimal {
			t.Fatalf("%d nodes, optimal %v, %v", plan.Stats.Nodes, plan.Stats.Optimal, err)
		}
	}
}

func TestErrors(t *testing.T) {
	ok := func() *attention.Problem {
		return &attention.Problem{Probes: []attention.Trace{{ID: "a", Cost: 1, Links: []string{"x"}}}, Suspicious: []string{"x"}}
	}
	tests := []struct {
		name, want string
		change     func(*attention.Problem, *Options)
	}{
		{"no probes", "no probes", func(p *attention.Problem, _ *Options) { p.Probes = nil }},
		{"twice", `"a" is there twice`, func(p *attention.Problem, _ *Options) { p.Probes = append(p.Probes, p.Probes[0]) }},
		{"negative", `"a" costs -1`, func(p *attention.Problem, _ *Options) { p.Probes[0].Cost = -1 }},
		{"not a number", `"a" costs NaN`, func(p *attention.Problem, _ *Options) { p.Probes[0].Cost = math.NaN() }},
		{"infinite", `"a" costs +Inf`, func(p *attention.Problem, _ *Options) { p.Probes[0].Cost = math.Inf(1) }},
		{"no id", "probe 0 has no id", func(p *attention.Problem, _ *Options) { p.Probes[0].ID = "" }},
		{"not covered", "link y is on no probe", func(p *attention.Problem, _ *Options) { p.Suspicious = []string{"y"} }},
		{"not there", `"b", which is said`, func(p *attention.Problem, _ *Options) { p.Detailed = []string{"b"} }},
		{"switch cost", "a change costs NaN", func(p *attention.Problem, _ *Options) { p.SwitchCost = math.NaN() }},
		{"method", `method "magic"`, func(_ *attention.Problem, o *Options) { o.Method = "magic" }},
		{"factor", "between 0 and 1", func(_ *attention.Problem, o *Options) { o.Alpha = 2 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, o := ok(), Options{}
			tt.change(p, &o)
			if _, err := Plan(p, o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Plan: %v, want %q", err, tt.want)
			}
		})
	}
	p := ok()
	p.Suspicious = []string{"y", "x", "y"}
	plan, err := Plan(p, Options{Partial: true})
	if err == nil {
		err = attention.Check(p, plan)
	}
	if err != nil || !plan.Partial || !slices.Equal(plan.OnNoProbe, []string{"y"}) {
		t.Errorf("partial plan: %+v, %v", plan, err)
	}
}
