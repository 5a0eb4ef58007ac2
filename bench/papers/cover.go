package papers

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// runCover prints the results of INT-path (INFOCOM 2019), INT-Balance (ICC 2023) and INT-Probe (ICDCS 2021). They are
// numbers and lengths of paths, the second traversals that depots cost, and how the time grows. Every plan is
// checked.
func runCover(ctx context.Context, w io.Writer, o Options) error {
	r := coverRun{ctx: ctx, o: o}
	for _, part := range []struct {
		title string
		fill  func(io.Writer) error
	}{
		{"INT-path: paths that pass every link once", r.balance},
		{"Growth on random graphs with five links a node", r.scale},
		{"INT-Probe: walks between depots, its duplicated links and ours", r.depots},
		{"Walks between hosts at the depots", r.depotHosts},
		{"Shapes: lengths, limits of hops, and depots", r.shapes},
		{"Microseconds a link, by method", r.growth},
		{"Weights: what minimising delay, cost or bytes between depots saves", r.weights},
		{"Churn: probes after failures, by how many may change", r.churn},
		{"INT-path, figure 11: random graphs, packets at the controller with 100 probes/s a path", r.pathLoad},
		{"INT-path, figure 16: paths in fabrics", r.pathFabrics},
		{"Paths in a fat-tree of units", r.pathUnits},
		{"INT-path, figure 10: variance of the lengths on random graphs", r.pathSpread},
		{"INT-path, figure 8: fixed odd vertices", r.pathFixedOdd},
		{"INT-path, figure 9: fixed vertices (39)", r.pathFixedNodes},
		{"INT-path, figure 12: time of a plan on random graphs, fastest of 60", r.pathTimes},
		{"INT-path, figure 13: time of a plan by odd vertices, 500 switches, fastest of 60", r.pathOddTimes},
		{"INT-path, section II-C as read: where probes are generated", r.pathGenerators},
		{"INT-path, figure 14: probe rate against latency of packets, emulated", r.pathLatency},
		{"INT-path: wide area networks", r.zoo},
	} {
		if err := o.table(w, part.title, part.fill); err != nil {
			return err
		}
	}
	return nil
}

type coverRun struct {
	ctx context.Context
	o   Options
}

// repeats is how often a run is repeated, if all take less than a second. The least time is the undisturbed one.
const repeats = 7

// plan makes and checks a plan. It returns its least time, and whether the limit ended it.
func (r *coverRun) plan(p *cover.Problem, o solve.Options) (plan *cover.Plan, took time.Duration, stopped bool, err error) {
	return r.repeat(p, o, repeats, r.o.limit())
}

// planOnce is plan where the time does not matter.
func (r *coverRun) planOnce(p *cover.Problem, o solve.Options) (*cover.Plan, error) {
	plan, _, _, err := r.repeat(p, o, 1, r.o.limit())
	return plan, err
}

func (r *coverRun) repeat(p *cover.Problem, o solve.Options, times int, limit time.Duration) (plan *cover.Plan, took time.Duration, stopped bool, err error) {
	o.Seed = r.o.Seed
	began := time.Now()
	for k := range times {
		start := time.Now()
		o.Stop = func() bool {
			stopped = stopped || r.ctx.Err() != nil || time.Since(start) > limit
			return stopped
		}
		if plan, err = solve.Plan(p, o); err != nil {
			return nil, 0, false, err
		}
		if d := time.Since(start); k == 0 || d < took {
			took = d
		}
		if time.Since(began) > time.Second {
			break
		}
	}
	if err := cover.Check(p, plan); err != nil {
		return nil, 0, false, err
	}
	return plan, took, stopped, r.ctx.Err()
}

