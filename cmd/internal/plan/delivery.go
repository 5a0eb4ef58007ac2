package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/show"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type deliveryFlags struct {
	*sharedFlags
	noLinks, partial, transitAll, printInstance bool
	lossTest                                    string
	reserve, pathLimit                          float64
	graph                                       *topo.Graph // of --topology
	measured                                    measuredFlags
	reportBytes                                 int
	reportsOf                                   string
}

func deliveryCommand() *cobra.Command {
	var o deliveryFlags
	c := &cobra.Command{
		Use:   "delivery --instance FILE | --topology FILE",
		Short: "Which collector every switch reports to",
		Long: `Assign measurement points to servers, over paths: every point with its whole rate,
within its deadline, within what links, switches and servers have free, and
reliably; to as few servers as can be. Where points cannot be served so, links of
points are added (1 ms, 100 Gbit/s, working with a probability of 0.999): as few as
can be, and each with the constraint that makes it necessary. --no-links adds none:
what cannot be served is an error then. --partial leaves out what cannot be served,
of least weight in all.

An instance is {"nodes":[{"id","kind":"point|server|switch","rate_gbps",
"deadline_ms","loss","weight","capacity_gbps","load_gbps","up"}],"links":[{"a","b",
"port_a","port_b","latency_ms","capacity_gbps","load_gbps","up"}]}. With --topology
alone one is drawn at random over it, as the RFT paper does; --print-instance prints
it. Ports that are not named are given out in the order of the links.

The plan ends with the configuration of the switches: for every path of a point, by
its tag, the port by which it leaves, and at the point how much of its reports gets
the tag. The check replays this hop by hop.

--replan replaces an older plan: points keep what they have where nothing is lost by
it, --churn limits how many change, and the plan has the steps from one to the other,
in which no point is unserved and no capacity exceeded.

Loss is tested path by path (path), for all paths of a point together (joint), as the
exact probability that less than the rate arrives (exact), or by its Chernoff bound
(chernoff); the last two want --reserve above 1.

With --from-collector the rates of points and the loads of links are those that a
running collector measured, where it knows them: a point has the name or number of
the node that reports, a link that of its nodes and ports.

With --reports-of the rates of points are those of the reports that an assignment of
"hopscope plan orchestrate" brings: a report for each packet of a flow, from the switch
of its last assigned interface. Points without such a flow get the least rate.

Methods: exact (proven), paper (RFT's, repaired), greedy, brute, pso and pso-ga.`,
		Example: `  hopscope plan delivery --instance network.json
  hopscope plan delivery --instance network.json --no-links --partial --format json
  hopscope plan delivery --instance network.json --replan delivery.json --churn 2
  hopscope plan delivery --instance network.json --from-collector http://127.0.0.1:8080 --report-bytes 160
  hopscope plan delivery --topology Bren.gml --seed 7 --svg plan.svg
  hopscope plan delivery --topology Bren.gml --seed 7 --print-instance >network.json`,
		Args: cli.ExactArgs(0),
	}
	methods := make([]string, len(solve.Methods))
	for i, m := range solve.Methods {
		methods[i] = string(m)
	}
	o.sharedFlags = addSharedFlags(c, true, true, strings.Join(methods, ", "), string(solve.Exact))
	o.addSeed(c, "the problem that is drawn over --topology, and of pso and pso-ga")
	f := c.Flags()
	f.BoolVar(&o.noLinks, "no-links", false, "add no links")
	f.BoolVar(&o.partial, "partial", false, "leave out points that cannot be served")
	f.StringVar(&o.lossTest, "loss-test", "", "path, joint, exact or chernoff (default: as the instance says, else path)")
	f.Float64Var(&o.reserve, "reserve", 1, "reserved rate over rate, 1 to 16")
	f.Float64Var(&o.pathLimit, "path-limit", 0, "most that one path carries, in Gbit/s (default: as the instance says, else no limit)")
	f.BoolVar(&o.transitAll, "transit-all", false, "let points and servers forward, too")
	o.measured.flags(c, "the rates of points and the loads of links of --instance")
	f.IntVar(&o.reportBytes, "report-bytes", 200, "bytes of a report with its headers, for the rates of --from-collector and --reports-of")
	f.StringVar(&o.reportsOf, "reports-of", "", "plan of \"hopscope plan orchestrate\" whose reports are the rates of points of --instance")
	o.addReplan(c, "of which as many points as can keep what they have", "points", -1)
	f.BoolVar(&o.printInstance, "print-instance", false, "print the instance instead of a plan, with all ports named")
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *deliveryFlags) run(c *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.problem(c)
	if err != nil {
		return cli.WrongInput(err)
	}
	if o.printInstance {
		if err := p.NamePorts(); err != nil {
			return err
		}
		return writeJSON(c.OutOrStdout(), p)
	}
	old, err := readPrevious[delivery.Plan](o.sharedFlags)
	if err != nil {
		return err
	}
	return carryOut(c, o.sharedFlags, family[delivery.Plan]{
		size: fmt.Sprintf("%d nodes, %d links", len(p.Nodes), len(p.Links)),
		solve: func(stop func() bool) (*delivery.Plan, error) {
			return solve.Plan(p, solve.Options{Method: solve.Method(o.method), NoLinks: o.noLinks, Partial: o.partial, Seed: o.seed, Stop: stop, Previous: old, Churn: o.churn})
		},
		resolve: func(plan *delivery.Plan, stop func() bool) (*delivery.Plan, error) {
			return solve.Plan(p, solve.Options{NoLinks: o.noLinks, Partial: plan.Partial, Stop: stop})
		},
		complete:  func(plan *delivery.Plan, given planner.Given) error { return p.Complete(plan, given) },
		adopt:     func(plan, resolved *delivery.Plan) { plan.Stats.Adopt(&resolved.Stats) },
		hold:      func(plan, resolved *delivery.Plan) error { return plan.Stats.Hold(&resolved.Stats) },
		badMethod: solve.ErrMethod,
		stats:     func(plan *delivery.Plan) *planner.Stats { return &plan.Stats.Stats },
		check:     func(plan *delivery.Plan) error { return delivery.Check(p, plan) },
		steps:     func(plan *delivery.Plan) error { return delivery.CheckTransition(p, old, plan) },
		draw:      func(w io.Writer, plan *delivery.Plan) error { return show.DrawDelivery(w, o.graph, p, plan) },
		table:     func(w io.Writer, plan *delivery.Plan) error { return show.DeliveryTable(w, p, plan) },
	})
}

