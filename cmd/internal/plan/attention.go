package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/attention/solve"
	"github.com/hopscope/hopscope/planner/show"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type attentionFlags struct {
	*sharedFlags
	probes                        []string
	suspicious, detailed, metrics string
	switchCost, alpha, beta       float64
	partial                       bool
	earlier                       *attention.Plan // that of --replan
	measured                      measuredFlags

	graph *topo.Graph // nil with an instance
}

func attentionCommand() *cobra.Command {
	var o attentionFlags
	c := &cobra.Command{
		Use:   "attention --instance FILE | --topology FILE --probes PLAN --suspicious LINKS | --from-collector URL",
		Short: "Which probes look closely at suspicious links",
		Long: `Choose the probes that measure in detail: every suspicious link is on one of them,
and together they pass as few hops as can be. All others go on with basic metrics.

Probes come from an instance ({"probes":[{"id","cost","links":[...]}],"suspicious":
[...]}; a cost left out is the number of links), or from plans of "hopscope plan
cover": two that each pass every link leave a choice. With --switch-cost and the
probes that measure in detail now, a change has to be worth it. --replan takes these
from an earlier plan; --churn then limits how many are turned on or off, and the plan
gives their order.

--metrics FILE divides metrics into basic and detailed ones, and gives the instruction
bitmaps of both; alone, it does only that.

Methods: exact (the least cost, proven), greedy (most new links per cost),
greedy-links (most new links), fant-h (as published; --alpha and --beta trade cost for
time). When --time-limit ends the search, the best found is given, and the bound.`,
		Example: `  hopscope plan cover --topology fat-tree:8 --depots edge-0-0,edge-5-1 --max-hops 24 --format json >a.json
  hopscope plan cover --topology fat-tree:8 --depots edge-2-3,edge-7-0 --max-hops 24 --format json >b.json
  hopscope plan attention --topology fat-tree:8 --probes a.json --probes b.json --suspicious core-3--agg-2-0,agg-1-1--edge-1-2
  hopscope plan attention --topology fat-tree:8 --probes a.json --probes b.json --from-collector http://127.0.0.1:8080
  hopscope plan attention --instance cycle.json --format json
  hopscope plan attention --instance cycle.json --replan earlier.json --churn 4
  hopscope plan attention --metrics metrics.yaml`,
		Args: cli.ExactArgs(0),
	}
	o.sharedFlags = addSharedFlags(c, true, true, "exact, greedy, greedy-links or fant-h", string(solve.Exact))
	o.checksSteps = true
	f := c.Flags()
	f.StringArrayVar(&o.probes, "probes", nil, "JSON of a plan whose probes can be used (repeatable)")
	f.StringVar(&o.suspicious, "suspicious", "", "suspicious links: a file, one a line, or names with commas between")
	o.measured.flags(c, "by its open findings which links are suspicious")
	f.StringVar(&o.detailed, "detailed", "", "probes that measure in detail now: a file, one a line, or ids with commas between")
	f.Float64Var(&o.switchCost, "switch-cost", 0, "cost of a probe that changes, in hops")
	f.StringVar(&o.metrics, "metrics", "", "YAML file of metrics and their relations")
	f.Float64Var(&o.alpha, "alpha", 0, "acceleration factor of fant-h for estimates, 0 to 1")
	f.Float64Var(&o.beta, "beta", 0, "acceleration factor of fant-h for limits, 0 to 1")
	o.addReplan(c, "which the network has now: its probes measure in detail, and the steps from there are printed", "probes", -1)
	f.BoolVar(&o.partial, "partial", false, "leave out suspicious links that are on no probe")
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *attentionFlags) run(c *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	if !(o.alpha >= 0 && o.alpha <= 1 && o.beta >= 0 && o.beta <= 1) {
		return cli.Usagef("--alpha %v and --beta %v lie between 0 and 1", o.alpha, o.beta)
	}
	var categories *solve.Categories
	if o.metrics != "" {
		m, err := readMetrics(o.metrics)
		if err != nil {
			return cli.WrongInput(err)
		}
		if categories, err = solve.Categorize(m); err != nil {
			return cli.Usagef("%s: %w", o.metrics, err)
		}
		if o.instance == "" && len(o.probes) == 0 && o.suspicious == "" {
			if o.svg != "" {
				return cli.Usagef("--svg wants probes to draw: --instance, or --topology with --probes")
			}
			if o.format == "json" {
				return writeJSON(c.OutOrStdout(), categories)
			}
			return categories.WriteTable(c.OutOrStdout())
		}
	}
	p, err := o.problem(c)
	if err == nil {
		p, err = o.after(p)
	}
	if err != nil {
		return cli.WrongInput(err)
	}
	return carryOut(c, o.sharedFlags, family[attention.Plan]{
		size: fmt.Sprintf("%d probes, %d suspicious links", len(p.Probes), len(p.Suspicious)),
		solve: func(stop func() bool) (*attention.Plan, error) {
			return solve.Plan(p, solve.Options{Method: solve.Method(o.method), Alpha: o.alpha, Beta: o.beta, Partial: o.partial, Stop: stop,
				Previous: o.earlier, Churn: o.churn})
		},
		resolve: func(plan *attention.Plan, stop func() bool) (*attention.Plan, error) {
			return solve.Plan(p, solve.Options{Partial: plan.Partial, Stop: stop, Previous: o.earlier, Churn: o.churn})
		},
		badMethod: solve.ErrMethod,
		complete:  func(plan *attention.Plan, given planner.Given) error { p.Complete(plan, given); return nil },
		stats:     func(plan *attention.Plan) *planner.Stats { return &plan.Stats.Stats },
		check:     func(plan *attention.Plan) error { return attention.Check(p, plan) },
		steps:     func(plan *attention.Plan) error { return attention.CheckTransition(p, o.earlier, plan) },
		finish: func(plan *attention.Plan) error {
			if categories != nil {
				plan.Instructions = categories.Instructions
			}
			return nil
		},
		draw:  func(w io.Writer, plan *attention.Plan) error { return show.DrawAttention(w, o.graph, p, plan) },
		table: show.AttentionTable,
	})
}

