package plan

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/show"
	"github.com/hopscope/hopscope/planner/topo"
)

type coverFlags struct {
	*sharedFlags
	balanced, directed, redundant, partial bool
	maxHops, maxPort, mtu                  int
	stack                                  int // links of a probe to which switches of the dialect add
	depots, sr                             string
	minimise, dialect, bitmap              string
	attention                              float64
	hosts, agents                          string
	skip, skipNode                         []string
	maxDelay, defaultDelay                 time.Duration
	byDistance                             bool
	measured                               measuredFlags
}

func coverCommand() *cobra.Command {
	var o coverFlags
	c := &cobra.Command{
		Use:   "cover --topology FILE",
		Short: "Probes that together pass every link",
		Long: `Plan probes that together pass every link of a topology, each once.

There are as few as can be: half the nodes of odd degree in every connected part, or
one. With --depots probes start and end at those nodes only, and as few links as can
be are passed a second time. With --directed both directions of every link are
passed, since a queue belongs to a direction.

Where the topology lists agents, probes start and end at these, each of which sends
and receives no more than it has room for. Between depots or agents --minimise says
what is to be small: links, or what the traversals of all probes sum up to in delay,
bytes or cost.

Methods: euler (fewest probes); as published, for comparison: dfs, paper and
paper-balanced (INT-path), int-balance (INT-Balance).

With --attention-share probes are as long as suits a loop in which those over
suspicious links carry detailed metrics, and all others basic ones: the bytes that
such a round is expected to take are stated, with a bound.

A plan that cannot pass every link is an error that names one; --partial leaves such
links out and lists them.`,
		Example: `  hopscope plan cover --topology fat-tree:8 --balanced
  hopscope plan cover --topology Abilene.gml --depots "Chicago,Denver" --svg plan.svg
  hopscope plan cover --topology Abilene.gml --depots "Chicago,Denver" --delay-by-distance --minimise delay --max-delay 60ms
  hopscope plan cover --topology lab.yaml --directed --sr --format json
  hopscope plan cover --topology lab.yaml --agents agents.yaml --minimise bytes --dialect fant --bitmap 0xFFFF
  hopscope plan cover --topology fat-tree:8 --depots edge-0-0,edge-5-1 --attention-share 0.03 --dialect fant --bitmap 0xF161,0xFFFF
  hopscope plan cover --topology lab.yaml --depots leaf-1,leaf-2 --minimise cost --from-collector http://127.0.0.1:8080
  hopscope plan cover --topology lab.yaml --replan plan.json --skip leaf-1--spine-2
  hopscope plan cover --topology lab.yaml --replan plan.json --churn 3 --format json`,
		Args: cli.ExactArgs(0),
	}
	o.sharedFlags = addSharedFlags(c, true, false, "euler, dfs, paper, paper-balanced or int-balance", string(solve.Euler))
	o.addSeed(c, "paper, paper-balanced and --redundant")
	f := c.Flags()
	f.BoolVar(&o.balanced, "balanced", false, "make the probes about equally long")
	f.BoolVar(&o.directed, "directed", false, "pass both directions of every link")
	f.IntVar(&o.maxHops, "max-hops", 0, "most links of a probe (0: any number)")
	f.DurationVar(&o.maxDelay, "max-delay", 0, "longest delay of a probe on its way (0: any)")
	f.IntVar(&o.maxPort, "max-port", 0, "highest port that a probe can be sent to (0: any)")
	f.StringVar(&o.depots, "depots", "", "nodes where probes may start and end: a file, one a line, or names with commas between")
	f.StringArrayVar(&o.skip, "skip", nil, "link that must not be passed, as NODE--NODE or NODE:PORT--NODE:PORT (repeatable)")
	f.StringArrayVar(&o.skipNode, "skip-node", nil, "node that must not be passed (repeatable)")
	f.StringVar(&o.minimise, "minimise", string(cover.Links), "what probes between depots sum up to: links, delay, bytes or cost")
	f.StringVar(&o.agents, "agents", "", `YAML file of the agents that send and receive probes, in place of those of the topology, or "none"`)
	f.StringVar(&o.hosts, "hosts", "", `nodes that are hosts and forward nothing: a file, one a line, names with commas between, or "none" (default: those that the topology marks)`)
	f.BoolVar(&o.byDistance, "delay-by-distance", false, "take for the delay of a link that gives none what light in a fibre between the places of its ends needs")
	o.measured.flags(c, "what links cost, for --minimise cost: 1 for an idle one to 101 for a full one")
	f.DurationVar(&o.defaultDelay, "default-delay", 0, "delay of links that give none")
	f.StringVar(&o.dialect, "dialect", "", "profile of the INT that switches add to a probe, which limits its hops; with --bitmap and --mtu")
	f.StringVar(&o.bitmap, "bitmap", "", "instruction bitmap of a probe, such as 0xFFFF, for --dialect; for --attention-share the basic and the detailed one, with a comma between")
	f.Float64Var(&o.attention, "attention-share", 0, "make probes so long that a loop with attention takes the fewest bytes, where this share of the links is suspicious")
	f.BoolVar(&o.redundant, "redundant", false, "plan two covers, each of every link, which together pass both directions")
	o.addReplan(c, "of which probes that are still whole are kept, with their ids; without --churn all of them", "probes", 0)
	f.BoolVar(&o.partial, "partial", false, "leave out links that cannot be passed")
	f.StringVar(&o.sr, "sr", "", "also give the routes that senders write: int-path or int-probe; sets --max-hops and --max-port to what these can carry")
	f.Lookup("sr").NoOptDefVal = "int-path"
	f.IntVar(&o.mtu, "mtu", 1500, "bytes in a frame behind the Ethernet header, for --sr and --dialect")
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *coverFlags) run(c *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.problem(c)
	if err != nil {
		return cli.WrongInput(err)
	}
	most, old := -1, new(cover.Plan)
	var churn *int // nil keeps every probe that is whole
	if c.Flags().Changed("churn") {
		most, churn = o.churn, &o.churn
	}
	return carryOut(c, o.sharedFlags, family[cover.Plan]{
		size:  fmt.Sprintf("%d nodes, %d links", p.Graph.NumNodes(), p.Graph.NumLinks()),
		solve: func(stop func() bool) (*cover.Plan, error) { return o.plan(p, old, churn, stop) },
		resolve: func(plan *cover.Plan, stop func() bool) (*cover.Plan, error) {
			return solve.Plan(p, solve.Options{Seed: o.seed, Partial: plan.Partial, Stop: stop})
		},
		badMethod: solve.ErrMethod,
		complete:  func(plan *cover.Plan, given planner.Given) error { return p.Complete(plan, given) },
		stats:     func(plan *cover.Plan) *planner.Stats { return &plan.Stats.Stats },
		check:     func(plan *cover.Plan) error { return cover.Check(p, plan) },
		steps:     func(plan *cover.Plan) error { return cover.CheckTransition(p, old, plan) },
		finish:    func(plan *cover.Plan) error { return o.routes(p, plan) },
		draw:      func(w io.Writer, plan *cover.Plan) error { return show.DrawCover(w, p, plan) },
		table:     func(w io.Writer, plan *cover.Plan) error { return show.CoverTable(w, plan, most) },
	})
}

