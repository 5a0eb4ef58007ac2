package loop

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"text/tabwriter"

	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/attention/solve"
	"github.com/hopscope/hopscope/planner/cover"
	coversolve "github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// The model of bytes. A hop adds metrics to a probe by the widths of FANT's table under its bitmaps 0xFFFF and
// 0xF161, and 4 for the checksum complement. A cycle has one round of all probes. Headers are the same either way and
// not counted.
const (
	bytesDetailed = 84 + 4
	bytesBasic    = 28 + 4
)

const (
	bytesCycles = 100
	// changeCost is the cost of a changed probe, in hops. These are 224 bytes in detail, about the size of a plan for
	// an agent.
	changeCost = 4
	// A trouble ends in a cycle with one chance, and shows in a cycle with the other.
	troubleEnds, troubleShows = .1, .7
	// mostLooks bounds the search of a cycle, in checks of its limit rather than in time, so that a seed always has
	// the same table.
	mostLooks = 1_000_000
)

// bytesRow is the bytes that probes carried on a network with a number of suspicious links.
type bytesRow struct {
	Network  string  `json:"network"`
	Switches int     `json:"switches"`
	Links    int     `json:"links"`
	Probes   int     `json:"probes"`
	Hops     int     `json:"hops"` // of all probes
	Percent  int     `json:"suspicious_percent"`
	Suspects int     `json:"suspicious"`        // after hysteresis, in every cycle
	Renewed  float64 `json:"suspicious_new"`    // of them, a cycle
	All      int     `json:"bytes_all"`         // a cycle, all probes detailed
	None     float64 `json:"bytes_basic_ratio"` // no probe detailed

	Greedy bytesColumn `json:"greedy"` // as published, without regard to changes
	Least  bytesColumn `json:"least"`  // fewest hops in detail, without regard to changes
	Ours   bytesColumn `json:"ours"`   // least with costs of switching
	Proven int         `json:"proven"` // cycles in which ours is proven to be the least
	Above  float64     `json:"above_bound_ratio"`
}

// bytesColumn is one way to choose, means of all cycles.
type bytesColumn struct {
	Hops    float64 `json:"hops_ratio"`  // in detail, of all
	Bytes   float64 `json:"bytes_ratio"` // of those with all probes detailed
	Changes float64 `json:"changes"`     // probes that changed
	Cost    float64 `json:"cost"`        // hops in detail, and the cost of changes
}

// bytesTable is the section about the bytes of probes.
type bytesTable struct {
	Section    string     `json:"section"`
	Seed       uint64     `json:"seed"`
	Cycles     int        `json:"cycles"`
	Detailed   int        `json:"bytes_hop_detailed"`
	Basic      int        `json:"bytes_hop_basic"`
	ChangeCost float64    `json:"change_cost_hops"`
	Rows       []bytesRow `json:"rows"`
}

// bytesNetworks are fat-trees and leaf-spine fabrics of up to 1,125 switches, with hosts as nodes: those of FANT's
// experiments.
var bytesNetworks = []struct {
	fabric string
	size   int
}{{"fat-tree", 10}, {"fat-tree", 18}, {"fat-tree", 30}, {"leaf-spine", 25}, {"leaf-spine", 125}, {"leaf-spine", 375}}

func runBytes(ctx context.Context, o options) (*bytesTable, error) {
	t := &bytesTable{Section: "bytes", Seed: o.Seed, Cycles: bytesCycles, Detailed: bytesDetailed, Basic: bytesBasic, ChangeCost: changeCost}
	for _, n := range bytesNetworks {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("%s:%d", n.fabric, n.size))
		}
		f, err := newFabric(n.fabric, n.size, o.Seed)
		if err != nil {
			return nil, err
		}
		for _, percent := range []int{3, 10} {
			row, err := f.row(ctx, percent, bytesCycles, o.Seed, nil)
			if err != nil {
				return nil, fmt.Errorf("%s, %d %%: %w", f.name, percent, err)
			}
			t.Rows = append(t.Rows, *row)
		}
	}
	return t, nil
}

// fabric is a network with the probes of two plans.
type fabric struct {
	name            string
	switches, links int
	traces          [][]int32 // by probe: links, as often as it passes them
	hops            int
	published, ours *solve.Traces // without costs of switching, and with them
	in              *suspicion.Incidence
}

