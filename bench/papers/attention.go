package papers

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/bench/loop"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/attention/solve"
	"github.com/hopscope/hopscope/planner/cover"
	coversolve "github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// runAttention prints the results of FANT (Applied Sciences 15(2), 2025). They are the share of hops measured in
// detail, and the time to choose them, over measurement cycles with random suspicious links. Every choice is checked.
//
// Probes are two plans with depots of their own. Depots are one tenth of the edge switches, or one host of every edge
// switch if hosts are part of the graph. A probe of detailed metrics has at most ten links, or twelve between hosts.
// With fewer depots some host is out of reach. Of the links 3 % or 10 % are suspicious. Times include the building of
// rows from suspicious links, which a control loop does in every cycle. They leave out the index of probes by link,
// which is made once. Every choice is made three times and the fastest counts, to exclude other work on the machine.
// The searches of FANT-H, most of which run into the limit, are made once, in two cycles.
func runAttention(ctx context.Context, w io.Writer, o Options) error {
	for _, x := range []struct {
		title string
		fill  func(context.Context, io.Writer, Options) error
	}{
		{"FANT: hops measured in detail, and time to choose", attentionTable},
		{"FANT, figures 7 to 9: bytes a second, by switches and by suspicious links", attentionBytes},
		{"FANT, figures 10 and 11: time and bandwidth of FANT-H by its factors", attentionFactors},
		{"FANT, section 6.4.1: a flow that is moved, as applications see it", func(ctx context.Context, t io.Writer, o Options) error { return loop.UseCase(ctx, t, o.Seed) }},
		{"Do suspicious links get attention", attentionVerify},
		{"Three and four covers", attentionCovers},
		{"Churn: cost of plans that change few probes", attentionChurn},
	} {
		if err := o.table(w, x.title, func(t io.Writer) error { return x.fill(ctx, t, o) }); err != nil {
			return err
		}
	}
	return nil
}

func attentionTable(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tswitches\tprobes\tsuspicious\tmethod\tcycles\tproven\tshare\tabove least\tp50 ms\tp99 ms\tworst ms\t")
	var ours []time.Duration
	type network struct {
		fabric string
		size   int
		hosts  bool
	}
	for _, c := range shown(o, 2, []network{
		{"fat-tree", 10, false}, {"fat-tree", 18, false}, {"fat-tree", 30, false},
		{"fat-tree", 10, true}, {"fat-tree", 18, true}, {"fat-tree", 30, true},
		{"leaf-spine", 25, false}, {"leaf-spine", 125, false}, {"leaf-spine", 375, false},
		{"leaf-spine", 25, true}, {"leaf-spine", 75, true}, {"leaf-spine", 125, true},
	}...) {
		in, err := newCycles(c.fabric, c.size, 2, c.hosts, o.Seed)
		if err != nil {
			return err
		}
		for _, percent := range []int{3, 10} {
			if err := in.table(ctx, t, percent, o, &ours); err != nil {
				return err
			}
		}
	}
	slices.Sort(ours)
	n := len(ours)
	fmt.Fprintf(t, "all\t\t\t\tours\t%d\t\t\t\t%.2f\t%.2f\t%.2f\t\n", n, ms(ours[n/2]), ms(ours[(99*n+99)/100-1]), ms(ours[n-1]))
	return nil
}

// cycles are the probes of a network, from which measurement cycles are drawn.
type cycles struct {
	name     string
	switches int
	links    int
	hosts    int // among the nodes, each with one link
	maxHops  int
	depots   []int // by plan
	problem  attention.Problem
	traces   [][]int32
	index    *solve.Traces
	rng      *rand.Rand
}

// newCycles makes the probes of a number of covers, each with depots of its own.
func newCycles(fabric string, size, covers int, hosts bool, seed uint64) (*cycles, error) {
	var g *topo.Graph
	var err error
	perEdge := size / 2
	if fabric == "fat-tree" {
		g, err = topo.FatTree(size)
	} else {
		g, err = topo.LeafSpine(size, 2*size)
	}
	if err != nil {
		return nil, err
	}
	c := &cycles{name: fmt.Sprintf("%s:%d", fabric, size), switches: g.NumNodes(), rng: rand.New(rand.NewPCG(seed, 0))}
	var ends [][]int // nodes that may be depots, by edge switch
	for v := range g.NumNodes() {
		if g.Tier(v) == topo.Edge {
			ends = append(ends, []int{v})
		}
	}
	if hosts {
		c.name += " with hosts"
		b := g.Extend()
		edges := ends
		ends = nil
		for _, v := range edges {
			var at []int
			for i := range perEdge {
				h := b.AddNode(fmt.Sprintf("host-%s-%d", g.NodeName(v[0]), i), topo.NoTier)
				b.AddLink(topo.LinkEnd{Node: v[0]}, topo.LinkEnd{Node: h})
				at = append(at, h)
			}
			ends = append(ends, at)
		}
		if g, err = b.Build(); err != nil {
			return nil, err
		}
	}
	c.links, c.hosts = g.NumLinks(), g.NumNodes()-c.switches
	if c.maxHops, err = fantLinks(hosts); err != nil {
		return nil, err
	}
	for plan := range covers {
		c.rng.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
		most := max(1, len(ends)/10)
		if hosts {
			most = len(ends)
		}
		var depots []int
		for _, at := range ends[:most] {
			depots = append(depots, at[c.rng.IntN(len(at))])
		}
		c.depots = append(c.depots, len(depots))
		p := &cover.Problem{Graph: g, Depots: depots, MaxHops: c.maxHops}
		made, err := coversolve.Plan(p, coversolve.Options{Seed: seed})
		if err != nil {
			return nil, err
		}
		walks, err := cover.Walks(g, made.Probes)
		if err != nil {
			return nil, err
		}
		for k, w := range walks {
			t := attention.Trace{ID: fmt.Sprintf("%d/%d", plan, k), Cost: float64(len(w))}
			var links []int32
			for _, i := range w {
				links = append(links, int32(g.Link(int(i))))
				t.Links = append(t.Links, g.LinkName(g.Link(int(i))))
			}
			c.traces = append(c.traces, links)
			c.problem.Probes = append(c.problem.Probes, t)
		}
	}
	cost := make([]float64, len(c.traces))
	for k, t := range c.traces {
		cost[k] = float64(len(t))
	}
	c.index = solve.NewTraces(c.links, c.traces, cost, 0)
	return c, nil
}