// plan makes a plan. It starts from an older one if there is one, which it reads into old.
func (o *coverFlags) plan(p *cover.Problem, old *cover.Plan, churn *int, stop func() bool) (*cover.Plan, error) {
	options := solve.Options{Method: solve.Method(o.method), Balanced: o.balanced, Seed: o.seed, Partial: o.partial, Churn: churn, Stop: stop}
	if o.replan == "" {
		return solve.Plan(p, options)
	}
	if err := readPlan(o.replan, "cover", old); err != nil {
		return nil, err
	}
	if len(old.Probes) == 0 {
		return nil, cli.Usagef("plan %s: no probes", o.replan)
	}
	return solve.Replan(p, old, options)
}

// routes adds the routes of --sr to the probes. The routes in a plan that was read must be the same.
func (o *coverFlags) routes(p *cover.Problem, plan *cover.Plan) error {
	for _, probes := range [][]planner.Probe{plan.Probes, plan.Second} {
		read := slices.Clone(probes)
		for k := range probes {
			if probes[k].Route != "" && o.sr == "" {
				return cli.Usagef("plan %s: probe %s has a route, which is checked with --sr or --sr=int-probe only", o.verify, probes[k].ID)
			}
			probes[k].Route = ""
		}
		if o.sr == "" {
			continue
		}
		if err := probe.AddRoutes(p, probes, o.sr, o.partial); err != nil {
			return err
		}
		for k := range read {
			if given := read[k].Route; given != "" && given != probes[k].Route {
				return o.holds(fmt.Errorf("probe %s has the route %s, but its way needs %q", read[k].ID, given, probes[k].Route))
			}
		}
	}
	return nil
}

// readDepots reads node names from a file, one a line, or from the flag itself.
func readDepots(spec string, g *topo.Graph) ([]int, error) {
	list, err := readNames("depots", spec)
	if err != nil {
		return nil, err
	}
	depots := make([]int, len(list.names))
	seen := make(map[int]bool, len(list.names))
	for k, name := range list.names {
		v, ok := g.Lookup(name)
		switch {
		case !ok:
			return nil, list.wrong(k, fmt.Errorf("the topology has no node %q", name))
		case seen[v]:
			return nil, list.wrong(k, fmt.Errorf("the node %q is given twice", name))
		}
		seen[v], depots[k] = true, v
	}
	if len(depots) == 0 {
		return nil, fmt.Errorf("depots %s: no nodes", spec)
	}
	return depots, nil
}