// balance: INT-path's two Euler plans and INT-Balance beside the plans of hopscope.
func (r *coverRun) balance(w io.Writer) error {
	fmt.Fprintln(w, "topology\tplan\tpaths\tfewest\tlengths\tvariance\tof paper's\tms\t")
	for _, spec := range shown(r.o, 2, "fat-tree:6", "fat-tree:14", "fat-tree:30", "leaf-spine:33,67", "random:100,500,1", "random:100,2475,1") {
		g, err := topo.Parse(spec)
		if err != nil {
			return err
		}
		var base float64
		for _, m := range []struct {
			name string
			o    solve.Options
		}{
			{"DFS", solve.Options{Method: solve.DFS}},
			{"paper", solve.Options{Method: solve.Paper}},
			{"paper, balanced", solve.Options{Method: solve.PaperBalanced}},
			{"INT-Balance", solve.Options{Method: solve.IntBalance}},
			{"ours", solve.Options{}},
			{"ours, balanced", solve.Options{Balanced: true}},
		} {
			plan, took, stopped, err := r.plan(&cover.Problem{Graph: g}, m.o)
			if err != nil {
				return err
			}
			s := plan.Stats
			if m.o.Method == solve.Paper {
				base = s.Variance
			}
			of, note := "", ""
			if base > 0 {
				of = fmt.Sprintf("%.4f", s.Variance/base)
			}
			if stopped {
				note = " (stopped)"
			}
			fmt.Fprintf(w, "%s\t%s%s\t%d\t%.0f\t%d-%d\t%.3f\t%s\t%.2f\t\n", spec, m.name, note, s.Probes, s.LowerBound, s.Shortest, s.Longest, s.Variance, of, ms(took))
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// scale: how time grows with the number of links.
func (r *coverRun) scale(w io.Writer) error {
	fmt.Fprintln(w, "links\tpaths\tplain ms\tus a link\tbalanced ms\tus a link\tlengths\t")
	for _, links := range shown(r.o, 2, 1000, 10_000, 100_000, 500_000, 1_000_000) {
		g, err := topo.Random(links/5, links, r.o.Seed)
		if err != nil {
			return err
		}
		p := &cover.Problem{Graph: g}
		_, plain, _, err := r.plan(p, solve.Options{})
		if err != nil {
			return err
		}
		plan, even, _, err := r.plan(p, solve.Options{Balanced: true})
		if err != nil {
			return err
		}
		perLink := func(d time.Duration) float64 { return 1000 * ms(d) / float64(links) }
		fmt.Fprintf(w, "%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%d-%d\t\n", links, plan.Stats.Probes, ms(plain), perLink(plain), ms(even), perLink(even), plan.Stats.Shortest, plan.Stats.Longest)
	}
	return nil
}

// depots: INT-Probe on its own kinds of networks, the depots drawn as there: a fifth of the edge switches or leaves,
// twelve switches of random graphs. Its duplicated links are the optimum, and so are those of hopscope.
func (r *coverRun) depots(w io.Writer) error {
	fmt.Fprintln(w, "topology\tdepots\twalks\tINT-path's\ttwice\toptimal\tlengths\tms\t")
	for _, spec := range shown(r.o, 2, "fat-tree:30", "leaf-spine:33,67", "leaf-spine:375,750", "leaf-spine:389,778", "random:20,100,1", "random:100,2475,1", "random:150,5526,1") {
		g, err := topo.Parse(spec)
		if err != nil {
			return err
		}
		plain, _, _, err := r.plan(&cover.Problem{Graph: g}, solve.Options{})
		if err != nil {
			return err
		}
		p := &cover.Problem{Graph: g, Depots: drawDepots(g, r.o.Seed)}
		plan, took, _, err := r.plan(p, solve.Options{})
		if err != nil {
			return err
		}
		s := plan.Stats
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%v\t%d-%d\t%.2f\t\n", spec, len(p.Depots), s.Probes, plain.Stats.Probes, s.Duplicated, s.Optimal, s.Shortest, s.Longest, ms(took))
	}
	return nil
}

// depotHosts is depots with a host at each, where its walks begin and end. Where degrees are odd (fat-trees of an odd k/2)
// every host is an end. At the switches themselves a depot may be paired instead, for as many links passed twice.
func (r *coverRun) depotHosts(w io.Writer) error {
	fmt.Fprintln(w, "topology\tdepots\twalks\ttwice\tat the switches: walks\ttwice\t")
	for _, spec := range shown(r.o, 1, "fat-tree:10", "fat-tree:20", "fat-tree:30") {
		g, err := topo.Parse(spec)
		if err != nil {
			return err
		}
		p := &cover.Problem{Graph: g, Depots: drawDepots(g, r.o.Seed)}
		at, _, _, err := r.plan(p, solve.Options{})
		if err != nil {
			return err
		}
		b, q := g.Extend(), new(cover.Problem)
		for _, v := range p.Depots {
			h := b.AddNode("host-"+g.NodeName(v), topo.NoTier)
			b.AddLink(topo.LinkEnd{Node: v}, topo.LinkEnd{Node: h})
			q.Depots = append(q.Depots, h)
		}
		if q.Graph, err = b.Build(); err != nil {
			return err
		}
		plan, _, _, err := r.plan(q, solve.Options{})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t\n", spec, len(p.Depots), plan.Stats.Probes, plan.Stats.Duplicated, at.Stats.Probes, at.Stats.Duplicated)
	}
	return nil
}

func drawDepots(g *topo.Graph, seed uint64) []int {
	var from []int
	for v := range g.NumNodes() {
		if t := g.Tier(v); t == topo.Edge || t == topo.NoTier {
			from = append(from, v)
		}
	}
	n := max(1, len(from)/5)
	if g.Tier(0) == topo.NoTier {
		n = min(12, len(from))
	}
	r := rand.New(rand.NewPCG(seed, 0x6465706f))
	r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return from[:n]
}

// zoo: all networks of a directory, in sums.
func (r *coverRun) zoo(w io.Writer) error {
	if r.o.Topologies == "" {
		fmt.Fprintln(w, "left out: no directory of topologies is given")
		return nil
	}
	files, err := filepath.Glob(filepath.Join(r.o.Topologies, "graphs", "*.graph"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s holds no graphs/*.graph", r.o.Topologies)
	}
	fmt.Fprintln(w, "plan\tnetworks\tfewest paths\tmean variance\tless equal than paper\tworst ms\tall ms\t")
	base := make([]float64, len(files))
	for _, m := range []struct {
		name string
		o    solve.Options
	}{
		{"paper", solve.Options{Method: solve.Paper}},
		{"paper, balanced", solve.Options{Method: solve.PaperBalanced}},
		{"INT-Balance", solve.Options{Method: solve.IntBalance}},
		{"ours, balanced", solve.Options{Balanced: true}},
	} {
		fewest, worse := 0, 0
		var variance, worst, all float64
		for k, file := range files {
			g, err := load.Topology(file)
			if err != nil {
				return err
			}
			plan, took, _, err := r.plan(&cover.Problem{Graph: g}, m.o)
			if err != nil {
				return err
			}
			s := plan.Stats
			if s.Optimal {
				fewest++
			}
			if m.o.Method == solve.Paper {
				base[k] = s.Variance
			} else if s.Variance > base[k]+1e-9 {
				worse++
			}
			variance += s.Variance / float64(len(files))
			worst, all = max(worst, ms(took)), all+ms(took)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.3f\t%d\t%.2f\t%.1f\t\n", m.name, len(files), fewest, variance, worse, worst, all)
	}
	return nil
}
