package papers

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// mostNetworks bounds the networks of the tables that have no published twin, and mostRandom those that are not real.
// Quick tables have quickNetworks, and quickMore where there is no published twin.
const (
	mostNetworks  = 40
	mostRandom    = 6
	quickNetworks = 8
	quickMore     = 2
)

// some selects up to most of the networks, evenly.
func some(nets []*topo.Graph, most int) (list []*topo.Graph) {
	most = min(len(nets), most)
	for k := range most {
		list = append(list, nets[k*len(nets)/most])
	}
	return list
}

// moreTables prints tables beyond the figures of the paper.
func moreTables(ctx context.Context, w io.Writer, nets []*topo.Graph, o Options) error {
	most := mostNetworks
	if o.Topologies == "" {
		most = mostRandom
	}
	if o.quick {
		most = quickMore
	}
	nets = some(nets, most)
	for _, t := range []struct {
		name  string
		write func(context.Context, io.Writer, []*topo.Graph, Options) error
	}{
		{fmt.Sprintf("INTO Concentrate where one flow in ten is gone: changes against flows used, %d networks", len(nets)), churnTable},
		{fmt.Sprintf("INTO with capacities from packet sizes, an instance for each class of traffic, %d networks", len(nets)), sizeTable},
		{"INTO: time of a first plan by what the flows pass, fastest of five", costTable},
	} {
		if err := o.table(w, t.name, func(out io.Writer) error { return t.write(ctx, out, nets, o) }); err != nil {
			return err
		}
	}
	return nil
}

// churnTable plans networks, and removes every tenth flow, also flows that carry items. It then replaces the plans
// with more and more changes.
func churnTable(ctx context.Context, t io.Writer, nets []*topo.Graph, o Options) error {
	fmt.Fprintln(t, "churn\tflows used\tbound\tchanged\thad to\tsteps found\t")
	limits := []int{0, 1, 2, 5, 10, 20, 50, -1}
	type sums struct{ used, bound, changed, forced, steps float64 }
	rows := make([]sums, len(limits))
	for _, g := range nets {
		m := orchestrate.DefaultModel()
		m.Seed = o.Seed
		p, err := orchestrate.Generate(g, m)
		if err != nil {
			return err
		}
		p.Objective = orchestrate.Concentrate
		stop := func() func() bool {
			end := time.Now().Add(o.limit())
			return func() bool { return ctx.Err() != nil || time.Now().After(end) }
		}
		old, err := solve.Plan(p, solve.Options{Seed: o.Seed, Stop: stop()})
		if err != nil {
			return fmt.Errorf("%s: %w", g.Name(), err)
		}
		q := *p
		q.Flows = nil
		for k := range p.Flows {
			if k%10 != 3 {
				q.Flows = append(q.Flows, p.Flows[k])
			}
		}
		for k, churn := range limits {
			plan, err := solve.Plan(&q, solve.Options{Seed: o.Seed, Partial: true, Previous: old, Churn: churn, Stop: stop()})
			if err != nil {
				return fmt.Errorf("%s, churn %d: %w", g.Name(), churn, err)
			}
			if err := orchestrate.Check(&q, plan); err != nil {
				return fmt.Errorf("%s, churn %d: %w", g.Name(), churn, err)
			}
			r := &rows[k]
			r.used += plan.Stats.Objective
			r.bound += plan.Stats.LowerBound
			r.changed += float64(plan.Churn.Changed)
			r.forced += float64(plan.Churn.Forced)
			if plan.Deadlock == "" {
				r.steps++
			}
		}
	}
	n := float64(len(nets))
	for k, churn := range limits {
		name := fmt.Sprint(churn)
		if churn < 0 {
			name = "any"
		}
		r := rows[k]
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.1f\t%.1f\t%.0f of %.0f\t\n", name, r.used/n, r.bound/n, r.changed/n, r.forced/n, r.steps, n)
	}
	return ctx.Err()
}

