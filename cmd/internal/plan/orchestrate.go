package plan

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
	"github.com/hopscope/hopscope/planner/show"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type orchestrateFlags struct {
	*sharedFlags
	objective, model, demands string
	redundancy, packetBytes   int
	split, partial            bool
	class                     string
	sizing                    orchestrate.Sizing
	m                         orchestrate.Model
	measured                  measuredFlags
	items                     int64 // of an interface of a collector

	graph *topo.Graph // nil with an instance
}

func orchestrateCommand() *cobra.Command {
	var o orchestrateFlags
	c := &cobra.Command{
		Use:   "orchestrate --instance FILE | --topology FILE | --from-collector URL",
		Short: "Which flow's packets carry the telemetry of which interface",
		Long: `Assign every interface to a flow of production packets that passes it and has room for
its items. Objective concentrate uses the fewest flows, balance makes the largest load
of a flow as small as can be.

An instance is {"interfaces":[{"id","demand"}],"flows":[{"id","capacity","interfaces":
[...]}]}, in items; a flow lists its interfaces in the order in which its packets pass
them, and may have a "rate" in packets a second, a "class", and "packet_sizes" in bytes
instead of a capacity; an interface may have a "weight". A topology becomes one as in the
evaluation of INTO (2019): a flow between every two nodes, or those of a traffic matrix,
over paths with the fewest hops, random demands and capacities. A running collector
gives its busiest flows, the interfaces that they were seen to pass, and the packets
a second that showed it; --items, --packet-bytes and --mtu say what it cannot know.

Methods: heuristic (as published), search (improved until --time-limit, or until the
lower bound is met), exact (also decides by trying everything), auto (exact where the
problem is small). Every plan states how far from the best it can be at most.`,
		Example: `  hopscope plan orchestrate --instance flows.json --format json
  hopscope plan orchestrate --topology fat-tree:4 --objective balance
  hopscope plan orchestrate --topology Abilene.graph --demands Abilene.demands.gz --svg plan.svg
  hopscope plan orchestrate --topology Abilene.graph --redundancy 2 --split
  hopscope plan orchestrate --instance classes.json --class bulk --size-percentile 75
  hopscope plan orchestrate --instance flows-later.json --replan flows-plan.json --churn 2
  hopscope plan orchestrate --from-collector http://127.0.0.1:8080 --partial`,
		Args: cli.ExactArgs(0),
	}
	o.sharedFlags = addSharedFlags(c, true, true, "heuristic, search, exact or auto", string(solve.Auto))
	o.addSeed(c, "the demands and capacities of --topology, and of the search")
	o.m = orchestrate.DefaultModel()
	f := c.Flags()
	f.StringVar(&o.objective, "objective", orchestrate.Concentrate, "concentrate or balance")
	f.IntVar(&o.redundancy, "redundancy", 1, "flows that carry every item, all different")
	f.BoolVar(&o.split, "split", false, "let the items of an interface travel on several flows")
	f.BoolVar(&o.partial, "partial", false, "leave out what cannot be carried, of the least weight")
	o.addReplan(c, "of which little is to change", "interfaces", 0)
	f.StringVar(&o.class, "class", "", "only the flows of this class in the instance, and what they pass")
	o.sizing = orchestrate.DefaultSizing()
	f.Float64Var(&o.sizing.Percentile, "size-percentile", o.sizing.Percentile, "share of its packets, in percent, that what a flow carries has to fit into; of flows with packet_sizes")
	f.Int64Var(&o.sizing.MTU, "mtu", o.sizing.MTU, "bytes of the largest packet; of flows with packet_sizes")
	f.Int64Var(&o.sizing.ItemBytes, "item-bytes", o.sizing.ItemBytes, "bytes of an item; of flows with packet_sizes")
	f.Int64Var(&o.sizing.HeaderBytes, "header-bytes", o.sizing.HeaderBytes, "bytes of telemetry headers in a packet; of flows with packet_sizes")
	f.StringVar(&o.model, "model", "directed", "what a flow passes in a topology: directed (the directions it takes) or both-sides (both interfaces of its links)")
	f.StringVar(&o.demands, "demands", "", "traffic matrix (.demands, Repetita) with the flows of the topology, instead of one between every two nodes")
	f.IntVar(&o.packetBytes, "packet-bytes", 1000, "bytes of a packet, for the packet rates of --demands and the room in packets of --from-collector")
	o.measured.flags(c, "flows, their interfaces and rates")
	f.Int64Var(&o.items, "items", 1, "items of every interface of --from-collector")
	f.Int64Var(&o.m.DemandMin, "demand-min", o.m.DemandMin, "fewest items of an interface of the topology")
	f.Int64Var(&o.m.DemandMax, "demand-max", o.m.DemandMax, "most items of an interface of the topology")
	f.Float64Var(&o.m.CapacityMean, "capacity-mean", o.m.CapacityMean, "items that a flow of the topology can carry, on average")
	f.Float64Var(&o.m.CapacityStdv, "capacity-stdv", o.m.CapacityStdv, "standard deviation of that")
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *orchestrateFlags) run(c *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.problem(c)
	if err != nil {
		return cli.WrongInput(err)
	}
	old, err := readPrevious[orchestrate.Plan](o.sharedFlags)
	if err != nil {
		return err
	}
	if old != nil && len(old.Assignment)+len(old.Shares) == 0 {
		return cli.Usagef("plan %s: nothing is assigned", o.replan)
	}
	options := solve.Options{Method: solve.Method(o.method), Seed: o.seed, Partial: o.partial, Previous: old, Churn: o.churn}
	return carryOut(c, o.sharedFlags, family[orchestrate.Plan]{
		size: fmt.Sprintf("%d interfaces, %d flows", len(p.Interfaces), len(p.Flows)),
		solve: func(stop func() bool) (*orchestrate.Plan, error) {
			options.Stop = stop
			plan, err := solve.Plan(p, options)
			if err == nil && o.graph != nil {
				plan.Topology = o.graph.Name()
			}
			return plan, err
		},
		resolve: func(plan *orchestrate.Plan, stop func() bool) (*orchestrate.Plan, error) {
			return solve.Plan(p, solve.Options{Seed: o.seed, Partial: plan.Partial, Stop: stop})
		},
		badMethod: solve.ErrMethod,
		stats:     func(plan *orchestrate.Plan) *planner.Stats { return &plan.Stats.Stats },
		check:     func(plan *orchestrate.Plan) error { return orchestrate.Check(p, plan) },
		steps:     func(plan *orchestrate.Plan) error { return orchestrate.CheckTransition(p, old, plan) },
		complete:  func(plan *orchestrate.Plan, given planner.Given) error { p.Complete(plan, given); return nil },
		finish: func(plan *orchestrate.Plan) error {
			plan.Stats.Gap = plan.Stats.Objective - plan.Stats.LowerBound
			plan.Tables, plan.Rates = p.Tables(plan), p.Rates(plan)
			return nil
		},
		draw:  func(w io.Writer, plan *orchestrate.Plan) error { return show.DrawOrchestrate(w, p, plan) },
		table: func(w io.Writer, plan *orchestrate.Plan) error { return show.OrchestrateTable(w, p, plan) },
	})
}