// newFabric makes a fat-tree of size pods, or a fabric of size spines and twice as many leaves. Half as many hosts
// are at each edge switch. It has two plans of probes from one host of each edge switch. Edge switches with several
// hosts have another one in each plan. Probes have at most as many links as the shim of FANT's detailed metrics can
// count. Between hosts, which add nothing, these are two links more than between switches.
func newFabric(kind string, size int, seed uint64) (*fabric, error) {
	g, err := topo.FatTree(size)
	if kind != "fat-tree" {
		g, err = topo.LeafSpine(size, 2*size)
	}
	if err != nil {
		return nil, err
	}
	f := &fabric{name: fmt.Sprintf("%s:%d", kind, size), switches: g.NumNodes()}
	if kind != "fat-tree" {
		f.name = fmt.Sprintf("%s:%d,%d", kind, size, 2*size)
	}
	b := g.Extend()
	var hosts [2][]int // by plan
	r := rand.New(rand.NewPCG(seed, 1))
	for v := range g.NumNodes() {
		if g.Tier(v) != topo.Edge {
			continue
		}
		var at []int
		for i := range size / 2 {
			h := b.AddNode(fmt.Sprintf("host-%s-%d", g.NodeName(v), i), topo.NoTier)
			b.AddLink(topo.LinkEnd{Node: v}, topo.LinkEnd{Node: h})
			at = append(at, h)
		}
		order := r.Perm(len(at))
		for k := range hosts {
			hosts[k] = append(hosts[k], at[order[k%len(order)]])
		}
	}
	if g, err = b.Build(); err != nil {
		return nil, err
	}
	links, _, err := probe.StackLimits(&intmd.Options{Versions: intmd.V21, Domains: []intmd.Domain{intmd.FANT}}, 0xffff, 1500)
	if err != nil {
		return nil, err
	}
	for k := range hosts {
		plan, err := coversolve.Plan(&cover.Problem{Graph: g, Depots: hosts[k], MaxHops: links + 2}, coversolve.Options{Seed: seed})
		if err != nil {
			return nil, err
		}
		walks, err := cover.Walks(g, plan.Probes)
		if err != nil {
			return nil, err
		}
		for _, w := range walks {
			var trace []int32
			for _, i := range w {
				trace = append(trace, int32(g.Link(int(i))))
			}
			f.traces = append(f.traces, trace)
		}
	}
	f.index(g.NumLinks())
	f.in, err = suspicion.NewIncidence(f.links, f.traces)
	return f, err
}

func (f *fabric) index(links int) {
	f.links, f.hops = links, 0
	cost := make([]float64, len(f.traces))
	for p, t := range f.traces {
		cost[p] = float64(len(t))
		f.hops += len(t)
	}
	f.published, f.ours = solve.NewTraces(links, f.traces, cost, 0), solve.NewTraces(links, f.traces, cost, changeCost)
}

// choosing is one way to choose at work.
type choosing struct {
	index    *solve.Traces
	method   solve.Method
	detailed []int32 // now, sorted
	sum      bytesColumn
}

// row simulates some cycles. For every one it calls each, if that is not nil, with the suspects, and with our
// previous and new choice.
func (f *fabric) row(ctx context.Context, percent, cycles int, seed uint64, each func(suspects, before []int32, c *solve.Choice)) (*bytesRow, error) {
	row := &bytesRow{Network: f.name, Switches: f.switches, Links: f.links, Probes: len(f.traces), Hops: f.hops, Percent: percent}
	row.Suspects = max(1, f.links*percent/100)
	row.All, row.None = f.hops*bytesDetailed, float64(bytesBasic)/bytesDetailed
	greedy, least, ours := choosing{index: f.published, method: solve.Greedy}, choosing{index: f.published}, choosing{index: f.ours}
	draw := newTroubles(f.in, f.links, row.Suspects, rand.New(rand.NewPCG(seed, uint64(100+percent))))
	for range warmCycles { // until as many troubles end as begin
		draw.cycle()
	}
	cost, bound := 0.0, 0.0
	for range cycles {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		suspects, fresh := draw.cycle()
		if len(suspects) != row.Suspects {
			return nil, fmt.Errorf("%d links are suspicious, not %d", len(suspects), row.Suspects)
		}
		row.Renewed += float64(fresh) / float64(cycles)
		for _, x := range []*choosing{&greedy, &least, &ours} {
			before := x.detailed
			c, took, err := x.choose(f, suspects)
			if err != nil {
				return nil, err
			}
			if x != &ours {
				continue
			}
			if cost, bound = cost+took, bound+c.LowerBound; c.Optimal {
				row.Proven++
			}
			if each != nil {
				each(suspects, before, c)
			}
		}
	}
	row.Greedy, row.Least, row.Ours = greedy.mean(f, cycles), least.mean(f, cycles), ours.mean(f, cycles)
	row.Above = max(0, cost/bound-1)
	return row, nil
}

// warmCycles is how long a set of suspects is let grow old before it is used.
const warmCycles = 40

// choose plans a cycle and returns its cost, that of changes included.
func (x *choosing) choose(f *fabric, suspects []int32) (*solve.Choice, float64, error) {
	looks := 0
	c, err := x.index.Switch(suspects, x.detailed, solve.Options{Method: x.method, Stop: func() bool { looks++; return looks > mostLooks }})
	if err != nil {
		return nil, 0, err
	}
	now := slices.Clone(c.Probes)
	slices.Sort(now)
	hops, on := 0, make([]bool, f.links)
	for _, p := range now {
		hops += len(f.traces[p])
		for _, l := range f.traces[p] {
			on[l] = true
		}
	}
	for _, l := range suspects {
		if !on[l] {
			return nil, 0, fmt.Errorf("no detailed probe passes suspicious link %d", l)
		}
	}
	changes := different(x.detailed, now)
	cost := float64(hops) + changeCost*float64(changes)
	x.detailed = now
	x.sum.Hops += float64(hops)
	x.sum.Changes += float64(changes)
	x.sum.Cost += cost
	return c, cost, nil
}

