package plan

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
	"github.com/hopscope/hopscope/planner/show"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type scheduleFlags struct {
	*sharedFlags
	probes, classes, skip                []string
	period, slot, spacing, longest       time.Duration
	headerBytes, hopBytes, overheadBytes int
	agentLimit, linkLimit                string
	partial                              bool
	graph                                *topo.Graph // nil with an instance
}

func scheduleCommand() *cobra.Command {
	var o scheduleFlags
	c := &cobra.Command{
		Use:   "schedule --instance FILE | --topology FILE --probes PLAN",
		Short: "When every probe is sent, such that every link is seen in its period",
		Long: `Give probes an interval and a phase: every link is looked at in its period, by one
probe or by several that take turns, no link and no agent carries more than its limit,
and all probes together take as few bytes a second as can be. The starts of an agent
are spread over time.

Probes come from plans of "hopscope plan cover", or an instance holds the whole
problem ({"period_ms","slot_ms","header_bytes","bytes_per_hop","classes":[{"name",
"period_ms","links"}],"probes":[{"id","links","agent","collector"}],"links":[...],
"agents":[...]}). docs/plan-schedule.md describes all of it.

--class NAME=LINKS:PERIOD gives a period to links by their names, with commas between
and * for any text, or to those with an end in a tier (@edge, @aggregation, @core).
A link of several classes belongs to the first.

A link that cannot be seen in time is an error with the reason; --partial leaves such
links out, as little weight as can be, and lists them.`,
		Example: `  hopscope plan cover --topology lab.yaml --max-hops 3 --format json >plan.json
  hopscope plan schedule --topology lab.yaml --probes plan.json --period 1s --svg schedule.svg
  hopscope plan schedule --topology lab.yaml --probes plan.json --class core=@core:200ms --agent-limit 1Mbps
  hopscope plan schedule --instance schedule.json --format json`,
		Args: cli.ExactArgs(0),
	}
	o.sharedFlags = addSharedFlags(c, true, true, "", "")
	d := schedule.Defaults()
	f := c.Flags()
	f.StringArrayVar(&o.probes, "probes", nil, "JSON of a plan whose probes can be sent (repeatable)")
	f.DurationVar(&o.period, "period", time.Duration(d.Period)*time.Millisecond, "how often every link is to be seen")
	f.StringArrayVar(&o.classes, "class", nil, "links that are to be seen more often or less, as NAME=LINKS:PERIOD (repeatable)")
	f.DurationVar(&o.slot, "slot", time.Duration(d.Slot)*time.Millisecond, "unit of time: all periods, intervals and phases are multiples of it")
	f.DurationVar(&o.spacing, "spacing", 0, "time that is wanted between two starts of an agent (0: a slot)")
	f.DurationVar(&o.longest, "longest", 0, "longest interval, a multiple of all periods (0: their least common multiple)")
	f.IntVar(&o.headerBytes, "header-bytes", d.HeaderBytes, "bytes of a probe that has passed no node yet")
	f.IntVar(&o.hopBytes, "bytes-per-hop", d.HopBytes, "bytes that every node adds")
	f.IntVar(&o.overheadBytes, "overhead-bytes", d.OverheadBytes, "bytes around a packet on a link")
	f.StringVar(&o.linkLimit, "link-limit", "", "what probes may take of every link, such as 1Mbps")
	f.StringVar(&o.agentLimit, "agent-limit", "", "what every agent may send, and what it may receive, such as 100kbps")
	f.StringArrayVar(&o.skip, "skip", nil, "link that need not be seen, as NODE--NODE or NODE:PORT--NODE:PORT (repeatable)")
	f.BoolVar(&o.partial, "partial", false, "leave out links that cannot be seen in time")
	o.addReplan(c, "whose intervals and phases are kept as far as --churn says", "probes", -1)
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *scheduleFlags) run(c *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.problem(c)
	if err != nil {
		return cli.WrongInput(err)
	}
	old, err := readPrevious[schedule.Plan](o.sharedFlags)
	if err != nil {
		return err
	}
	options := solve.Options{Partial: o.partial, Previous: old, Churn: o.churn}
	return carryOut(c, o.sharedFlags, family[schedule.Plan]{
		size: fmt.Sprintf("%d probes", len(p.Probes)),
		solve: func(stop func() bool) (*schedule.Plan, error) {
			options.Stop = stop
			plan, err := solve.Plan(p, options)
			if err == nil && o.graph != nil {
				plan.Topology = o.graph.Name()
			}
			return plan, err
		},
		resolve: func(plan *schedule.Plan, stop func() bool) (*schedule.Plan, error) {
			return solve.Plan(p, solve.Options{Partial: plan.Partial, Stop: stop})
		},
		complete: func(plan *schedule.Plan, given planner.Given) error { return p.Complete(plan, given) },
		stats:    func(plan *schedule.Plan) *planner.Stats { return &plan.Stats.Stats },
		check:    func(plan *schedule.Plan) error { return schedule.Check(p, plan) },
		steps:    func(plan *schedule.Plan) error { return schedule.CheckTransition(p, old, plan) },
		draw:     func(w io.Writer, plan *schedule.Plan) error { return show.DrawSchedule(w, p, plan) },
		table:    show.ScheduleTable,
	})
}

