package papers

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// The experiments of INT-path's section IV whose curves the text describes. The rest of the set-up is ours. Random
// graphs are connected and have five times as many links as nodes, and every number is the mean of ten graphs.
// Fabrics are real fat-trees and complete bipartite leaf-spines, not those of the published generator, which joins
// every core switch with every aggregation switch.

// draws is how many random graphs a number is the mean of.
const draws = 10

// counts returns the paths of INT-path's two plans on a graph.
func (r *coverRun) counts(g *topo.Graph) (dfs, euler *cover.Plan, err error) {
	p := &cover.Problem{Graph: g}
	if dfs, err = r.planOnce(p, solve.Options{Method: solve.DFS}); err != nil {
		return nil, nil, err
	}
	euler, err = r.planOnce(p, solve.Options{Method: solve.Paper})
	return dfs, euler, err
}

// pathLoad: figure 11, packets that the controller receives when every path carries 100 probes a second.
func (r *coverRun) pathLoad(w io.Writer) error {
	fmt.Fprintln(w, "switches\tDFS paths\tEuler paths\tDFS kpps\tEuler kpps\tpublished\t")
	for _, n := range shown(r.o, 2, 20, 40, 60, 80, 100) {
		var dfs, euler float64
		for k := range draws {
			g, err := topo.Random(n, min(5*n, n*(n-1)/2), r.o.Seed+uint64(k))
			if err != nil {
				return err
			}
			d, e, err := r.counts(g)
			if err != nil {
				return err
			}
			dfs, euler = dfs+float64(d.Stats.Probes)/draws, euler+float64(e.Stats.Probes)/draws
		}
		published := ""
		if n == 100 {
			published = "about 5 and 2.5"
		}
		fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%.2f\t%.2f\t%s\t\n", n, dfs, euler, dfs/10, euler/10, published)
	}
	return nil
}