// instanceOnly are the flags that change what is read of an instance.
var instanceOnly = []string{"class", "size-percentile", "mtu", "item-bytes", "header-bytes"}

// topologyOnly are the flags that make an instance of a topology.
var topologyOnly = []string{"model", "demands", "packet-bytes", "demand-min", "demand-max", "capacity-mean", "capacity-stdv"}

// problem reads the flags.
func (o *orchestrateFlags) problem(c *cobra.Command) (p *orchestrate.Problem, err error) {
	switch {
	case o.objective != orchestrate.Concentrate && o.objective != orchestrate.Balance:
		return nil, cli.Usagef("--objective %q is neither concentrate nor balance", o.objective)
	case o.redundancy < 1 || o.redundancy > orchestrate.MaxRedundancy:
		return nil, cli.Usagef("--redundancy %d is outside 1..%d", o.redundancy, orchestrate.MaxRedundancy)
	case o.model != "directed" && o.model != "both-sides":
		return nil, cli.Usagef("--model %q is neither directed nor both-sides", o.model)
	case o.replan != "" && o.split:
		return nil, cli.Usagef("--replan does not go with --split")
	case o.packetBytes < 1:
		return nil, cli.Usagef("--packet-bytes %d is not positive", o.packetBytes)
	case o.items < 1:
		return nil, cli.Usagef("--items %d is not positive", o.items)
	}
	if asked, err := o.measured.asked(c, "items"); err != nil {
		return nil, err
	} else if given := []bool{o.instance != "", o.topology != "", asked}; countTrue(given) != 1 {
		return nil, cli.Usagef("one of --instance, --topology and --from-collector is wanted (see --help)")
	} else if asked {
		if p, err = o.fromCollector(c); err != nil {
			return nil, err
		}
	} else if o.instance != "" {
		for _, name := range topologyOnly {
			if c.Flags().Changed(name) {
				return nil, cli.Usagef("--%s goes with --topology: an instance says it all", name)
			}
		}
		if err := o.sizing.Validate(); err != nil {
			return nil, cli.UsageError{Err: err}
		}
		p, err = readInstance(c, o.instance, func(in io.Reader) (*orchestrate.Problem, error) {
			p, err := orchestrate.ReadSized(in, o.objective, o.sizing)
			if err == nil && o.class != "" {
				p, err = p.OfClass(o.class)
			}
			return p, err
		})
		if err != nil {
			return nil, err
		}
	} else {
		for _, name := range instanceOnly {
			if c.Flags().Changed(name) {
				return nil, cli.Usagef("--%s goes with --instance: a topology has no packets", name)
			}
		}
		if o.graph, err = load.Topology(o.topology); err != nil {
			return nil, err
		}
		m := o.m
		m.Seed, m.BothSides, m.Parts = o.seed, o.model == "both-sides", o.partial
		if err := m.Validate(); err != nil {
			return nil, cli.UsageError{Err: err}
		}
		if o.demands != "" {
			if m.Pairs, err = o.pairs(); err != nil {
				return nil, err
			}
		}
		if p, err = orchestrate.Generate(o.graph, m); err != nil {
			return nil, cli.Failure{Err: err} // there is no plan
		}
		p.Objective = o.objective
	}
	p.Redundancy, p.Split = o.redundancy, o.split
	return p, nil
}