// problem reads the flags.
func (o *deliveryFlags) problem(c *cobra.Command) (p *delivery.Problem, err error) {
	var with []string
	if o.reportsOf == "" {
		with = []string{"report-bytes"}
	}
	asked, err := o.measured.asked(c, with...)
	switch {
	case o.reportsOf != "" && (o.measured.URL != "" || o.instance == ""):
		return nil, cli.Usagef("--reports-of goes with --instance, and without --from-collector")
	case err != nil:
		return nil, err
	case asked && o.instance == "":
		return nil, cli.Usagef("--from-collector goes with --instance, whose rates and loads it gives")
	case o.reportBytes < 1:
		return nil, cli.Usagef("--report-bytes %d is not positive", o.reportBytes)
	case o.instance != "" && o.topology != "":
		return nil, cli.Usagef("--instance holds the whole problem: --topology does not go with it")
	case o.instance != "":
		if p, err = readInstance(c, o.instance, delivery.Read); err != nil {
			return nil, err
		}
		if o.reportsOf != "" {
			if err := o.reports(c, p); err != nil {
				return nil, err
			}
		}
		if asked {
			if err := o.measure(c, p); err != nil {
				return nil, cli.Failure{Err: err}
			}
		}
	case o.topology != "":
		g, err := load.Topology(o.topology)
		if err != nil {
			return nil, err
		}
		o.graph = g
		p = delivery.Generate(g, o.seed)
	default:
		return nil, cli.Usagef("--instance or --topology is missing")
	}
	if o.lossTest != "" {
		p.LossTest = delivery.LossTest(o.lossTest)
	}
	if c.Flags().Changed("reserve") {
		p.Reserve = o.reserve
	}
	if c.Flags().Changed("path-limit") {
		p.PathLimit = o.pathLimit
	}
	p.TransitAll = p.TransitAll || o.transitAll
	if err := p.Validate(); err != nil {
		if o.lossTest != "" || c.Flags().Changed("path-limit") || c.Flags().Changed("reserve") || o.instance == "" {
			return nil, cli.UsageError{Err: err}
		}
		return nil, fmt.Errorf("instance %s: %w", o.instance, err)
	}
	return p, nil
}

// reports makes the rates of points those of the reports of an assignment.
func (o *deliveryFlags) reports(c *cobra.Command, p *delivery.Problem) error {
	var a orchestrate.Plan
	if err := readPlan(o.reportsOf, "orchestrate", &a); err != nil {
		return err
	}
	rates, flows, sum := map[string]float64{}, 0, 0.0
	for _, t := range a.Tables {
		colon := strings.LastIndexByte(t.Interface, ':')
		if colon <= 0 {
			return fmt.Errorf("plan %s: interface %q is not NODE:PORT", o.reportsOf, t.Interface)
		}
		for _, e := range t.Entries {
			if !e.Sink {
				continue
			}
			packets, ok := a.Rates[e.Flow]
			if !ok || packets < 0 {
				return fmt.Errorf("plan %s: flow %q has no rate: the instance of the assignment is to give it one", o.reportsOf, e.Flow)
			}
			rate := packets * float64(o.reportBytes) * 8 / 1e9
			rates[t.Interface[:colon]] += rate
			sum += rate
			flows++
		}
	}
	if flows == 0 {
		return fmt.Errorf("plan %s: no table has a flow that is reported", o.reportsOf)
	}
	points := 0
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Kind == delivery.PointNode {
			if _, ok := rates[n.ID]; ok {
				points++
			}
			n.Rate = max(rates[n.ID], delivery.LeastRate)
			delete(rates, n.ID)
		}
	}
	if len(rates) > 0 {
		return fmt.Errorf("plan %s: flows are reported by %q, which the instance has no points of", o.reportsOf, slices.Sorted(maps.Keys(rates)))
	}
	_, err := fmt.Fprintf(c.ErrOrStderr(), "%d flows are reported by %d points, with %.3g Gbit/s in all\n", flows, points, sum)
	return err
}

// measure reads rates and loads from a running collector.
func (o *deliveryFlags) measure(c *cobra.Command, p *delivery.Problem) error {
	if err := o.measured.open(c.Context()); err != nil {
		return err
	}
	points, links, err := o.measured.delivery(c.Context(), p, o.reportBytes)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "measured in the last %v: the rates of %d points and the loads of %d links; others are those of the instance\n",
		o.measured.Span(), points, links)
	return err
}