// sizeTable makes capacities of the sizes of packets. A flow is either bulk, with packets that are mostly full, or
// voice, with small ones; 200 packets of each are drawn. The percentile is the share of them that must have room for
// the telemetry.
func sizeTable(ctx context.Context, t io.Writer, nets []*topo.Graph, o Options) error {
	fmt.Fprintln(t, "class\tpercentile\tmean capacity\tcoverage\tleft out\tits bound\tflows used\tbound\thops\t")
	for _, class := range []string{"bulk", "voice"} {
		for _, percentile := range []float64{25, 50, 75, 95} {
			var rows []planned
			capacity := 0.0
			for _, g := range nets {
				m := orchestrate.DefaultModel()
				m.Seed = o.Seed
				all, err := orchestrate.Generate(g, m)
				if err != nil {
					return err
				}
				all.Objective = orchestrate.Concentrate
				packets(all, o.Seed, percentile)
				p, err := all.OfClass(class)
				if err != nil {
					return fmt.Errorf("%s: %w", g.Name(), err)
				}
				for _, f := range p.Flows {
					capacity += float64(f.Capacity) / float64(len(p.Flows)) / float64(len(nets))
				}
				r, err := run(ctx, p, solve.Options{Seed: o.Seed, Partial: true}, min(o.limit(), 300*time.Millisecond))
				if err != nil {
					return fmt.Errorf("%s, %s: %w", g.Name(), class, err)
				}
				rows = append(rows, r)
			}
			fmt.Fprintf(t, "%s\t%v\t%.1f\t%.1f %%\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", class, percentile, capacity,
				100*average(rows, func(s *orchestrate.Stats) float64 { return s.Coverage }),
				average(rows, func(s *orchestrate.Stats) float64 { return s.LeftOut }),
				average(rows, func(s *orchestrate.Stats) float64 { return s.LeftOutBound }),
				average(rows, func(s *orchestrate.Stats) float64 { return s.Objective }),
				average(rows, func(s *orchestrate.Stats) float64 { return s.LowerBound }),
				average(rows, func(s *orchestrate.Stats) float64 { return s.Freshness.Mean }))
		}
	}
	return nil
}

// packets assigns a class and a capacity to every flow. Half of the flows are bulk, of whose packets 60 of 100 are
// full.
func packets(p *orchestrate.Problem, seed uint64, percentile float64) {
	r := rand.New(rand.NewPCG(seed, 3))
	sizing := orchestrate.DefaultSizing()
	sizing.Percentile = percentile
	sizes := make([]int64, 200)
	for k := range p.Flows {
		f := &p.Flows[k]
		f.Class = []string{"bulk", "voice"}[r.IntN(2)]
		mean := 1200 + r.Float64()*200
		for n := range sizes {
			switch {
			case f.Class == "voice":
				sizes[n] = 80 + r.Int64N(140)
			case r.Float64() < 0.6:
				sizes[n] = 1460
			default:
				sizes[n] = int64(max(64, min(1500, mean+100*r.NormFloat64())))
			}
		}
		f.Capacity = sizing.Capacity(sizes)
	}
}

// costTable times first plans of ever larger problems: paths of ten interfaces along a ring, three interfaces for ten
// flows.
func costTable(ctx context.Context, t io.Writer, _ []*topo.Graph, o Options) error {
	fmt.Fprintln(t, "passed\tinterfaces\tflows\tConcentrate, ns each\tBalance, ns each\tBalance split, ns each\t")
	for _, passed := range shown(o, 1, 1000, 10_000, 100_000) {
		p := ring(passed, o.Seed)
		fmt.Fprintf(t, "%d\t%d\t%d\t", passed, len(p.Interfaces), len(p.Flows))
		for k := range 3 {
			p.Objective, p.Split = orchestrate.Concentrate, k == 2
			if k > 0 {
				p.Objective = orchestrate.Balance
			}
			least := math.Inf(1)
			for range 5 {
				start := time.Now()
				if _, err := solve.Plan(p, solve.Options{Method: solve.Heuristic, Partial: true, Stop: func() bool { return true }}); err != nil {
					return err
				}
				least = min(least, float64(time.Since(start).Nanoseconds())/float64(passed))
			}
			fmt.Fprintf(t, "%.0f\t", least)
		}
		fmt.Fprintln(t)
	}
	return ctx.Err()
}

// ring makes a problem whose flows pass a number of interfaces together.
func ring(passed int, seed uint64) *orchestrate.Problem {
	r := rand.New(rand.NewPCG(seed, 4))
	p := &orchestrate.Problem{}
	flows := passed / 10
	ifaces := 3 * flows / 10
	for i := range ifaces {
		p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: fmt.Sprint("i", i), Demand: 4 + r.Int64N(7)})
	}
	for k := range flows {
		f := orchestrate.Flow{ID: fmt.Sprint("f", k), Capacity: int64(max(1, math.Round(35+5*r.NormFloat64())))}
		at := r.IntN(ifaces)
		for n := range 10 {
			f.Interfaces = append(f.Interfaces, int32((at+n)%ifaces))
		}
		p.Flows = append(p.Flows, f)
	}
	return p
}
