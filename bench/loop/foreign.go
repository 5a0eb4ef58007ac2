package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/planner/topo"
)

// problem is the probe results in the cycles of one seed, from which a foreign program suspects links.
type problem struct {
	Cycle  float64      `json:"cycle_seconds"`
	Links  []linkText   `json:"links"`  // directions, numbered from 0
	Probes [][]int32    `json:"probes"` // links of each probe, in order; the last one leads to a host
	Cycles []probesText `json:"cycles"`
}

// linkText is a direction of a link. Those towards hosts have no switch at the other end.
type linkText struct {
	From string `json:"from"`
	To   string `json:"to,omitempty"`
}

// probesText is a cycle. A probe of which no round came back has neither latencies nor queues nor lines.
type probesText []probeText

type probeText struct {
	Sent uint32 `json:"sent"` // rounds that were decided in the cycle
	Lost uint32 `json:"lost"` // of these
	// Means over the rounds that came back, by link.
	Latency []float64 `json:"latency_ns,omitempty"`
	Queue   []float64 `json:"queue_packets,omitempty"`
	Line    []float64 `json:"line_ns,omitempty"` // of all links but the last
}

// suspectsText is an answer.
type suspectsText struct {
	Cycles [][]int32 `json:"cycles"` // links that are suspected at the end of each cycle
}

// faultText is the truth about a fault.
type faultText struct {
	Fault string  `json:"fault"`
	From  float64 `json:"from_seconds"`
	Until float64 `json:"until_seconds"`
	Links []int32 `json:"links"` // that its element touches
}

// describe writes down the network and its probes.
func (p *problem) describe(g *topo.Graph, all []route, window time.Duration) {
	p.Cycle = window.Seconds()
	for i := range g.NumInterfaces() {
		l := linkText{From: g.NodeName(g.Node(i))}
		if back := g.Peer(i); back >= 0 {
			l.To = g.NodeName(g.Node(back))
		}
		p.Links = append(p.Links, l)
	}
	for _, r := range all {
		p.Probes = append(p.Probes, r)
	}
}

// cycle records the results of a cycle.
func (p *problem) cycle(x *receiver) {
	var c probesText
	for k, r := range x.routes {
		t := probeText{Sent: x.moved[k], Lost: x.lost[k]}
		if n := float64(x.count[k]); n > 0 {
			for h := range r {
				v := &x.values[k][h]
				t.Latency, t.Queue = append(t.Latency, math.Round(v[hopLatency]/n)), append(t.Queue, math.Round(100*v[hopQueue]/n)/100)
				if h < len(r)-1 {
					t.Line = append(t.Line, math.Round(v[hopLine]/n))
				}
			}
		}
		c = append(c, t)
	}
	p.Cycles = append(p.Cycles, c)
}

// question simulates the faults of a seed and records the input of a foreign program.
func (o *options) question(ctx context.Context, seed uint64) (*harness.Question, error) {
	p := &problem{}
	d, err := o.emulate(ctx, seed, &detection{recording: p})
	if err != nil {
		return nil, err
	}
	q := &harness.Question{Family: "loop", Name: fmt.Sprintf("seed %d", seed), Seed: seed, Problem: p}
	if o.Algorithm != nil {
		q.Seconds = o.Algorithm.Limit.Seconds()
	}
	var truth []faultText
	for _, f := range d.faults {
		truth = append(truth, faultText{f.Name, f.From.Seconds(), f.Until.Seconds(), f.Links})
	}
	q.Truth = truth
	return q, nil
}

// check returns the errors of an answer about so many cycles and links, and sorts each list.
func (a *suspectsText) check(cycles, links int) error {
	if len(a.Cycles) != cycles {
		return fmt.Errorf("cycles: %d lists, want one for each of %d cycles, empty where nothing is suspected", len(a.Cycles), cycles)
	}
	for c, list := range a.Cycles {
		slices.Sort(list)
		for k, l := range list {
			if l < 0 || int(l) >= links || k > 0 && l == list[k-1] {
				return fmt.Errorf("cycles[%d]: link %d is not there, or a second time; they are 0 to %d", c, l, links-1)
			}
		}
	}
	return nil
}

// suspect asks the foreign program about a seed: for all cycles, and for the first ones alone. Both answers must
// agree on the first ones.
func (o *options) suspect(ctx context.Context, seed uint64) ([][]int32, error) {
	q, err := o.question(ctx, seed)
	if err != nil {
		return nil, err
	}
	p := q.Problem.(*problem)
	if len(p.Cycles) == 0 {
		return nil, errors.New("the emulation has no cycle")
	}
	var all, early suspectsText
	if _, err := o.Algorithm.Ask(ctx, q, &all); err != nil {
		return nil, err
	}
	if err := all.check(len(p.Cycles), len(p.Links)); err != nil {
		return nil, err
	}
	cut := len(p.Cycles)/2 + rand.New(rand.NewPCG(seed, 0)).IntN((len(p.Cycles)+1)/2)
	short, first := *p, *q
	short.Cycles, first.Problem = p.Cycles[:cut], &short
	if _, err := o.Algorithm.Ask(ctx, &first, &early); err != nil {
		return nil, fmt.Errorf("of the first %d cycles alone: %w", cut, err)
	}
	if err := early.check(cut, len(p.Links)); err != nil {
		return nil, fmt.Errorf("of the first %d cycles alone: %w", cut, err)
	}
	for c := range cut {
		if !slices.Equal(all.Cycles[c], early.Cycles[c]) {
			return nil, fmt.Errorf("cycles[%d]: what is suspected depends on later cycles: of the first %d alone it is %v, of all %v", c, cut, early.Cycles[c], all.Cycles[c])
		}
	}
	return all.Cycles, nil
}

// WriteQuestions writes the question of each seed for a foreign program, and the truth, into a directory.
func WriteQuestions(ctx context.Context, dir string, o options) error {
	var list []*harness.Question
	for k := range o.Seeds {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("seed %d, %d of %d", o.Seed+uint64(k), k+1, o.Seeds))
		}
		q, err := o.question(ctx, o.Seed+uint64(k))
		if err != nil {
			return err
		}
		list = append(list, q)
	}
	return harness.Write(dir, slices.Values(list))
}