// problem reads the flags. Given flags override an instance.
func (o *scheduleFlags) problem(c *cobra.Command) (*schedule.Problem, error) {
	p := schedule.Defaults()
	switch {
	case o.instance != "":
		if o.topology != "" || len(o.probes) > 0 || len(o.skip) > 0 {
			return nil, cli.Usagef("--instance holds the whole problem: --topology, --probes and --skip do not go with it")
		}
		var err error
		if p, err = readInstance(c, o.instance, schedule.Read); err != nil {
			return nil, err
		}
	case o.topology == "" || len(o.probes) == 0:
		return nil, cli.Usagef("--instance is missing, or else --topology and --probes, both")
	default:
		var err error
		if o.graph, err = load.Topology(o.topology); err != nil {
			return nil, err
		}
		if err := o.readProbes(p); err != nil {
			return nil, err
		}
	}
	if err := o.settings(c, p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil { // now a flag is wrong
		return nil, cli.UsageError{Err: err}
	}
	return p, nil
}

// readProbes reads the probes of plans, and lists all links that are to be seen.
func (o *scheduleFlags) readProbes(p *schedule.Problem) error {
	probes, err := readCovers(o.probes, o.graph)
	if err != nil {
		return err
	}
	for _, x := range probes {
		p.Probes = append(p.Probes, schedule.Probe{ID: x.ID, Links: x.Links, Agent: x.Agent, Collector: x.Collector})
	}
	for _, name := range o.skip {
		links, err := o.graph.LookupLinks(name)
		if err != nil {
			return cli.Usagef("--skip: %w", err)
		}
		for _, l := range links {
			p.Unwatched = append(p.Unwatched, o.graph.LinkName(l))
		}
	}
	for l := range o.graph.NumLinks() {
		p.Links = append(p.Links, schedule.Link{Name: o.graph.LinkName(l)})
	}
	return nil
}

// settings applies the flags about how a problem is to be solved.
func (o *scheduleFlags) settings(c *cobra.Command, p *schedule.Problem) error {
	set := c.Flags().Changed
	for _, x := range []struct {
		flag  string
		value time.Duration
		to    *float64
	}{{"period", o.period, &p.Period}, {"slot", o.slot, &p.Slot}, {"spacing", o.spacing, &p.Spacing}, {"longest", o.longest, &p.Longest}} {
		if set(x.flag) {
			*x.to = millis(x.value)
		}
	}
	for _, x := range []struct {
		flag  string
		value int
		to    *int
	}{{"header-bytes", o.headerBytes, &p.HeaderBytes}, {"bytes-per-hop", o.hopBytes, &p.HopBytes}, {"overhead-bytes", o.overheadBytes, &p.OverheadBytes}} {
		if set(x.flag) {
			*x.to = x.value
		}
	}
	for _, x := range []struct {
		flag, value string
		to          []*float64
	}{{"link-limit", o.linkLimit, []*float64{&p.LinkLimit}}, {"agent-limit", o.agentLimit, []*float64{&p.SendLimit, &p.ReceiveLimit}}} {
		if !set(x.flag) {
			continue
		}
		bps, err := schedule.ParseRate(x.value)
		if err != nil {
			return cli.Usagef("--%s: %w", x.flag, err)
		}
		for _, to := range x.to {
			*to = bps
		}
	}
	for _, spec := range o.classes {
		class, err := schedule.ParseClass(spec, o.graph, parseMillis)
		if err != nil {
			return cli.Usagef("--class %q: %w", spec, err)
		}
		p.Classes = append(p.Classes, class)
	}
	return nil
}

func parseMillis(text string) (float64, error) {
	d, err := time.ParseDuration(text)
	return millis(d), err
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
