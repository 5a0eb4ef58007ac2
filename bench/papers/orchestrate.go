package papers

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// runOrchestrate prints the results of INTO (Journal of Internet Services and Applications 10:12, 2019) over the 260
// networks of its evaluation. Without these it takes 40 random ones. It prints the flows used by Concentrate and the
// largest load of Balance, with the gap to a proven bound. Both are by the published heuristics and by ours. The
// coverage when flows have little capacity follows. Then come quality against churn, and capacities from packet sizes
// with an instance for each class of traffic. The time of a first plan by problem size is last.
//
// Demands and capacities are drawn with the seed from the paper's distributions (section 5.1). The bound of the
// heuristics is the one that ours proves in its longest run. Times are those of making a plan from an instance in
// memory.
func runOrchestrate(ctx context.Context, w io.Writer, o Options) error {
	nets, err := networks(o.Topologies)
	if err != nil {
		return err
	}
	if o.quick {
		nets = some(nets, quickNetworks)
	}
	limits := []time.Duration{o.limit()}
	if short := 100 * time.Millisecond; short < o.limit() {
		limits = []time.Duration{short, o.limit()}
	}
	flows := 0
	for _, g := range nets {
		flows = max(flows, g.NumNodes()*(g.NumNodes()-1))
	}
	if err := o.table(w, fmt.Sprintf("INTO Concentrate: %d networks, the largest with %d flows", len(nets), flows), func(t io.Writer) error {
		return concentrateTable(ctx, t, nets, o, limits)
	}); err != nil {
		return err
	}
	if err := o.table(w, fmt.Sprintf("INTO Balance: %d networks", len(nets)), func(t io.Writer) error {
		return balanceTable(ctx, t, nets, o)
	}); err != nil {
		return err
	}
	if err := o.table(w, fmt.Sprintf("INTO with little capacity: what is covered in %d networks", len(nets)), func(t io.Writer) error {
		return coverageTable(ctx, t, nets, o)
	}); err != nil {
		return err
	}
	if err := o.table(w, fmt.Sprintf("INTO's full assignment (FA): every flow takes what it has room for, in %d networks", len(nets)), func(t io.Writer) error {
		return fullTable(t, nets, o)
	}); err != nil {
		return err
	}
	if err := o.table(w, fmt.Sprintf("INTO, section 5: the published heuristics against the published bounds, %d networks", len(nets)), func(t io.Writer) error {
		return gapTable(ctx, t, nets, o)
	}); err != nil {
		return err
	}
	if err := o.table(w, fmt.Sprintf("INTO carried out by emulated switches: reports against plans, %d networks", len(nets)), func(t io.Writer) error {
		return carriedTable(ctx, t, nets, o)
	}); err != nil {
		return err
	}
	return moreTables(ctx, w, nets, o)
}

