package papers

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	coversolve "github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// runSchedule prints the savings of schedules, against two that need no planning. One sends every probe as often as
// the most frequent link requires (all alike), the other as often as its own links require (own links). No paper has
// figures of this. Every schedule is checked. A second table removes probes and restores others, and shows the cost
// of few changes. A third shows the cost of a link in networks of very different size.
func runSchedule(ctx context.Context, w io.Writer, o Options) error {
	if err := o.table(w, "Schedules: bytes a second against schedules without a plan", func(t io.Writer) error { return scheduleTable(ctx, t, o) }); err != nil {
		return err
	}
	if err := o.table(w, "Schedules: bytes a second where few probes may change", func(t io.Writer) error { return scheduleChurn(ctx, t, o) }); err != nil {
		return err
	}
	return o.table(w, "Schedules: cost of a link", func(t io.Writer) error { return scheduleSizes(ctx, t, o) })
}

// scheduleOf makes the problem of covers whose MaxHops is hops. There is one cover without depots, or several, each
// from a tenth of the edge nodes. Links at the core, or those of some leaves, are to be seen five times as often.
func scheduleOf(g *topo.Graph, covers, hops int, fast bool, seed uint64) (*schedule.Problem, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var ends []int
	for v := range g.NumNodes() {
		if g.Tier(v) == topo.Edge {
			ends = append(ends, v)
		}
	}
	p := schedule.Defaults()
	for k := range covers {
		c := &cover.Problem{Graph: g, MaxHops: hops}
		if covers > 1 {
			rng.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
			c.Depots = slices.Clone(ends[:max(1, len(ends)/10)])
		}
		plan, err := coversolve.Plan(c, coversolve.Options{Seed: seed, Balanced: covers == 1})
		if err != nil {
			return nil, err
		}
		for _, x := range plan.Probes {
			p.Probes = append(p.Probes, schedule.Probe{ID: fmt.Sprintf("%d/%s", k+1, x.ID), Links: x.Links, Agent: x.Agent, Collector: x.Collector})
		}
	}
	class := schedule.Class{Name: "fast", Period: 200}
	for l := range g.NumLinks() {
		p.Links = append(p.Links, schedule.Link{Name: g.LinkName(l)})
		if a, b := g.Ends(l); fast && rng.IntN(20) == 0 && (g.Tier(g.Node(a)) == topo.Core || g.Tier(g.Node(b)) == topo.Core) {
			class.Links = append(class.Links, g.LinkName(l))
		}
	}
	if fast {
		p.Classes = append(p.Classes, class)
	}
	return p, nil
}

// timeSchedule makes a schedule, and checks it.
func timeSchedule(p *schedule.Problem, o Options, more solve.Options) (*schedule.Plan, time.Duration, error) {
	start := time.Now()
	more.Seed, more.Stop = o.Seed, func() bool { return time.Since(start) > o.limit() }
	plan, err := solve.Plan(p, more)
	took := time.Since(start)
	if err == nil {
		err = schedule.Check(p, plan)
	}
	return plan, took, err
}

// plain returns the bytes a second of schedules without a plan.
func plain(p *schedule.Problem) (alike, own float64, err error) {
	r, err := p.Resolve()
	if err != nil {
		return 0, 0, err
	}
	for k := range r.Probes {
		x, shortest := &r.Probes[k], r.Hyper
		for _, l := range x.Links {
			shortest = min(shortest, r.Links[l].Period)
		}
		alike += float64(x.Total) / r.Seconds(r.Grid[0])
		own += float64(x.Total) / r.Seconds(shortest)
	}
	return alike, own, nil
}

func scheduleTable(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tcovers\tfast links\tlinks\tprobes\tsent\tMB/s\tof all alike\tof own links\tabove bound\tpeak\tleast peak\tms\t")
	type network struct {
		fabric string
		size   int
		covers int
		fast   bool
	}
	for _, c := range shown(o, 5, []network{
		{"fat-tree", 8, 1, false}, {"fat-tree", 8, 1, true}, {"fat-tree", 8, 2, false}, {"fat-tree", 8, 2, true}, {"fat-tree", 8, 3, true},
		{"fat-tree", 30, 1, false}, {"fat-tree", 30, 1, true}, {"fat-tree", 30, 2, false}, {"fat-tree", 30, 2, true}, {"fat-tree", 30, 3, true},
		{"leaf-spine", 125, 1, true}, {"leaf-spine", 125, 2, false}, {"leaf-spine", 125, 2, true},
	}...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		g, err := fabric(c.fabric, c.size)
		if err != nil {
			return err
		}
		p, err := scheduleOf(g, c.covers, 32, c.fast, o.Seed)
		if err != nil {
			return err
		}
		plan, took, err := timeSchedule(p, o, solve.Options{})
		if err != nil {
			return err
		}
		alike, own, err := plain(p)
		if err != nil {
			return err
		}
		fast, s := 0, &plan.Stats
		for _, class := range p.Classes {
			fast = len(class.Links)
		}
		fmt.Fprintf(t, "%s:%d\t%d\t%d\t%d\t%d\t%d\t%.4g\t%.1f %%\t%.1f %%\t%.2f %%\t%d\t%d\t%.1f\t\n", c.fabric, c.size, c.covers, fast, s.Links, s.Probes, s.Sent,
			s.Objective/1e6, 100*s.Objective/alike, 100*s.Objective/own, 100*(s.Objective/s.LowerBound-1), s.Peak, s.PeakBound, ms(took))
	}
	return nil
}

