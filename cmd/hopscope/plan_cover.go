package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type coverFlags struct {
	*planFlags
	balanced, directed, redundant, partial bool
	maxHops, maxPort, mtu                  int
	depots, sr                             string
	skip                                   []string
}

func planCoverCommand() *cobra.Command {
	var o coverFlags
	c := &cobra.Command{
		Use:   "cover --topology FILE",
		Short: "Probes that together pass every link",
		Long: `Plan probes that together pass every link of a topology, each once.

There are as few as can be: half the nodes of odd degree in every connected part, or
one. With --depots probes start and end at those nodes only, and as few links as can
be are passed a second time. With --directed both directions of every link are
passed, since a queue belongs to a direction.

Methods: euler (fewest probes); as published, for comparison: dfs, paper and
paper-balanced (INT-path), int-balance (INT-Balance).

A plan that cannot pass every link is an error that names one; --partial leaves such
links out and lists them.`,
		Example: `  hopscope plan cover --topology fat-tree:8 --balanced
  hopscope plan cover --topology Abilene.gml --depots "Chicago,Denver" --svg plan.svg
  hopscope plan cover --topology lab.yaml --directed --sr --format json
  hopscope plan cover --topology lab.yaml --replan plan.json --skip leaf-1--spine-2
  hopscope plan cover --topology lab.yaml --replan plan.json --churn 3 --format json`,
		Args: exactArgs(0),
	}
	o.planFlags = addPlanFlags(c, true, false, "euler, dfs, paper, paper-balanced or int-balance", string(solve.Euler))
	o.addSeed(c, "paper, paper-balanced and --redundant")
	f := c.Flags()
	f.BoolVar(&o.balanced, "balanced", false, "make the probes about equally long")
	f.BoolVar(&o.directed, "directed", false, "pass both directions of every link")
	f.IntVar(&o.maxHops, "max-hops", 0, "most links of a probe (0: any number)")
	f.IntVar(&o.maxPort, "max-port", 0, "highest port that a probe can be sent to (0: any)")
	f.StringVar(&o.depots, "depots", "", "nodes where probes may start and end: a file, one a line, or names with commas between")
	f.StringArrayVar(&o.skip, "skip", nil, "link that must not be passed, as NODE--NODE or NODE:PORT--NODE:PORT (repeatable)")
	f.BoolVar(&o.redundant, "redundant", false, "plan two covers, each of every link, which together pass both directions")
	o.addReplan(c, "of which probes that are still whole are kept, with their ids", "probes")
	f.BoolVar(&o.partial, "partial", false, "leave out links that cannot be passed")
	f.StringVar(&o.sr, "sr", "", "also give the routes that senders write: int-path or int-probe; sets --max-hops and --max-port to what these can carry")
	f.Lookup("sr").NoOptDefVal = "int-path"
	f.IntVar(&o.mtu, "mtu", 1500, "bytes in a frame behind the Ethernet header, for --sr")
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *coverFlags) run(c *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.problem()
	if err != nil {
		return wrongInput(err)
	}
	churn, err := o.churnLimit(c)
	if err != nil {
		return err
	}
	most, old := -1, new(cover.Plan)
	if churn != nil {
		most = *churn
	}
	return carryOut(c, o.planFlags, family[cover.Plan]{
		size:  fmt.Sprintf("%d nodes, %d links", p.Graph.NumNodes(), p.Graph.NumLinks()),
		solve: func(stop func() bool) (*cover.Plan, error) { return o.plan(p, old, churn, stop) },
		again: func(plan *cover.Plan, stop func() bool) (*cover.Plan, error) {
			return solve.Plan(p, solve.Options{Seed: o.seed, Partial: plan.Partial, Stop: stop})
		},
		badMethod: solve.ErrMethod,
		stats:     func(plan *cover.Plan) *planner.Stats { return &plan.Stats.Stats },
		check: func(plan *cover.Plan) error {
			if o.replan != "" {
				return errors.Join(cover.Check(p, plan), cover.CheckTransition(p, old, plan))
			}
			return cover.Check(p, plan)
		},
		finish: func(plan *cover.Plan) error { return o.routes(p, plan) },
		draw:   func(w io.Writer, plan *cover.Plan) error { return drawCover(w, p, plan) },
		table:  func(w io.Writer, plan *cover.Plan) error { return coverTable(w, plan, most) },
	})
}

// plan makes a plan, of an older one if there is one, which it reads into old.
func (o *coverFlags) plan(p *cover.Problem, old *cover.Plan, churn *int, stop func() bool) (*cover.Plan, error) {
	options := solve.Options{Method: solve.Method(o.method), Balanced: o.balanced, Seed: o.seed, Partial: o.partial, Churn: churn, Stop: stop}
	if o.replan == "" {
		return solve.Plan(p, options)
	}
	if err := readPlan(o.replan, "cover", old); err != nil {
		return nil, err
	}
	if len(old.Probes) == 0 {
		return nil, usagef("plan %s: no probes", o.replan)
	}
	return solve.Replan(p, old, options)
}