func (x *choosing) mean(f *fabric, cycles int) bytesColumn {
	c, n, all := x.sum, float64(cycles), float64(f.hops)
	c.Hops /= n * all
	c.Changes /= n
	c.Cost /= n
	c.Bytes = (c.Hops*bytesDetailed + (1-c.Hops)*bytesBasic) / bytesDetailed
	return c
}

// different counts the elements in exactly one of two sorted lists.
func different(a, b []int32) (n int) {
	for _, list := range [2][2][]int32{{a, b}, {b, a}} {
		for _, v := range list[0] {
			if !contains(list[1], v) {
				n++
			}
		}
	}
	return n
}

// troubles draw the suspicious links. A link in trouble shows it in seven of ten cycles. The trouble ends after ten
// cycles in the mean, or when it has not shown for so long that it is forgotten. Package suspicion turns shown
// troubles into suspects, with its hysteresis. So many troubles begin, at random links, that the number of suspects
// stays.
type troubles struct {
	r        *rand.Rand
	state    *suspicion.State
	most     int
	cycles   int
	clear    int
	last     []int // by link: cycle in which it showed trouble last, 0 for never
	troubled []int32
	list     []inference.Finding
	before   []int32
}

func newTroubles(in *suspicion.Incidence, links, suspects int, r *rand.Rand) *troubles {
	cfg := suspicion.DefaultConfig()
	return &troubles{r: r, state: suspicion.New(cfg, in, byNumber{}), most: suspects, clear: cfg.ClearAfter, last: make([]int, links)}
}

// byNumber has links for interfaces.
type byNumber struct{}

func (byNumber) Links(to []int32, f *inference.Finding) []int32 {
	return append(to, int32(f.Element.EgressIf))
}

// cycle returns the suspects of a cycle, and how many were none in the one before.
func (t *troubles) cycle() (suspects []int32, fresh int) {
	t.cycles++
	t.list = t.list[:0]
	show := func(l int32) {
		t.last[l] = t.cycles
		t.list = append(t.list, inference.Finding{
			ID: uint64(l) + 1, Kind: inference.HighQueue, Severity: inference.Warning,
			Element: inference.Element{Kind: inference.InterfaceElement, EgressIf: uint32(l)},
		})
	}
	suspected := func(l int) bool { return t.last[l] > 0 && t.cycles-t.last[l] < t.clear }
	t.troubled = slices.DeleteFunc(t.troubled, func(l int32) bool { return t.r.Float64() < troubleEnds || !suspected(int(l)) })
	for _, l := range t.troubled {
		if t.r.Float64() < troubleShows {
			show(l)
		}
	}
	n := 0
	for l := range t.last {
		if suspected(l) {
			n++
		}
	}
	for n < t.most {
		if l := t.r.IntN(len(t.last)); !suspected(l) {
			if !slices.Contains(t.troubled, int32(l)) {
				t.troubled = append(t.troubled, int32(l))
			}
			show(int32(l))
			n++
		}
	}
	for _, s := range t.state.Step(&suspicion.Cycle{Now: int64(t.cycles) * 1e9, Findings: t.list}) {
		suspects = append(suspects, s.Link)
		if !contains(t.before, s.Link) {
			fresh++
		}
	}
	t.before = suspects
	return suspects, fresh
}

// Print writes it as text.
func (t *bytesTable) Print(out io.Writer) error {
	fmt.Fprintf(out, `Bytes of probes with attention, of those with all probes detailed, %d cycles. A hop adds %d bytes in detail and %d else; a probe that
changes costs as much as %g hops in detail. Hosts are nodes; two plans from a host of every edge switch each. Suspects are those after hysteresis.
By method: share of hops in detail, bytes, changes a cycle, and cost with changes above ours.

`, t.Cycles, t.Detailed, t.Basic, t.ChangeCost)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NETWORK\tSWITCHES\tPROBES\tSUSPICIOUS\tNEW\tALL DETAILED\tNONE\tGREEDY\tFEWEST HOPS\tOURS\tPROVEN\tABOVE BOUND")
	for i := range t.Rows {
		r := &t.Rows[i]
		column := func(c *bytesColumn) string {
			return fmt.Sprintf("%.3f  %.3f  %.1f  %+.1f %%", c.Hops, c.Bytes, c.Changes, 100*(c.Cost/r.Ours.Cost-1))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d %% (%d)\t%.0f\t%.3f MB\t%.3f\t%s\t%s\t%s\t%d\t%.2f %%\n", r.Network, r.Switches, r.Probes, r.Percent, r.Suspects,
			r.Renewed, float64(r.All)/1e6, r.None, column(&r.Greedy), column(&r.Least), column(&r.Ours), r.Proven, 100*r.Above)
	}
	return w.Flush()
}