// pathFabrics: figure 16, paths in fabrics by their number of units. A unit is a pod, or a spine with two leaves.
func (r *coverRun) pathFabrics(w io.Writer) error {
	fmt.Fprintln(w, "units\tfat-tree: DFS\tEuler\tclosed form\tleaf-spine: DFS\tEuler\tpublished\t")
	for units := 2; units <= 14; units++ {
		fmt.Fprintf(w, "%d\t", units)
		if units%2 == 1 {
			fmt.Fprint(w, "\t\t\t")
		} else {
			d, e, err := r.fabric(fmt.Sprintf("fat-tree:%d", units))
			if err != nil {
				return err
			}
			form := 1 // k/2 even: no odd switch
			if units/2%2 == 1 {
				form = max(1, units*units/4)
			}
			fmt.Fprintf(w, "%d\t%d\t%d\t", d, e, form)
		}
		d, e, err := r.fabric(fmt.Sprintf("leaf-spine:%d,%d", units, 2*units))
		if err != nil {
			return err
		}
		published := 1
		if units%2 == 1 {
			published = units
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t\n", d, e, published)
	}
	return nil
}

// unitFabric has layers of which only the middle one has odd degrees, as section IV states of figure 15's fat-tree. It has as
// many core switches as units. A unit is two aggregation switches, with links to all cores, and two edge switches.
func unitFabric(units int) (*topo.Graph, error) {
	b := topo.NewBuilder(fmt.Sprintf("%d units", units))
	var core []int
	join := func(x, y int) { b.AddLink(topo.LinkEnd{Node: x}, topo.LinkEnd{Node: y}) }
	for k := range units {
		core = append(core, b.AddNode(fmt.Sprintf("core-%d", k), topo.Core))
	}
	for k := range units {
		var edge [2]int
		for i := range edge {
			edge[i] = b.AddNode(fmt.Sprintf("edge-%d-%d", k, i), topo.Edge)
		}
		for i := range 2 {
			agg := b.AddNode(fmt.Sprintf("agg-%d-%d", k, i), topo.Aggregation)
			for _, v := range append(core, edge[:]...) {
				join(v, agg)
			}
		}
	}
	return b.Build()
}

// pathUnits: figure 16 for that fat-tree.
func (r *coverRun) pathUnits(w io.Writer) error {
	fmt.Fprintln(w, "units\tswitches\tDFS\tEuler\t")
	for units := 2; units <= 14; units++ {
		g, err := unitFabric(units)
		if err != nil {
			return err
		}
		d, e, err := r.counts(g)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t\n", units, g.NumNodes(), d.Stats.Probes, e.Stats.Probes)
	}
	return nil
}

func (r *coverRun) fabric(spec string) (dfs, euler int, err error) {
	g, err := topo.Parse(spec)
	if err != nil {
		return 0, 0, err
	}
	d, e, err := r.counts(g)
	if err != nil {
		return 0, 0, err
	}
	return d.Stats.Probes, e.Stats.Probes, nil
}

// pathSpread: figure 10, the variance of the lengths on random graphs, as the balanced plan changes it.
func (r *coverRun) pathSpread(w io.Writer) error {
	fmt.Fprintln(w, "switches\tpaths\tpaper\tpaper, balanced\tours\tours, balanced\tleast possible\t")
	for _, n := range shown(r.o, 2, 20, 40, 60, 80, 100) {
		var variance [4]float64
		var paths, least float64
		for k := range draws {
			g, err := topo.Random(n, min(5*n, n*(n-1)/2), r.o.Seed+uint64(k))
			if err != nil {
				return err
			}
			for m, o := range []solve.Options{{Method: solve.Paper}, {Method: solve.PaperBalanced}, {}, {Balanced: true}} {
				plan, err := r.planOnce(&cover.Problem{Graph: g}, o)
				if err != nil {
					return err
				}
				variance[m] += plan.Stats.Variance / draws
				if m == 0 {
					rest := float64(g.NumLinks()%plan.Stats.Probes) / float64(plan.Stats.Probes)
					paths, least = paths+float64(plan.Stats.Probes)/draws, least+rest*(1-rest)/draws
				}
			}
		}
		fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.3f\t%.3f\t\n", n, paths, variance[0], variance[1], variance[2], variance[3], least)
	}
	return nil
}

// pathFixedOdd: figure 8, networks that grow while the number of odd vertices stays.
func (r *coverRun) pathFixedOdd(w io.Writer) error {
	fmt.Fprintln(w, "odd vertices\tswitches\tlinks\tDFS\tEuler\tpublished\t")
	for _, odd := range shown(r.o, 1, 10, 20) {
		for _, n := range shown(r.o, 2, 25, 50, 75, 100) {
			var dfs, euler, links float64
			for k := range draws {
				g, err := withOdd(n, 5*n, odd, r.o.Seed+uint64(k))
				if err != nil {
					return err
				}
				d, e, err := r.counts(g)
				if err != nil {
					return err
				}
				dfs, euler = dfs+float64(d.Stats.Probes)/draws, euler+float64(e.Stats.Probes)/draws
				links += float64(g.NumLinks()) / draws
			}
			fmt.Fprintf(w, "%d\t%d\t%.1f\t%.1f\t%.1f\tEuler constant\t\n", odd, n, links, dfs, euler)
		}
	}
	return nil
}

// withOdd draws a random graph and joins odd nodes by further links, until a number of them is left.
func withOdd(nodes, links, odd int, seed uint64) (*topo.Graph, error) {
	g, err := topo.Random(nodes, links, seed)
	if err != nil {
		return nil, err
	}
	b := topo.NewBuilder(fmt.Sprintf("odd:%d,%d", nodes, odd))
	degree := make([]int, nodes)
	for v := range nodes {
		b.AddNode(g.NodeName(v), topo.NoTier)
	}
	add := func(x, y int) {
		degree[x]++
		degree[y]++
		b.AddLink(topo.LinkEnd{Node: x}, topo.LinkEnd{Node: y})
	}
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		add(g.Node(x), g.Node(y))
	}
	r := rand.New(rand.NewPCG(seed, 0x6f6464))
	order := r.Perm(nodes)
	for {
		var rest [2][]int // even, odd
		for _, v := range order {
			rest[degree[v]%2] = append(rest[degree[v]%2], v)
		}
		switch have := len(rest[1]); {
		case have == odd:
			return b.Build()
		case have > odd:
			add(rest[1][0], rest[1][1])
		default:
			add(rest[0][0], rest[0][1])
		}
	}
}

