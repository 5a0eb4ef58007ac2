package solve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// concentrateTwin is the heuristic as the paper writes it, scanning all flows for each that it picks.
func concentrateTwin(p *orchestrate.Problem) []int32 {
	at, flows := make([]int32, len(p.Interfaces)), make([]int, len(p.Interfaces))
	for i := range at {
		at[i] = none
	}
	uncovered := make([]int, len(p.Flows))
	for f := range p.Flows {
		uncovered[f] = len(p.Flows[f].Interfaces)
		for _, i := range p.Flows[f].Interfaces {
			flows[i]++
		}
	}
	used := make([]bool, len(p.Flows))
	for {
		best := -1
		for f := range p.Flows {
			if used[f] {
				continue
			}
			if best < 0 || uncovered[f] > uncovered[best] || uncovered[f] == uncovered[best] && p.Flows[f].Capacity > p.Flows[best].Capacity {
				best = f
			}
		}
		if best < 0 || uncovered[best] == 0 {
			return at
		}
		used[best] = true
		path := slices.Clone(p.Flows[best].Interfaces)
		slices.SortFunc(path, func(a, b int32) int {
			if flows[a] != flows[b] {
				return flows[a] - flows[b]
			}
			if d := p.Interfaces[a].Demand - p.Interfaces[b].Demand; d != 0 {
				return int(d)
			}
			return int(a - b)
		})
		remaining := p.Flows[best].Capacity
		for _, i := range path {
			if at[i] != none || p.Interfaces[i].Demand > remaining {
				continue
			}
			at[i] = int32(best)
			remaining -= p.Interfaces[i].Demand
			for g := range p.Flows {
				if slices.Contains(p.Flows[g].Interfaces, i) {
					uncovered[g]--
				}
			}
		}
	}
}

// balanceTwin is the heuristic as the paper writes it, scanning all interfaces for each that it takes.
func balanceTwin(p *orchestrate.Problem) []int32 {
	n := len(p.Interfaces)
	at, nfs, done := make([]int32, n), make([]int, n), make([]bool, n)
	on := make([][]int, n)
	uncovered, load := make([]int, len(p.Flows)), make([]int64, len(p.Flows))
	for f := range p.Flows {
		uncovered[f] = len(p.Flows[f].Interfaces)
		for _, i := range p.Flows[f].Interfaces {
			on[i] = append(on[i], f)
		}
	}
	for i := range at {
		at[i], nfs[i] = none, len(on[i])
	}
	for range n {
		best := -1
		for i := range n {
			if done[i] {
				continue
			}
			if best < 0 || nfs[i] < nfs[best] || nfs[i] == nfs[best] && p.Interfaces[i].Demand > p.Interfaces[best].Demand {
				best = i
			}
		}
		done[best] = true
		flow := -1
		for _, f := range on[best] {
			if p.Flows[f].Capacity-load[f] < p.Interfaces[best].Demand {
				continue
			}
			if flow < 0 || load[f] < load[flow] || load[f] == load[flow] && uncovered[f] < uncovered[flow] {
				flow = f
			}
		}
		if flow < 0 {
			continue
		}
		at[best] = int32(flow)
		load[flow] += p.Interfaces[best].Demand
		for _, f := range on[best] {
			uncovered[f]--
		}
		if load[flow] == p.Flows[flow].Capacity {
			for _, i := range p.Flows[flow].Interfaces {
				nfs[i]--
			}
		}
	}
	return at
}

func TestPaperTwins(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range testkit.Rounds(400, 2000) {
		p := tiny(r)
		if n%2 == 0 {
			p = network(r, 3+r.IntN(40), r.IntN(80))
			for f := range p.Flows {
				p.Flows[f].Capacity -= r.Int64N(20)
			}
		}
		q := newProblem(p)
		if got, want := q.concentrateHeuristic(), concentrateTwin(p); !slices.Equal(got, want) {
			t.Fatalf("seed %d, problem %d: concentrate gives %v, want %v", seed, n, got, want)
		}
		if got, want := q.balanceHeuristic(), balanceTwin(p); !slices.Equal(got, want) {
			t.Fatalf("seed %d, problem %d: balance gives %v, want %v", seed, n, got, want)
		}
	}
}

// TestBalanceOwn gives every interface a flow that nothing else passes: the largest demand is the largest load.
func TestBalanceOwn(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range 200 {
		p := network(r, 2+r.IntN(40), r.IntN(80))
		p.Objective = orchestrate.Balance
		plan, err := Plan(p, Options{Method: Heuristic})
		if err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		for _, i := range p.Interfaces {
			want = max(want, i.Demand)
		}
		if plan.Stats.LoadMax != want || !plan.Stats.Optimal {
			t.Errorf("seed %d, problem %d: largest load %d, proven %t, want %d", seed, n, plan.Stats.LoadMax, plan.Stats.Optimal, want)
		}
	}
}

// INTO, figures 1, 2 and 4: five devices with fourteen interfaces, A to N, and four flows. Sections 2 and 3 name the interfaces of
// f1, f3 and f4, and four of f2, whose ends are those of f1 and f3: the others that it passes follow from that.
func TestPaperExample(t *testing.T) {
	flows := []string{"ABEHLN", "ABEFDC", "CDFGIJ", "JKMN"}
	p := orchestrate.Problem{}
	for c := 'A'; c <= 'N'; c++ {
		p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: string(c), Demand: 4})
	}
	for i, way := range flows {
		f := orchestrate.Flow{ID: fmt.Sprintf("f%d", i+1), Capacity: 24}
		for _, c := range way {
			f.Interfaces = append(f.Interfaces, c-'A')
		}
		p.Flows = append(p.Flows, f)
	}
	for _, tt := range []struct {
		objective string
		printed   [4]string // by flow
		want      float64
	}{{orchestrate.Concentrate, [4]string{"ABEHLN", "", "JIGFCD", "KM"}, 3}, {orchestrate.Balance, [4]string{"EHL", "ABDF", "CGIJ", "KMN"}, 16}} {
		carried, used, most := "", 0., 0.
		for i, list := range tt.printed {
			for _, c := range list {
				if !strings.ContainsRune(flows[i], c) {
					t.Errorf("%s: f%d does not pass %c", tt.objective, i+1, c)
				}
			}
			carried, most = carried+list, max(most, float64(4*len(list)))
			used += float64(min(len(list), 1))
		}
		got := map[string]float64{orchestrate.Concentrate: used, orchestrate.Balance: most}[tt.objective]
		if len(carried) != len(p.Interfaces) || got != tt.want {
			t.Errorf("%s: the printed assignment has %d interfaces and %v, want %v", tt.objective, len(carried), got, tt.want)
		}
		p.Objective = tt.objective
		for _, m := range []Method{Heuristic, Search} {
			plan, err := Plan(&p, Options{Method: m})
			if err != nil {
				t.Fatal(err)
			}
			if err := orchestrate.Check(&p, plan); err != nil || plan.Stats.Objective != tt.want || plan.Stats.LowerBound != tt.want {
				t.Errorf("%s, %s: %v, no plan below %v, want %v: %v", tt.objective, m, plan.Stats.Objective, plan.Stats.LowerBound, tt.want, err)
			}
		}
	}
}
