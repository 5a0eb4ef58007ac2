package papers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	attentionsolve "github.com/hopscope/hopscope/planner/attention/solve"
	"github.com/hopscope/hopscope/planner/cover"
	coversolve "github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/delivery"
	deliverysolve "github.com/hopscope/hopscope/planner/delivery/solve"
	"github.com/hopscope/hopscope/planner/orchestrate"
	orchestratesolve "github.com/hopscope/hopscope/planner/orchestrate/solve"
	"github.com/hopscope/hopscope/planner/schedule"
	schedulesolve "github.com/hopscope/hopscope/planner/schedule/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// question is a problem that a foreign program plans for. Its answer is a plan of the family in JSON, which needs
// nothing but its decisions: see [planner.ReadDecisions].
type question struct {
	harness.Question

	published, ours func(stop func() bool) (*planner.Stats, error)
	judge           func(answer []byte) (*planner.Stats, error)
}

// questions makes the instances of some families, or of all for an empty list. The seed and the limit are those of
// the options.
func questions(families []string, o Options) (list []*question, err error) {
	for _, f := range []struct {
		name string
		make func(o Options) ([]*question, error)
	}{{"cover", coverQuestions}, {"orchestrate", orchestrateQuestions}, {"attention", attentionQuestions}, {"delivery", deliveryQuestions}, {"schedule", scheduleQuestions}} {
		if len(families) > 0 && !slices.Contains(families, f.name) {
			continue
		}
		made, err := f.make(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		for _, q := range made {
			q.Family, q.Seed, q.Seconds = f.name, o.Seed, o.limit().Seconds()
		}
		list = append(list, made...)
	}
	return list, nil
}

// WriteQuestions writes the instances of some families into a directory, or of all for an empty list.
func WriteQuestions(dir string, families []string, o Options) error {
	list, err := questions(families, o)
	if err != nil {
		return err
	}
	var asked []*harness.Question
	for _, q := range list {
		asked = append(asked, &q.Question)
	}
	return harness.Write(dir, slices.Values(asked))
}

// ForeignTable runs a foreign program over the instances of some families, or of all for an empty list. It prints the
// program's plans beside those of the published algorithm and ours. Every plan passes the same check. If a program
// returns no plan, a line states the reason.
func ForeignTable(ctx context.Context, w io.Writer, p *harness.Program, families []string, o Options) error {
	list, err := questions(families, o)
	if err != nil {
		return err
	}
	return o.table(w, "Plans of "+p.String()+", at most "+o.limit().String()+" each", func(t io.Writer) error {
		fmt.Fprintln(t, "family\tinstance\tpublished\tours\tat least\ttheirs\tleft out\tseconds\tremark\t")
		for _, q := range list {
			published, err := q.published(stopAfter(ctx, o.limit()))
			if err != nil {
				return fmt.Errorf("%s, %s: published: %w", q.Family, q.Name, err)
			}
			ours, err := q.ours(stopAfter(ctx, o.limit()))
			if err != nil {
				return fmt.Errorf("%s, %s: ours: %w", q.Family, q.Name, err)
			}
			answer, took, err := p.Answer(ctx, &q.Question)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var theirs *planner.Stats
			if err == nil {
				theirs, err = q.judge(answer)
			}
			fmt.Fprintf(t, "%s\t%s\t%g\t%g\t%g\t", q.Family, q.Name, published.Objective, ours.Objective, ours.LowerBound)
			switch {
			case err != nil:
				fmt.Fprintf(t, "-\t-\t%.2f\tno plan: %s\t\n", took.Seconds(), harness.Reason(err))
			default:
				fmt.Fprintf(t, "%g\t%g\t%.2f\t%s\t\n", theirs.Objective, theirs.LeftOut, took.Seconds(), remark(theirs, ours))
			}
		}
		return nil
	})
}

// remark compares a foreign plan with ours.
func remark(theirs, ours *planner.Stats) string {
	switch {
	case !planner.Near(theirs.LeftOut, ours.LeftOut) && theirs.LeftOut > ours.LeftOut:
		return fmt.Sprintf("leaves out %g more", theirs.LeftOut-ours.LeftOut)
	case planner.Near(theirs.Objective, ours.LowerBound):
		return "the best there is"
	case planner.Near(theirs.Objective, ours.Objective):
		return "as ours"
	case theirs.Objective < ours.Objective:
		return fmt.Sprintf("%.1f %% below ours", 100*(1-theirs.Objective/ours.Objective))
	}
	return fmt.Sprintf("%.1f %% above ours", 100*(theirs.Objective/ours.Objective-1))
}

// judged reads an answer, derives the values that it leaves out, and checks it.
func judged[P any](family string, complete func(*P, planner.Given) error, check func(*P) error, stats func(*P) *planner.Stats) func([]byte) (*planner.Stats, error) {
	return func(answer []byte) (*planner.Stats, error) {
		plan := new(P)
		given, err := planner.ReadDecisions(bytes.NewReader(answer), family, plan, func(g planner.Given) error { return complete(plan, g) })
		if err != nil {
			return nil, harness.Wrong(answer, err)
		}
		stats(plan).Claim(given)
		return stats(plan), check(plan)
	}
}

// networkText is a topology as a question has it: the JSON of a topology file, with the depots beside.
type networkText struct {
	Nodes  []string   `json:"nodes"`
	Links  []linkText `json:"links"`
	Depots []string   `json:"depots,omitempty"`
}

type linkText struct {
	A     string `json:"a"`
	APort int    `json:"a_port"`
	B     string `json:"b"`
	BPort int    `json:"b_port"`
}

func networkOf(p *cover.Problem) (n networkText) {
	g := p.Graph
	for v := range g.NumNodes() {
		n.Nodes = append(n.Nodes, g.NodeName(v))
	}
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		n.Links = append(n.Links, linkText{g.NodeName(g.Node(x)), g.Port(x), g.NodeName(g.Node(y)), g.Port(y)})
	}
	for _, v := range p.Depots {
		n.Depots = append(n.Depots, g.NodeName(v))
	}
	return n
}