// fromCollector reads the flows of a running collector.
func (o *orchestrateFlags) fromCollector(c *cobra.Command) (*orchestrate.Problem, error) {
	for _, name := range slices.DeleteFunc(slices.Clone(topologyOnly), func(name string) bool { return name == "packet-bytes" }) {
		if c.Flags().Changed(name) {
			return nil, cli.Usagef("--%s goes with --topology: a collector says what there is", name)
		}
	}
	if c.Flags().Changed("class") {
		return nil, cli.Usagef("--class goes with --instance: the flows of a collector have no class")
	}
	if err := o.sizing.Validate(); err != nil {
		return nil, cli.UsageError{Err: err}
	}
	if err := o.measured.open(c.Context()); err != nil {
		return nil, cli.Failure{Err: err}
	}
	p, left, err := o.measured.orchestrate(c.Context(), o.items, o.packetBytes, o.objective, o.sizing)
	if err != nil {
		return nil, cli.Failure{Err: err}
	}
	fmt.Fprintf(c.ErrOrStderr(), "measured in the last %v: %d flows over %d interfaces", o.measured.Span(), len(p.Flows), len(p.Interfaces))
	if left > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "; %d more interfaces are on none of these flows, and are left out", left)
	}
	fmt.Fprintln(c.ErrOrStderr())
	return p, nil
}

// countTrue counts what is true.
func countTrue(list []bool) (n int) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}

// pairs reads the flows of a traffic matrix. A pair without traffic is no flow.
func (o *orchestrateFlags) pairs() ([]orchestrate.Pair, error) {
	f, err := os.Open(o.demands)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := load.Demands(o.demands, f, o.graph)
	if err != nil {
		return nil, err
	}
	pairs := []orchestrate.Pair{}
	for _, d := range list {
		if d.Rate > 0 && d.Src != d.Dst {
			pairs = append(pairs, orchestrate.Pair{Src: d.Src, Dst: d.Dst, Rate: d.Rate / 8 / float64(o.packetBytes)})
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("%s: no traffic between different nodes", o.demands)
	}
	return pairs, nil
}