// routes adds to the probes what --sr asks for.
func (o *coverFlags) routes(p *cover.Problem, plan *cover.Plan) error {
	if o.sr == "" {
		return nil
	}
	for _, probes := range [][]planner.Probe{plan.Probes, plan.Second} {
		if err := addRoutes(p.Graph, probes, o.sr, p.MaxPort, o.partial); err != nil {
			return err
		}
	}
	return nil
}

// problem reads what the flags say.
func (o *coverFlags) problem() (*cover.Problem, error) {
	switch {
	case o.topology == "":
		return nil, usagef("--topology is missing: a file, or one of %s", topo.Generators)
	case o.maxHops < 0:
		return nil, usagef("--max-hops %d is negative", o.maxHops)
	case o.maxPort < 0:
		return nil, usagef("--max-port %d is negative", o.maxPort)
	case o.mtu < 1:
		return nil, usagef("--mtu %d is not positive", o.mtu)
	case o.redundant && o.directed:
		return nil, usagef("--redundant does not go with --directed: its two covers pass the two directions of every link")
	case o.verify != "" && o.replan != "":
		return nil, usagef("--check makes no plan, and --replan is for making one")
	}
	g, err := load.Topology(o.topology)
	if err != nil {
		return nil, err
	}
	p := &cover.Problem{Graph: g, Directed: o.directed, MaxHops: o.maxHops, MaxPort: o.maxPort, Redundant: o.redundant}
	if o.sr != "" {
		hops, port, err := routeLimits(o.sr, o.mtu)
		if err != nil {
			return nil, err
		}
		limit := func(asked, most int) int {
			if asked == 0 {
				return most
			}
			return min(asked, most)
		}
		p.MaxHops, p.MaxPort = limit(p.MaxHops, hops), limit(p.MaxPort, port)
	}
	if o.depots != "" {
		if p.Depots, err = readDepots(o.depots, g); err != nil {
			return nil, err
		}
	}
	if len(o.skip) > 0 {
		p.Skip = make([]bool, g.NumLinks())
		for _, name := range o.skip {
			links, err := g.LookupLinks(name)
			if err != nil {
				return nil, usagef("--skip: %w", err)
			}
			for _, l := range links {
				p.Skip[l] = true
			}
		}
	}
	return p, p.Validate()
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

// coverTable writes a plan for people: a probe a line, and what there is to know about all of them.
func coverTable(w io.Writer, plan *cover.Plan, most int) error {
	b := bufio.NewWriter(w)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	routes := len(plan.Probes) > 0 && plan.Probes[0].Route != ""
	fmt.Fprint(t, "PROBE\tHOPS\tFROM\tTO\tPATH")
	if routes {
		fmt.Fprint(t, "\tROUTE")
	}
	fmt.Fprintln(t)
	for _, probes := range [][]planner.Probe{plan.Probes, plan.Second} {
		for _, p := range probes {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s", p.ID, len(p.Nodes)-1, p.Agent, p.Collector, shorten(p.Nodes))
			if routes {
				fmt.Fprintf(t, "\t%s", p.Route)
			}
			fmt.Fprintln(t)
		}
	}
	t.Flush()
	s := plan.Stats
	pass := "probes pass"
	if s.Probes == 1 {
		pass = "probe passes"
	}
	fmt.Fprintf(b, "\n%s: %d %s %d links in %d hops (%d more than once), %d to %d each, variance %.3f\n",
		plan.Topology, s.Probes, pass, s.Links, s.Traversals, s.Duplicated, s.Shortest, s.Longest, s.Variance)
	if plan.Kept+plan.KeptSecond > 0 {
		fmt.Fprintf(b, "kept from the older plan: the first %d", plan.Kept)
		if plan.KeptSecond > 0 {
			fmt.Fprintf(b, ", and %d of the second cover", plan.KeptSecond)
		}
		fmt.Fprintln(b)
	}
	if len(plan.Second) > 0 {
		fmt.Fprintf(b, "second cover: %d probe%s; a failed link hides at most %d others\n", len(plan.Second), plural(len(plan.Second)), s.Blind)
	}
	how := howGood(&s.Stats, fmt.Sprintf("the best there is has at least %g", s.LowerBound))
	fmt.Fprintf(b, "%s, objective %g: %s; %.3f s\n", plan.Algorithm, s.Objective, how, s.Seconds)
	for _, u := range plan.NotProbed {
		from := ""
		if u.From != "" {
			from = " from " + u.From
		}
		fmt.Fprintf(b, "not probed: %s%s: %s\n", u.Link, from, u.Reason)
	}
	writeTransition(b, plan.Transition, "probes", most)
	if plan.Partial {
		fmt.Fprintln(b, "This plan is partial: it does not pass every link.")
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// shorten gives a path of many nodes by its beginning and end.
func shorten(nodes []string) string {
	const most = 8
	if len(nodes) <= most {
		return strings.Join(nodes, " > ")
	}
	return strings.Join(nodes[:most-2], " > ") + " > ... > " + nodes[len(nodes)-1]
}