func coverQuestions(o Options) (list []*question, err error) {
	for _, x := range []struct {
		spec   string
		depots bool
	}{{"fat-tree:4", false}, {"fat-tree:4", true}, {"leaf-spine:4,8", false}, {"fat-tree:8", true}, {fmt.Sprintf("random:60,90,%d", o.Seed), true}} {
		g, err := topo.Parse(x.spec)
		if err != nil {
			return nil, err
		}
		p := &cover.Problem{Graph: g}
		q := &question{Question: harness.Question{Name: x.spec}}
		if x.depots {
			p.Depots = drawDepots(g, o.Seed)
			q.Name += fmt.Sprintf(" with %d depots", len(p.Depots))
		}
		q.Problem = networkOf(p)
		run := func(m coversolve.Method) func(func() bool) (*planner.Stats, error) {
			return func(stop func() bool) (*planner.Stats, error) {
				plan, err := coversolve.Plan(p, coversolve.Options{Method: m, Seed: o.Seed, Stop: stop})
				if err != nil {
					return nil, err
				}
				return &plan.Stats.Stats, cover.Check(p, plan)
			}
		}
		q.ours, q.published = run(""), run("")
		if !x.depots { // with depots ours is the published one, INT-Probe, whose plans are proven
			q.published = run(coversolve.DFS)
		}
		q.judge = judged("cover", p.Complete, func(plan *cover.Plan) error { return cover.Check(p, plan) }, func(plan *cover.Plan) *planner.Stats { return &plan.Stats.Stats })
		list = append(list, q)
	}
	return list, nil
}

func orchestrateQuestions(o Options) (list []*question, err error) {
	for _, size := range [][2]int{{10, 14}, {20, 30}, {40, 60}} {
		for _, objective := range []string{orchestrate.Concentrate, orchestrate.Balance} {
			g, err := topo.Random(size[0], size[1], o.Seed)
			if err != nil {
				return nil, err
			}
			m := orchestrate.DefaultModel()
			m.Seed = o.Seed
			p, err := orchestrate.Generate(g, m)
			if err != nil {
				return nil, err
			}
			p.Objective = objective
			run := func(m orchestratesolve.Method) func(func() bool) (*planner.Stats, error) {
				return func(stop func() bool) (*planner.Stats, error) {
					plan, err := orchestratesolve.Plan(p, orchestratesolve.Options{Method: m, Seed: o.Seed, Partial: m == orchestratesolve.Heuristic, Stop: stop})
					if err != nil {
						return nil, err
					}
					return &plan.Stats.Stats, orchestrate.Check(p, plan)
				}
			}
			list = append(list, &question{
				Question:  harness.Question{Name: fmt.Sprintf("%s, %d flows", objective, len(p.Flows)), Objective: objective, Problem: p},
				published: run(orchestratesolve.Heuristic), ours: run(""),
				judge: judged("orchestrate", func(plan *orchestrate.Plan, g planner.Given) error { p.Complete(plan, g); return nil },
					func(plan *orchestrate.Plan) error { return orchestrate.Check(p, plan) }, func(plan *orchestrate.Plan) *planner.Stats { return &plan.Stats.Stats }),
			})
		}
	}
	return list, nil
}