// fabric generates a fat tree, or a fabric of leaves and half as many spines.
func fabric(kind string, size int) (*topo.Graph, error) {
	if kind == "fat-tree" {
		return topo.FatTree(size)
	}
	return topo.LeafSpine(size, 2*size)
}

// scheduleChurn removes a tenth of the sent probes, adds those of a third cover, and allows more and more changes.
func scheduleChurn(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tprobes\tsent before\tchurn\tchanged\thad to\tsteps\tMB/s\tabove a new plan\tms\t")
	for _, size := range shown(o, 1, 8, 16) {
		g, err := topo.FatTree(size)
		if err != nil {
			return err
		}
		p, err := scheduleOf(g, 3, 24, true, o.Seed)
		if err != nil {
			return err
		}
		later := p.Probes
		p.Probes = nil
		for _, x := range later {
			if x.ID[0] != '3' {
				p.Probes = append(p.Probes, x)
			}
		}
		old, _, err := timeSchedule(p, o, solve.Options{})
		if err != nil {
			return err
		}
		gone := map[string]bool{}
		for k := 0; k < len(old.Probes); k += 10 {
			gone[old.Probes[k].ID] = true
		}
		p.Probes = slices.DeleteFunc(later, func(x schedule.Probe) bool { return gone[x.ID] })
		fresh, _, err := timeSchedule(p, o, solve.Options{})
		if err != nil {
			return err
		}
		for _, churn := range []int{0, 5, 10, 20, 40, 80, -1} {
			if err := ctx.Err(); err != nil {
				return err
			}
			plan, took, err := timeSchedule(p, o, solve.Options{Previous: old, Churn: churn})
			if err != nil {
				return err
			}
			if err := walkThere(p, old, plan); err != nil {
				return err
			}
			fmt.Fprintf(t, "fat-tree:%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.4g\t%.1f %%\t%.0f\t\n", size, len(p.Probes), len(old.Probes), churn, plan.Churn.Changed, plan.Churn.Forced,
				len(plan.Transition.Steps), plan.Stats.Objective/1e6, 100*(plan.Stats.Objective/fresh.Stats.Objective-1), ms(took))
		}
	}
	return nil
}

// walkThere executes the steps of a transition one after the other.
func walkThere(p *schedule.Problem, old, plan *schedule.Plan) error {
	r, err := p.Resolve()
	if err != nil {
		return err
	}
	before, _ := schedule.Elements(r, old)
	after, capacity := schedule.Elements(r, plan)
	return planner.Simulate(before, after, plan.Transition.Steps, capacity)
}

// scheduleSizes averages over a second for every size, so that other work on the machine counts alike. A quick table
// averages over three runs.
func scheduleSizes(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tlinks\tprobes\tms\tµs a link\tcheck, µs a link\t")
	for _, spines := range shown(o, 1, 22, 71, 224) {
		g, err := topo.LeafSpine(spines, 2*spines)
		if err != nil {
			return err
		}
		p, err := scheduleOf(g, 1, 16, true, o.Seed)
		if err != nil {
			return err
		}
		p.SendLimit, p.LinkLimit = 1e7, 1e7
		var making, check time.Duration
		runs := 0
		for ; runs < 3 || !o.quick && making < time.Second; runs++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			plan, took, err := timeSchedule(p, o, solve.Options{})
			if err != nil {
				return err
			}
			start := time.Now()
			if err := schedule.Check(p, plan); err != nil {
				return err
			}
			making, check = making+took, check+time.Since(start)
		}
		n, each := float64(g.NumLinks()), float64(runs)
		fmt.Fprintf(t, "leaf-spine:%d,%d\t%d\t%d\t%.1f\t%.2f\t%.2f\t\n", spines, 2*spines, g.NumLinks(), len(p.Probes), ms(making)/each, 1000*ms(making)/each/n, 1000*ms(check)/each/n)
	}
	return nil
}