// problem reads the flags.
func (o *attentionFlags) problem(c *cobra.Command) (*attention.Problem, error) {
	p := new(attention.Problem)
	asked, err := o.measured.asked(c)
	switch {
	case err != nil:
		return nil, err
	case asked && o.suspicious != "":
		return nil, cli.Usagef("--from-collector says which links are suspicious: --suspicious does not go with it")
	case o.instance != "":
		if o.topology != "" || len(o.probes) > 0 || o.suspicious != "" || asked {
			return nil, cli.Usagef("--instance holds the whole problem: --topology, --probes, --suspicious and --from-collector do not go with it")
		}
		if p, err = readInstance(c, o.instance, attention.Read); err != nil {
			return nil, err
		}
	case o.topology == "" || len(o.probes) == 0 || o.suspicious == "" && !asked:
		return nil, cli.Usagef("--instance is missing, or else --topology, --probes and --suspicious (or --from-collector), all three")
	default:
		var err error
		if o.graph, err = load.Topology(o.topology); err != nil {
			return nil, err
		}
		if err := o.readProbes(p); err != nil {
			return nil, err
		}
		if asked {
			if err := o.suspects(c, p); err != nil {
				return nil, cli.Failure{Err: err}
			}
			break
		}
		list, err := readNames("suspicious", o.suspicious)
		if err != nil {
			return nil, err
		}
		for k, name := range list.names {
			links, err := o.graph.LookupLinks(name)
			if err != nil {
				return nil, list.wrong(k, err)
			}
			for _, l := range links {
				p.Suspicious = append(p.Suspicious, o.graph.LinkName(l))
			}
		}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if o.detailed != "" {
		list, err := readNames("detailed", o.detailed)
		if err != nil {
			return nil, err
		}
		p.Detailed = list.names
	}
	if c.Flags().Changed("switch-cost") {
		p.SwitchCost = o.switchCost
	}
	if err := p.Validate(); err != nil { // now these flags are wrong
		return nil, cli.UsageError{Err: err}
	}
	return p, nil
}

// suspects reads the suspicious links of a running collector.
func (o *attentionFlags) suspects(c *cobra.Command, p *attention.Problem) error {
	if err := o.measured.open(c.Context()); err != nil {
		return err
	}
	elsewhere, err := o.measured.suspicious(c.Context(), o.graph, p)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%d links are suspicious by open findings", len(p.Suspicious))
	if elsewhere > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "; %d open findings are about no link of the topology", elsewhere)
	}
	fmt.Fprintln(c.ErrOrStderr())
	return nil
}

// readProbes reads the probes of plans.
func (o *attentionFlags) readProbes(p *attention.Problem) error {
	probes, err := readCovers(o.probes, o.graph)
	for _, x := range probes {
		p.Probes = append(p.Probes, attention.Trace{ID: x.ID, Cost: float64(len(x.Links)), Links: x.Links})
	}
	return err
}

func readMetrics(path string) (*solve.Metrics, error) {
	text, err := cli.ReadFile(path, 1<<20)
	if err != nil {
		return nil, err
	}
	if err := settings.CheckYAML("metrics "+path, text); err != nil {
		return nil, err
	}
	m := new(solve.Metrics)
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(m); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("metrics %s: %w", path, err)
	}
	return m, nil
}

// after reads the earlier plan, if there is one, and returns the problem after it.
func (o *attentionFlags) after(p *attention.Problem) (*attention.Problem, error) {
	switch {
	case o.replan == "":
		return p, nil
	case o.c.Flags().Changed("detailed"):
		return nil, cli.Usagef("--replan says which probes measure in detail now: --detailed does not go with it")
	}
	var err error
	if o.earlier, err = readPrevious[attention.Plan](o.sharedFlags); err != nil {
		return nil, err
	}
	return p.After(o.earlier), nil
}