// pathFixedNodes: figure 9, 39 switches and ever more links, up to the complete graph.
func (r *coverRun) pathFixedNodes(w io.Writer) error {
	const nodes = 39
	fmt.Fprintln(w, "links\tDFS\tEuler\tpublished\t")
	for _, links := range shown(r.o, 3, 38, 60, 100, 200, 300, 400, 500, 600, 700, 730, 741) {
		var dfs, euler float64
		for k := range draws {
			g, err := topo.Random(nodes, links, r.o.Seed+uint64(k))
			if err != nil {
				return err
			}
			d, e, err := r.counts(g)
			if err != nil {
				return err
			}
			dfs, euler = dfs+float64(d.Stats.Probes)/draws, euler+float64(e.Stats.Probes)/draws
		}
		published := ""
		if links == nodes*(nodes-1)/2 {
			published = "Euler 1"
		}
		fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%s\t\n", links, dfs, euler, published)
	}
	return nil
}

// pathTimes: figure 12, the time of both plans on networks that grow.
func (r *coverRun) pathTimes(w io.Writer) error {
	fmt.Fprintln(w, "switches\tDFS ms\tEuler ms\tEuler / DFS\t")
	for _, n := range shown(r.o, 2, 50, 100, 200, 400, 800) {
		g, err := topo.Random(n, 5*n, r.o.Seed)
		if err != nil {
			return err
		}
		dfs, euler, err := r.times(g)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d\t%.3f\t%.3f\t%.2f\t\n", n, ms(dfs), ms(euler), ms(euler)/ms(dfs))
	}
	return nil
}

// pathOddTimes: figure 13, the time of both plans on 500 switches with ever more odd vertices.
func (r *coverRun) pathOddTimes(w io.Writer) error {
	const nodes = 500
	fmt.Fprintln(w, "odd vertices\tDFS ms\tEuler ms\tof 100 odd vertices\tDFS, of 100\t")
	var base [2]time.Duration
	for _, odd := range shown(r.o, 2, 100, 200, 300, 400, 500) {
		g, err := withOdd(nodes, 5*nodes, odd, r.o.Seed)
		if err != nil {
			return err
		}
		dfs, euler, err := r.times(g)
		if err != nil {
			return err
		}
		if base[0] == 0 {
			base = [2]time.Duration{dfs, euler}
		}
		fmt.Fprintf(w, "%d\t%.3f\t%.3f\t%.2f\t%.2f\t\n", odd, ms(dfs), ms(euler), ms(euler)/ms(base[1]), ms(dfs)/ms(base[0]))
	}
	return nil
}

// timed is how often a plan of a few milliseconds is made, so that one of them is undisturbed.
const timed = 60

// times returns how long both plans of a graph take.
func (r *coverRun) times(g *topo.Graph) (dfs, euler time.Duration, err error) {
	p := &cover.Problem{Graph: g}
	if _, dfs, _, err = r.repeat(p, solve.Options{Method: solve.DFS}, timed, r.o.limit()); err != nil {
		return 0, 0, err
	}
	_, euler, _, err = r.repeat(p, solve.Options{Method: solve.Paper}, timed, r.o.limit())
	return dfs, euler, err
}

// pathGenerators: section II-C, the places of probe generators. A generator is at a switch where paths start, and a
// collector where they end. A path may be reversed. Either every switch may have one (paths as they are), or those of
// the edge only (walks between depots), or one switch does it all.
func (r *coverRun) pathGenerators(w io.Writer) error {
	fmt.Fprintln(w, "topology\tgenerators\tat\tpaths\tat switches\ttraversals\tof links\t")
	for _, spec := range shown(r.o, 2, "fat-tree:6", "leaf-spine:5,11", "random:100,500,1") {
		g, err := topo.Parse(spec)
		if err != nil {
			return err
		}
		edge := []int{}
		for v := range g.NumNodes() {
			if t := g.Tier(v); t == topo.Edge || t == topo.NoTier && v%5 == 0 {
				edge = append(edge, v)
			}
		}
		for _, m := range []struct {
			name, at string
			depots   []int
		}{{"anywhere", "every switch", nil}, {"at the edge", fmt.Sprint(len(edge), " switches"), edge}, {"one", g.NodeName(edge[0]), edge[:1]}} {
			plan, err := r.planOnce(&cover.Problem{Graph: g, Depots: m.depots}, solve.Options{})
			if err != nil {
				return err
			}
			at := map[string]bool{}
			for _, p := range plan.Probes {
				at[p.Agent], at[p.Collector] = true, true
			}
			s := plan.Stats
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.3f\t\n", spec, m.name, m.at, s.Probes, len(at), s.Traversals, float64(s.Traversals)/float64(s.Links))
		}
	}
	return nil
}

