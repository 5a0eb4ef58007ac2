package papers

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/attention/solve"
)

// attentionCovers chooses from the probes of three and four covers. Nearly every link is on as many probes, and the
// choice is a set cover without further structure.
func attentionCovers(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tcovers\tprobes\tsuspicious\tgreedy\tours\tbound\tgap\tms\t")
	type network struct {
		fabric       string
		size, covers int
	}
	for _, x := range shown(o, 1, []network{{"fat-tree", 10, 3}, {"fat-tree", 10, 4}, {"fat-tree", 18, 3}, {"leaf-spine", 25, 3}, {"random", 2000, 3}, {"random", 2000, 4}}...) {
		c := randomCycles(x.size, x.covers, o.Seed)
		if x.fabric != "random" {
			var err error
			if c, err = newCycles(x.fabric, x.size, x.covers, true, o.Seed); err != nil {
				return err
			}
		}
		for _, percent := range shown(o, 2, 3, 10, 20, 30) {
			some := c.draw(percent)
			greedy, err := c.index.Switch(some, nil, solve.Options{Method: solve.Greedy})
			if err != nil {
				return err
			}
			start := time.Now()
			choice, err := c.index.Switch(some, nil, solve.Options{Stop: stopAfter(ctx, min(o.limit(), 2*time.Second))})
			took := time.Since(start)
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			dear, err := c.check(some, greedy)
			if err != nil {
				return err
			}
			cost, err := c.check(some, choice)
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%d %%\t%g\t%g\t%g\t%.2f %%\t%.1f\t\n", c.name, x.covers, len(c.traces), percent,
				dear, cost, choice.LowerBound, 100*(1-choice.LowerBound/cost), ms(took))
		}
	}
	return nil
}

// randomCycles are probes of 5 to 25 unrelated links, the hardest known problems.
func randomCycles(links, covers int, seed uint64) *cycles {
	c := &cycles{name: fmt.Sprintf("random:%d", links), links: links, rng: rand.New(rand.NewPCG(seed, uint64(covers)))}
	var cost []float64
	for range covers {
		order := c.rng.Perm(links)
		for len(order) > 0 {
			n := min(5+c.rng.IntN(21), len(order))
			trace := make([]int32, n)
			for k, l := range order[:n] {
				trace[k] = int32(l)
			}
			order = order[n:]
			c.traces, cost = append(c.traces, trace), append(cost, float64(n))
		}
	}
	c.index = solve.NewTraces(links, c.traces, cost, 0)
	return c
}

// attentionChurn replaces a part of the suspicious links from one cycle to the next, and allows few probes to change.
func attentionChurn(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tprobes\tsuspicious\tnew\tmay change\tchange\tabove least\tproven\tcycles\tworst ms\t")
	c, err := newCycles("fat-tree", 18, 2, true, o.Seed)
	if err != nil {
		return err
	}
	const times = 20
	for _, part := range shown(o, 1, 10, 50) { // percent of the suspicious links that are others
		var drawn [times][]int32
		for k := range drawn {
			drawn[k] = c.draw(6)
		}
		for _, limit := range shown(o, 3, 0, 2, 4, 8, 16, 32, -1) {
			changes, proven := 0, 0
			cost, least, worst := 0.0, 0.0, time.Duration(0)
			for _, some := range drawn {
				n := c.links * 3 / 100
				before, after := some[:n], some[n*part/100:][:n]
				first, err := c.index.Switch(before, nil, solve.Options{})
				if err != nil {
					return err
				}
				best, err := c.index.Switch(after, nil, solve.Options{})
				if err != nil {
					return err
				}
				start := time.Now()
				choice, err := c.index.Switch(after, first.Probes, solve.Options{Previous: new(attention.Plan), Churn: limit, Stop: stopAfter(ctx, o.limit())})
				worst = max(worst, time.Since(start))
				if err != nil {
					return err
				}
				got, err := c.check(after, choice)
				if err != nil {
					return err
				}
				changes += changed(first.Probes, choice.Probes)
				cost, least = cost+got, least+best.LowerBound
				if choice.Optimal {
					proven++
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			may := fmt.Sprint(limit)
			if limit < 0 {
				may = "any"
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%d %%\t%s\t%.1f\t%.1f %%\t%d\t%d\t%.1f\t\n", c.name, len(c.traces), c.links*3/100, part, may,
				float64(changes)/times, math.Abs(100*(cost/least-1)), proven, times, ms(worst))
		}
	}
	return nil
}

// changed counts the elements in exactly one of two lists.
func changed(a, b []int32) (n int) {
	in := map[int32]bool{}
	for _, p := range a {
		in[p] = true
	}
	n = len(a)
	for _, p := range b {
		if in[p] {
			n--
		} else {
			n++
		}
	}
	return n
}