// networks loads the networks that the index lists as REPETITA's, or without a directory generates some.
func networks(dir string) (nets []*topo.Graph, err error) {
	if dir == "" {
		for k := range 40 {
			nodes := 10 + 2*k
			g, err := topo.Random(nodes, nodes+nodes/3, uint64(k))
			if err != nil {
				return nil, err
			}
			nets = append(nets, g)
		}
		return nets, nil
	}
	f, err := os.Open(filepath.Join(dir, "index.csv"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	file, origin := slices.Index(rows[0], "file"), slices.Index(rows[0], "origin")
	if file < 0 || origin < 0 {
		return nil, fmt.Errorf("%s: no columns file and origin", f.Name())
	}
	for _, r := range rows[1:] {
		if r[origin] != "repetita" {
			continue
		}
		g, err := load.Topology(filepath.Join(dir, r[file]))
		if err != nil {
			return nil, err
		}
		nets = append(nets, g)
	}
	return nets, nil
}

// planned is one method on one network.
type planned struct {
	stats    orchestrate.Stats
	duration time.Duration
}

func run(ctx context.Context, p *orchestrate.Problem, o solve.Options, limit time.Duration) (planned, error) {
	start := time.Now()
	o.Stop = func() bool { return ctx.Err() != nil || time.Since(start) > limit }
	plan, err := solve.Plan(p, o)
	took := time.Since(start)
	if err != nil {
		return planned{}, err
	}
	if err := orchestrate.Check(p, plan); err != nil {
		return planned{}, err
	}
	return planned{plan.Stats, took}, ctx.Err()
}

func concentrateTable(ctx context.Context, t io.Writer, nets []*topo.Graph, o Options, limits []time.Duration) error {
	names := []string{"CH (published)"}
	for _, l := range limits {
		names = append(names, fmt.Sprintf("ours, %v", l))
	}
	rows := make([][]planned, len(names))
	largest, at := 0, 0
	for n, g := range nets {
		m := orchestrate.DefaultModel()
		m.Seed = o.Seed
		p, err := orchestrate.Generate(g, m)
		if err != nil {
			return err
		}
		if len(p.Flows) > largest {
			largest, at = len(p.Flows), n
		}
		p.Objective = orchestrate.Concentrate
		for k := range names {
			var r planned
			if k == 0 {
				r, err = run(ctx, p, solve.Options{Method: solve.Heuristic, Partial: true}, 0)
			} else {
				r, err = run(ctx, p, solve.Options{Seed: o.Seed}, limits[k-1])
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", g.Name(), names[k], err)
			}
			rows[k] = append(rows[k], r)
		}
		bound := 0.0
		for k := range names {
			bound = max(bound, rows[k][n].stats.LowerBound)
		}
		s := &rows[0][n].stats
		s.Gap, s.Optimal, s.LowerBound = s.Objective-bound, s.Objective == bound, bound
	}
	fmt.Fprintln(t, "method\tflows\tmean gap\tsd\tmost\tproven\tlargest\tbound there\tp50 ms\tp99 ms\tworst ms\tcorrelation p15\thops, mean\thops, most\tbelow 0.1\t")
	for k, name := range names {
		r := rows[k]
		mean, sd, most, proven := gaps(r)
		took := times(r)
		fmt.Fprintf(t, "%s\t%.2f\t%.3f\t%.3f\t%.0f\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t%.2f\t%.1f %%\t\n", name,
			average(r, func(s *orchestrate.Stats) float64 { return s.Objective }), mean, sd, most, proven,
			r[at].stats.Objective, r[at].stats.LowerBound, took[0], took[1], took[2],
			quantile(r, 0.15, func(s *orchestrate.Stats) float64 { return s.Correlation }),
			average(r, func(s *orchestrate.Stats) float64 { return s.Freshness.Mean }),
			average(r, func(s *orchestrate.Stats) float64 { return float64(s.Freshness.Max) }),
			100*average(r, func(s *orchestrate.Stats) float64 { return below(s.Freshness.Mean, 0.1) }))
	}
	return nil
}

func balanceTable(ctx context.Context, t io.Writer, nets []*topo.Graph, o Options) error {
	names := []string{"BH (published)", "ours"}
	rows := make([][]planned, len(names))
	for n, g := range nets {
		m := orchestrate.DefaultModel()
		m.Seed = o.Seed
		p, err := orchestrate.Generate(g, m)
		if err != nil {
			return err
		}
		p.Objective = orchestrate.Balance
		for k, method := range []solve.Method{solve.Heuristic, solve.Exact} {
			r, err := run(ctx, p, solve.Options{Method: method, Seed: o.Seed, Partial: k == 0}, o.limit())
			if err != nil {
				return fmt.Errorf("%s, %s: %w", g.Name(), names[k], err)
			}
			rows[k] = append(rows[k], r)
		}
		s, best := &rows[0][n].stats, &rows[1][n].stats
		s.Gap, s.Optimal = s.Objective-best.LowerBound, s.Objective == best.LowerBound
	}
	fmt.Fprintln(t, "method\tlargest load\tmean gap\tsd\tmost\tproven\tmean load\tp50 ms\tp99 ms\tworst ms\tcorrelation p5\thops, mean\thops, most\tbelow 0.1\t")
	for k, name := range names {
		r := rows[k]
		mean, sd, most, proven := gaps(r)
		took := times(r)
		fmt.Fprintf(t, "%s\t%.2f\t%.3f\t%.3f\t%.0f\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t%.2f\t%.1f %%\t\n", name,
			average(r, func(s *orchestrate.Stats) float64 { return s.Objective }), mean, sd, most, proven,
			average(r, func(s *orchestrate.Stats) float64 { return s.LoadMean }), took[0], took[1], took[2],
			quantile(r, 0.05, func(s *orchestrate.Stats) float64 { return s.Correlation }),
			average(r, func(s *orchestrate.Stats) float64 { return s.Freshness.Mean }),
			average(r, func(s *orchestrate.Stats) float64 { return float64(s.Freshness.Max) }),
			100*average(r, func(s *orchestrate.Stats) float64 { return below(s.Freshness.Mean, 0.1) }))
	}
	return nil
}

// coverageTable lowers the capacities until not everything can be carried.
func coverageTable(ctx context.Context, t io.Writer, nets []*topo.Graph, o Options) error {
	fmt.Fprintln(t, "mean capacity\tmethod\tall covered\tat least 90 %\tmean coverage\tmean assigned\tleft out\tits bound\tmean load\tcorrelation, mean\t")
	methods := []struct {
		name             string
		objective        string
		method           solve.Method
		split, published bool
	}{
		{"CH (published)", orchestrate.Concentrate, solve.Heuristic, false, true},
		{"BH (published)", orchestrate.Balance, solve.Heuristic, false, true},
		{"ours", orchestrate.Balance, solve.Auto, false, false},
		{"ours, split", orchestrate.Balance, solve.Auto, true, false},
	}
	for _, capacity := range []float64{5, 10, 20, 35, 50} {
		rows := make([][]planned, len(methods))
		for _, g := range nets {
			m := orchestrate.DefaultModel()
			m.Seed, m.CapacityMean = o.Seed, capacity
			p, err := orchestrate.Generate(g, m)
			if err != nil {
				return err
			}
			for k, how := range methods {
				p.Objective, p.Split = how.objective, how.split
				limit := 100 * time.Millisecond
				if how.published {
					limit = 0
				}
				r, err := run(ctx, p, solve.Options{Method: how.method, Seed: o.Seed, Partial: true}, limit)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", g.Name(), how.name, err)
				}
				rows[k] = append(rows[k], r)
			}
		}
		for k, how := range methods {
			all, most := 0, 0
			for _, r := range rows[k] {
				if r.stats.Coverage == 1 {
					all++
				}
				if r.stats.Coverage >= 0.9 {
					most++
				}
			}
			n := float64(len(rows[k]))
			fmt.Fprintf(t, "%v\t%s\t%.0f %%\t%.0f %%\t%.1f %%\t%.1f %%\t%.2f\t%.2f\t%.2f\t%.3f\t\n", capacity, how.name, 100*float64(all)/n, 100*float64(most)/n,
				100*average(rows[k], func(s *orchestrate.Stats) float64 { return s.Coverage }),
				100*average(rows[k], func(s *orchestrate.Stats) float64 { return s.Assigned }),
				average(rows[k], func(s *orchestrate.Stats) float64 { return s.LeftOut }),
				average(rows[k], func(s *orchestrate.Stats) float64 { return s.LeftOutBound }),
				average(rows[k], func(s *orchestrate.Stats) float64 { return s.LoadMean }),
				average(rows[k], func(s *orchestrate.Stats) float64 { return s.Correlation }))
		}
	}
	return nil
}

// full is the result of the full assignment in a network. Every flow takes the items of each interface on its path in
// order, while there is room, and reports at the last of them.
type full struct{ coverage, load, correlation, hops float64 }

func fullAssignment(p *orchestrate.Problem) (f full) {
	covered := make([]bool, len(p.Interfaces))
	var active, hops, items float64
	for k := range p.Flows {
		flow := &p.Flows[k]
		room, last := flow.Capacity, 0
		var at []int // where on its way it takes what
		for n, i := range flow.Interfaces {
			if demand := p.Interfaces[i].Demand; demand <= room {
				room -= demand
				covered[i], last = true, n
				at = append(at, n)
			}
		}
		if len(at) == 0 {
			continue
		}
		active++
		f.load += float64(flow.Capacity - room)
		f.correlation += float64(len(at)) / float64(len(flow.Interfaces))
		for _, n := range at {
			demand := float64(p.Interfaces[flow.Interfaces[n]].Demand)
			hops, items = hops+demand*float64(last-n), items+demand
		}
	}
	for _, c := range covered {
		if c {
			f.coverage += 1 / float64(len(covered))
		}
	}
	f.load, f.correlation, f.hops = f.load/active, f.correlation/active, hops/items
	return f
}

// fullTable: the curves FA of figures 8 to 15, by mean capacity.
func fullTable(t io.Writer, nets []*topo.Graph, o Options) error {
	fmt.Fprintln(t, "mean capacity\tall covered\tat least 90 %\tmean load\tcorrelation, mean\tp15\thops, mean\tflows of the largest\t")
	for _, capacity := range []float64{5, 10, 15, 20, 25, 30, 35, 50} {
		var all, most, load, correlation, hops float64
		var correlations []float64
		largest := 0
		for _, g := range nets {
			m := orchestrate.DefaultModel()
			m.Seed, m.CapacityMean = o.Seed, capacity
			p, err := orchestrate.Generate(g, m)
			if err != nil {
				return err
			}
			f := fullAssignment(p)
			all += below(1-f.coverage, 1e-9)
			most += below(0.9-f.coverage, 1e-9)
			load, correlation, hops = load+f.load, correlation+f.correlation, hops+f.hops
			correlations = append(correlations, f.correlation)
			largest = max(largest, len(p.Flows))
		}
		slices.Sort(correlations)
		n := float64(len(nets))
		fmt.Fprintf(t, "%v\t%.1f %%\t%.1f %%\t%.2f\t%.3f\t%.3f\t%.3f\t%d\t\n", capacity, 100*all/n, 100*most/n, load/n, correlation/n,
			correlations[int(0.15*float64(len(nets)-1))], hops/n, largest)
	}
	return nil
}

// gapTable: sections 5.1 and 5.2.3, gaps of the published heuristics to the published bounds. Concentrate is compared
// with the fewest flows if each had room for all items on its path (equation 12). If these are not proven in the
// time, the proven bound counts. Balance is compared with the largest demand and with the items a flow.
func gapTable(ctx context.Context, t io.Writer, nets []*topo.Graph, o Options) error {
	rows := make([][]planned, 2)
	proven, largest, at := 0, 0, 0
	for n, g := range nets {
		m := orchestrate.DefaultModel()
		m.Seed = o.Seed
		p, err := orchestrate.Generate(g, m)
		if err != nil {
			return err
		}
		if len(p.Flows) > largest {
			largest, at = len(p.Flows), n
		}
		var bounds [2]float64
		var most, sum int64
		for _, i := range p.Interfaces {
			most, sum = max(most, i.Demand), sum+i.Demand
		}
		bounds[1] = max(float64(most), math.Ceil(float64(sum)/float64(len(p.Flows))))
		for k, objective := range []string{orchestrate.Concentrate, orchestrate.Balance} {
			p.Objective = objective
			r, err := run(ctx, p, solve.Options{Method: solve.Heuristic, Partial: true}, 0)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", g.Name(), objective, err)
			}
			rows[k] = append(rows[k], r)
		}
		p.Objective = orchestrate.Concentrate
		for k := range p.Flows {
			p.Flows[k].Capacity = sum
		}
		wide, err := run(ctx, p, solve.Options{Seed: o.Seed}, o.limit())
		if err != nil {
			return fmt.Errorf("%s, without capacities: %w", g.Name(), err)
		}
		if bounds[0] = wide.stats.LowerBound; wide.stats.Optimal {
			proven++
		}
		for k := range rows {
			s := &rows[k][n].stats
			s.Gap, s.Optimal = s.Objective-bounds[k], s.Objective == bounds[k]
		}
	}
	fmt.Fprintln(t, "method\tmean gap\tsd\tleast\tmost\tnone\tflows of the largest\tinterfaces a flow\tworst ms\tmean load\tcorrelation p15\thops, mean\thops, largest mean\t")
	hops := func(s *orchestrate.Stats) float64 { return s.Freshness.Mean }
	for k, name := range []string{"CH", "BH"} {
		r := rows[k]
		mean, sd, most, none := gaps(r)
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.0f\t%.0f\t%d\t%d\t%.2f\t%.1f\t%.2f\t%.2f\t%.3f\t%.2f\t\n", name, mean, sd, quantile(r, 0, func(s *orchestrate.Stats) float64 { return s.Gap }), most,
			none, r[at].stats.FlowsUsed, average(r, func(s *orchestrate.Stats) float64 { return s.PerFlow }), times(r)[2],
			average(r, func(s *orchestrate.Stats) float64 { return s.LoadMean }), quantile(r, 0.15, func(s *orchestrate.Stats) float64 { return s.Correlation }),
			average(r, hops), quantile(r, 1, hops))
	}
	_, err := fmt.Fprintf(t, "bound of CH proven\t%d"+strings.Repeat("\t", 12)+"\n", proven)
	return err
}

