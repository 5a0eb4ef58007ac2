package solve_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
)

// random makes a problem of a few probes. Half of them have limits.
func random(rng *rand.Rand, probes, links int) *schedule.Problem {
	p := schedule.Defaults()
	p.Slot, p.Period = 10, 20
	sets := [][]float64{{20}, {10, 20}, {10, 40}, {10, 20, 40}, {20, 30}, {10, 30}, {20, 60}}
	periods := sets[rng.IntN(len(sets))]
	p.Period = periods[rng.IntN(len(periods))]
	p.HeaderBytes, p.HopBytes, p.OverheadBytes = rng.IntN(4)*10, 5+rng.IntN(10), 0
	limits := rng.IntN(2) == 0
	for k := range links {
		w := float64(1 + rng.IntN(3))
		l := schedule.Link{Name: fmt.Sprint("l", k), Period: periods[rng.IntN(len(periods))], Weight: &w}
		if limits && rng.IntN(3) == 0 {
			b := float64(1000 + rng.IntN(30)*1000)
			l.Limit = &b
		}
		p.Links = append(p.Links, l)
	}
	if limits && rng.IntN(2) == 0 {
		p.SendLimit = float64(2000 + rng.IntN(20)*1000)
	}
	if limits && rng.IntN(2) == 0 {
		p.ReceiveLimit = float64(2000 + rng.IntN(30)*1000)
	}
	for k := range probes {
		x := schedule.Probe{ID: fmt.Sprint("p", k), Agent: fmt.Sprint("a", rng.IntN(2)), Collector: fmt.Sprint("a", rng.IntN(3))}
		for range 1 + rng.IntN(4) {
			x.Links = append(x.Links, fmt.Sprint("l", rng.IntN(links)))
		}
		p.Probes = append(p.Probes, x)
	}
	return p
}

// twin tries all intervals and phases, one slot after the other.
func twin(p *schedule.Problem) (left, bytes float64) {
	r, err := p.Resolve()
	if err != nil {
		panic(err)
	}
	left, bytes = math.Inf(1), math.Inf(1)
	interval, phase := make([]int, len(r.Probes)), make([]int, len(r.Probes))
	var try func(k int, sum float64)
	try = func(k int, sum float64) {
		if left == 0 && sum >= bytes {
			return
		}
		if k < len(r.Probes) {
			interval[k] = 0
			try(k+1, sum)
			for _, i := range r.Grid {
				interval[k] = i
				for phase[k] = 0; phase[k] < i; phase[k] += r.Base {
					try(k+1, sum+float64(r.Probes[k].Total)/r.Seconds(i))
				}
			}
			return
		}
		if l := twinLeft(r, interval, phase); l < left-1e-9 || l < left+1e-9 && sum < bytes {
			left, bytes = l, sum
		}
	}
	try(0, 0)
	return left, bytes
}

// schedules is how many the twin tries.
func schedules(p *schedule.Problem) int {
	r, err := p.Resolve()
	if err != nil {
		panic(err)
	}
	options, all := 1, 1
	for _, i := range r.Grid {
		options += i / r.Base
	}
	for range r.Probes {
		all *= options
	}
	return all
}

// twinLeft is the weight of what is not seen; infinite where a limit is exceeded.
func twinLeft(r *schedule.Resolved, interval, phase []int) (left float64) {
	seconds := r.Seconds(r.Hyper)
	send, receive := make([]float64, len(r.Agents)), make([]float64, len(r.Agents))
	load := make([]float64, len(r.Links))
	looked := make([][]bool, len(r.Links))
	for l := range looked {
		looked[l] = make([]bool, 2*r.Hyper)
	}
	for k := range r.Probes {
		if interval[k] == 0 {
			continue
		}
		x := &r.Probes[k]
		n := float64(r.Hyper / interval[k])
		send[x.Agent] += 8 * n * float64(x.Sent)
		receive[x.Collector] += 8 * n * float64(x.Received)
		for i, l := range x.Links {
			load[l] += 8 * n * float64(x.Bytes[i])
			for t := phase[k]; t < 2*r.Hyper; t += interval[k] {
				looked[l][t] = true
			}
		}
	}
	for a := range r.Agents {
		if send[a] > r.Agents[a].Send*seconds+1e-6 || receive[a] > r.Agents[a].Receive*seconds+1e-6 {
			return math.Inf(1)
		}
	}
	for l := range r.Links {
		link := &r.Links[l]
		if load[l] > link.Limit*seconds+1e-6 {
			return math.Inf(1)
		}
		idle := 0
		for _, seen := range looked[l] {
			if idle++; seen {
				idle = 0
			}
			if idle >= link.Period { // a window as long as the period without a look
				left += link.Weight
				break
			}
		}
	}
	return left
}

