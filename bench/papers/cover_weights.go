package papers

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// weighted returns a graph with the nodes and links of another, whose links have delays and costs drawn evenly from 1
// to 100.
func weighted(g *topo.Graph, seed uint64) (*topo.Graph, error) {
	r := rand.New(rand.NewPCG(seed, 0x776569676874))
	b := topo.NewBuilder(g.Name())
	for n := range g.NumNodes() {
		b.AddNode(g.NodeName(n), g.Tier(n))
	}
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		a := topo.Attr{Weight: 1, Delay: time.Duration(1+r.IntN(100)) * time.Microsecond, Cost: uint32(1 + r.IntN(100))}
		b.AddLink(topo.LinkEnd{Node: g.Node(x), Port: g.Port(x), Attr: a}, topo.LinkEnd{Node: g.Node(y), Port: g.Port(y), Attr: a})
	}
	return b.Build()
}

// weights: delay, cost and bytes of a cover between depots that passes the fewest links, and of one that minimises
// the respective sum. Depots are a tenth of the nodes.
func (r *coverRun) weights(w io.Writer) error {
	fmt.Fprintln(w, "topology\tlinks\tmeasure\tof the fewest links\tminimised\tsaved of the second traversals\tbound\tms\t")
	for _, spec := range shown(r.o, 1, "random:200,600,1", "random:2000,6000,1", "leaf-spine:33,67", "grid:50,50") {
		g, err := topo.Parse(spec)
		if err != nil {
			return err
		}
		if g, err = weighted(g, r.o.Seed); err != nil {
			return err
		}
		depots := everyTenth(g, r.o.Seed)
		fewest, err := r.planOnce(&cover.Problem{Graph: g, Depots: depots}, solve.Options{})
		if err != nil {
			return fmt.Errorf("%s: %w", spec, err)
		}
		walks, err := cover.Walks(g, fewest.Probes)
		if err != nil {
			return err
		}
		for _, m := range []struct {
			measure cover.Measure
			unit    float64
			name    string
		}{{cover.Delay, 1e6, "delay, ms"}, {cover.Cost, 1, "cost"}, {cover.Bytes, 1e3, "bytes, kB"}} {
			p := &cover.Problem{Graph: g, Depots: depots, Minimise: m.measure}
			if m.measure == cover.Bytes { // of a probe with 28 bytes of IPv4 and UDP, and INT-MD with 12 bytes a hop
				p.Size, p.MaxHops = cover.Size{Header: 44, PerHop: 12}, 64
			}
			plan, took, stopped, err := r.repeat(p, solve.Options{}, 1, r.o.limit())
			if err != nil {
				return fmt.Errorf("%s: %s: %w", spec, m.name, err)
			}
			before, once := int64(0), int64(0)
			for _, walk := range walks {
				before += p.Length(walk)
			}
			saved := "-"
			if m.measure != cover.Bytes {
				for l := range g.NumLinks() {
					x, _ := g.Ends(l)
					once += p.Weigh(x)
				}
				saved = fmt.Sprintf("%.1f %%", 100*(float64(before)-plan.Stats.Objective)/max(1, float64(before-once)))
			}
			note := ""
			if stopped {
				note = " (stopped)"
			}
			s := plan.Stats
			fmt.Fprintf(w, "%s\t%d\t%s\t%.6g\t%.6g\t%s\t%.6g (%.2f %%)\t%.1f%s\t\n", spec, g.NumLinks(), m.name, float64(before)/m.unit, s.Objective/m.unit,
				saved, s.LowerBound/m.unit, 100*(s.Objective/s.LowerBound-1), ms(took), note)
		}
	}
	return nil
}

// churn: the number of probes after some links have failed, by how many may change where no more have to.
func (r *coverRun) churn(w io.Writer) error {
	fmt.Fprintln(w, "topology\tlinks failed\tprobes\tchurn\tprobes\tchanged\tsteps\tms\t")
	for _, c := range []struct {
		spec   string
		failed int
		p      cover.Problem
		churns []int
	}{
		{"random:2000,6000,1", 200, cover.Problem{}, []int{0, 20, 80, 320, -1}},
		{"random:200,600,1", 20, cover.Problem{MaxHops: 12}, []int{0, 20, 60, 80, -1}},
	} {
		g, err := topo.Parse(c.spec)
		if err != nil {
			return err
		}
		p := c.p
		p.Graph = g
		old, err := r.planOnce(&p, solve.Options{})
		if err != nil {
			return err
		}
		p.Skip = make([]bool, g.NumLinks())
		for _, l := range rand.New(rand.NewPCG(r.o.Seed, 0x636875726e)).Perm(g.NumLinks())[:c.failed] {
			p.Skip[l] = true
		}
		for _, churn := range c.churns {
			start := time.Now()
			plan, err := solve.Replan(&p, old, solve.Options{Churn: &churn, Stop: func() bool { return r.ctx.Err() != nil || time.Since(start) > r.o.limit() }})
			if err != nil {
				return fmt.Errorf("%s: churn %d: %w", c.spec, churn, err)
			}
			took := time.Since(start)
			if err := cover.Check(&p, plan); err != nil {
				return err
			}
			t := plan.Transition
			name := fmt.Sprint(churn)
			if churn < 0 {
				name = "any"
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%d\t%.1f\t\n", c.spec, c.failed, old.Stats.Probes, name, plan.Stats.Probes,
				len(t.Add)+len(t.Remove)+len(t.Change), len(t.Steps), ms(took))
		}
	}
	return r.ctx.Err()
}