func average(rows []planned, of func(*orchestrate.Stats) float64) (mean float64) {
	for k := range rows {
		mean += of(&rows[k].stats) / float64(len(rows))
	}
	return mean
}

// below is 1 where v is less than a limit, and 0 elsewhere: its mean is a share.
func below(v, limit float64) float64 {
	if v < limit {
		return 1
	}
	return 0
}

func quantile(rows []planned, q float64, of func(*orchestrate.Stats) float64) float64 {
	var list []float64
	for k := range rows {
		list = append(list, of(&rows[k].stats))
	}
	slices.Sort(list)
	return list[int(q*float64(len(list)-1))]
}

func gaps(rows []planned) (mean, sd, most float64, proven int) {
	mean = average(rows, func(s *orchestrate.Stats) float64 { return s.Gap })
	for _, r := range rows {
		sd += (r.stats.Gap - mean) * (r.stats.Gap - mean) / float64(len(rows))
		most = max(most, r.stats.Gap)
		if r.stats.Optimal {
			proven++
		}
	}
	return mean, math.Sqrt(sd), most, proven
}

// times returns the median, the 99th percentile and the worst, in ms.
func times(rows []planned) (ms [3]float64) {
	var list []time.Duration
	for _, r := range rows {
		list = append(list, r.duration)
	}
	slices.Sort(list)
	for k, at := range []int{len(list) / 2, len(list) * 99 / 100, len(list) - 1} {
		ms[k] = list[at].Seconds() * 1000
	}
	return ms
}