// TestAgainstTwin compares with all schedules of small problems: whole and partial, with and without limits.
func TestAgainstTwin(t *testing.T) {
	partial, turns, whole := 0, 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := random(rng, 2+rng.IntN(4), 2+rng.IntN(5))
		for schedules(p) > 8000 {
			p.Probes = p.Probes[1:]
		}
		left, bytes := twin(p)
		plan, err := solve.Plan(p, solve.Options{Seed: seed, Partial: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := plan.Stats
		if err := schedule.Check(p, plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !planner.Near(s.LeftOut, left) || !planner.Near(s.Objective, bytes) || !s.Optimal {
			t.Errorf("seed %d: %v left out, %v bytes/s, optimal %v, bounds %v and %v; want %v, %v, true", seed, s.LeftOut, s.Objective, s.Optimal, s.LeftOutBound, s.LowerBound, left, bytes)
		}
		if _, err := solve.Plan(p, solve.Options{Seed: seed}); (err != nil) != (left > 0) {
			t.Errorf("seed %d: a whole plan: %v, where %v has to be left out", seed, err, left)
		}
		switch {
		case left > 0:
			partial++
		default:
			whole++
		}
		turns += takesTurns(p, plan)
	}
	if partial < 100 || whole < 100 || turns < 5 {
		t.Errorf("%d partial, %d whole plans, %d with turns: too few to judge", partial, whole, turns)
	}
}

// takesTurns is 1 if a link is seen in time that no probe sees in time alone.
func takesTurns(p *schedule.Problem, plan *schedule.Plan) int {
	r, err := p.Resolve()
	if err != nil {
		panic(err)
	}
	alone := map[int32]bool{}
	for _, x := range plan.NotSeen {
		for l := range r.Links {
			if r.Links[l].Name == x.Link {
				alone[int32(l)] = true
			}
		}
	}
	for _, x := range plan.Probes {
		k := slices.IndexFunc(r.Probes, func(q schedule.ResolvedProbe) bool { return q.ID == x.ID })
		for _, l := range r.Probes[k].Links {
			if x.Interval <= r.Millis(r.Links[l].Period) {
				alone[l] = true
			}
		}
	}
	if len(alone) < len(r.Links) {
		return 1
	}
	return 0
}

// TestSame asks for the same plan twice.
func TestSame(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 8))
		p := random(rng, 30, 40)
		var texts [2]string
		for k := range texts {
			plan, err := solve.Plan(p, solve.Options{Seed: seed, Partial: true, Stop: calls(200)})
			if err == nil {
				err = schedule.Check(p, plan)
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			b, err := json.Marshal(plan)
			if err != nil {
				t.Fatal(err)
			}
			texts[k] = string(b)
		}
		if texts[0] != texts[1] {
			t.Fatalf("seed %d: two plans\n%s\n%s", seed, texts[0], texts[1])
		}
	}
}

// calls is a time limit in calls.
func calls(n int) func() bool {
	return func() bool { n--; return n < 0 }
}

// TestTurns has two probes that share a link which needs as many looks as both together take.
func TestTurns(t *testing.T) {
	p := schedule.Defaults()
	p.Classes = []schedule.Class{{Name: "core", Period: 500, Links: []string{"x"}}}
	p.Probes = []schedule.Probe{{ID: "p", Links: []string{"a", "x"}, Agent: "a"}, {ID: "q", Links: []string{"b", "x"}, Agent: "a"}}
	plan, err := solve.Plan(p, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x, y := plan.Probes[0], plan.Probes[1]
	if x.Interval != 1000 || y.Interval != 1000 || math.Abs(x.Phase-y.Phase) != 500 || !plan.Stats.Optimal || plan.Stats.ShortestWait != 500 {
		t.Errorf("%+v", plan)
	}
}

// TestCannot requests impossible plans, and expects a reason that names the obstacle.
func TestCannot(t *testing.T) {
	make := func(change func(*schedule.Problem)) *schedule.Problem {
		p := schedule.Defaults()
		p.Probes = []schedule.Probe{{ID: "p", Links: []string{"a", "b"}, Agent: "h", Collector: "i"}, {ID: "q", Links: []string{"c"}, Agent: "h", Collector: "i"}}
		change(p)
		return p
	}
	bps := 100.0
	for _, tt := range []struct {
		p     *schedule.Problem
		want  string
		kind  error
		seen  int
		bound float64
	}{
		{make(func(p *schedule.Problem) { p.Links = []schedule.Link{{Name: "z"}} }), "link z is on no probe", solve.ErrNoProbe, 3, 1},
		{make(func(p *schedule.Problem) { p.Links = []schedule.Link{{Name: "b", Limit: &bps}} }), "the limit of link b leaves no room", solve.ErrLimit, 1, 2},
		{make(func(p *schedule.Problem) { p.Agents = []schedule.Agent{{Name: "i", Receive: &bps}} }), "the limit of what agent i receives leaves no room", solve.ErrLimit, 0, 3},
		{make(func(p *schedule.Problem) { p.SendLimit = 1000 }), "what agent h sends would be 1312 bit/s, at most 1000 are allowed", solve.ErrLimit, 2, 1},
	} {
		_, err := solve.Plan(tt.p, solve.Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.kind) {
			t.Errorf("%v, want %q", err, tt.want)
		}
		plan, err := solve.Plan(tt.p, solve.Options{Partial: true})
		if err == nil {
			err = schedule.Check(tt.p, plan)
		}
		if err != nil {
			t.Errorf("%s: partial: %v", tt.want, err)
			continue
		}
		if plan.Stats.Seen != tt.seen || plan.Stats.LeftOutBound != tt.bound || !plan.Stats.Optimal || plan.NotSeen[0].Reason == "" {
			t.Errorf("%s: partial: %+v", tt.want, plan)
		}
	}
}