// pathLatency: figure 14, how the rate of probes delays ordinary packets, in the emulated network. It has 40 switches
// with a host each, 100 links of 4 Mbit/s, and 8000 packets a second, for a second of virtual time. Probes have at
// most 60 links, and grow by 22 bytes at each.
func (r *coverRun) pathLatency(w io.Writer) error {
	fmt.Fprintln(w, "probes/s a path\tplan\tpaths\tcollector's kpps\tmean us\t99 % us\tpackets lost %\tprobes lost %\t")
	for _, m := range []struct {
		name string
		o    solve.Options
	}{{"DFS", solve.Options{Method: solve.DFS}}, {"Euler, balanced", solve.Options{Balanced: true}}} {
		for _, every := range []time.Duration{0, 100 * time.Millisecond, 10 * time.Millisecond, 5 * time.Millisecond, 2 * time.Millisecond, time.Millisecond} {
			if err := r.latencyRow(w, m.name, m.o, every); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *coverRun) latencyRow(w io.Writer, name string, o solve.Options, every time.Duration) error {
	c := emu.DefaultConfig()
	c.Topology, c.HostsPerEdge, c.LinkRate, c.PacketRate = "random:40,100,1", 1, 4e6, 8000
	c.Dialect, c.MaxHops = emu.Off, 60
	n, err := emu.New(c, r.o.Seed)
	if err != nil {
		return err
	}
	g := n.Graph()
	plan, err := r.planOnce(&cover.Problem{Graph: g, MaxHops: 60}, o)
	if err != nil {
		return err
	}
	var delays []time.Duration
	c.Observe = func(j *emu.Journey) {
		if !j.Probe && j.Outcome == emu.Delivered && j.At > 200*time.Millisecond {
			delays = append(delays, j.At-j.Hops[0].Ingress)
		}
	}
	rate := 0.0
	if every > 0 {
		rate = 1 / every.Seconds()
		for _, p := range plan.Probes {
			v, _ := g.Lookup(p.Collector)
			c.Probes = append(c.Probes, emu.Probe{From: p.Agent, Ports: append(slices.Clone(p.Ports), hostPort(g, v)), Every: every})
		}
	}
	if n, err = emu.New(c, r.o.Seed); err != nil {
		return err
	}
	n.Run(time.Second, func(emu.Datagram) {})
	slices.Sort(delays)
	mean := 0.0
	for _, d := range delays {
		mean += float64(d.Microseconds()) / float64(len(delays))
	}
	s := n.Stats()
	lost := func(delivered, sent, flying uint64) float64 {
		return 100 * float64(sent-delivered-flying) / float64(max(1, sent))
	}
	fmt.Fprintf(w, "%.0f\t%s\t%d\t%.2f\t%.0f\t%d\t%.2f\t%.2f\t\n", rate, name, len(plan.Probes), rate*float64(len(plan.Probes))/1000,
		mean, delays[len(delays)*99/100].Microseconds(), lost(s.Delivered, s.Sent, s.InFlight), lost(s.ProbesDelivered, s.ProbesSent, s.ProbesInFlight))
	return r.ctx.Err()
}

// hostPort is the first port of a switch that leads to a host.
func hostPort(g *topo.Graph, v int) int {
	lo, hi := g.Interfaces(v)
	for i := lo; i < hi; i++ {
		if g.Neighbor(i) < 0 {
			return g.Port(i)
		}
	}
	return 0
}