// attentionRow is the result of one method over the cycles.
type attentionRow struct {
	name   string
	o      solve.Options
	times  []time.Duration
	cost   float64
	least  float64 // cost of the exact method in the same cycles
	proven int
}

// table adds the rows of a share of suspicious links, and to ours the times of our method.
func (c *cycles) table(ctx context.Context, w io.Writer, percent int, o Options, ours *[]time.Duration) error {
	rows := []*attentionRow{
		{name: "ours", o: solve.Options{}},
		{name: "greedy", o: solve.Options{Method: solve.Greedy}},
		{name: "greedy, links", o: solve.Options{Method: solve.GreedyLinks}},
		{name: "FANT-H, 0.9 0", o: solve.Options{Method: solve.FANTH, Alpha: 0.9}},
		{name: "FANT-H, 0 0.15", o: solve.Options{Method: solve.FANTH, Beta: 0.15}},
		{name: "FANT-H, 1 1", o: solve.Options{Method: solve.FANTH, Alpha: 1, Beta: 1}},
		{name: "FANT-H, 0 0", o: solve.Options{Method: solve.FANTH}},
	}
	all := c.hops()
	for cycle := range 100 {
		some := c.draw(percent)
		least := 0.0
		for _, r := range rows {
			runs := 3
			if r.o.Method == solve.FANTH {
				if runs = 1; cycle >= 2 {
					continue
				}
			}
			var choice *solve.Choice
			fastest := time.Duration(math.MaxInt64)
			for range runs {
				start := time.Now()
				r.o.Stop = func() bool { return ctx.Err() != nil || time.Since(start) > o.limit() }
				var err error
				if choice, err = c.index.Switch(some, nil, r.o); err != nil {
					return err
				}
				fastest = min(fastest, time.Since(start))
			}
			r.times = append(r.times, fastest)
			cost, err := c.check(some, choice)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.name, r.name, err)
			}
			if r.cost += cost; r.o.Method == "" {
				least = cost
			}
			r.least += least
			if choice.Optimal {
				r.proven++
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	*ours = append(*ours, rows[0].times...)
	for _, r := range rows {
		n := len(r.times)
		slices.Sort(r.times)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d %%\t%s\t%d\t%d\t%.1f %%\t%.1f %%\t%.2f\t%.2f\t%.2f\t\n", c.name, c.switches, len(c.traces), percent,
			r.name, n, r.proven, 100*r.cost/all/float64(n), 100*(r.cost/r.least-1), ms(r.times[n/2]), ms(r.times[(99*n+99)/100-1]), ms(r.times[n-1]))
	}
	return nil
}

// hops is the length of all probes.
func (c *cycles) hops() (sum float64) {
	for _, t := range c.traces {
		sum += float64(len(t))
	}
	return sum
}

// draw draws suspicious links, in percent of all.
func (c *cycles) draw(percent int) []int32 {
	some := make([]int32, c.links)
	for k, l := range c.rng.Perm(c.links) {
		some[k] = int32(l)
	}
	return some[:max(1, c.links*percent/100)]
}

// check adds up a choice that covers the suspicious links.
func (c *cycles) check(suspicious []int32, choice *solve.Choice) (cost float64, err error) {
	on := make([]bool, c.links)
	for _, p := range choice.Probes {
		cost += float64(len(c.traces[p]))
		for _, l := range c.traces[p] {
			on[l] = true
		}
	}
	for _, l := range suspicious {
		if !on[l] {
			return 0, fmt.Errorf("suspicious link %d is not measured in detail", l)
		}
	}
	if choice.LowerBound > cost+1e-9 {
		return 0, fmt.Errorf("bound %v is above the cost %v", choice.LowerBound, cost)
	}
	return cost, nil
}