func attentionQuestions(o Options) (list []*question, err error) {
	for _, percent := range []int{3, 10, 30} {
		c, err := newCycles("fat-tree", 8, 2, true, o.Seed)
		if err != nil {
			return nil, err
		}
		names := map[int32]string{} // of links
		for k, t := range c.traces {
			for i, l := range t {
				names[l] = c.problem.Probes[k].Links[i]
			}
		}
		p := c.problem
		for _, l := range c.draw(percent) {
			if name, ok := names[l]; ok {
				p.Suspicious = append(p.Suspicious, name)
			}
		}
		run := func(m attentionsolve.Method) func(func() bool) (*planner.Stats, error) {
			return func(stop func() bool) (*planner.Stats, error) {
				plan, err := attentionsolve.Plan(&p, attentionsolve.Options{Method: m, Stop: stop})
				if err != nil {
					return nil, err
				}
				return &plan.Stats.Stats, attention.Check(&p, plan)
			}
		}
		list = append(list, &question{
			Question:  harness.Question{Name: fmt.Sprintf("%s, %d %% suspicious", c.name, percent), Problem: &p},
			published: run(attentionsolve.Greedy), ours: run(""),
			judge: judged("attention", func(plan *attention.Plan, g planner.Given) error { p.Complete(plan, g); return nil },
				func(plan *attention.Plan) error { return attention.Check(&p, plan) }, func(plan *attention.Plan) *planner.Stats { return &plan.Stats.Stats }),
		})
	}
	return list, nil
}

func deliveryQuestions(o Options) (list []*question, err error) {
	for _, size := range [][2]int{{20, 30}, {60, 90}, {100, 150}} {
		p, err := drawnDelivery(size[0], size[1], o.Seed)
		if err == nil {
			err = p.NamePorts()
		}
		if err != nil {
			return nil, err
		}
		run := func(m deliverysolve.Method) func(func() bool) (*planner.Stats, error) {
			return func(stop func() bool) (*planner.Stats, error) {
				plan, err := deliverysolve.Plan(p, deliverysolve.Options{Method: m, Seed: o.Seed, Partial: true, NoLinks: true, Stop: stop})
				if err != nil {
					return nil, err
				}
				return &plan.Stats.Stats, delivery.Check(p, plan)
			}
		}
		list = append(list, &question{
			Question:  harness.Question{Name: fmt.Sprintf("random:%d,%d,%d without new links", size[0], size[1], o.Seed), Problem: p},
			published: run(deliverysolve.Paper), ours: run(""),
			judge: judged("delivery", p.Complete, func(plan *delivery.Plan) error { return delivery.Check(p, plan) },
				func(plan *delivery.Plan) *planner.Stats { return &plan.Stats.Stats }),
		})
	}
	return list, nil
}

func scheduleQuestions(o Options) (list []*question, err error) {
	for _, x := range []struct {
		spec   string
		covers int
	}{{"fat-tree:4", 1}, {"fat-tree:4", 2}, {"fat-tree:8", 2}} {
		g, err := topo.Parse(x.spec)
		if err != nil {
			return nil, err
		}
		p, err := scheduleOf(g, x.covers, 8, true, o.Seed)
		if err != nil {
			return nil, err
		}
		run := func(more schedulesolve.Options) func(func() bool) (*planner.Stats, error) {
			return func(stop func() bool) (*planner.Stats, error) {
				more.Seed, more.Stop = o.Seed, stop
				plan, err := schedulesolve.Plan(p, more)
				if err != nil {
					return nil, err
				}
				return &plan.Stats.Stats, schedule.Check(p, plan)
			}
		}
		list = append(list, &question{
			Question: harness.Question{Name: fmt.Sprintf("%s, %d covers", x.spec, x.covers), Problem: p},
			published: func(func() bool) (*planner.Stats, error) {
				alike, own, err := plain(p) // no text plans intervals: all probes at the interval that the most urgent link asks for
				return &planner.Stats{Objective: min(alike, own)}, err
			},
			ours: run(schedulesolve.Options{}),
			judge: judged("schedule", p.Complete, func(plan *schedule.Plan) error { return schedule.Check(p, plan) },
				func(plan *schedule.Plan) *planner.Stats { return &plan.Stats.Stats }),
		})
	}
	return list, nil
}
